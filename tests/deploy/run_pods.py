"""Runs the pods that pods.mjs prints, and starts again what Kubernetes would, by the manifests' own fields.

A StatefulSet's container is always started again, also after its end. A Job's pod that fails is replaced, unless its exit
status is one that podFailurePolicy ends the Job for, or the Job's pods have failed more often than backoffLimit says. First
delays are Kubernetes' own. What is not Kubernetes': a replaced pod keeps its address, and nothing is probed.

Ends with 0 when all Jobs are complete, with 1 when one has failed; then, and at SIGTERM, whatever still runs is killed.
"""

import argparse
import itertools
import json
import signal
import subprocess
import sys
import time

# Of the first replacement of a Job's pod, and of a container's second restart; both double from there.
BACKOFF_SECONDS = 10


def exit_status(returncode):
    """As a container runtime says it."""
    return 128 - returncode if returncode < 0 else returncode


class Pod:
    def __init__(self, spec, command, secrets, log):
        self.spec, self.name, self.log = spec, spec["name"], log
        mounts = [("--mount", f"{secrets}/{secret}:{place}:ro") for place, secret in spec["secrets"].items()]
        self.command = [*command, *itertools.chain.from_iterable(mounts), "--user", spec["user"], "--", *spec["argv"]]
        self.starts = 0
        self.process = None
        self.start_at = time.monotonic()

    def start(self):
        self.start_at = None
        self.starts += 1
        with open(f"{self.log}/{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        say(f"{self.name} is process {self.process.pid}, start {self.starts}")

    def start_later(self, failures):
        seconds = BACKOFF_SECONDS * 2 ** (failures - 1) if failures > 0 else 0
        self.start_at = time.monotonic() + seconds
        say(f"{self.name} is started again in {seconds} s")


def say(text):
    print(text, flush=True)


class Pods:
    def __init__(self, pods):
        self.pods = pods
        self.failures = {}
        self.complete = set()

    def run(self):
        jobs = {pod.name for pod in self.pods if pod.spec["kind"] == "Job"}
        while not jobs <= self.complete:
            for pod in self.pods:
                if pod.start_at is not None and time.monotonic() >= pod.start_at:
                    pod.start()
                elif pod.process is not None and pod.process.poll() is not None:
                    self.ended(pod)
            time.sleep(0.05)
        say("all Jobs are complete")

    def ended(self, pod):
        status = exit_status(pod.process.returncode)
        pod.process = None
        say(f"{pod.name} ended with status {status}")
        if pod.spec["kind"] == "StatefulSet":
            pod.start_later(pod.starts - 1)
        elif status == 0:
            self.complete.add(pod.name)
        else:
            self.failed(pod, status)

    def failed(self, pod, status):
        owner = pod.spec["owner"]
        self.failures[owner] = self.failures.get(owner, 0) + 1
        if status in pod.spec["failJobOn"]:
            sys.exit(f"Job {owner} has failed: status {status} ends it")
        if self.failures[owner] > pod.spec["backoffLimit"]:
            sys.exit(f"Job {owner} has failed: its pods failed {self.failures[owner]} times")
        pod.start_later(self.failures[owner])

    def kill(self):
        for pod in self.pods:
            if pod.process is not None:
                pod.process.kill()
                pod.process.wait()


def check(spec):
    """What Kubernetes would refuse, or this does not know."""
    allowed = {"StatefulSet": ["Always"], "Job": ["Never"]}[spec["kind"]]
    if spec["restartPolicy"] not in allowed:
        sys.exit(f"{spec['name']}: restartPolicy: value {spec['restartPolicy']}; allowed: {', '.join(allowed)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", required=True, help="what pods.mjs has printed")
    parser.add_argument("--secrets", required=True, help="the folder that secrets.mjs has unpacked the Secrets in")
    parser.add_argument("--logs", required=True, help="the folder of the pods' logs")
    parser.add_argument("command", nargs="+", help="run_image.sh and its options, but --user")
    options = parser.parse_args()
    specs = [json.loads(line) for line in open(options.pods)]
    for spec in specs:
        check(spec)
    pods = Pods([Pod(spec, options.command, options.secrets, options.logs) for spec in specs])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    try:
        pods.run()
    finally:
        pods.kill()


if __name__ == "__main__":
    main()
