#!/usr/bin/env python3
"""What checkpoints cost a job that trains: a multilayer perceptron with Adam, with a checkpoint every ten seconds and
with none.

A machine's speed changes by more from job to job than what is to be measured. So it is one job, recorded in phases by
`rubato trace`: in every other one `rubato checkpoint --now` is asked for checkpoints, at the beginning and then every
ten seconds, or when the one before is complete if that takes longer. A phase's rate is that of its steps, from the end
of the first to the end of the last. The next phase begins when the last checkpoint is complete.

Printed, as JSON: steps a second with and without, and the median of the ratios of neighbouring phases; the longest time
from one step's end to the next one's, with and without; the most memory that servers took over what they take without;
and how long their parts took to be written, beside dd, which writes and syncs as many bytes to the same disk while the
job trains. The memory is compared with that of a job without checkpoints, which is run first: one that makes some has
what it needs for them from its start.

    bazel build //cli/command:rubato //coordinator //server //worker
    bench/checkpoint_bench.py --directory=DIR      # on the disk that is to be measured
"""

import argparse
import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

CONFIG = """
name: "checkpoint_bench"
cluster {{ servers: {servers} workers: {workers} lease_seconds: 30 }}
model {{
  input_shape: 256
  {layers}
  layers {{ name: "classes" linear {{ units: 10 }} }}
  loss: SOFTMAX_CROSS_ENTROPY
}}
data {{ teacher {{ train_examples: 100000000 test_examples: 16 hidden_units: 8 }} dispatch: DYNAMIC }}
optimizer {{ algorithm: ADAM learning_rate: 0.0001 }}
consistency {{ mode: {mode} }}
training {{ batch_size: {batch} max_steps: 100000000 }}
{checkpoint}
observability {{ no_tensorboard: true }}
"""


def layers(parameters):
    """Hidden layers, 8192 wide or narrower, and how many parameters the model then has."""
    width = 8192
    while width > 64 and 256 * width + width * width > parameters:
        width //= 2
    count = max(1, round((parameters - 256 * width) / (width * width)))
    text, inputs, total = "", 256, 0
    for index in range(count + 1):
        text += f'layers {{ name: "hidden{index}" linear {{ units: {width} }} }} layers {{ relu {{}} }}\n  '
        total, inputs = total + (inputs + 1) * width, width
    return text, total + 10 * (width + 1)


