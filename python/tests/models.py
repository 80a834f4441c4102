"""Small models and data, and plain ways to train them, which ours are compared with."""

from __future__ import annotations

import torch
from torch import nn


class Encoder(nn.Module):
    """A transformer encoder that classifies sequences."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        # With ReLU an input of 1e-8 on one side is 0 on the other where sums are rounded in another order, and the gradients
        # of that step differ by 1e-4: seen on one machine, in the last of 50 steps.
        layer = nn.TransformerEncoderLayer(
            16, 2, 32, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.output = nn.Linear(16, 4)

    def forward(self, tokens):
        return self.output(self.encoder(self.embedding(tokens)).mean(1))


def make_model(kind, seed=1):
    torch.manual_seed(seed)
    if kind == "mlp":
        return nn.Sequential(
            nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4)
        )
    if kind == "cnn":
        return nn.Sequential(
            nn.Conv2d(2, 8, 3, padding=1),
            nn.GroupNorm(2, 8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, stride=2, bias=False),
            nn.GroupNorm(4, 8),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(8 * 3 * 3, 4),
        )
    return Encoder()


def make_batches(kind, rank, steps, batch=8):
    """Those of a rank: the same in each call."""
    generator = torch.Generator().manual_seed(100 + rank)
    result = []
    for _ in range(steps):
        if kind == "mlp":
            x = torch.randn(batch, 10, generator=generator)
        elif kind == "cnn":
            x = torch.randn(batch, 2, 8, 8, generator=generator)
        else:
            x = torch.randint(0, 32, (batch, 6), generator=generator)
        result.append((x, torch.randint(0, 4, (batch,), generator=generator)))
    return result


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=1e-3),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(
        p, lr=0.02, momentum=0.8, nesterov=True, weight_decay=1e-4
    ),
    "adam": lambda p: torch.optim.Adam(p, lr=2e-3, weight_decay=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=2e-3),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
}

loss_of = nn.CrossEntropyLoss()


def train(model, optimizer, batches, scheduler=None):
    for x, y in batches:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def weights_of(model):
    """All of the parameters that the model's output depends on.

    A key's bias in attention adds the same to all scores of a query, which softmax does not see: its gradient is rounding
    alone, and adaptive optimizers make steps of full size of that.
    """
    result = []
    for name, parameter in model.named_parameters():
        values = parameter.detach().clone()
        if name.endswith("in_proj_bias"):
            width = len(values) // 3
            values[width : 2 * width] = 0
        result.append(values)
    return result


def largest_difference(one, other):
    return max(float((a - b).abs().max()) for a, b in zip(one, other))
