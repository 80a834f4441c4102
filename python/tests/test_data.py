"""Leased data, broadcasts and buffers."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
import torch
from torch import nn

import rubato
import rubato.torch
from ranks import Job, fake_only, run_ranks
from servers import real_only
from wrapped import raised

COUNT, BATCH = 52, 4


class Positions(torch.utils.data.Dataset):
    """Each example is its index."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index


def leased(loader_workers, epochs, die_after=None, **options):
    """The indices that this rank has trained."""
    with rubato.init() as session:
        data = Positions()
        sampler = rubato.torch.LeasedSampler(
            data, session, batch_size=BATCH, epochs=epochs, shard_batches=2
        )
        loader = torch.utils.data.DataLoader(
            data, batch_sampler=sampler, num_workers=loader_workers
        )
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        rubato.torch.DistributedOptimizer(optimizer, model, **options)
        trained = []
        optimizer.zero_grad()
        for batch in rubato.torch.batches(loader, optimizer):
            if die_after is not None and len(trained) >= die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            model(batch.float()[:, None]).mean().backward()
            if sampler.ends_step:
                optimizer.step()
                optimizer.zero_grad()
            trained += [(sampler.epoch, int(index)) for index in batch]
        return trained


@pytest.mark.parametrize("loader_workers", [0, 1])
def test_each_example_of_an_epoch_is_trained_once(loader_workers):
    parts = run_ranks(2, leased, loader_workers, 2)
    assert all(parts)
    assert sorted(sum(parts, [])) == [
        (epoch, index) for epoch in range(2) for index in range(COUNT)
    ]
    orders = [[i for e, i in parts[0] if e == epoch] for epoch in range(2)]
    assert orders[0] != sorted(orders[0])


OPTIONS = [
    {"accumulate": 3},
    {"accumulate": 3, "weight": "examples", "push": "step"},
    {"apply": "local", "sync_every": 3},
    {"apply": "local", "sync_every": 2, "accumulate": 2, "weight": "examples"},
]


