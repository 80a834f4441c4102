"""How to train, and what is known of the step at work."""

from __future__ import annotations

import dataclasses
from typing import Optional

import torch


@dataclasses.dataclass(frozen=True)
class Options:
    """How to train; see DistributedOptimizer."""

    apply: str
    push: str
    accumulate: int
    weight: str
    clip_norm: Optional[float]
    unused: str
    sync_every: int
    overlap: str = "step"


@dataclasses.dataclass(frozen=True)
class Slice:
    """The leased examples of a step."""

    shard: int
    begin: int
    end: int


class StepState:
    """What is known of the step that has begun."""

    def __init__(self, parameters: int) -> None:
        # apply="worker": the mean gradients are there.
        self.exchanged = False
        # What is computed is of no use: it was computed with weights that were replaced, or the job has ended.
        self.dropped = False
        self.slice: Optional[Slice] = None
        self.told_slice = False
        self.examples = 0
        # How often backward has added to each gradient.
        self.fired = [0] * parameters
        # Of each parameter the gradient that was pushed, and its version then.
        self.pushed: list[Optional[tuple[torch.Tensor, int]]] = [None] * parameters
        # A gradient is in flight.
        self.has_pushed = False
