"""Samples per second of ours, DistributedDataParallel over gloo and torch's RPC parameter server, on this machine.

    python3 bench/compare_ddp.py [--models=mlp512,mlp4096,lenet,resnet20] [--rounds=5] [--seconds=4]
        [--contenders=alone,ours,ddp,rpc,slow-sync,slow-async] [--device=cuda] [--batch=64] [--bind]

Two workers of one thread, compute included; with --device=cuda on GPUs in turn, or both on the only one, without rpc, and
DistributedDataParallel over NCCL where each has its own. Runs of the contenders are interleaved; printed are medians of all
rounds and their quotients. alone is the limit: the same steps of two processes that exchange nothing, and keep what torch
frees, as ours do. The others are as they are; to have all of them do so, set MALLOC_MMAP_THRESHOLD_=1073741824 and
MALLOC_TRIM_THRESHOLD_=2147483647. Likewise ours are scheduled as batch work (docs/decisions/0038) and the others as they
are; to have all of them so, run it under `chrt -b 0`. And where there are two CPUs, ours stay on one each, as `rubato run`
starts them (docs/decisions/0039), and the others on any; with --bind all workers do as ours. slow-sync and slow-async are
ours with a straggler: worker 1 computes four times as long.
Needs RUBATO_LIBRARY, RUBATO_SIDECAR and RUBATO_PROGRAM, or an installed wheel.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "examples")]

WORKERS = 2
MODELS = ("mlp512", "mlp4096", "lenet", "resnet20")
SLOW = "slow-"  # Ours, in the mode that follows.
WARM_UP = 5  # Steps.
CONTENDERS = ("alone", "ours", "ddp", "rpc", SLOW + "sync", SLOW + "async")
SLOW_RANK, SLOW_MODEL = 1, "x4"


def place(device):
    """The device of this process's worker."""
    import torch

    if device == "cpu":
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ["RUBATO_RANK"]) % torch.cuda.device_count())


def make(name, batch, device):
    """The model, and a function that makes a batch."""
    import torch
    from torch import nn

    torch.manual_seed(1)
    if name.startswith("mlp"):
        width = int(name[3:])
        model = nn.Sequential(
            nn.Linear(784, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 10),
        )
        shape = (784,)
    elif name == "lenet":
        model = nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
        )  # fmt: skip
        shape = (1, 28, 28)
    else:
        from resnet_cifar import resnet20

        model, shape = resnet20(), (3, 32, 32)
    return model.to(device), lambda: (
        torch.randn(batch, *shape, device=device),
        torch.randint(0, 10, (batch,), device=device),
    )


