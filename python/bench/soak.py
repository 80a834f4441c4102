"""Trains each example for a while, and says whether the processes of its job grow: resident memory and descriptors.

    python3 bench/soak.py [--examples=simplenet,mnist,...] [--steps=1000] [--limit=1.0] [--data=../data]

Each example is a job of `rubato run -n 2`. All of its processes (launcher, coordinator, server, sidecars, Python) are looked
at fifty times a second. The first third of the steps is warm-up. The others are divided into six parts, and growth is the median
of how much the least resident memory of a part is above that of the part before: one jump does not move it, nor what batches
of unequal size take for a while. Flat: that is less than `limit` MiB in 1,000 steps, and no more descriptors are open in the
median of the last third than of the second one: one that is open for a moment is none that stays. Exit status 1: something
is not flat. Needs RUBATO_LIBRARY, RUBATO_SIDECAR and RUBATO_PROGRAM, or an installed wheel. What an example reads is
generated, unless `data` has mnist/ and text/bible.txt.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
sys.path.insert(0, str(HERE.parent))

WORKERS = 2
WINDOWS = 6
PAGE_MIB = os.sysconf("SC_PAGESIZE") / (1 << 20)


@dataclasses.dataclass(frozen=True)
class Sample:
    """A process at one time."""

    step: float
    resident_mib: float
    descriptors: int


@dataclasses.dataclass(frozen=True)
class Growth:
    """What became of a process after the warm-up."""

    process: str
    steps: int
    resident_mib: float
    mib_per_1000_steps: float
    descriptors_before: int
    descriptors_after: int

    def is_flat(self, limit):
        return (
            self.mib_per_1000_steps <= limit and self.descriptors_after <= self.descriptors_before
        )


# Processes of a job.


def children(process):
    """Of all threads, and theirs. Empty if the process is gone."""
    found = []
    try:
        for listed in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, listed.read_text().split()):
                found += [child, *children(child)]
    except OSError:
        pass
    return found


def role_of(process):
    """ "coordinator", "server 0", "worker 1", "sidecar 1"; None: it is something else, or gone."""
    root = pathlib.Path(f"/proc/{process}")
    try:
        words = root.joinpath("cmdline").read_bytes().decode().split("\0")
        variables = root.joinpath("environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    name = pathlib.Path(words[0]).name
    if name in ("coordinator", "rubato"):
        return name
    if name == "server":
        return f"server {words[words.index('--task_index') + 1]}"
    rank = next((v.split("=")[1] for v in variables if v.startswith("RUBATO_RANK=")), None)
    if rank is None:
        return None
    return f"sidecar {rank}" if name == "rubato-sidecar" else f"worker {rank}"


def look_at(process):
    """Resident MiB and open descriptors. None: it is gone."""
    try:
        pages = int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * PAGE_MIB, len(os.listdir(f"/proc/{process}/fd"))
    except OSError:
        return None


class RunRecord:
    """The steps of a job, which its run record has about once a second."""

    def __init__(self, run):
        self._path = pathlib.Path(run, "metrics.jsonl")
        self._read = 0
        # (when it was read, step)
        self.steps = []

    def read(self):
        if not self._path.exists():
            return
        with self._path.open() as record:
            record.seek(self._read)
            for line in record:
                if not line.endswith("\n"):
                    break
                self._read += len(line.encode())
                progress = json.loads(line).get("progress")
                if progress and (not self.steps or progress["step"] > self.steps[-1][1]):
                    self.steps.append((time.monotonic(), progress["step"]))

    def step_at(self, when):
        """Between two lines. None: before the first line, or after the last."""
        for (begin, first), (end, last) in zip(self.steps, self.steps[1:]):
            if begin <= when < end:
                return first + (last - first) * (when - begin) / (end - begin)
        return None


def watch(command, run):
    """Runs a job to its end. {role: samples}, and its last step."""
    record, seen = RunRecord(run), collections.defaultdict(list)
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while job.poll() is None:
        record.read()
        for process in [job.pid, *children(job.pid)]:
            role, state = role_of(process), look_at(process)
            if role is not None and state is not None:
                seen[role, process].append((time.monotonic(), state))
        time.sleep(0.02)
    if job.returncode != 0:
        raise SystemExit(f"{' '.join(command)} has ended with {job.returncode}")
    samples = collections.defaultdict(list)
    for (role, _), states in seen.items():
        for when, (resident, descriptors) in states:
            step = record.step_at(when)
            if step is not None:
                samples[role].append(Sample(step, resident, descriptors))
    return samples, record.steps[-1][1] if record.steps else 0


def slope(samples):
    """MiB in 1,000 steps."""
    first, last = samples[0].step, samples[-1].step
    windows = collections.defaultdict(list)
    for sample in samples:
        number = int(WINDOWS * (sample.step - first) / (last - first))
        windows[min(number, WINDOWS - 1)].append(sample.resident_mib)
    least = [min(found) for _, found in sorted(windows.items())]
    width = (last - first) / len(least)
    return 1000 * statistics.median(b - a for a, b in zip(least, least[1:])) / width


def growth_of(role, samples, steps):
    """None: it was not there for long, as a process of a loader."""
    middle = [s for s in samples if steps / 3 <= s.step < 2 * steps / 3]
    last = [s for s in samples if s.step >= 2 * steps / 3]
    if len(middle) < 5 or len(last) < 5:
        return None
    return Growth(
        role,
        round(last[-1].step - middle[0].step),
        statistics.median(s.resident_mib for s in last),
        slope(middle + last),
        round(statistics.median(s.descriptors for s in middle)),
        round(statistics.median(s.descriptors for s in last)),
    )


# Examples.


def write_idx(path, shape, values):
    path.write_bytes(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + bytes(values))


def generate_data(folder):
    """Noise in MNIST's files, and verses of random words."""
    generator = random.Random(1)
    mnist, text = folder / "mnist", folder / "text"
    mnist.mkdir()
    text.mkdir()
    for part, count in (("train", 4096), ("t10k", 512)):
        pixels = generator.randbytes(count * 28 * 28)
        write_idx(mnist / f"{part}-images-idx3-ubyte", (count, 28, 28), pixels)
        write_idx(mnist / f"{part}-labels-idx1-ubyte", (count,), [i % 10 for i in range(count)])
    words = [f"{a}{b}{c}" for a in "bdfklmn" for b in "aeiou" for c in "lmnrst"]
    verses = (
        f"{'ABC'[i % 3]}{i + 1}:1 {' '.join(generator.choices(words, k=generator.randint(5, 40)))}"
        for i in range(6000)
    )
    (text / "bible.txt").write_text("\n".join(verses))


