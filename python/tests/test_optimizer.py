"""DistributedOptimizer: what it refuses, when it pushes, and what schedulers and others see of it."""

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
        assert optimizer._step_count == 12
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
def test_pushes_in_backward_and_in_step():
    for push, expected in (("backward", 4), ("step", 0)):
        with Job(1) as job:
            job.start(0, push_counts, push)
            outcome = job.outcome(0)
            assert outcome.value == expected, outcome.error


def push_counts(push):
    """How many tensors were pushed when backward has ended."""
    with rubato.init():
        model, optimizer = wrapped(push=push)
        backward(model)
        count = sum(entry is not None for entry in optimizer._rubato._state.pushed)
        optimizer.step()
        return count


def accumulates():
    reference = linear()
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    for seeds in ((0, 1, 2), (3, 4)):  # The last group is shorter.
        plain.zero_grad()
        for seed in seeds:
            backward(reference, seed)
        plain.step()
    with rubato.init():
        model, optimizer = wrapped(accumulate=3)
        for seeds in ((0, 1, 2), (3, 4)):
            optimizer.zero_grad()
            for seed in seeds:
                backward(model, seed)
            optimizer.step()
    assert models.largest_difference(models.weights_of(model), models.weights_of(reference)) < 1e-6


test_accumulates = alone(accumulates)


def no_sync_adds_up():
    reference = linear()
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    for seed in (0, 1, 2):
        backward(reference, seed)
    plain.step()
    with rubato.init():
        model, optimizer = wrapped()
        with optimizer.no_sync():
            backward(model, 0)
            backward(model, 1)
        assert not optimizer._rubato.has_pushed
        backward(model, 2)
        assert optimizer._rubato.has_pushed
        optimizer.step()
    assert models.largest_difference(models.weights_of(model), models.weights_of(reference)) < 1e-6


test_no_sync_adds_up = alone(no_sync_adds_up)


def twice_is_an_error_that_names_the_parameter():
    with rubato.init():
        model, optimizer = wrapped()
        backward(model)
        said = raised(rubato.GradientChanged, backward, model)
        assert "1.weight" in said or "1.bias" in said
        assert 'push="step"' in said


test_twice_is_an_error_that_names_the_parameter = alone(twice_is_an_error_that_names_the_parameter)


