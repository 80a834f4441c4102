"""DistributedOptimizer: what it refuses, and what schedulers, scalers and others see of it."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch
from torch import nn

import models
import rubato
import rubato.torch
from ranks import Job, fake_only, run_ranks
from wrapped import FakeScaler, alone, backward, linear, raised, wrapped


def keeps_the_same_object():
    model = linear()
    optimizer = torch.optim.Adam(model.parameters())
    with rubato.init():
        result = rubato.torch.DistributedOptimizer(optimizer, model)
        assert result is optimizer and isinstance(optimizer, torch.optim.Adam)
        assert type(optimizer).__name__ == "Adam"
        assert "Adam" in repr(optimizer)


test_keeps_the_same_object = alone(keeps_the_same_object)


def refuses_what_servers_cannot_do():
    model = linear()
    p = list(model.parameters())
    optim = torch.optim
    cases = [
        (optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1), "dampening=0.1"),
        (optim.Adam(p, amsgrad=True), "amsgrad=True"),
        (optim.AdamW(p, amsgrad=True), "amsgrad=True"),
        (optim.RMSprop(p, centered=True), "centered=True"),
        (optim.RMSprop(p, momentum=0.5), "momentum=0.5"),
        (optim.SGD(p, lr=0.1, maximize=True), "maximize=True"),
        (optim.Adam(p, capturable=True), "capturable=True"),
        (optim.Adagrad(p, lr_decay=0.1), "lr_decay=0.1"),
        (optim.Rprop(p), "Rprop is no optimizer of servers"),
        (
            optim.Adagrad([{"params": p[:1], "initial_accumulator_value": 1.0}, {"params": p[1:]}]),
            "initial_accumulator_value",
        ),
        (
            optim.SGD(
                [{"params": p[:1], "nesterov": True}, {"params": p[1:]}], lr=0.1, momentum=0.9
            ),
            "nesterov in some groups",
        ),
    ]
    with rubato.init():
        for optimizer, text in cases:
            said = raised(rubato.Unsupported, rubato.torch.DistributedOptimizer, optimizer, model)
            assert text in said and 'apply="worker"' in said, said


test_refuses_what_servers_cannot_do = alone(refuses_what_servers_cannot_do)


def refuses_options_by_name():
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rubato.init():
        for options, text in [
            ({"sync_every": 2}, 'sync_every=2 is for apply="local"'),
            ({"apply": "local", "sync_every": 0}, "sync_every=0"),
            ({"apply": "servers"}, 'apply="servers": "server", "worker", "local" allowed'),
            ({"overlap": "late"}, 'overlap="late": "step", "forward", "layer" allowed'),
            ({"overlap": "layer", "apply": "worker"}, 'overlap="layer" is for apply="server"'),
            ({"push": "late"}, 'push="late"'),
            ({"accumulate": 0}, "accumulate=0"),
            ({"clip_norm": 0.0}, "clip_norm=0.0"),
            ({"weight": "batches"}, 'weight="batches"'),
            ({"unused": "skip", "apply": "worker"}, 'unused="skip" is for apply="server"'),
        ]:
            said = raised(
                rubato.InvalidCall, rubato.torch.DistributedOptimizer, optimizer, model, **options
            )
            assert text in said, said
        lbfgs = torch.optim.LBFGS(model.parameters())
        said = raised(
            rubato.Unsupported, rubato.torch.DistributedOptimizer, lbfgs, model, apply="worker"
        )
        assert "LBFGS" in said


test_refuses_options_by_name = alone(refuses_options_by_name)


def refuses_parameters_that_servers_cannot_hold():
    with rubato.init():
        half = nn.Linear(2, 2).double()
        optimizer = torch.optim.SGD(half.parameters(), lr=0.1)
        said = raised(rubato.Unsupported, rubato.torch.DistributedOptimizer, optimizer, half)
        assert "parameter weight is of torch.float64" in said
        other = linear()
        said = raised(rubato.InvalidCall, rubato.torch.DistributedOptimizer, optimizer, other)
        assert "2 of the optimizer's parameters" in said
        table = nn.Embedding(8, 2, sparse=True)
        optimizer = rubato.torch.DistributedOptimizer(
            torch.optim.SGD(table.parameters(), lr=0.1), table, push="step"
        )
        table(torch.tensor([1, 2])).sum().backward()
        assert "weight is sparse" in raised(rubato.Unsupported, optimizer.step)


test_refuses_parameters_that_servers_cannot_hold = alone(
    refuses_parameters_that_servers_cannot_hold
)


def refuses_a_second_optimizer():
    with rubato.init():
        model, optimizer = wrapped()
        other = linear()
        second = torch.optim.SGD(other.parameters(), lr=0.1)
        said = raised(rubato.InvalidCall, rubato.torch.DistributedOptimizer, second, other)
        assert "DistributedOptimizer already" in said
        said = raised(rubato.InvalidCall, rubato.torch.DistributedOptimizer, optimizer, model)
        assert "already" in said
        assert "all groups before" in raised(rubato.Unsupported, optimizer.add_param_group, {})
        assert raised(rubato.InvalidCall, rubato.init)


test_refuses_a_second_optimizer = alone(refuses_a_second_optimizer)


def worker_has_its_own_state():
    with rubato.init():
        model = linear()
        adam = torch.optim.Adam(model.parameters())
        _, optimizer = wrapped(model, adam, apply="worker")
        backward(model)
        optimizer.step()
        saved = optimizer.state_dict()
        assert len(saved["state"]) == 4
        optimizer.load_state_dict(saved)
        backward(model)
        optimizer.step()
        assert type(optimizer).__name__ == "Adam"


test_worker_has_its_own_state = alone(worker_has_its_own_state)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("apply", ["server", "worker"])
def test_schedulers_count_and_change_the_rate(before, apply):
    run_ranks(1, schedulers, before, apply)


def schedulers(before, apply):
    batches = models.make_batches("mlp", 0, 12)
    results = []
    for distributed in (False, True):
        model = models.make_model("mlp")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if before:
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.1)
            if distributed:
                session = rubato.init()
                rubato.torch.DistributedOptimizer(optimizer, model, apply=apply)
            if not before:
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.1)
            models.train(model, optimizer, batches, scheduler)
        # Torch 2 has none.
        assert getattr(optimizer, "_step_count", 12) == 12
        results.append(models.weights_of(model))
    session.close()
    assert models.largest_difference(*results) <= 1e-5


def closures_are_called_once():
    with rubato.init():
        model, optimizer = wrapped()
        calls = []

        def closure():
            optimizer.zero_grad()
            loss = model(torch.ones(1, 4)).sum()
            loss.backward()
            calls.append(float(loss))
            return loss

        assert float(optimizer.step(closure)) == calls[0]
        assert len(calls) == 1


test_closures_are_called_once = alone(closures_are_called_once)


@fake_only
@pytest.mark.parametrize("apply", ["server", "worker"])
def test_grad_scaler(apply):
    run_ranks(2, scaled, apply)


class Strict(torch.optim.SGD):
    """Refuses what torch 2's optimizers refuse."""

    def step(self, closure=None):
        assert not hasattr(self, "grad_scale") and not hasattr(self, "found_inf")
        return super().step(closure)