def leased_with(options):
    return leased(0, 2, **options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps_of_several_batches_train_each_example_once(options):
    parts = run_ranks(2, leased_with, options)
    assert sorted(sum(parts, [])) == [
        (epoch, index) for epoch in range(2) for index in range(COUNT)
    ]


@fake_only
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_servers_are_told_of_each_example_once(options):
    with Job(2) as job:
        for rank in range(2):
            job.start(rank, leased_with, options)
        for rank in range(2):
            outcome = job.outcome(rank)
            assert not outcome.kind, outcome.error
        spans = sorted(job.hub.trained)
    covered = [(epoch, i) for epoch, begin, end in spans for i in range(begin, end)]
    assert covered == [(epoch, i) for epoch in range(2) for i in range(COUNT)]
    # Steps have several batches, and none has examples of two shards.
    assert max(end - begin for _, begin, end in spans) == 2 * BATCH


@real_only
@pytest.mark.parametrize("options", OPTIONS[::2], ids=str)
def test_the_audit_counts_each_example_once(options):
    with Job(2, settings=["cluster.update_log=true"]) as job:
        job.values(leased_with, options)
        assert job.serve.end() == 0
        audit = subprocess.run(
            [job.serve.program, "audit", str(job.serve.run)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert audit.returncode == 0, audit.stdout + audit.stderr


def saves_each_epoch():
    with rubato.init() as session:
        data = Positions()
        sampler = rubato.torch.LeasedSampler(
            data, session, batch_size=BATCH, epochs=3, shard_batches=2
        )
        loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        rubato.torch.DistributedOptimizer(optimizer, model, accumulate=2)
        trained, epoch, saved = [], 0, []
        for batch in rubato.torch.batches(loader, optimizer):
            if sampler.epoch > epoch and not any(p.grad is not None for p in model.parameters()):
                saved.append(session.save(f"epoch{epoch}"))
                epoch = sampler.epoch
            model(batch.float()[:, None]).mean().backward()
            if sampler.ends_step:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            trained += [(sampler.epoch, int(index)) for index in batch]
        return trained, saved


@real_only
def test_leased_data_and_saves_go_together():
    """A batch that was taken before the save is trained after it."""
    parts = run_ranks(2, saves_each_epoch)
    assert parts[0][1] == parts[1][1] and len(parts[0][1]) == 2
    assert sorted(parts[0][0] + parts[1][0]) == [
        (epoch, index) for epoch in range(3) for index in range(COUNT)
    ]


@fake_only
def test_what_a_lost_worker_has_not_trained_is_given_to_others():
    with Job(2) as job:
        job.start(0, leased, 0, 1)
        job.start(1, leased, 0, 1, BATCH)
        outcome = job.outcome(0)
        assert not outcome.kind, outcome.error
        assert job.hub.gone == {1}
        spans = sorted((begin, end) for _, begin, end in job.hub.trained)
    covered = [i for begin, end in spans for i in range(begin, end)]
    assert covered == list(range(COUNT))


def misused():
    texts = []
    with rubato.init() as session:
        data = Positions()
        sampler = rubato.torch.LeasedSampler(data, session, batch_size=BATCH)
        texts.append(raised(rubato.InvalidCall, rubato.torch.LeasedSampler, data, batch_size=BATCH))
        loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
        texts.append(raised(rubato.InvalidCall, next, iter(sampler)))
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        texts.append(raised(rubato.InvalidCall, next, rubato.torch.batches(loader, optimizer)))
        rubato.torch.DistributedOptimizer(optimizer, model)
        texts.append(raised(rubato.InvalidCall, rubato.torch.LeasedSampler, data, batch_size=BATCH))
        wrong = torch.utils.data.DataLoader(data, sampler=sampler)
        texts.append(raised(rubato.InvalidCall, next, rubato.torch.batches(wrong, optimizer)))
        got = rubato.torch.batches(loader, optimizer)
        next(got)
        texts.append(raised(rubato.InvalidCall, next, got))
    return texts


def test_misuse_of_leases_is_told():
    expected = [
        "has one already",
        "rubato.torch.batches",
        "no DistributedOptimizer",
        "before the DistributedOptimizer",
        "batch_sampler=",
        "needs a step() or a skip()",
    ]
    texts = run_ranks(1, misused)[0]
    assert len(texts) == len(expected)
    for text, part in zip(texts, expected):
        assert part in text


def leases_with(options):
    with rubato.init() as session:
        data = Positions()
        sampler = rubato.torch.LeasedSampler(data, session, batch_size=BATCH)
        loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        rubato.torch.DistributedOptimizer(optimizer, model, **options)
        return raised(rubato.Unsupported, next, rubato.torch.batches(loader, optimizer))


def test_leases_do_not_go_with_apply_worker():
    said = run_ranks(1, leases_with, {"apply": "worker"})[0]
    assert "weights would differ between ranks" in said


def announced(leases):
    """What happens in which order: batches that are announced, and those that are there."""
    with rubato.init() as session:
        loader = [[0, 1], [2, 3], [4, 5]]
        if leases:
            data = Positions()
            sampler = rubato.torch.LeasedSampler(
                data, session, batch_size=2, shard_batches=2, shuffle=False
            )
            loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        rubato.torch.DistributedOptimizer(optimizer, model)
        events = []
        for batch in rubato.torch.batches(
            loader, optimizer, prefetch=lambda batch: events.append(("ahead", int(batch[0])))
        ):
            events.append(("there", int(batch[0])))
            optimizer.skip()
        return events


def test_batches_are_announced_before_the_one_before_them():
    expected = [("ahead", 2), ("there", 0), ("ahead", 4), ("there", 2), ("there", 4)]
    assert run_ranks(1, announced, False) == [expected]


def test_leased_batches_are_announced_within_their_shard():
    (events,) = run_ranks(1, announced, True)
    assert events[:6] == [
        *[("ahead", 2), ("there", 0), ("there", 2)],
        *[("ahead", 6), ("there", 4), ("there", 6)],
    ]
    assert [index for what, index in events if what == "there"] == list(range(0, COUNT, 2))


def forgets_the_last_step():
    with rubato.init() as session:
        data = Positions()
        sampler = rubato.torch.LeasedSampler(data, session, batch_size=BATCH, shard_batches=2)
        loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        rubato.torch.DistributedOptimizer(optimizer, model, accumulate=3)
        got = rubato.torch.batches(loader, optimizer)
        for _ in range(2):
            model(next(got).float()[:, None]).mean().backward()
        assert sampler.ends_step
        return raised(rubato.InvalidCall, next, got)


def test_the_last_batches_of_a_shard_need_a_step():
    assert "when the sampler's ends_step is true" in run_ranks(1, forgets_the_last_step)[0]


def broadcasts():
    with rubato.init() as session:
        torch.manual_seed(session.rank)
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        model(torch.randn(8, 3))
        own = [b.clone() for b in model.buffers()]
        trained = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.01)
        rubato.torch.DistributedOptimizer(optimizer, trained)
        rubato.torch.broadcast_parameters(model, root=1)
        first = [t.clone() for t in model.state_dict().values()]
        # Another module, whose tensors are others.
        other = nn.Linear(2 + session.rank, 1)
        said = (
            raised(rubato.Refused, rubato.torch.broadcast_parameters, other) if session.rank else ""
        )
        if not session.rank:
            rubato.torch.broadcast_parameters(other)
        model[1].running_mean.copy_(own[0])
        rubato.torch.sync_buffers(model)
        mean = model[1].running_mean.clone()
        model[1].running_mean.copy_(own[0])
        rubato.torch.sync_buffers(model, "root")
        return own[0], first, said, mean, model[1].running_mean.clone()


def test_broadcasts_and_buffers():
    zero, one = run_ranks(2, broadcasts)
    assert all(torch.equal(a, b) for a, b in zip(zero[1], one[1]))
    assert "(1, 3) here, and weight (1, 2) on rank 0" in one[2]
    expected = ((zero[0].double() + one[0].double()) / 2).float()
    assert torch.equal(zero[3], expected) and torch.equal(one[3], expected)
    assert torch.equal(zero[4], zero[0]) and torch.equal(one[4], zero[0])


def broadcasts_with_an_optimizer(before):
    with rubato.init() as session:
        torch.manual_seed(session.rank)
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        model(torch.randn(8, 3)).sum()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        if before:
            rubato.torch.broadcast_parameters(model.state_dict(), root=0)
        rubato.torch.DistributedOptimizer(optimizer, model)
        if not before:
            rubato.torch.broadcast_parameters(model.state_dict(), root=0)
        return list(model.state_dict().values())


@pytest.mark.parametrize("before", [True, False])
def test_a_horovod_script_may_broadcast_before_or_after_wrapping(before):
    zero, one = run_ranks(2, broadcasts_with_an_optimizer, before)
    assert all(torch.equal(a, b) for a, b in zip(zero, one))
