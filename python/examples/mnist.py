"""A small CNN on MNIST: over 98.5 % after two epochs.

    ./rubato.sh fetch-data
    rubato run -n 2 -- python python/examples/mnist.py --data=data/mnist

The same under mpirun, srun and torchrun, or alone.
"""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler

import common
import mnist_data
import rubato
import rubato.torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data/mnist")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--apply", choices=["server", "worker"], default="server")
    parser.add_argument("--examples", type=int, default=60000, help="how many of them to train on")
    parser.add_argument("--target", type=float, default=0.0, help="fail under this accuracy")
    arguments = parser.parse_args()
    common.seed()

    with rubato.init() as session:
        torch.set_num_threads(1)
        train = Subset(mnist_data.load(arguments.data, "train"), range(arguments.examples))
        device = common.device(session)
        model = mnist_data.make_model().to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model, apply=arguments.apply)
        sampler = DistributedSampler(train, session.size, session.rank, seed=1)
        loader = DataLoader(train, arguments.batch, sampler=sampler)
        started = time.monotonic()
        for epoch in range(arguments.epochs):
            sampler.set_epoch(epoch)
            for step, (x, y) in enumerate(rubato.torch.batches(loader, optimizer)):
                optimizer.zero_grad()
                loss, right = mnist_data.measure(model, x.to(device), y.to(device))
                position = epoch + step / len(loader)
                session.log({"loss": loss.item(), "accuracy": right, "epoch": position}, len(x))
                loss.backward()
                optimizer.step()
        seconds = time.monotonic() - started

    # After the block: the job is over, and the weights stay.
    if session.rank == 0:
        reached = common.accuracy(model, mnist_data.load(arguments.data, "t10k"))
        print(f"accuracy {100 * reached:.2f} % after {seconds:.1f} s", flush=True)
        if reached < arguments.target:
            raise SystemExit(f"accuracy {reached:.4f} is under {arguments.target}")


if __name__ == "__main__":
    main()