def scaled(apply):
    with rubato.init() as session:
        model = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            model.weight.fill_(1.0)
        kind = torch.optim.SGD if apply == "server" else Strict
        optimizer = kind(model.parameters(), lr=1.0)
        push = "step" if apply == "server" else "backward"
        rubato.torch.DistributedOptimizer(optimizer, model, apply=apply, push=push)
        scaler = FakeScaler(1024.0)

        def step(factor):
            optimizer.zero_grad(set_to_none=True)
            (model(torch.ones(1, 1)) * factor * scaler.scale).sum().backward()
            if apply == "worker":
                optimizer.synchronize()
            scaler.step(optimizer)
            return float(model.weight)

        assert step(0.25) == pytest.approx(0.75)
        # An overflow on rank 1: with "server" rank 0's counts alone, with "worker" nobody steps.
        expected = 0.5 if apply == "server" else 0.75
        assert step(float("inf") if session.rank == 1 else 0.25) == pytest.approx(expected)
        assert step(0.25) == pytest.approx(expected - 0.25)


@fake_only
def test_scalers_need_the_right_moment():
    for apply in ("server", "worker"):
        run_ranks(1, scaler_at_the_wrong_moment, apply)


def scaler_at_the_wrong_moment(apply):
    with rubato.init():
        model, optimizer = wrapped(apply=apply)
        backward(model)
        said = raised(rubato.InvalidCall, FakeScaler(2.0).step, optimizer)
        assert ('push="step"' if apply == "server" else "synchronize()") in said


def a_disabled_scaler_is_nothing():
    with rubato.init():
        model, optimizer = wrapped()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaler = torch.cuda.amp.GradScaler(enabled=False)
        scaler.scale(model(torch.ones(1, 4)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert optimizer._rubato.steps_done == 1


test_a_disabled_scaler_is_nothing = alone(a_disabled_scaler_is_nothing)


def models_that_differ(how):
    with rubato.init(timeout=15.0) as session:
        differs = session.rank == 1
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3 if how == "shape" and differs else 2))
        named = list(model.named_parameters())
        if how == "name" and differs:
            named[2] = ("head.weight", named[2][1])
        if how == "order" and differs:
            named[2:] = reversed(named[2:])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        rubato.torch.DistributedOptimizer(optimizer, named)


@pytest.mark.parametrize("how", ["shape", "name", "order"])
def test_models_that_differ_are_refused_by_name(how):
    with Job(2) as job:
        job.start(0, models_that_differ, how)
        job.start(1, models_that_differ, how)
        outcomes = [job.outcome(rank) for rank in range(2)]
    refused = [o for o in outcomes if o.kind == "Refused"]
    assert refused and "1.weight" in refused[0].error, outcomes
    other = {"shape": "3", "name": "head.weight", "order": "1.bias"}[how]
    assert other in refused[0].error, refused[0].error
    # The other one is told instead of waiting, or finds that the coordinator has gone with the job.
    assert {o.kind for o in outcomes} <= {"Refused", "JobFailed", "Unavailable"}, outcomes


def frozen_parameters_are_left_alone():
    with rubato.init():
        model = linear()
        model[0].weight.requires_grad_(False)
        _, optimizer = wrapped(model, torch.optim.SGD(model.parameters(), lr=0.1))
        frozen = model[0].weight.clone()
        backward(model)
        optimizer.step()
        assert torch.equal(frozen, model[0].weight)
        assert len(optimizer._rubato.parameters) == 3


test_frozen_parameters_are_left_alone = alone(frozen_parameters_are_left_alone)


def the_optimizer_can_go():
    with rubato.init():
        model, optimizer = wrapped()
        backward(model)
        optimizer.step()
        del optimizer
        gc.collect()
        backward(model)


test_the_optimizer_can_go = alone(the_optimizer_can_go)
