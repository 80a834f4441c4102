"""Samples per second of a DLRM whose rows are on our servers, and of DistributedDataParallel over gloo, here.

    python3 bench/compare_dlrm.py [--contenders=alone,ours,ours-tables,ddp] [--rounds=5] [--seconds=4]
        [--rows=100000] [--batch=128] [--exponent=1.2]

The model is that of examples/dlrm.py, with 26 fields of --rows keys each that follow a power law. Two workers of
one thread; runs of the contenders are interleaved; printed are medians of all rounds and their quotients, and what
a step of a worker moves through sockets of the loopback interface, as the kernel counts it (dense tensors go
through shared memory in ours).

ours: rubato.torch.EmbeddingBag with one table for all fields; the next batch's keys go with a step. ours-tables: a
table for each field. ddp: a torch.nn.EmbeddingBag(sparse=True) for each field, whose sparse gradients gloo gathers.
alone: the same without any exchange. All train with SGD. Needs RUBATO_LIBRARY, RUBATO_SIDECAR and RUBATO_PROGRAM,
or an installed wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "examples")]

WORKERS = 2
BATCHES = 50  # Different ones.
WARM_UP = 10  # Steps.
CONTENDERS = ("alone", "ours", "ours-tables", "ddp")


def make_batches(options):
    """Those of this rank, as often as needed: numbers, keys and labels."""
    import itertools

    import torch

    from dlrm import NUMBERS, power_law

    generator = torch.Generator().manual_seed(10 + int(os.environ["RUBATO_RANK"]))
    count = BATCHES * options.batch
    keys = power_law(options.rows, count, options.exponent, generator)
    numbers = torch.randn(count, NUMBERS, generator=generator)
    labels = (torch.rand(count, generator=generator) < 0.3).float()
    parts = zip(*(tensor.split(options.batch) for tensor in (numbers, keys, labels)))
    return itertools.cycle(list(parts))


def local_rows(options):
    """A torch.nn.EmbeddingBag for each field."""
    import torch
    from torch import nn

    from dlrm import FIELDS, WIDTH

    class Rows(nn.Module):
        """Keys [examples, FIELDS] to [examples, FIELDS, WIDTH]."""

        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList(
                nn.EmbeddingBag(options.rows, WIDTH, mode="sum", sparse=True) for _ in range(FIELDS)
            )

        def forward(self, keys):
            rows = [bag(keys[:, field : field + 1]) for field, bag in enumerate(self.bags)]
            return torch.stack(rows, 1)

    return Rows()


def our_rows(tables):
    """One EmbeddingBag, or one for each field."""
    import torch
    from torch import nn

    import rubato.torch
    from dlrm import FIELDS, WIDTH

    settings = {"mode": None, "algorithm": "sgd", "learning_rate": 0.01}

    class Rows(nn.Module):
        """Keys [examples, FIELDS] to [examples, FIELDS, WIDTH]."""

        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList(
                rubato.torch.EmbeddingBag(WIDTH, table=f"field{number}", **settings)
                for number in range(FIELDS if tables else 1)
            )
            self.fields = torch.arange(FIELDS) << 40

        def forward(self, keys):
            if not tables:
                return self.bags[0](keys + self.fields)
            return torch.stack([bag(keys[:, i]) for i, bag in enumerate(self.bags)], 1)

        def prefetch(self, keys):
            """Those of the next step."""
            if not tables:
                return self.bags[0].prefetch(keys + self.fields)
            for number, bag in enumerate(self.bags):
                bag.prefetch(keys[:, number])

    return Rows()


def train(options, rows, wrap_model=None, wrap_optimizer=None, count_for=None):
    """Seconds and steps. `count_for` makes the number of steps the same on all ranks."""
    import torch

    from dlrm import Dlrm

    torch.manual_seed(1)
    own = Dlrm(rows)
    model = wrap_model(own) if wrap_model else own
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if wrap_optimizer is not None:
        optimizer = wrap_optimizer(optimizer, own)
    batches = make_batches(options)
    coming = [next(batches)]

    def step():
        numbers, keys, labels = coming.pop()
        coming.append(next(batches))
        if hasattr(rows, "prefetch"):
            rows.prefetch(coming[0][1])
        optimizer.zero_grad(set_to_none=True)
        logits = model(numbers, keys)
        torch.nn.functional.binary_cross_entropy_with_logits(logits, labels).backward()
        optimizer.step()

    def timed(count):
        started = time.monotonic()
        for _ in range(count):
            step()
        return time.monotonic() - started

    timed(WARM_UP)
    count = max(5, int(options.seconds * WARM_UP / timed(WARM_UP)))
    if count_for is not None:
        count = count_for(count)
    moved = loopback_bytes()
    seconds = timed(count)
    return {"rate": count / seconds, "bytes": (loopback_bytes() - moved) / count / WORKERS}


def loopback_bytes():
    """Sent through it by all processes since the machine was started."""
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            return int(counters.split()[8])
    return 0


def train_ours(options):
    import rubato
    import rubato.torch

    with rubato.init() as session:

        def same(count):
            return int(session.mean(float(count)))

        rows = our_rows(options.worker == "ours-tables")
        return train(
            options, rows, wrap_optimizer=rubato.torch.DistributedOptimizer, count_for=same
        )


def train_ddp(options):
    import torch

    rank = int(os.environ["RUBATO_RANK"])
    store = f"tcp://127.0.0.1:{os.environ['BENCH_PORT']}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=WORKERS)

    def same(count):
        shared = torch.tensor([count])
        torch.distributed.broadcast(shared, 0)
        return int(shared)

    wrap = torch.nn.parallel.DistributedDataParallel
    return train(options, local_rows(options), wrap_model=wrap, count_for=same)


def run(contender, options):
    """Of both workers together: samples per second; and bytes of a step of one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "BENCH_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "RUBATO_SIZE": str(WORKERS),
    }
    serve = None
    if contender.startswith("ours"):
        from rubato._serve import Serve

        serve = Serve(WORKERS, 1, 60.0, None, None)
        environment["RUBATO_COORDINATOR"] = serve.address
    command = [sys.executable, __file__, "--worker", contender]
    for name in ("seconds", "rows", "batch", "exponent"):
        command.append(f"--{name}={getattr(options, name)}")
    processes = [
        subprocess.Popen(
            command,
            env={**environment, "RUBATO_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORKERS)
    ]
    found = []
    try:
        for process in processes:
            printed, _ = process.communicate(timeout=120 + 20 * options.seconds)
            if process.returncode != 0:
                sys.exit(f"{contender} has failed")
            found.append(json.loads(printed.splitlines()[-1]))
    finally:
        # The other of one that has failed may wait for it.
        for process in processes:
            process.kill()
        if serve is not None:
            serve.close(10)
    rate = options.batch * sum(one["rate"] for one in found)
    return rate, statistics.mean(one["bytes"] for one in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rows", type=int, default=100000, help="keys that a field has")
    parser.add_argument("--batch", type=int, default=128, help="examples of a worker's batch")
    parser.add_argument("--exponent", type=float, default=1.2, help="of the power law of keys")
    parser.add_argument("--worker", choices=CONTENDERS, help="used by this program itself")
    options = parser.parse_args()
    if options.worker:
        import torch

        torch.set_num_threads(1)
        if options.worker == "alone":
            print(json.dumps(train(options, local_rows(options))))
        else:
            print(json.dumps((train_ddp if options.worker == "ddp" else train_ours)(options)))
        return
    contenders = options.contenders.split(",")
    if not set(contenders) <= set(CONTENDERS):
        parser.error(f"--contenders: {', '.join(CONTENDERS)} are possible")
    rates = {contender: [] for contender in contenders}
    moved = {contender: [] for contender in contenders}
    for _ in range(options.rounds):
        for contender in contenders:
            rate, size = run(contender, options)
            rates[contender].append(rate)
            moved[contender].append(size)
    medians = {contender: statistics.median(values) for contender, values in rates.items()}
    for contender, median in medians.items():
        size = statistics.median(moved[contender]) / 1024
        quotient = f"  ours to it {medians['ours'] / median:.2f}" if "ours" in medians else ""
        print(
            f"{contender:12} {median:9.0f} samples/s  {size:9.1f} KiB a step{quotient}", flush=True
        )


if __name__ == "__main__":
    main()
