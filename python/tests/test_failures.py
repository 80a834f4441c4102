"""What goes wrong in one rank, or takes long there, and what the others and the job's record have of it."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
import torch
from torch import nn

import models
import rubato
import rubato.torch
from ranks import Job, run_ranks
from servers import real_only
from wrapped import backward, linear, wrapped

STEPS = 20


def record_of(job, kind):
    """The lines of a kind in the run record."""
    text = (job.serve.run / "metrics.jsonl").read_text()
    lines = (json.loads(line) for line in text.splitlines() if line.endswith("}"))
    return [line[kind] for line in lines if kind in line]


def wait_for(condition, what, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)


def why_it_left(job, rank):
    """The text that is known of the end of a rank; None: it has done its part."""
    if job.hub is not None:
        return job.hub.left[rank]
    ends = [m for m in record_of(job, "member") if m["task"] == f"worker {rank}"]
    return next((m["reason"] for m in ends if m["event"] != "JOINED"), "") or None


# Exceptions.


class Breaks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("bad gradient 17")


class Pictures(torch.utils.data.Dataset):
    """Some of which cannot be read."""

    def __init__(self, bad):
        self._bad = bad

    def __len__(self):
        return 2 * STEPS

    def __getitem__(self, index):
        if index == self._bad:
            raise ValueError(f"bad picture {index}")
        return torch.full([4], index / STEPS)


def refuse(gradient):
    raise ValueError("bad gradient 18")


def fails(where):
    """Rank 1 fails after some steps. How many steps were made."""
    with rubato.init() as session:
        model, optimizer = wrapped()
        failing = session.rank == 1
        data = Pictures(bad=17 if failing and where == "loader" else None)
        loader = torch.utils.data.DataLoader(data, 2, num_workers=1 if where == "loader" else 0)
        steps = 0
        for x in loader:
            optimizer.zero_grad()
            output = model(x)
            if failing and steps == 8:
                if where == "backward":
                    output = model[1](Breaks.apply(model[0](x)))
                elif where == "hook":
                    model[0].weight.register_hook(refuse)
            output.square().mean().backward()
            optimizer.step()
            steps += 1
        return steps


@pytest.mark.parametrize(
    "where, text",
    [("backward", "bad gradient 17"), ("hook", "bad gradient 18"), ("loader", "bad picture 17")],
)
def test_exceptions_are_told_and_the_others_go_on(where, text):
    """In backward, of which gradients were pushed already; in a hook; in a process of a DataLoader."""
    with Job(2) as job:
        for rank in range(2):
            job.start(rank, fails, where)
        outcomes = [job.outcome(rank) for rank in range(2)]
        assert outcomes[0].value == STEPS, outcomes[0]
        assert outcomes[1].kind == "ValueError" and text in outcomes[1].error
        if job.serve is not None:
            assert job.serve.end() == 0
        assert text in why_it_left(job, 1) and why_it_left(job, 0) is None


# Processes that go.


def goes(how):
    """Rank 1 goes in the middle of a step. How many workers the others were at last."""
    with rubato.init() as session:
        model, optimizer = wrapped()
        for step in range(100_000):
            optimizer.zero_grad()
            backward(model)
            if session.rank == 1 and step == 5:
                if how == "exit":
                    os._exit(0)
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
            if rubato.current_session().plan.workers == 1:
                return step


@pytest.mark.parametrize("how, status", [("exit", 0), ("kill", -signal.SIGKILL)])
@real_only
def test_a_process_that_goes_without_a_word_is_not_waited_for(how, status):
    with Job(2) as job:
        for rank in range(2):
            job.start(rank, goes, how)
        assert job.outcome(1).exit_status == status
        # Rank 1 came through step 4, of which it needed rank 0's gradients; rank 0 may be in that step when it hears of
        # the loss.
        assert job.outcome(0).value >= 4
        assert job.serve.end() == 0
        # Its sidecar has seen its end; nobody had to wait until its lease was over.
        assert "has ended without rubato_close" in why_it_left(job, 1)


def trains_until_it_ends():
    with rubato.init() as session:
        model, optimizer = wrapped()
        steps = 0
        for _ in rubato.torch.batches(range(1_000_000), optimizer):
            optimizer.zero_grad()
            backward(model)
            optimizer.step()
            steps += 1
            if session.rank == 1 and steps == 5:
                os.kill(os.getpid(), signal.SIGTERM)
            if session.rank == 0 and session.plan.workers == 1:
                break
        return steps


@real_only
def test_sigterm_ends_a_rank_after_its_step():
    with Job(2) as job:
        first, second = job.values(trains_until_it_ends)
        assert second >= 5 and first >= second
        assert job.serve.end() == 0
        left = [m["event"] for m in record_of(job, "member") if m["task"] == "worker 1"]
        assert left == ["LEFT"]


# Ranks that come later.


def goes_on(until):
    """Trains until somebody has put that value; the first step and weights, and how many workers there were at most."""
    with rubato.init() as session:
        torch.manual_seed(100 + session.rank)
        model = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            model.weight.fill_(5.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        rubato.torch.DistributedOptimizer(optimizer, model)
        first = (optimizer._rubato.step_begun.step, float(model.weight))
        most, steps = 0, 0
        while True:
            optimizer.zero_grad()
            model(torch.ones(1, 1)).sum().backward()
            optimizer.step()
            steps += 1
            most = max(most, session.plan.workers)
            if steps == 20:
                session._client.put(f"{session.rank} has trained", b"")
            try:
                session._client.get(until, 0.0)
                return first, most
            except rubato.Timeout:
                pass


@real_only
@pytest.mark.parametrize("rank", [1, 2])
def test_a_rank_that_comes_later_has_the_jobs_weights(rank, monkeypatch):
    """In the place of one that was lost, and as one more."""
    with Job(2) as job:
        job.start(0, goes_on, f"{rank} has trained")
        job.start(1, goes_on, "never" if rank == 1 else f"{rank} has trained")
        wait_for(lambda: progress(job) > 0, "the job makes steps")
        if rank == 1:
            job.processes[1].kill()
            job.outcome(1)
        else:
            job.size = 3
        job.start(rank, goes_on, f"{rank} has trained")
        outcome = job.outcome(rank)
        assert not outcome.kind, f"{outcome.kind}: {outcome.error}"
        (step, weight), _ = outcome.value
        assert step > 0 and weight < 5.0 - 1e-3 * step / 2
        (step, weight), most = job.outcome(0).value
        assert (step, weight) == (0, 5.0)
        assert most == (2 if rank == 1 else 3)
        if rank == 2:
            assert not job.outcome(1).kind
        assert job.serve.end() == 0


def progress(job):
    """The last step in the run record."""
    try:
        lines = record_of(job, "progress")
    except FileNotFoundError:
        return 0
    return lines[-1]["step"] if lines else 0


# Long evaluations.

TIMEOUT = 1.0


def evaluates_for_long(apply):
    """Rank 0 evaluates for longer than anybody is waited for, in Python, without a pause of its interpreter."""
    with rubato.init() as session:
        model, optimizer = wrapped(apply=apply)
        for step in range(12):
            optimizer.zero_grad()
            backward(model, step)
            optimizer.step()
            if step == 5 and session.rank == 0:
                with session.pause("evaluation"):
                    end = time.monotonic() + 2.2 * TIMEOUT
                    while time.monotonic() < end:
                        pass
        return models.weights_of(model)


@real_only
@pytest.mark.parametrize("apply", ["server", "worker"])
def test_a_long_evaluation_is_waited_for(apply):
    """Longer than a lease, and than a worker may take for a step. With "worker" the others wait, and their weights are as if
    nothing had been.
    """
    settings = [f"cluster.lease_seconds={TIMEOUT}", f"training.step_timeout_seconds={TIMEOUT}"]
    with Job(2, settings=settings) as job:
        weights = job.values(evaluates_for_long, apply)
        assert job.serve.end() == 0
        events = {m["event"] for m in record_of(job, "member")}
        assert events == {"LEFT"}
    if apply == "worker":
        assert all(map(torch.equal, *weights))


# What hooks do not see.


class Stops(torch.autograd.Function):
    """Has no gradient for what is before it."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None


def unseen_gradients():
    with rubato.init():
        model, optimizer = wrapped(linear())
        before = models.weights_of(model)
        # By autograd.grad: no hook is called, and there is no gradient that could be pushed.
        torch.autograd.grad(model(torch.ones(1, 4)).sum(), list(model.parameters()))
        assert not optimizer._rubato.has_pushed
        optimizer.step()
        assert models.largest_difference(before, models.weights_of(model)) == 0
        # Hooks of parameters that None comes to.
        model[1](Stops.apply(model[0](torch.ones(1, 4)))).sum().backward()
        optimizer.step()
        after = models.weights_of(model)
        assert [bool((a != b).any()) for a, b in zip(before, after)] == [False, False, True, True]


def test_gradients_that_hooks_do_not_see():
    run_ranks(1, unseen_gradients)
