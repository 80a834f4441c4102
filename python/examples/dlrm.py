"""A DLRM (Naumov et al. 2019) on generated clicks, in Criteo's form: 13 numbers and 26 keys an example.

    rubato run -n 2 -- python python/examples/dlrm.py

The keys' rows stay on the servers; each step moves those of its batch alone, and the next batch's come with it. A
logistic regression on the same examples is what it is compared with: it cannot know which keys go together.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import common
import rubato
import rubato.torch

NUMBERS, FIELDS, WIDTH = 13, 26, 16


class Dlrm(nn.Module):
    """Numbers become a vector by a perceptron; the dot products of it and of all rows go through another one."""

    def __init__(self, rows: nn.Module) -> None:
        """`rows`: keys [examples, FIELDS] to [examples, FIELDS, WIDTH]."""
        super().__init__()
        self.rows = rows
        self.bottom = nn.Sequential(nn.Linear(NUMBERS, 64), nn.ReLU(), nn.Linear(64, WIDTH))
        pairs = torch.tril_indices(FIELDS + 1, FIELDS + 1, offset=-1)
        self.register_buffer("pairs", pairs[0] * (FIELDS + 1) + pairs[1])
        self.top = nn.Sequential(nn.Linear(WIDTH + pairs.shape[1], 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, numbers: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        """Logits of a click."""
        first = self.bottom(numbers)
        vectors = torch.cat([first[:, None], self.rows(keys)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)[:, self.pairs]
        logits: torch.Tensor = self.top(torch.cat([first, products], 1))
        return logits[:, 0]


class Logistic(nn.Module):
    """A weight for each number and each key."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.numbers = nn.Linear(NUMBERS, 1)
        self.keys = nn.EmbeddingBag(FIELDS * rows, 1, mode="sum", sparse=True)
        nn.init.zeros_(self.keys.weight)
        self.register_buffer("first", torch.arange(FIELDS) * rows)

    def forward(self, numbers: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        """Logits of a click."""
        logits: torch.Tensor = self.numbers(numbers) + self.keys(keys + self.first)
        return logits[:, 0]


def power_law(rows: int, examples: int, exponent: float, generator: torch.Generator):
    """Keys [examples, FIELDS] under `rows`: the k-th one is as likely as k to the power of -exponent."""
    weights = torch.arange(1, rows + 1, dtype=torch.float64) ** -exponent
    ends = (weights / weights.sum()).cumsum(0)
    drawn = torch.rand(examples, FIELDS, generator=generator, dtype=torch.float64)
    return torch.searchsorted(ends, drawn).clamp(max=rows - 1)


def clicks(examples: int, rows: int, seed: int, exponent: float = 1.5) -> TensorDataset:
    """Numbers, keys of each field under `rows`, and labels, which a key's hidden effect and pairs of keys decide."""
    hidden = torch.Generator().manual_seed(1)
    effects = torch.randn(FIELDS, rows, generator=hidden) * 0.1
    vectors = torch.randn(FIELDS, rows, 2, generator=hidden) * 0.35
    slopes = torch.randn(NUMBERS, generator=hidden) * 0.2
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(examples, NUMBERS, generator=generator)
    keys = power_law(rows, examples, exponent, generator)
    logits = numbers @ slopes - 0.5
    total, squares = torch.zeros(examples, 2), torch.zeros(examples)
    for field in range(FIELDS):
        logits += effects[field, keys[:, field]]
        row = vectors[field, keys[:, field]]
        total += row
        squares += row.square().sum(1)
    logits += (total.square().sum(1) - squares) / 2  # The dot products of all pairs.
    labels = (torch.rand(examples, generator=generator) < torch.sigmoid(logits)).float()
    return TensorDataset(numbers, keys, labels)


def auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    """How likely a click has a higher score than an example without one."""
    ranks = torch.empty(len(scores), dtype=torch.float64)
    ranks[scores.argsort()] = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    ones = float(labels.sum())
    above = float(ranks[labels > 0].sum()) - ones * (ones + 1) / 2
    return above / (ones * (len(labels) - ones))


@torch.no_grad()
def measure(model: nn.Module, data: TensorDataset, of_keys=lambda keys: keys) -> float:
    """The AUC."""
    model.eval()
    scores = [model(x, of_keys(keys)) for x, keys, _ in DataLoader(data, 1000)]
    model.train()
    return auc(torch.cat(scores), data.tensors[2])


def train_logistic(data: TensorDataset, rows: int, epochs: int, batch: int) -> nn.Module:
    """Beside the job, for comparison."""
    model = Logistic(rows)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for numbers, keys, labels in DataLoader(data, batch, shuffle=True):
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(numbers, keys), labels).backward()
            optimizer.step()
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100000)
    parser.add_argument("--rows", type=int, default=100000, help="keys that a field has")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    arguments = parser.parse_args()
    common.seed()

    with rubato.init() as session:
        torch.set_num_threads(1)
        train = clicks(arguments.examples, arguments.rows, seed=2)
        test = clicks(max(1000, arguments.examples // 10), arguments.rows, seed=3)
        # One table for all fields: a key has its field in its upper bits.
        fields = torch.arange(FIELDS) << 40
        rows = rubato.torch.EmbeddingBag(
            WIDTH, table="rows", mode=None, learning_rate=0.05, initial_bound=0.1
        )
        model = Dlrm(rows)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model)
        sampler = DistributedSampler(train, session.size, session.rank, seed=1)
        loader = DataLoader(train, arguments.batch, sampler=sampler)
        for epoch in range(arguments.epochs):
            sampler.set_epoch(epoch)
            batches = rubato.torch.batches(
                loader, optimizer, prefetch=lambda batch: rows.prefetch(batch[1] + fields)
            )
            for step, (numbers, keys, labels) in enumerate(batches):
                optimizer.zero_grad()
                logits = model(numbers, keys + fields)
                loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
                session.log({"loss": loss.item(), "epoch": epoch + step / len(loader)}, len(keys))
                loss.backward()
                optimizer.step()
        # In the job: the rows are the servers'.
        with session.pause("evaluation"):
            reached = measure(model, test, lambda keys: keys + fields) if session.rank == 0 else 0.0

    if session.rank == 0:
        logistic = train_logistic(train, arguments.rows, arguments.epochs, arguments.batch)
        other = measure(logistic, test)
        print(f"AUC {reached:.4f}, of a logistic regression {other:.4f}", flush=True)


if __name__ == "__main__":
    main()