def arguments_of(name, steps, data):
    """Of an example, for that many steps of each of two workers."""

    def epochs(examples, batch, times=1):
        return -(-times * steps // (examples // (WORKERS * batch)))

    return {
        # Steps of well under a millisecond: more of them, or there would be little to see.
        "simplenet": [f"--steps={20 * steps}"],
        "mnist": [
            f"--data={data}/mnist",
            "--examples=4096",
            f"--epochs={epochs(4096, 32)}",
            "--batch=32",
        ],
        "elastic_mnist": [
            f"--data={data}/mnist",
            "--examples=4096",
            f"--epochs={epochs(4096, 32)}",
            "--batch=32",
        ],
        "resnet_cifar": [
            "--data=nowhere",
            "--examples=1024",
            f"--epochs={epochs(1024, 8)}",
            "--batch=8",
        ],
        # Verses of unequal length need unequal memory: more steps, to see what stays.
        "text_classifier": [
            f"--data={data}/text/bible.txt",
            "--examples=6000",
            f"--epochs={epochs(5400, 16, times=4)}",
            "--batch=16",
        ],
        # Few keys: all have their rows before the warm-up ends.
        "dlrm": [
            "--examples=4096",
            "--rows=200",
            f"--epochs={epochs(4096, 32)}",
            "--batch=32",
        ],
    }[name]


NAMES = ("simplenet", "mnist", "elastic_mnist", "resnet_cifar", "text_classifier", "dlrm")


def soak(name, arguments):
    """The growth of each process of an example's job."""
    from rubato._serve import find_program

    with tempfile.TemporaryDirectory(prefix="rubato-soak-") as folder:
        run = f"{folder}/run"
        command = [find_program(), "run", "-n", str(WORKERS), f"--run_directory={run}", "--"]
        command += [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
        samples, steps = watch(command, run)
    growths = [growth_of(role, found, steps) for role, found in sorted(samples.items())]
    return [growth for growth in growths if growth is not None], steps


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", default=",".join(NAMES))
    parser.add_argument("--steps", type=int, default=1000, help="of each worker, at least")
    parser.add_argument("--limit", type=float, default=1.0, help="MiB in 1,000 steps")
    parser.add_argument("--data", help="a folder with mnist/ and text/; otherwise generated")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    flat = True
    with tempfile.TemporaryDirectory(prefix="rubato-soak-data-") as folder:
        if not options.data:
            generate_data(pathlib.Path(folder))
        for name in options.examples.split(","):
            growths, steps = soak(name, arguments_of(name, options.steps, options.data or folder))
            print(f"{name}.py, {steps} steps", flush=True)
            for growth in growths:
                flat = flat and growth.is_flat(options.limit)
                print(
                    f"  {growth.process:12} {growth.resident_mib:8.1f} MiB  "
                    f"{growth.mib_per_1000_steps:+8.3f} MiB in 1,000 steps  "
                    f"{growth.descriptors_before:3} -> {growth.descriptors_after:3} descriptors  "
                    f"{'flat' if growth.is_flat(options.limit) else 'NOT FLAT'}",
                    flush=True,
                )
    sys.exit(0 if flat else 1)


if __name__ == "__main__":
    main()
