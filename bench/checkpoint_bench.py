#!/usr/bin/env python3
"""What checkpoints cost a job that trains: a multilayer perceptron with Adam, ten seconds with a checkpoint and ten with
none.

A machine's speed changes by more from minute to minute than what is to be measured. So it is one job, and rounds of
three turns of ten seconds, in changing order. In one nothing else happens. One begins with `rubato checkpoint --now`.
In one this program itself writes as many bytes as a checkpoint has, to as many files, past the page cache, from memory
that it has: what the disk takes from a job that shares its processors and memory, and so the limit. A turn that is not
done in ten seconds is as long as it takes. `rubato trace` records each round; a turn's steps are counted with the parts
of those that began or ended in it.

Printed, as JSON: steps a second of each kind; the medians over rounds, with 95 % bootstrap intervals, of the ratios to
the turn without, and of how much longer the longest step was that ended in a turn; the median and the greatest of those
longest steps; the longest stall, which is the most by which a step was longer than a mean one without; the most memory
that servers took over what they take without; and how long their parts took to be written, beside dd, which writes and
syncs as many bytes to the same disk while the job trains. The memory is compared with that of a job without
checkpoints, which is run first: one that makes some has what it needs for them from its start.

    bazel build //cli/command:rubato //coordinator //server //worker
    bench/checkpoint_bench.py --directory=DIR      # on the disk that is to be measured
"""

import argparse
import bisect
import concurrent.futures
import glob
import json
import mmap
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from local_job import LocalJob

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


