"""When gradients are pushed, what may be done with them before and after, and how they count."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import models
import rubato
import rubato.torch
from ranks import Job, fake_only, run_ranks
from wrapped import Branches, alone, backward, linear, raised, wrapped


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
