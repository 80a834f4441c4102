"""Every two of mode, codec, overlap, push and apply together in some job, whose mode changes while it trains."""

from __future__ import annotations

import subprocess

import pytest
import torch
from torch import nn

import models
import rubato
import rubato.torch
from pairwise import cover, pairs_of, possible_pairs
from ranks import Job
from servers import real_only

# Those that DistributedOptimizer has.
OVERLAPS = ("step", "forward", "layer")

FACTORS = {
    "begin": ("sync", "ssp:1", "async"),
    "end": ("sync", "ssp:1", "async"),
    "codec": ("NONE", "BF16", "FP16", "INT8", "TOP_K", "ONE_BIT"),
    "pull": ("NONE", "BF16", "INT8"),
    "overlap": OVERLAPS,
    "push": ("backward", "step"),
    "apply": ("server", "worker", "local"),
    "memory": ("AUTO", "OFF"),
    "servers": (1, 2),
}


def is_possible(case):
    """What the documentation does not exclude: "worker" is for sync alone, overlap for "server"."""
    if case["apply"] == "worker" and (case["begin"], case["end"]) != ("sync", "sync"):
        return False
    return case["apply"] == "server" or case["overlap"] == "step"


CASES = cover(FACTORS, is_possible)


def test_every_possible_pair_is_in_a_case():
    covered = set().union(*map(pairs_of, CASES))
    assert covered == possible_pairs(FACTORS, is_possible)
    assert all(map(is_possible, CASES))
    # A sync job that changes to sync has a new plan too; "worker" can have no other.
    worker = {("apply", "worker"), ("codec", "ONE_BIT")}
    assert any(worker <= set(case.items()) for case in CASES)


STEPS = 120
EVERY = 3


def settings_of(case):
    """Of the job's config."""
    settings = [
        "cluster.update_log=true",
        f"cluster.shared_memory={case['memory']}",
        f"compression.push.codec={case['codec']}",
        f"compression.pull.codec={case['pull']}",
    ]
    if case["codec"] == "TOP_K":
        settings.append("compression.push.fraction=0.25")
    return settings


class Teacher:
    """A linear function to be learned, from examples that each rank draws by itself."""

    def __init__(self, seed):
        self.weights = torch.randn(8, 64, generator=torch.Generator().manual_seed(9))
        self._generator = torch.Generator().manual_seed(seed)

    def loss(self, model):
        """Of a batch. Its gradient is the error of the weights, nearly."""
        x = torch.randn(64, 64, generator=self._generator)
        return (model(x) - x @ self.weights.T).square().sum() / (2 * len(x))

    def error(self, model):
        """How far the weights are from it, to how far 0 is."""
        return float((model.weight.detach() - self.weights).norm() / self.weights.norm())


def train_through_a_switch(case):
    """The last weights, how far they are from the right ones, and the modes that this rank has seen."""
    with rubato.init() as session:
        torch.manual_seed(session.rank)
        model = nn.Linear(64, 8, bias=False)
        optimizer = rubato.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1),
            model,
            apply=case["apply"],
            sync_every=EVERY if case["apply"] == "local" else 1,
            overlap=case["overlap"],
            push=case["push"],
        )
        teacher = Teacher(session.rank)
        plans = [session.plan]
        session.on_plan(plans.append)
        training = optimizer._rubato
        asked = False
        while training.step_begun.step < STEPS or len(plans) == 1:
            optimizer.zero_grad()
            teacher.loss(model).backward()
            optimizer.step()
            if session.rank == 0 and not asked and training.step_begun.step >= STEPS // 4:
                mode, _, bound = case["end"].partition(":")
                session.switch(mode, staleness=int(bound or 0))
                asked = True
        if case["overlap"] != "step":
            # Its pushes are acknowledged, which the others' last step must find in the weights.
            optimizer.synchronize()
        session.barrier("trained")
        if case["apply"] != "worker":
            # A step without gradients: everybody has the weights that all of them have made.
            for _ in range(EVERY if case["apply"] == "local" else 1):
                optimizer.skip()
        if case["overlap"] != "step":
            optimizer.synchronize()
        weights = models.weights_of(model)
        modes = [f"{p.mode}:{p.staleness}" if p.mode == "ssp" else p.mode for p in plans]
        return weights, teacher.error(model), modes


def identity(case):
    return "-".join(str(value) for value in case.values())


@real_only
@pytest.mark.parametrize("case", CASES, ids=identity)
def test_trains_through_a_switch(case):
    with Job(2, mode=case["begin"], servers=case["servers"], settings=settings_of(case)) as job:
        results = job.values(train_through_a_switch, case)
        for weights, error, modes in results:
            assert modes[0] == case["begin"] and modes[-1] == case["end"], modes
            assert error < 0.2
            assert all(map(torch.equal, weights, results[0][0]))
        assert job.serve.end() == 0, job.serve.log
        audit = subprocess.run(
            [job.serve.program, "audit", str(job.serve.run)], capture_output=True, text=True
        )
        assert audit.returncode == 0, audit.stdout
