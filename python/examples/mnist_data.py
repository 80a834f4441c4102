"""MNIST's files as tensors, and a small CNN for them: what mnist.py and elastic_mnist.py have in common."""

import pathlib
import struct
from typing import Tuple

import torch
from torch import nn


def read_idx(path: pathlib.Path) -> torch.Tensor:
    """A file in IDX format, of bytes."""
    data = path.read_bytes()
    zeros, kind, dimensions = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != 8:
        raise SystemExit(f"{path} is no IDX file of bytes")
    shape = struct.unpack_from(f">{dimensions}I", data, 4)
    values = torch.frombuffer(bytearray(data), dtype=torch.uint8, offset=4 + 4 * dimensions)
    return values.view(shape)


def load(folder: str, part: str) -> torch.utils.data.TensorDataset:
    """part: "train" or "t10k"."""
    root = pathlib.Path(folder)
    if not (root / f"{part}-images-idx3-ubyte").exists():
        raise SystemExit(f"{root} has no MNIST: `./rubato.sh fetch-data` puts it into data/mnist")
    images = read_idx(root / f"{part}-images-idx3-ubyte").float().div(255).sub(0.1307).div(0.3081)
    labels = read_idx(root / f"{part}-labels-idx1-ubyte").long()
    return torch.utils.data.TensorDataset(images[:, None], labels)


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def measure(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Tuple[torch.Tensor, float]:
    """Loss, and which part of the batch was right."""
    scores = model(x)
    right = (scores.detach().argmax(1) == y).float().mean().item()
    return nn.functional.cross_entropy(scores, y), right
