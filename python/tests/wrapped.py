"""Small models with a wrapped optimizer, for tests."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rubato.torch
from ranks import run_ranks


def linear():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))


def backward(model, seed=0):
    torch.manual_seed(seed)
    model(torch.randn(5, 4)).square().mean().backward()


def wrapped(model=None, optimizer=None, **options):
    model = model or linear()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    return model, rubato.torch.DistributedOptimizer(optimizer, model, **options)


def raised(kind, call, *arguments, **options):
    """The text of the exception that the call raises."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    return str(caught.value)


def alone(function):
    """A test of one rank: the body runs in a process of its own, in a job of its own."""

    def test():
        run_ranks(1, function)

    test.__name__, test.__doc__ = "test_" + function.__name__, function.__doc__
    return test


class Branches(nn.Module):
    """Of which one is used at a time."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.left, self.right = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x, which):
        return getattr(self, which)(x)


class FakeScaler:
    """What torch.amp.GradScaler of torch 2 does around step(), on a CPU too."""

    def __init__(self, scale):
        self.scale = scale

    def step(self, optimizer):
        assert optimizer._step_supports_amp_scaling
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        overflow = any(not torch.isfinite(g).all() for g in gradients)
        optimizer.grad_scale = torch.tensor(self.scale)
        optimizer.found_inf = torch.tensor(float(overflow))
        optimizer.step()
        del optimizer.grad_scale, optimizer.found_inf
