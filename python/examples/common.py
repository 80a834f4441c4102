"""What the examples have in common beside their training: a seed, and how good a model is."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def seed() -> None:
    """Seeds torch: with 1, or with what `rubato compare --command` gives each of its runs."""
    torch.manual_seed(int(os.environ.get("RUBATO_SEED", "1")))


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """Which part of the examples it classifies right."""
    model.eval()
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in DataLoader(data, batch_size=250))
    model.train()
    return right / len(data)
