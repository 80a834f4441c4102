"""apply="local": the same weights as local copies that are averaged every few steps, and what ends a round early."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn

import models
import rubato
import rubato.torch
from ranks import Job, fake_only, run_ranks
from rubato import _abi
from test_equal_to_torch import many_servers
from wrapped import Branches, FakeScaler, alone, backward, linear, raised, wrapped

EVERY = 4


def local(model=None, optimizer=None, every=EVERY, **options):
    return wrapped(model, optimizer, apply="local", sync_every=every, **options)


def one():
    """A model of one number, 1 at the start, whose gradient is what is given, and SGD of rate 1."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
    return model, torch.optim.SGD(model.parameters(), lr=1.0)


def step_by(model, optimizer, gradient):
    optimizer.zero_grad()
    (model(torch.ones(1, 1)) * gradient).sum().backward()
    optimizer.step()
    return float(model.weight)


# What torch alone computes.


def averaged(kind, name, every, batches):
    """Copies that are trained alone, each on its batches, and averaged every few steps and at the end of their own data:
    what each of them has then.
    """
    copies = [models.make_model(kind) for _ in batches]
    optimizers = [models.OPTIMIZERS[name](m.parameters()) for m in copies]
    for begin in range(0, max(map(len, batches)), every):
        parts = [b[begin : begin + every] for b in batches]
        at_work = [i for i, part in enumerate(parts) if part]
        for i in at_work:
            models.train(copies[i], optimizers[i], parts[i])
        with torch.no_grad():
            for together in zip(*(copies[i].parameters() for i in at_work)):
                mean = torch.stack(together).mean(0)
                for parameter in together:
                    parameter.copy_(mean)
    return [models.weights_of(m) for m in copies]


def train_local(kind, name, address, rank, size, batches, **options):
    model = models.make_model(kind, seed=1 if rank == 0 else 50 + rank)
    with rubato.init(coordinator=address, rank=rank, size=size):
        optimizer = models.OPTIMIZERS[name](model.parameters())
        rubato.torch.DistributedOptimizer(optimizer, model, **options)
        models.train(model, optimizer, batches)
    return models.weights_of(model)


def against_copies(names, addresses, lengths):
    rank, size = int(os.environ["RUBATO_RANK"]), int(os.environ["RUBATO_SIZE"])
    batches = [models.make_batches("mlp", r, n) for r, n in enumerate(lengths)]
    differences = {}
    for name, address in zip(names, addresses):
        ours = train_local(
            "mlp",
            name,
            address,
            rank,
            size,
            batches[rank],
            apply="local",
            sync_every=EVERY,
        )
        expected = averaged("mlp", name, EVERY, batches)[rank]
        differences[name] = models.largest_difference(ours, expected)
    return differences


@pytest.mark.parametrize("lengths", [(24, 24), (22, 22), (18, 11)])
def test_local_equals_averaged_copies(lengths):
    """Whole rounds; a short one at the end; a rank that has less."""
    names = ["sgd", "momentum", "adam"]
    with many_servers(2, len(names)) as addresses:
        for differences in run_ranks(2, against_copies, names, addresses, lengths):
            assert {n: d for n, d in differences.items() if d > 1e-6} == {}


def against_server(addresses):
    rank, size = int(os.environ["RUBATO_RANK"]), int(os.environ["RUBATO_SIZE"])
    batches = models.make_batches("cnn", rank, 12)
    server, ours = (
        train_local("cnn", "sgd", address, rank, size, batches, **options)
        for address, options in zip(addresses, ({"apply": "server"}, {"apply": "local"}))
    )
    return models.largest_difference(server, ours)


def test_local_after_each_step_is_sgd_of_servers():
    with many_servers(2, 2) as addresses:
        assert max(run_ranks(2, against_server, addresses)) <= 1e-6


# Modes.


def trains_in_a_mode():
    """Each rank alone moves by 1 a round, and all movements are applied in full."""
    with rubato.init() as session:
        model, optimizer = local(*one(), every=2)
        session.barrier("begun")
        for _ in range(6):
            step_by(model, optimizer, 0.5)
        session.barrier("trained")
        optimizer.skip()
        optimizer.skip()
        return session.plan.mode, float(model.weight)


@pytest.mark.parametrize("mode, last", [("ssp:1", -5.0), ("async", -5.0), ("sync", -2.0)])
def test_local_in_all_modes(mode, last):
    with Job(2, mode=mode) as job:
        if job.hub is not None:
            name, _, bound = mode.partition(":")
            job.hub.mode, job.hub.staleness = _abi.MODES[name], int(bound or 0)
        for rank in range(2):
            job.start(rank, trains_in_a_mode)
        outcomes = [job.outcome(rank) for rank in range(2)]
    assert not any(o.kind for o in outcomes), outcomes
    for found, weight in (o.value for o in outcomes):
        assert found == mode.partition(":")[0]
        assert weight == pytest.approx(last)