def finish(device):
    """Waits for what a GPU has to do."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(step, seconds, device):
    """Steps per second after a few to warm up; all workers make about the same number."""
    for _ in range(WARM_UP):
        step()
    finish(device)
    started, steps = time.monotonic(), 0
    while time.monotonic() - started < seconds:
        step()
        steps += 1
    finish(device)
    return steps / (time.monotonic() - started)


def plain_step(options, device, wrap_model=None, wrap_optimizer=None):
    """A function that does a step of a model, both wrapped if something is given that does it."""
    import torch

    model, batch = make(options.models, options.batch, device)
    if wrap_model is not None:
        model = wrap_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if wrap_optimizer is not None:
        optimizer = wrap_optimizer(optimizer, model)
    x, y = batch()

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def train_alone(options):
    from rubato.torch._host_memory import keep_freed_memory

    device = place(options.device)
    keep_freed_memory()
    return timed(plain_step(options, device), options.seconds, device)


def train_ours(options):
    import rubato
    import rubato.torch

    device = place(options.device)
    with rubato.init():
        step = plain_step(options, device, wrap_optimizer=rubato.torch.DistributedOptimizer)
        return timed(step, options.seconds, device)


def train_ddp(options):
    import torch

    rank = int(os.environ["RUBATO_RANK"])
    store = f"tcp://127.0.0.1:{os.environ['BENCH_PORT']}"
    device = place(options.device)
    own_gpus = device.type == "cuda" and torch.cuda.device_count() >= WORKERS
    torch.distributed.init_process_group(
        "nccl" if own_gpus else "gloo", init_method=store, rank=rank, world_size=WORKERS
    )
    step = plain_step(options, device, wrap_model=torch.nn.parallel.DistributedDataParallel)
    # A rank that has ended is waited for: all make as many steps as the first would in that time.
    count = torch.tensor([max(1.0, options.seconds * timed_once(step, device))], device=device)
    torch.distributed.broadcast(count, 0)
    count = int(count)
    started = time.monotonic()
    for _ in range(count):
        step()
    finish(device)
    return count / (time.monotonic() - started)


def timed_once(step, device):
    """Steps per second of ten steps after the first ones."""
    for _ in range(WARM_UP):
        step()
    finish(device)
    started = time.monotonic()
    for _ in range(10):
        step()
    finish(device)
    return 10 / (time.monotonic() - started)


class ParameterServer:
    """As in torch's tutorial of batch updating parameter servers: the mean of all workers' gradients, one step."""

    def __init__(self, name, batch):
        import torch

        self.model, _ = make(name, batch, torch.device("cpu"))
        self.lock = threading.Lock()
        self.future = torch.futures.Future()
        self.count = 0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)

    def weights(self):
        return [p.detach() for p in self.model.parameters()]

    def update(self, gradients):
        import torch

        with self.lock:
            for parameter, gradient in zip(self.model.parameters(), gradients):
                parameter.grad += gradient / WORKERS
            self.count += 1
            future = self.future
            if self.count == WORKERS:
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                self.count, self.future = 0, torch.futures.Future()
                future.set_result(self.weights())
        return future


_server = None


def rpc_server(name, batch):
    """Runs on the process that holds the weights."""
    global _server
    if _server is None:
        _server = ParameterServer(name, batch)
    return _server.weights()


def update_server(gradients):
    return _server.update(gradients)


def train_rpc(options):
    import torch
    import torch.distributed.rpc as rpc

    global update_server
    update_server = rpc.functions.async_execution(update_server)
    rank = int(os.environ["RUBATO_RANK"])
    backend = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=8, init_method=f"tcp://127.0.0.1:{os.environ['BENCH_PORT']}"
    )
    who = "server" if rank == WORKERS else f"worker{rank}"
    rpc.init_rpc(who, rank=rank, world_size=WORKERS + 1, rpc_backend_options=backend)
    result = None
    if rank < WORKERS:
        model, batch = make(options.models, options.batch, torch.device("cpu"))
        x, y = batch()
        parameters = list(model.parameters())

        def take(weights):
            with torch.no_grad():
                for parameter, weight in zip(parameters, weights):
                    parameter.copy_(weight)

        take(rpc.rpc_sync("server", rpc_server, args=[options.models, options.batch]))

        def step():
            for parameter in parameters:
                parameter.grad = None
            torch.nn.functional.cross_entropy(model(x), y).backward()
            gradients = [p.grad for p in parameters]
            take(rpc.rpc_sync("server", update_server, args=[gradients]))

        # All make as many steps: the server waits for both.
        count = max(1, int(options.seconds * float(os.environ["BENCH_RATE"])))
        for _ in range(WARM_UP):
            step()
        started = time.monotonic()
        for _ in range(count):
            step()
        result = count / (time.monotonic() - started)
    rpc.shutdown()
    return result


def run(contender, name, options, rate):
    """Samples per second of both workers together."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve = None
    environment = {
        **os.environ,
        "BENCH_PORT": str(port),
        "BENCH_RATE": str(rate),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "TP_SOCKET_IFNAME": "lo",
        "RUBATO_SIZE": str(WORKERS),
    }
    if contender == "ours" or contender.startswith(SLOW):
        from rubato._serve import Serve

        mode = contender.removeprefix(SLOW) if contender.startswith(SLOW) else None
        serve = Serve(WORKERS, 1, 60.0, mode, None)
        environment["RUBATO_COORDINATOR"] = serve.address

    ours = serve is not None
    cpus = sorted(os.sched_getaffinity(0))

    def bind(rank):
        """In the process that becomes a worker."""
        if len(cpus) == WORKERS and rank < WORKERS and (ours or options.bind):
            os.sched_setaffinity(0, {cpus[rank]})

    def of_rank(rank):
        slow = contender.startswith(SLOW) and rank == SLOW_RANK
        model = {"RUBATO_SLOW": SLOW_MODEL} if slow else {}
        return {**environment, "RUBATO_RANK": str(rank), **model}

    processes = [
        subprocess.Popen(
            [
                sys.executable,
                __file__,
                "--worker",
                contender,
                "--models",
                name,
                f"--seconds={options.seconds}",
                f"--batch={options.batch}",
                f"--device={options.device}",
            ],
            env=of_rank(rank),
            preexec_fn=functools.partial(bind, rank),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORKERS + (contender == "rpc"))
    ]
    rates = []
    try:
        for process in processes:
            printed, _ = process.communicate(timeout=60 + 20 * options.seconds)
            if process.returncode != 0:
                sys.exit(f"{contender} on {name} has failed")
            rates += [r for r in [json.loads(printed.splitlines()[-1])] if r is not None]
    finally:
        # The others of one that has failed may wait for it.
        for process in processes:
            process.kill()
        if serve is not None:
            serve.close(10)
    return options.batch * sum(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--contenders", help="all by default; without rpc on GPUs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--batch", type=int, default=64, help="examples of a worker's batch")
    parser.add_argument("--bind", action="store_true", help="all workers stay on one CPU each")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--worker", choices=CONTENDERS, help="used by this program itself")
    options = parser.parse_args()
    if options.worker:
        import torch

        torch.set_num_threads(1)
        others = {"alone": train_alone, "ddp": train_ddp, "rpc": train_rpc}
        train = others.get(options.worker, train_ours)
        print(json.dumps(train(options)))
        return
    possible = [c for c in CONTENDERS if options.device == "cpu" or c != "rpc"]
    contenders = options.contenders.split(",") if options.contenders else possible
    if not set(contenders) <= set(possible):
        parser.error(f"--contenders: {', '.join(possible)} are possible on {options.device}")
    for name in options.models.split(","):
        rates = {contender: [] for contender in contenders}
        for _ in range(options.rounds):
            for contender in contenders:
                found = rates.get("ours")
                rate = statistics.median(found) / options.batch / WORKERS if found else 5
                rates[contender].append(run(contender, name, options, rate / 2))
        medians = {contender: statistics.median(values) for contender, values in rates.items()}
        shown = "  ".join(f"{contender} {value:9.0f}" for contender, value in medians.items())
        quotients = "  ".join(
            f"to {contender} {medians['ours'] / value:.2f}"
            for contender, value in medians.items()
            if contender != "ours" and not contender.startswith(SLOW) and "ours" in medians
        )
        if all(SLOW + mode in medians for mode in ("sync", "async")):
            quotient = medians[SLOW + "async"] / medians[SLOW + "sync"]
            quotients += f"  with a straggler, async to sync {quotient:.2f}"
        print(f"{name:9} samples/s: {shown}  {quotients}", flush=True)


if __name__ == "__main__":
    main()
