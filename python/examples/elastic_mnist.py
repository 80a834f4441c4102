"""MNIST with data that the coordinator leases: workers may be lost and come while it trains.

    rubato run -n 3 -- python python/examples/elastic_mnist.py --data=data/mnist

Kill one of the workers: its unfinished part of the epoch is trained by the others, each example once.
"""

import argparse

import torch
from torch.utils.data import DataLoader, Subset

import common
import mnist_data
import rubato
import rubato.torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data/mnist")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--examples", type=int, default=60000, help="how many of them to train on")
    parser.add_argument("--target", type=float, default=0.0, help="fail under this accuracy")
    arguments = parser.parse_args()
    common.seed()

    with rubato.init() as session:
        torch.set_num_threads(1)
        train = Subset(mnist_data.load(arguments.data, "train"), range(arguments.examples))
        sampler = rubato.torch.LeasedSampler(
            train, session, batch_size=arguments.batch, epochs=arguments.epochs, seed=1
        )
        loader = DataLoader(train, batch_sampler=sampler)
        device = common.device(session)
        model = mnist_data.make_model().to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model, weight="examples")
        trained = 0
        for x, y in rubato.torch.batches(loader, optimizer):
            optimizer.zero_grad()
            loss, right = mnist_data.measure(model, x.to(device), y.to(device))
            session.log({"loss": loss.item(), "accuracy": right}, len(x))
            loss.backward()
            optimizer.step()
            trained += len(x)
        print(f"rank {session.rank} has trained {trained} examples", flush=True)

    # The rank that is there at the end may be any; each has the job's weights.
    if session.rank == 0:
        reached = common.accuracy(model, mnist_data.load(arguments.data, "t10k"))
        print(f"accuracy {100 * reached:.2f} %", flush=True)
        if reached < arguments.target:
            raise SystemExit(f"accuracy {reached:.4f} is under {arguments.target}")


if __name__ == "__main__":
    main()
