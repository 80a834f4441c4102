#!/usr/bin/env python3
"""What looking at a job costs: MNIST's multilayer perceptron trained with everything that shows it off, with all of it
on, and with all of it on while it is traced as well, in turns.

On: /metrics of every task, all scraped once a second; event files with norms and histograms of every tensor each 100
steps; JSON logs; `rubato status --watch`, once a second. Traced: `rubato trace` in addition, from the first step to the
last. Off: none of that. The update log is off in all.

The figures are examples a second between the first and the last line of progress, and processor time of all processes
(the scraper's, which is this one, too) an example, which a busy machine changes less; and medians, over the rounds, of
both ratios to the run of the same round with everything off.

    bazel build //cli/command:rubato //coordinator //server //worker
    bench/overhead_bench.py --rounds=9
"""

import argparse
import http.client
import json
import os
import resource
import statistics
import subprocess
import tempfile
import threading
import time


def progress(run):
    """The run record's lines of progress."""
    with open(os.path.join(run, "metrics.jsonl")) as lines:
        records = [json.loads(line) for line in lines]
    return [record for record in records if record["kind"] == "progress"]


class Scraper:
    """Asks all tasks for their metrics once a second, over connections that it keeps, as Prometheus does."""

    def __init__(self, address):
        self.address, self.pages, self.stopped = address, 0, threading.Event()
        self.connections = {}
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def get(self, address, path):
        if address not in self.connections:
            self.connections[address] = http.client.HTTPConnection(address, timeout=5)
        try:
            self.connections[address].request("GET", path)
            return self.connections[address].getresponse().read()
        except (OSError, http.client.HTTPException):
            self.connections.pop(address).close()
            raise

    def run(self):
        while not self.stopped.wait(1):
            try:
                targets = [target for group in json.loads(self.get(self.address, "/targets")) for target in group["targets"]]
                for target in targets:
                    self.get(target, "/metrics")
                    self.pages += 1
            except (OSError, http.client.HTTPException):
                pass  # Not there yet, or not any more.

    def stop(self):
        self.stopped.set()
        self.thread.join()


def cpu_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))


def train(options, variant):
    """(examples a second, processor time an example) of one run."""
    shown = variant != "off"
    with tempfile.TemporaryDirectory() as work:
        run = os.path.join(work, "run")
        rubato = os.path.join(options.binaries, "cli/command/rubato")
        command = [rubato, "train", options.config, f"--run_directory={run}", f"--binaries={options.binaries}"]
        # Stopped, and an error, when it takes longer.
        command += ["--time_limit=600"]
        command += ["--set", f"training.max_steps={options.steps}", "--set", "cluster.update_log=false"]
        port = 20000 + os.getpid() % 10000
        if shown:
            command += [f"--metrics_listen=127.0.0.1:{port}", "--set", "observability.histogram_every_steps=100"]
            command += ["--set", "observability.log_format=JSON"]
        else:
            command += ["--set", "observability.no_tensorboard=true"]
        before = cpu_seconds()
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        scraper = Scraper(f"127.0.0.1:{port}") if shown else None
        others = []
        try:
            while shown and job.poll() is None and not os.path.exists(os.path.join(run, "metrics.jsonl")):
                time.sleep(0.05)
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            if shown:
                others.append(subprocess.Popen([rubato, "status", run, "--watch"], **quiet))
            if variant == "traced":
                trace = [rubato, "trace", run, "--seconds=600", f"--output={work}/trace.json"]
                others.append(subprocess.Popen(trace, **quiet))
            errors = job.communicate()[1]
            if job.returncode != 0:
                raise SystemExit(f"{' '.join(command)}: exit status {job.returncode}\n{errors}")
        finally:
            job.kill()
            for other in others:
                try:
                    other.wait(30)
                except subprocess.TimeoutExpired:
                    other.kill()
                    other.wait()
            if scraper is not None:
                scraper.stop()
        if scraper is not None and scraper.pages == 0:
            raise SystemExit("no page of metrics was read")
        records = progress(run)
        first, last = records[0], records[-1]
        rate = (last["examples"] - first["examples"]) / (last["t"] - first["t"])
        return rate, (cpu_seconds() - before) / last["examples"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=3000, help="of each run")
    parser.add_argument("--config", default="configs/mnist_mlp_sync.textproto")
    parser.add_argument("--binaries", default="bazel-bin")
    options = parser.parse_args()
    variants = ["off", "on", "traced"]
    measured = {variant: [] for variant in variants}
    for index in range(options.rounds):
        # Each is first, second and third in turn.
        for variant in variants[index % 3 :] + variants[: index % 3]:
            measured[variant].append(train(options, variant))
    for variant in variants:
        rates, costs = zip(*measured[variant])
        pairs = list(zip(measured[variant], measured["off"]))
        print(json.dumps({
            "name": variant,
            "examples_per_s": round(statistics.median(rates)),
            "cpu_us_per_example": round(1e6 * statistics.median(costs), 3),
            "examples_per_s_to_off": round(statistics.median(run[0] / off[0] for run, off in pairs), 4),
            "cpu_to_off": round(statistics.median(run[1] / off[1] for run, off in pairs), 4),
        }))


if __name__ == "__main__":
    main()