class Job(LocalJob):
    """The job; ends with the block."""

    def __init__(self, options, directory, keeps_checkpoints=True):
        self.checkpoints = os.path.join(directory, "checkpoints")
        text, self.parameters = layers(options.parameters)
        # They are made when this program asks for them.
        every = 1000000 if keeps_checkpoints else 0
        checkpoint = f'checkpoint {{ every_seconds: {every} keep: 1 directory: "{self.checkpoints}" }}'
        super().__init__(options.binaries, directory,
                         CONFIG.format(servers=options.servers, workers=options.workers, batch=options.batch,
                                       layers=text, mode=options.mode, checkpoint=checkpoint))

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
        command = [self.rubato, "checkpoint", self.run, "--now"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            self.fail(f"no checkpoint: {done.stdout}{done.stderr}")

    def trace(self, seconds):
        merged = os.path.join(self.run, "trace.json")
        return subprocess.Popen([self.rubato, "trace", self.run, f"--seconds={seconds:.0f}", f"--output={merged}"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def step_ends(self, recording):
        """Of each worker, when its steps ended, in seconds since the epoch."""
        said = recording.communicate(timeout=120)[0]
        if recording.returncode != 0:
            self.fail(f"no trace: {said}")
        newest = max(glob.glob(os.path.join(self.run, "traces", "*")), key=os.path.getmtime)
        workers = []
        for path in glob.glob(os.path.join(newest, "worker-*.json")):
            with open(path) as file:
                trace = json.load(file)
            epoch = trace["otherData"]["epoch_unix_microseconds"]
            workers.append(sorted((epoch + event["ts"] + event["dur"]) / 1e6 for event in trace["traceEvents"]
                                  if event["ph"] == "X" and event["name"] == "step"))
        return workers


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


class PlainWrites:
    """As many bytes as a checkpoint has, in as many files."""

    BLOCK = 4 << 20

    def __init__(self, directory, size, files):
        self.paths = [os.path.join(directory, f"plain{index}") for index in range(files)]
        self.blocks = max(1, size // files // self.BLOCK)
        self.memory = mmap.mmap(-1, 16 * self.BLOCK)
        self.memory.write(os.urandom(self.BLOCK) * 16)

    def write(self):
        """Returns when all are on the disk."""
        with concurrent.futures.ThreadPoolExecutor(len(self.paths)) as threads:
            list(threads.map(self.write_file, self.paths))

    def write_file(self, path):
        with memoryview(self.memory) as memory:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
            try:
                for index in range(self.blocks):
                    at = index % 16 * self.BLOCK
                    written = os.pwrite(file, memory[at : at + self.BLOCK], index * self.BLOCK)
                    if written != self.BLOCK:
                        raise OSError(f"{path}: {written} of {self.BLOCK} bytes written")
                os.fsync(file)
            finally:
                os.close(file)
                os.remove(path)


def steps_until(ends, moment):
    """How many steps were made, with the part of the one that was being made."""
    index = bisect.bisect(ends, moment)
    if index == 0 or index == len(ends):
        raise SystemExit("the recording lacks steps: a longer --margin is needed")
    return index - 1 + (moment - ends[index - 1]) / (ends[index] - ends[index - 1])


WITHOUT, CHECKPOINT, PLAIN = "without", "with a checkpoint", "with plain writes"
KINDS = [WITHOUT, CHECKPOINT, PLAIN]


def turn_of(kind, job, plain, seconds):
    """(when it began, when it ended)"""
    begin = time.time()
    if kind == CHECKPOINT:
        job.checkpoint()
    elif kind == PLAIN:
        plain.write()
    time.sleep(max(0, begin + seconds - time.time()))
    return begin, time.time()


def round_of(order, job, plain, options):
    """By kind, (steps a second of a worker, longest step); server bytes; seconds of each write"""
    watch = PartWatch(job)
    # The tasks hear of it within a heartbeat; a step is to end before the turns and one after them.
    recording = job.trace(options.every * len(order) + 2 * options.margin)
    time.sleep(options.margin)
    watch.start()
    turns = {kind: turn_of(kind, job, plain, options.every) for kind in order}
    watch.stop.set()
    watch.join()
    workers = job.step_ends(recording)
    result = {}
    for kind, (begin, end) in turns.items():
        rate = statistics.mean((steps_until(ends, end) - steps_until(ends, begin)) / (end - begin) for ends in workers)
        longest = max((after - before for ends in workers for before, after in zip(ends, ends[1:])
                       if begin < after <= end), default=0)
        result[kind] = rate, longest
    return result, watch.most_bytes, watch.seconds()


def with_interval(values):
    """[median, and the ends of its 95 % bootstrap interval]"""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(2000))
    return [round(value, 4) for value in (statistics.median(values), medians[50], medians[-51])]


def ratio_of(kind, other, rounds):
    return with_interval([result[kind][0] / result[other][0] for result in rounds])


def longer_by(kind, rounds):
    return with_interval([result[kind][1] - result[WITHOUT][1] for result in rounds])


def stall(kind, rounds):
    """The most by which a step of these turns was longer than the mean step of the same round's turn without."""
    return max(result[kind][1] - 1 / result[WITHOUT][0] for result in rounds)


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
    parser.add_argument("--rounds", type=int, default=15, help="of three turns, one of each kind")
    parser.add_argument("--every", type=float, default=10, help="seconds of a turn")
    parser.add_argument("--margin", type=float, default=4, help="seconds recorded before the turns, and after them")
    parser.add_argument("--directory", help="an existing one on the disk that is to be measured; a temporary one if absent")
    parser.add_argument("--binaries", default="bazel-bin")
    options = parser.parse_args()
    # So that the job ends with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options.binaries = os.path.realpath(options.binaries)
    rounds, most, writes, dds = [], [], [], []
    base = bytes_without(options)
    print(f"# servers {base / 2**20:.0f} MiB in a job without checkpoints", flush=True)
    with tempfile.TemporaryDirectory(dir=options.directory) as work, Job(options, work) as job:
        size = 12 * job.parameters
        plain = PlainWrites(work, size, options.servers)
        job.wait_until_it_trains()
        for number in range(options.rounds):
            # Each kind as often first, second and last, and after each of the others.
            order = KINDS[number % 3:] + KINDS[:number % 3]
            result, server_bytes, seconds = round_of(order if number % 2 == 0 else order[::-1], job, plain, options)
            rounds.append(result)
            most.append(server_bytes)
            writes += seconds
            turns = [f"{kind} {rate:.4f} steps/s, longest {longest:.3f} s" for kind, (rate, longest) in result.items()]
            print(f"# {'; '.join(turns)}; servers {server_bytes / 2**20:.0f} MiB, "
                  f"writes {[round(each, 2) for each in seconds]} s", flush=True)
            if number % 3 == 2:
                dds.append(dd_seconds(work, size))
                print(f"# dd of {size / 2**20:.0f} MiB: {dds[-1]:.2f} s", flush=True)
        parameters = job.parameters
    steps = {kind: statistics.median(result[kind][0] for result in rounds) for kind in KINDS}
    longest = {kind: [result[kind][1] for result in rounds] for kind in KINDS}
    print(json.dumps({
        "parameters": parameters,
        "slots_mib": round(8 * parameters / 2**20),
        "steps_per_s": {kind: round(rate, 4) for kind, rate in steps.items()},
        "with_to_without": ratio_of(CHECKPOINT, WITHOUT, rounds),
        "plain_writes_to_without": ratio_of(PLAIN, WITHOUT, rounds),
        "with_to_plain_writes": ratio_of(CHECKPOINT, PLAIN, rounds),
        "step_s": round(1 / steps[WITHOUT], 4),
        "longest_s": {kind: round(statistics.median(each), 4) for kind, each in longest.items()},
        "longest_of_all_s": {kind: round(max(each), 4) for kind, each in longest.items()},
        "longest_stall_s": {kind: round(stall(kind, rounds), 4) for kind in KINDS},
        "longer_by_s": {kind: longer_by(kind, rounds) for kind in (CHECKPOINT, PLAIN)},
        # Over what they take in a job that makes none.
        "servers_more_mib": round((max(most) - base) / 2**20),
        "servers_more_mib_at_first": round((most[0] - base) / 2**20),
        "checkpoints": len(writes),
        "write_s": round(statistics.median(writes), 3) if writes else None,
        "dd_s": round(statistics.median(dds), 3) if dds else None,
        "dd_to_write": round(statistics.median(dds) / statistics.median(writes), 3) if writes and dds else None,
    }))


if __name__ == "__main__":
    main()