def switches():
    """Rank 0 switches to async in the middle of a round, and back when rank 1 has seen it."""
    with rubato.init() as session:
        model, optimizer = local(*one(), every=3)
        modes = []
        session.on_plan(lambda plan: modes.append(plan.mode))

        def train_until(mode):
            while modes[-1:] != [mode]:
                step_by(model, optimizer, 1e-3)

        step_by(model, optimizer, 1e-3)
        if session.rank == 0:
            session.switch("async")
        train_until("async")
        if session.rank == 0:
            session._client.get("seen", 30.0)
            session.switch("sync")
        else:
            session._client.put("seen", b"")
        train_until("sync")
        return modes


def test_local_switches_while_it_trains():
    for modes in run_ranks(2, switches):
        assert modes[0] == "async" and modes[-1] == "sync"


# What a round is.


def counts_rounds():
    with rubato.init():
        model, optimizer = local(every=3)
        training = optimizer._rubato
        steps = []
        for seed in range(7):
            optimizer.zero_grad()
            with optimizer.no_sync():
                backward(model, seed)
            optimizer.step()
            steps.append(training.steps_done)
        assert steps == [0, 0, 1, 1, 1, 2, 2]
        optimizer.synchronize()
        assert training.steps_done == 3
        optimizer.synchronize()  # Nothing since.
        assert training.steps_done == 3
        optimizer.zero_grad()
        backward(model)
        said = raised(rubato.InvalidCall, optimizer.synchronize)
        assert "after step()" in said


test_local_counts_rounds = alone(counts_rounds)


def clips_and_accumulates():
    reference = linear()
    plain = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    with rubato.init():
        model = linear()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        local(model, optimizer, every=2, clip_norm=0.01, accumulate=2)
        for m, o in ((reference, plain), (model, optimizer)):
            for seed in range(5):
                o.zero_grad()
                backward(m, 2 * seed)
                backward(m, 2 * seed + 1)
                if o is plain:
                    torch.nn.utils.clip_grad_norm_(m.parameters(), 0.01)
                o.step()
    assert models.largest_difference(models.weights_of(model), models.weights_of(reference)) < 1e-6


test_local_clips_and_accumulates = alone(clips_and_accumulates)


@pytest.mark.parametrize("before", [True, False])
def test_local_schedulers_count_every_step(before):
    run_ranks(1, schedulers, before)


def schedulers(before):
    results = []
    for distributed in (False, True):
        model = models.make_model("mlp")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        step_lr = torch.optim.lr_scheduler.StepLR
        scheduler = step_lr(optimizer, 3, 0.1) if before else None
        if distributed:
            session = rubato.init()
            local(model, optimizer)
        scheduler = scheduler or step_lr(optimizer, 3, 0.1)
        models.train(model, optimizer, models.make_batches("mlp", 0, 10), scheduler)
        # Torch 2 has none.
        assert getattr(optimizer, "_step_count", 10) == 10
        results.append(models.weights_of(model))
    session.close()
    assert models.largest_difference(*results) <= 1e-6


def overflows():
    """Rank 1's second step overflows: that one alone is missing."""
    with rubato.init() as session:
        model, optimizer = local(*one(), every=2)
        scaler = FakeScaler(1024.0)
        for number in range(2):
            optimizer.zero_grad()
            overflow = session.rank == 1 and number == 1
            factor = float("inf") if overflow else 0.25
            (model(torch.ones(1, 1)) * factor * scaler.scale).sum().backward()
            scaler.step(optimizer)
        return float(model.weight)


def test_local_grad_scaler():
    assert run_ranks(2, overflows) == pytest.approx([1 - 0.375, 1 - 0.375])


def skips():
    """Rank 1 skips one batch of two, and then both."""
    with rubato.init() as session:
        model, optimizer = local(*one(), every=2)
        weights = []
        for of_rank_1 in ((False, True), (True, True)):
            for skip in of_rank_1:
                if session.rank == 1 and skip:
                    optimizer.skip()
                else:
                    step_by(model, optimizer, 1.0)
            weights.append(float(model.weight))
        return weights


def test_local_skip_leaves_the_mean_to_others():
    for weights in run_ranks(2, skips):
        assert weights == pytest.approx([-0.5, -2.5])


def weights_by_examples():
    """Rank 0 has batches of 1 and moves by 2, rank 1 of 3 and moves by 4."""
    with rubato.init() as session:
        model, optimizer = local(*one(), every=2, weight="examples")
        model(torch.ones(1, 1)).sum().backward()
        assert "set_examples" in raised(rubato.InvalidCall, optimizer.step)
        for _ in range(2):
            optimizer.set_examples([1, 3][session.rank])
            step_by(model, optimizer, [1.0, 2.0][session.rank])
        return float(model.weight)


def test_local_weights_by_examples():
    assert run_ranks(2, weights_by_examples) == pytest.approx([-2.5, -2.5])


