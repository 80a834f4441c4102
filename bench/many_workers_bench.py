#!/usr/bin/env python3
"""What a worker more costs a server, with real processes on this machine, and what the loss of half of them costs.

For each mode and number of workers, a job of its own: one server, a small network in chunks of 4 KiB, a batch of one
example. Counted over --seconds of training: the server's processor time, steps, and how long `rubato status` takes.
In sync with the most workers, half of them are killed (SIGKILL) at the same moment, while `rubato train` itself is
stopped, so that nobody starts them again: how long until the next step, and how many amendments of the plan that took.

Printed, as JSON: for each job the server's processor time per worker and step, in microseconds, and its ratio to that
with the fewest workers; steps of all workers a second; connections that broke; and of the kill the seconds from it
to a line of the run record with another step than 2.5 s after it, and the amendments.

    bazel build //cli/command:rubato //coordinator //server //worker
    bench/many_workers_bench.py --workers=2,128
"""

import argparse
import glob
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time

from local_job import LocalJob

CONFIG = """
name: "many_workers_bench"
cluster {{ servers: 1 workers: {workers} lease_seconds: {lease} chunk_bytes: 4096 start_timeout_seconds: 300 }}
model {{
  input_shape: 16
  layers {{ name: "hidden1" linear {{ units: 380 }} }} layers {{ relu {{}} }}
  layers {{ name: "hidden2" linear {{ units: 380 }} }} layers {{ relu {{}} }}
  layers {{ name: "classes" linear {{ units: 4 }} }}
  loss: SOFTMAX_CROSS_ENTROPY
}}
data {{ teacher {{ train_examples: 10000000 test_examples: 16 hidden_units: 8 }} dispatch: DYNAMIC }}
optimizer {{ algorithm: SGD learning_rate: 0.001 }}
consistency {{ mode: {mode} }}
training {{ batch_size: 1 max_steps: 100000000 }}
observability {{ no_tensorboard: true }}
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as status:
        return sum(map(int, status.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def said(job, text):
    """Lines of the tasks' logs with it."""
    count = 0
    for path in glob.glob(os.path.join(job.run, "logs", "*.log")):
        with open(path, errors="replace") as log:
            count += sum(text in line for line in log)
    return count


def status_seconds(job):
    begin = time.monotonic()
    done = subprocess.run([job.rubato, "status", job.run], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        job.fail(f"no status: {done.stdout}{done.stderr}")
    return time.monotonic() - begin


def worker_steps(job):
    """Of all workers together: a step has one example."""
    return sum(worker["examples"] for worker in job.lines("progress")[-1]["workers"])


def have_all_trained(job, workers):
    """A worker that is still being started takes processor time and pushes nothing."""
    progress = job.lines("progress")
    return bool(progress) and sum(worker["examples"] > 0 for worker in progress[-1]["workers"]) == workers


def measure(job, seconds):
    (server,) = job.tasks("server")
    begin, steps, cpu = time.monotonic(), worker_steps(job), cpu_seconds(server)
    looks = []
    while time.monotonic() < begin + seconds:
        looks.append(status_seconds(job))
        time.sleep(1)
    done = worker_steps(job) - steps
    if done == 0:
        job.fail(f"no step in {seconds} s")
    return {
        "server_us_per_worker_and_step": round((cpu_seconds(server) - cpu) / done * 1e6, 1),
        "worker_steps_per_s": round(done / (time.monotonic() - begin), 1),
        "status_s": round(statistics.median(looks), 3),
        "longest_status_s": round(max(looks), 3),
        "broken_connections": said(job, " broke"),
    }


def kill_half(job, lease):
    workers = sorted(job.tasks("worker"))
    os.kill(job.launcher.pid, signal.SIGSTOP)
    amendments = said(job, "goes on with")
    for pid in workers[: len(workers) // 2]:
        os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    # There is a line every second, or two with 128 workers; then all steps that were done before are in one.
    time.sleep(2.5)
    steps = job.steps()
    job.wait_for("step after the kill", lambda: job.steps() > steps, lease + 60)
    seconds = time.monotonic() - begin
    time.sleep(2)
    os.kill(job.launcher.pid, signal.SIGCONT)
    return {"killed": len(workers) // 2, "lease_s": lease, "to_the_next_step_s": round(seconds, 2),
            "amendments": said(job, "goes on with") - amendments}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="2,128", help="numbers of workers, ascending, separated by commas")
    parser.add_argument("--modes", default="SYNC,ASYNC")
    parser.add_argument("--seconds", type=float, default=30, help="of training that are measured")
    parser.add_argument("--lease", type=float, default=5, help="seconds after which a silent worker is given up")
    parser.add_argument("--binaries", default="bazel-bin")
    options = parser.parse_args()
    options.binaries = os.path.realpath(options.binaries)
    counts = [int(count) for count in options.workers.split(",")]
    results = {}
    for mode in options.modes.split(","):
        for workers in counts:
            config = CONFIG.format(workers=workers, mode=mode, lease=options.lease)
            with tempfile.TemporaryDirectory() as work, LocalJob(options.binaries, work, config) as job:
                job.wait_for("step of every worker", lambda: have_all_trained(job, workers), 300)
                time.sleep(5)
                result = measure(job, options.seconds)
                few = results.get(f"{mode} {counts[0]}", result)
                result["to_fewest"] = round(
                    result["server_us_per_worker_and_step"] / few["server_us_per_worker_and_step"], 3)
                if mode == "SYNC" and workers == counts[-1] and workers > 1:
                    result["kill"] = kill_half(job, options.lease)
            results[f"{mode} {workers}"] = result
            print(f"# {mode}, {workers} workers: {result}", flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
