"""What the examples have in common beside their training: a seed, a device, and how good a model is."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import rubato


def seed() -> None:
    """Seeds torch: with 1, or with what `rubato compare --command` gives each of its runs."""
    torch.manual_seed(int(os.environ.get("RUBATO_SEED", "1")))


def device(session: rubato.Session) -> torch.device:
    """The GPUs of this host in turn, or the CPU if it has none."""
    count = torch.cuda.device_count()
    return torch.device("cuda", session.local_rank % count) if count else torch.device("cpu")


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """Which part of the examples it classifies right."""
    model.eval()
    where = next(model.parameters()).device
    right = 0
    for x, y in DataLoader(data, batch_size=250):
        right += int((model(x.to(where)).argmax(1) == y.to(where)).sum())
    model.train()
    return right / len(data)
