"""ResNet-20 on CIFAR-10, or on generated pictures of ten kinds where CIFAR-10 is absent.

    rubato run -n 2 -- python python/examples/resnet_cifar.py --data=data/cifar

The folder has CIFAR-10's binary version: data_batch_1.bin to data_batch_5.bin and test_batch.bin.
"""

import argparse
import pathlib
from typing import Tuple

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import common
import rubato
import rubato.torch


class Block(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.around: nn.Module = nn.Identity()
        if stride != 1:
            shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.around = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.relu(self.body(x) + self.around(x))
        return result


def resnet20() -> nn.Module:
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    widths = [16, 16, 32, 64]
    for inputs, outputs in zip(widths, widths[1:]):
        for number in range(3):
            first = number == 0
            stride = 2 if first and outputs != inputs else 1
            layers.append(Block(inputs if first else outputs, outputs, stride))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def read_cifar(files: "list[pathlib.Path]") -> TensorDataset:
    data = b"".join(file.read_bytes() for file in files)
    rows = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, 3073)
    pictures = rows[:, 1:].reshape(-1, 3, 32, 32).float().div(255).sub(0.5).div(0.25)
    return TensorDataset(pictures, rows[:, 0].long())


def generate(count: int, seed: int) -> TensorDataset:
    """Ten patterns, each shifted at random and under noise."""
    patterns = torch.randn(10, 3, 8, 8, generator=torch.Generator().manual_seed(7))
    patterns = nn.functional.interpolate(patterns, size=32, mode="bilinear", align_corners=False)
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=generator)
    shifts = torch.randint(0, 32, (count, 2), generator=generator).tolist()
    pictures = torch.stack(
        [patterns[k].roll(shift, (1, 2)) for k, shift in zip(labels.tolist(), shifts)]
    )
    noise = 2 * torch.randn(pictures.shape, generator=generator)
    return TensorDataset(pictures + noise, labels)


def load(folder: str, examples: int) -> Tuple[TensorDataset, TensorDataset]:
    root = pathlib.Path(folder)
    if (root / "data_batch_1.bin").exists():
        train = read_cifar([root / f"data_batch_{number}.bin" for number in range(1, 6)])
        return train, read_cifar([root / "test_batch.bin"])
    return generate(examples, 1), generate(max(100, examples // 10), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data/cifar")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--examples", type=int, default=5000, help="how many to generate")
    arguments = parser.parse_args()
    common.seed()

    with rubato.init() as session:
        torch.set_num_threads(1)
        train, test = load(arguments.data, arguments.examples)
        device = common.device(session)
        model = resnet20().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        sampler = DistributedSampler(train, session.size, session.rank, seed=1)
        loader = DataLoader(train, arguments.batch, sampler=sampler, drop_last=True)
        steps = max(1, arguments.epochs * len(loader))
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model)
        session.on_plan(lambda plan: print(f"rank {session.rank}: {plan}", flush=True))
        for epoch in range(arguments.epochs):
            sampler.set_epoch(epoch)
            for step, (x, y) in enumerate(rubato.torch.batches(loader, optimizer)):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
                session.log({"loss": loss.item(), "epoch": epoch + step / len(loader)}, len(x))
                loss.backward()
                optimizer.step()
                scheduler.step()
        # Running means of batch normalisation are each worker's own until here. After a time in async workers are not all
        # at the end of their data: those that are not go on meanwhile.
        with session.pause("buffers"):
            rubato.torch.sync_buffers(model)

    if session.rank == 0:
        print(f"accuracy {100 * common.accuracy(model, test):.2f} %", flush=True)


if __name__ == "__main__":
    main()