@pytest.mark.parametrize("unused, moved", [("zero", 0.1), ("skip", 0.2)])
def test_local_unused_parameters(unused, moved):
    """Rank 0 uses the left branch, rank 1 the right one."""
    for left, right in run_ranks(2, unused_parameters, unused):
        assert left == pytest.approx(moved, abs=1e-6)
        assert right == pytest.approx(moved, abs=1e-6)


def unused_parameters(unused):
    with rubato.init() as session:
        model = Branches()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        local(model, optimizer, every=2, unused=unused)
        before = [float(model.left.bias), float(model.right.bias)]
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            model(torch.ones(1, 3), ["left", "right"][session.rank]).sum().backward()
            optimizer.step()
        return before[0] - float(model.left.bias), before[1] - float(model.right.bias)


def has_its_own_state():
    with rubato.init():
        model = linear()
        _, optimizer = local(model, torch.optim.Adam(model.parameters()))
        backward(model)
        optimizer.step()
        saved = optimizer.state_dict()
        assert len(saved["state"]) == 4
        optimizer.load_state_dict(saved)
        assert "all groups before" in raised(rubato.Unsupported, optimizer.add_param_group, {})


test_local_has_its_own_state = alone(has_its_own_state)


def takes_any_optimizer():
    with rubato.init():
        model = linear()
        lbfgs = torch.optim.LBFGS(model.parameters())
        said = raised(rubato.Unsupported, local, model, lbfgs)
        assert 'apply="local": LBFGS' in said
        _, optimizer = local(model, torch.optim.Rprop(model.parameters()))
        backward(model)
        optimizer.step()


test_local_takes_any_optimizer = alone(takes_any_optimizer)


def pauses_between_rounds():
    """Rank 1 goes on while rank 0 does something else."""
    with rubato.init() as session:
        model, optimizer = local(*one(), every=2)
        if session.rank == 1:
            for _ in range(6):
                step_by(model, optimizer, 0.5)
            session.barrier("trained")
            return None
        step_by(model, optimizer, 0.5)
        said = raised(rubato.InvalidCall, session.pause("evaluation").__enter__)
        assert "1 local steps were not pushed" in said and "synchronize()" in said
        optimizer.synchronize()
        with session.pause("evaluation"):
            session.barrier("trained")
        return float(model.weight)


def test_local_pauses_between_rounds():
    assert run_ranks(2, pauses_between_rounds)[0] == pytest.approx(1 - 0.75 - 2.0)


# Ends.


@fake_only
def test_local_goes_back_to_the_weights_of_the_cut():
    """What was not pushed is lost with the rest, and the optimizer's momentum stays."""
    with Job(1) as job:
        job.start(0, goes_back)
        job.hub.wait_until(lambda hub: b"middle" in hub.values)
        job.hub.roll_back()
        with job.hub._changed:
            job.hub.values[b"back"] = b""
            job.hub._changed.notify_all()
        outcome = job.outcome(0)
    assert outcome.value == pytest.approx([-1.5, 1.0, -0.875]), outcome


def goes_back():
    with rubato.init() as session:
        model, _ = one()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
        local(model, optimizer, every=2)
        step_by(model, optimizer, 1.0)
        weights = [step_by(model, optimizer, 1.0)]  # By 1 and by 1.5.
        step_by(model, optimizer, 1.0)
        session._client.put("middle", b"")
        session._client.get("back", 30.0)
        weights.append(step_by(model, optimizer, 1.0))
        weights.append(step_by(model, optimizer, 0.9375))
        return weights


def keeps_going():
    with rubato.init():
        model, optimizer = local()
        for _ in rubato.torch.batches(range(1_000_000), optimizer):
            optimizer.zero_grad()
            backward(model)
            optimizer.step()
        return optimizer._rubato._round.batches


@fake_only
def test_local_ends_when_the_job_is_stopped():
    with Job(1) as job:
        job.start(0, keeps_going)
        job.hub.wait_until(lambda hub: len(hub.pushes) > 3)
        job.hub.stop()
        assert job.outcome(0).value == EVERY


@fake_only
def test_local_pushes_what_it_has_at_the_end():
    """At the end of the block, of the session and of the program; not if it fails."""
    for how, pushes in (("block", 2), ("close", 2), ("exit", 2), ("error", 1)):
        with Job(1) as job:
            job.start(0, ends_early, how)
            outcome = job.outcome(0)
            assert bool(outcome.kind) == (how == "error"), outcome
            assert len(job.hub.pushes) == pushes, how
            assert (job.hub.left[0] is None) == (how != "error")
            assert float(job.hub.weights()[0]) == pytest.approx(1.0 - (6 if pushes == 2 else 4))


def ends_early(how):
    session = rubato.init()
    model, optimizer = local(*one())

    def train():
        for _ in range(6):
            step_by(model, optimizer, 1.0)

    if how in ("block", "error"):
        with session:
            train()
            if how == "error":
                raise ValueError("no more")
        return
    train()
    if how == "close":
        session.close()