class Job:
    """The job; ends with the block."""

    def __init__(self, options, directory, keeps_checkpoints=True):
        self.rubato = os.path.join(options.binaries, "cli/command/rubato")
        self.run = os.path.join(directory, "run")
        self.checkpoints = os.path.join(directory, "checkpoints")
        self.trace_file = os.path.join(directory, "trace.json")
        config = os.path.join(directory, "config.textproto")
        text, self.parameters = layers(options.parameters)
        # They are made when this program asks for them.
        every = 1000000 if keeps_checkpoints else 0
        checkpoint = f'checkpoint {{ every_seconds: {every} keep: 1 directory: "{self.checkpoints}" }}'
        with open(config, "w") as file:
            file.write(CONFIG.format(servers=options.servers, workers=options.workers, batch=options.batch, layers=text,
                                     mode=options.mode, checkpoint=checkpoint))
        self.output = open(os.path.join(directory, "train.out"), "w+")
        self.launcher = subprocess.Popen(
            [self.rubato, "train", config, f"--run_directory={self.run}", f"--binaries={options.binaries}"],
            stdout=self.output, stderr=self.output, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.launcher.pid, signal.SIGKILL)
        for pid in self.tasks("coordinator", "server", "worker"):
            os.kill(pid, signal.SIGKILL)
        self.launcher.wait(30)

    def fail(self, why):
        self.output.seek(0)
        raise SystemExit(f"{why}\n{self.output.read()[-4000:]}")

    def wait_until_it_trains(self, seconds=300):
        deadline = time.monotonic() + seconds
        while self.steps() < 3:
            if self.launcher.poll() is not None or time.monotonic() > deadline:
                self.fail(f"it does not train after {seconds} s, or has ended")
            time.sleep(0.2)

    def lines(self, kind):
        try:
            with open(os.path.join(self.run, "metrics.jsonl")) as lines:
                return [json.loads(line)[kind] for line in lines if line.startswith('{"' + kind) and line.endswith("\n")]
        except FileNotFoundError:
            return []

    def steps(self):
        return max((line.get("step", 0) for line in self.lines("progress")), default=0)

    def tasks(self, *programs):
        """Process ids."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    arguments = file.read().split(b"\0")
            except OSError:
                continue
            program = os.path.basename(arguments[0]).decode(errors="replace")
            if program in programs and any(self.run.encode() in argument for argument in arguments):
                yield int(path.split("/")[2])

    def server_bytes(self):
        """Of memory that all servers have in use."""
        total = 0
        for pid in self.tasks("server"):
            try:
                with open(f"/proc/{pid}/statm") as file:
                    total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            except OSError:
                pass
        return total

    def checkpoint(self):
        """Waits until it is complete."""
        done = subprocess.run([self.rubato, "checkpoint", self.run, "--now"], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            self.fail(f"no checkpoint: {done.stdout}{done.stderr}")

    def trace(self, seconds):
        return subprocess.Popen([self.rubato, "trace", self.run, f"--seconds={seconds:.0f}", f"--output={self.trace_file}"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def step_ends(self, recording):
        """Of each worker, the times at which its steps ended, in seconds."""
        said = recording.communicate(timeout=120)[0]
        if recording.returncode != 0:
            self.fail(f"no trace: {said}")
        with open(self.trace_file) as file:
            events = json.load(file)["traceEvents"]
        ends = {}
        for event in events:
            if event["ph"] == "X" and event["name"] == "step":
                ends.setdefault(event["pid"], []).append((event["ts"] + event["dur"]) / 1e6)
        return [sorted(times) for times in ends.values()]


class PartWatch(threading.Thread):
    """Times the writing of servers' parts, and the servers' memory, by looking every 20 ms."""

    def __init__(self, job):
        super().__init__(daemon=True)
        self.job, self.stop, self.most_bytes = job, threading.Event(), 0
        self.began, self.ended = {}, {}

    def run(self):
        rounds = 0
        while not self.stop.wait(0.02):
            rounds += 1
            if rounds % 10 == 0:
                self.most_bytes = max(self.most_bytes, self.job.server_bytes())
            now = time.monotonic()
            for path in glob.glob(os.path.join(self.job.checkpoints, "step*", "*")):
                part, _, suffix = path.partition(".")
                if "server" not in os.path.basename(part):
                    continue
                if suffix.startswith("data.") and suffix.endswith(".tmp"):
                    self.began.setdefault(part, now)
                elif suffix == "manifest" and part in self.began:
                    self.ended.setdefault(part, now)

    def seconds(self):
        """Of each checkpoint whose writing was seen: from the first part's beginning to the last one's end."""
        cuts = {}
        for part, end in self.ended.items():
            cuts.setdefault(os.path.dirname(part), []).append((self.began[part], end))
        return [max(end for _, end in times) - min(begin for begin, _ in times) for times in cuts.values()]


def phase(job, options, with_checkpoints):
    """(steps a second of a worker; longest time between the ends of two steps; server bytes; seconds of each write)"""
    watch = PartWatch(job)
    recording = job.trace(options.seconds)
    time.sleep(1)  # The tasks hear of it within a heartbeat.
    watch.start()
    begin, due = time.monotonic(), time.monotonic()
    while with_checkpoints and due - begin < options.seconds - 2:
        time.sleep(max(0, due - time.monotonic()))
        job.checkpoint()
        due = max(due + options.every, time.monotonic())
    workers = job.step_ends(recording)
    time.sleep(0.1)
    watch.stop.set()
    watch.join()
    if not workers or min(map(len, workers)) < 3:
        job.fail(f"a phase of {options.seconds} s has fewer than three steps: make it longer, or the model smaller")
    rate = statistics.mean((len(ends) - 1) / (ends[-1] - ends[0]) for ends in workers)
    longest = max(after - before for ends in workers for before, after in zip(ends, ends[1:]))
    return rate, longest, watch.most_bytes, watch.seconds()


def bytes_without(options):
    """That servers take when the job is not to make checkpoints."""
    with tempfile.TemporaryDirectory(dir=options.directory) as work, Job(options, work, keeps_checkpoints=False) as job:
        job.wait_until_it_trains()
        most = 0
        for _ in range(25):
            most = max(most, job.server_bytes())
            time.sleep(0.2)
    return most


def dd_seconds(directory, size):
    path = os.path.join(directory, "dd")
    begin = time.monotonic()
    subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=4M", f"count={max(1, size >> 22)}", "conv=fsync"], check=True,
                   capture_output=True)
    seconds = time.monotonic() - begin
    os.remove(path)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=250_000_000, help="float32; Adam has twice as many besides")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--mode", default="SYNC")
    parser.add_argument("--pairs", type=int, default=5, help="of phases, one with checkpoints and one without")
    parser.add_argument("--seconds", type=float, default=40, help="of a phase")
    parser.add_argument("--every", type=float, default=10, help="seconds from one checkpoint to the next")
    parser.add_argument("--directory", help="an existing one on the disk that is to be measured; a temporary one if absent")
    parser.add_argument("--binaries", default="bazel-bin")
    options = parser.parse_args()
    # So that the job ends with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options.binaries = os.path.realpath(options.binaries)
    rates, longest, most = {True: [], False: []}, {True: [], False: []}, {True: [], False: []}
    writes, dds = [], []
    base = bytes_without(options)
    print(f"# servers {base / 2**20:.0f} MiB in a job without checkpoints", flush=True)
    with tempfile.TemporaryDirectory(dir=options.directory) as work, Job(options, work) as job:
        job.wait_until_it_trains()
        for pair in range(options.pairs):
            for with_checkpoints in ([False, True] if pair % 2 == 0 else [True, False]):
                rate, stall, server_bytes, seconds = phase(job, options, with_checkpoints)
                rates[with_checkpoints].append(rate)
                longest[with_checkpoints].append(stall)
                most[with_checkpoints].append(server_bytes)
                writes += seconds
                print(f"# {'with' if with_checkpoints else 'without'}: {rate:.4f} steps/s, longest {stall:.3f} s, servers "
                      f"{server_bytes / 2**20:.0f} MiB, writes {[round(each, 2) for each in seconds]} s", flush=True)
            size = 12 * job.parameters
            dds.append(dd_seconds(work, size))
            print(f"# dd of {size / 2**20:.0f} MiB: {dds[-1]:.2f} s", flush=True)
        parameters = job.parameters
    ratios = [on / off for on, off in zip(rates[True], rates[False])]
    print(json.dumps({
        "parameters": parameters,
        "slots_mib": round(8 * parameters / 2**20),
        "steps_per_s_without": round(statistics.median(rates[False]), 4),
        "steps_per_s_with": round(statistics.median(rates[True]), 4),
        "with_to_without": round(statistics.median(ratios), 4),
        "step_s": round(1 / statistics.median(rates[False]), 4),
        "longest_s_without": round(max(longest[False]), 4),
        "longest_s_with": round(max(longest[True]), 4),
        # Over what they take in a job that makes none.
        "servers_more_mib": round((max(most[True]) - base) / 2**20),
        "servers_more_mib_at_first": round((most[True][0] - base) / 2**20),
        "checkpoints": len(writes),
        "write_s": round(statistics.median(writes), 3) if writes else None,
        "dd_s": round(statistics.median(dds), 3),
        "dd_to_write": round(statistics.median(dds) / statistics.median(writes), 3) if writes else None,
    }))


if __name__ == "__main__":
    main()
