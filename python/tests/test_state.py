"""The optimizer's state on the servers: in and out, as torch has it."""

from __future__ import annotations

import io
import os

import torch
from torch import nn

import models
import rubato
import rubato.torch
from ranks import fake_only, run_ranks
from servers import real_only
from test_equal_to_torch import many_servers
from wrapped import raised, wrapped

STEPS = 12
KIND = "mlp"
NAMES = ["sgd", "momentum", "adamw", "rmsprop", "adagrad"]


def parts_of(size):
    parts = [models.make_batches(KIND, rank, 2 * STEPS) for rank in range(size)]
    return parts, [tuple(map(torch.cat, zip(*step))) for step in zip(*parts)]


def written(obj):
    """As it is after a file."""
    stream = io.BytesIO()
    torch.save(obj, stream)
    stream.seek(0)
    return torch.load(stream)


def in_and_out(addresses):
    """Plain torch for a while, a job from its checkpoint on, and plain torch again from what the job has saved."""
    rank, size = int(os.environ["RUBATO_RANK"]), int(os.environ["RUBATO_SIZE"])
    parts, whole = parts_of(size)
    differences = {}
    for name, address in zip(NAMES, addresses):
        plain = models.make_model(KIND)
        optimizer = models.OPTIMIZERS[name](plain.parameters())
        models.train(plain, optimizer, whole[:STEPS])
        first = written((plain.state_dict(), optimizer.state_dict()))

        model = models.make_model(KIND, seed=7 + rank)
        ours = models.OPTIMIZERS[name](model.parameters())
        if rank == 0:
            model.load_state_dict(first[0])
            ours.load_state_dict(first[1])
        with rubato.init(coordinator=address, rank=rank, size=size):
            rubato.torch.DistributedOptimizer(ours, model)
            models.train(model, ours, parts[rank][STEPS : STEPS + 6])
            saved = written((model.state_dict(), ours.state_dict()))
            models.train(model, ours, parts[rank][STEPS + 6 :])
            weights = models.weights_of(model)
        models.train(plain, optimizer, whole[STEPS:])
        after = models.weights_of(plain)

        again = models.make_model(KIND, seed=9)
        resumed = models.OPTIMIZERS[name](again.parameters())
        again.load_state_dict(saved[0])
        resumed.load_state_dict(saved[1])
        models.train(again, resumed, whole[STEPS + 6 :])
        differences[name] = (
            models.largest_difference(weights, after),
            models.largest_difference(models.weights_of(again), after),
            {k: sorted(v) for k, v in saved[1]["state"].items() if v != {}}
            == {k: sorted(v) for k, v in optimizer.state_dict()["state"].items() if any_state(v)},
        )
    return differences


def any_state(entry):
    return any(value is not None for value in entry.values())


@real_only
def test_state_of_torch_goes_in_and_comes_out():
    with many_servers(2, len(NAMES)) as addresses:
        for differences in run_ranks(2, in_and_out, addresses):
            assert {n: d for n, d in differences.items() if max(d[:2]) > 1e-5 or not d[2]} == {}


def test_losing_the_state_would_be_seen():
    model = models.make_model(KIND)
    optimizer = models.OPTIMIZERS["adam"](model.parameters())
    batches = models.make_batches(KIND, 0, 2 * STEPS)
    models.train(model, optimizer, batches[:STEPS])
    other = models.make_model(KIND)
    other.load_state_dict(model.state_dict())
    models.train(model, optimizer, batches[STEPS:])
    models.train(other, models.OPTIMIZERS["adam"](other.parameters()), batches[STEPS:])
    assert models.largest_difference(models.weights_of(model), models.weights_of(other)) > 1e-3


def counted():
    """The state before a step, after one, with a parameter that is never used, and when it is asked for too late."""
    with rubato.init():
        model = nn.ModuleDict({"used": nn.Linear(3, 2), "unused": nn.Linear(3, 2)})
        for parameter in model["unused"].parameters():
            parameter.requires_grad_(False)
        optimizer = torch.optim.Adam(
            [
                {"params": model["unused"].parameters()},
                {"params": model["used"].parameters(), "lr": 0.5},
            ]
        )
        rubato.torch.DistributedOptimizer(optimizer, model, unused="skip")
        before = optimizer.state_dict()
        for _ in range(3):
            optimizer.zero_grad()
            model["used"](torch.ones(1, 3)).sum().backward()
            said = raised(rubato.InvalidCall, optimizer.state_dict)
            optimizer.step()
        after = optimizer.state_dict()
        assert "before it: those of rank 0 count" in raised(
            rubato.InvalidCall, optimizer.load_state_dict, after
        )
        return before["state"], after, said


@real_only
def test_the_layout_is_torchs():
    before, after, said = run_ranks(1, counted)[0]
    assert before == {}
    assert "between backward() and step()" in said
    assert sorted(after["state"]) == [2, 3]
    plain = torch.optim.Adam([nn.Parameter(torch.ones(1))])
    plain.param_groups[0]["params"][0].grad = torch.ones(1)
    plain.step()
    expected = plain.state_dict()["state"][0]
    for entry in after["state"].values():
        assert list(sorted(entry)) == sorted(expected)
        assert type(entry["step"]) is type(expected["step"])
        assert float(entry["step"]) == 3
    assert [group["lr"] for group in after["param_groups"]] == [1e-3, 0.5]


def refused():
    with rubato.init():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.Adam(model.parameters())
        parameter = next(model.parameters())
        optimizer.state[parameter] = {"step": torch.tensor(1.0), "exp_avg": torch.zeros(3)}
        return raised(rubato.InvalidCall, wrapped, model, optimizer)


@fake_only
def test_state_that_does_not_fit_is_refused():
    said = run_ranks(1, refused)[0]
    assert "exp_avg of weight is (3,), and the parameter" in said