def clipping_after_push_is_an_error():
    with rubato.init():
        model, optimizer = wrapped()
        backward(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        said = raised(rubato.GradientChanged, optimizer.step)
        assert "0.weight was changed after it had been pushed" in said and "clip_norm" in said


test_clipping_after_push_is_an_error = alone(clipping_after_push_is_an_error)


def zeroing_after_push_is_an_error():
    with rubato.init():
        model, optimizer = wrapped()
        backward(model)
        optimizer.zero_grad(set_to_none=True)
        assert "set to None or replaced" in raised(rubato.GradientChanged, optimizer.step)


test_zeroing_after_push_is_an_error = alone(zeroing_after_push_is_an_error)


def a_rate_that_changes_after_push_is_an_error():
    with rubato.init():
        model, optimizer = wrapped()
        backward(model)
        optimizer.param_groups[0]["lr"] = 0.5
        assert "group 0 has changed" in raised(rubato.GradientChanged, optimizer.step)


test_a_rate_that_changes_after_push_is_an_error = alone(a_rate_that_changes_after_push_is_an_error)


@pytest.mark.parametrize("push", ["backward", "step"])
def test_clip_norm_is_torchs(push):
    run_ranks(1, clips, push)


def clips(push):
    reference = linear()
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    backward(reference)
    torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
    plain.step()
    with rubato.init():
        model, optimizer = wrapped(clip_norm=0.01, push=push)
        backward(model)
        optimizer.step()
    assert models.largest_difference(models.weights_of(model), models.weights_of(reference)) < 1e-7


def synchronize_lets_worker_clip():
    reference = linear()
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    with rubato.init():
        model, optimizer = wrapped(apply="worker")
        for seed in range(3):
            for m, o in ((reference, plain), (model, optimizer)):
                o.zero_grad()
                backward(m, seed)
                if o is optimizer:
                    optimizer.synchronize()
                    assert "twice" in raised(rubato.InvalidCall, optimizer.synchronize)
                torch.nn.utils.clip_grad_norm_(m.parameters(), 0.01)
                o.step()
        backward(model)
        optimizer.synchronize()
        assert "after synchronize()" in raised(rubato.GradientChanged, backward, model)
    assert models.largest_difference(models.weights_of(model), models.weights_of(reference)) == 0.0


test_synchronize_lets_worker_clip = alone(synchronize_lets_worker_clip)


class Branches(nn.Module):
    """Of which one is used at a time."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.left, self.right = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x, which):
        return getattr(self, which)(x)


@pytest.mark.parametrize("unused, factor", [("zero", 0.5), ("skip", 1.0)])
def test_unused_parameters(unused, factor):
    """Rank 0 uses the left branch, rank 1 the right one."""
    for left, right in run_ranks(2, unused_parameters, unused):
        assert left == pytest.approx(factor * 0.1, abs=1e-6)
        assert right == pytest.approx(factor * 0.1, abs=1e-6)


def unused_parameters(unused):
    with rubato.init() as session:
        model = Branches()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        rubato.torch.DistributedOptimizer(optimizer, model, unused=unused)
        before = [float(model.left.bias), float(model.right.bias)]
        model(torch.ones(1, 3), ["left", "right"][session.rank]).sum().backward()
        optimizer.step()
        return before[0] - float(model.left.bias), before[1] - float(model.right.bias)


@fake_only
def test_tied_weights_and_checkpointed_blocks():
    with Job(1) as job:
        job.start(0, tied_weights)
        assert job.outcome(0).value == 1
    run_ranks(1, checkpointed_blocks)


def tied_weights():
    """How often the weight's hook has fired."""
    shared = nn.Linear(4, 4)
    with rubato.init():
        _, optimizer = wrapped(shared, torch.optim.SGD(shared.parameters(), lr=0.1))
        shared(shared(torch.ones(2, 4))).sum().backward()
        fired = optimizer._rubato._state.fired[0]
        optimizer.step()
        return fired


def checkpointed_blocks():
    from torch.utils.checkpoint import checkpoint

    model = nn.Linear(4, 4)
    with rubato.init():
        _, optimizer = wrapped(model, torch.optim.SGD(model.parameters(), lr=0.1), push="step")
        x = torch.ones(2, 4, requires_grad=True)
        total = checkpoint(model, x, use_reentrant=True) + checkpoint(model, x, use_reentrant=True)
        total.sum().backward()
        assert optimizer._rubato._state.fired[0] == 2
        optimizer.step()


def a_lost_hook_is_registered_again():
    with rubato.init():
        model, optimizer = wrapped()
        model.double().float()
        before = models.weights_of(model)
        backward(model)
        # Before torch 2.1 no hook has fired; step() pushes all the same.
        lost = not optimizer._rubato.has_pushed
        assert lost == (not hasattr(model[0].weight, "register_post_accumulate_grad_hook"))
        optimizer.step()
        assert models.largest_difference(before, models.weights_of(model)) > 0
        optimizer.zero_grad(set_to_none=True)
        backward(model)
        assert all(fired == 1 for fired in optimizer._rubato._state.fired)


test_a_lost_hook_is_registered_again = alone(a_lost_hook_is_registered_again)


def weights_by_examples():
    """Batches of 1 and 3: the mean over examples."""
    with rubato.init() as session:
        model = nn.Linear(1, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        rubato.torch.DistributedOptimizer(optimizer, model, weight="examples")
        assert "set_examples" in raised(rubato.InvalidCall, model(torch.ones(1, 1)).sum().backward)
        optimizer.zero_grad(set_to_none=True)
        before = float(model.weight)
        optimizer.set_examples([1, 3][session.rank])
        (model(torch.ones(1, 1)) * [4.0, 8.0][session.rank]).sum().backward()
        optimizer.step()
        return before - float(model.weight)


def test_weights_by_examples():
    assert run_ranks(2, weights_by_examples) == pytest.approx([7.0, 7.0], abs=1e-5)


def skips_on_rank_one():
    with rubato.init() as session:
        model = nn.Linear(1, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        rubato.torch.DistributedOptimizer(optimizer, model)
        before = float(model.weight)
        if session.rank == 1:
            optimizer.skip()
        else:
            (model(torch.ones(1, 1)) * 2).sum().backward()
            optimizer.step()
        return before - float(model.weight)


def test_skip_leaves_the_mean_to_others():
    assert run_ranks(2, skips_on_rank_one) == pytest.approx([2.0, 2.0], abs=1e-5)


def uneven():
    """Rank 0 has two batches more."""
    with rubato.init() as session:
        model, optimizer = wrapped()
        for seed in range(5 if session.rank == 0 else 3):
            optimizer.zero_grad()
            backward(model, seed)
            optimizer.step()
        return session.rank


def test_uneven_data_ends():
    assert run_ranks(2, uneven) == [0, 1]


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


@pytest.mark.parametrize("apply", ["server", "worker"])
def test_grad_scaler(apply):
    run_ranks(2, scaled, apply)


def scaled(apply):
    with rubato.init() as session:
        model = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            model.weight.fill_(1.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
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


def models_that_differ():
    with rubato.init(timeout=15.0) as session:
        layers = [nn.Linear(4, 3), nn.Linear(3, 2 + session.rank)]
        model = nn.Sequential(*layers)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        rubato.torch.DistributedOptimizer(optimizer, model)


def test_models_that_differ_are_refused_by_name():
    with Job(2) as job:
        job.start(0, models_that_differ)
        job.start(1, models_that_differ)
        outcomes = [job.outcome(rank) for rank in range(2)]
    refused = [o for o in outcomes if o.kind == "Refused"]
    assert refused and "1.weight" in refused[0].error, outcomes
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
