"""Sessions: values, barriers, plans, pauses; and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

import models
import rubato
import rubato.torch
from ranks import Job, fake_only, run_ranks
from wrapped import backward, raised, wrapped


def values():
    with rubato.init() as session:
        rank = session.rank
        assert (session.size, session.local_rank) == (3, rank)
        assert "after DistributedOptimizer" in raised(rubato.InvalidCall, session.barrier, "early")
        wrapped()
        means = [
            session.mean(float(rank)),
            session.mean({"loss": rank, "accuracy": 1.0}, weight=rank),
            session.mean([rank, 2 * rank]),
        ]
        got = session.broadcast_object({"from": rank}, root=1)
        large = session.broadcast_object(bytes([rank]) * (40 << 20) if rank == 2 else None, root=2)
        session.barrier("end")
        session.barrier("end")
        assert "root 3: 0 to 2" in raised(rubato.InvalidCall, session.broadcast_object, 0, root=3)
        return means, got, len(large), large[:1]


def test_values():
    for means, got, size, byte in run_ranks(3, values):
        assert means == [1.0, {"accuracy": 1.0, "loss": pytest.approx(5 / 3)}, [1.0, 2.0]]
        assert got == {"from": 1}
        assert (size, byte) == (40 << 20, b"\x02")


def means_that_differ():
    with rubato.init() as session:
        wrapped()
        names = {"loss": 1.0} if session.rank == 0 else {"cost": 1.0}
        return raised(rubato.InvalidCall, session.mean, names)


def test_means_that_differ_are_an_error_on_all_ranks():
    for text in run_ranks(2, means_that_differ):
        assert text == "mean: rank 0 has ['loss'], and rank 1 has ['cost']"


def lonely_barrier():
    with rubato.init() as session:
        wrapped()
        if session.rank == 0:
            return raised(rubato.Timeout, session.barrier, "all", timeout=0.3)


def test_barrier_times_out():
    said = run_ranks(2, lonely_barrier)[0]
    assert "all" in said and "0.3 s" in said


@fake_only
def test_logs_loss_and_accuracy():
    with Job(1) as job:
        job.start(0, logs)
        outcome = job.outcome(0)
        assert not outcome.kind, outcome.error
        assert job.hub.reports == [(0, 10, 20.0, 5.0), (0, 1, 3.0, -1.0)]
        assert job.hub.epochs == [0.5]


def logs():
    with rubato.init() as session:
        wrapped()
        session.log({"loss": 2.0, "accuracy": 0.5, "epoch": 0.5}, examples=10)
        session.log({"loss": 3.0})
        assert "perplexity" in raised(rubato.Unsupported, session.log, {"perplexity": 2.0})


def switches():
    with rubato.init() as session:
        model, optimizer = wrapped()
        plans = []
        session.on_plan(lambda plan: plans.append((plan.mode, threading.current_thread().name)))
        assert session.plan.mode == "sync"
        step = 0
        while [mode for mode, _ in plans][-2:] != ["async", "sync"]:
            optimizer.zero_grad()
            backward(model)
            optimizer.step()
            step += 1
            if session.rank == 0 and step == 5:
                session.switch("async", lr_scale=0.5)
            if session.rank == 0 and step == 15:
                session.switch("sync")
        assert 'mode "fast"' in raised(rubato.InvalidCall, session.switch, "fast")
        return plans


def test_switches_while_it_trains():
    for plans in run_ranks(2, switches):
        assert ("async", "MainThread") in plans and plans[-1] == ("sync", "MainThread")


def switch_with_worker():
    with rubato.init() as session:
        wrapped(apply="worker")
        return raised(rubato.InvalidCall, session.switch, "async")


def test_worker_is_for_sync_alone():
    assert 'apply="worker" is for mode sync alone' in run_ranks(1, switch_with_worker)[0]


def pauses():
    """Rank 0 pauses until rank 1 has trained ten steps more."""
    with rubato.init() as session:
        model, optimizer = wrapped()
        if session.rank == 0:
            before = models.weights_of(model)
            with session.pause("evaluation"):
                session._client.get("ten steps", 30.0)
                assert models.largest_difference(before, models.weights_of(model)) == 0
                assert "pause" in raised(rubato.InvalidCall, optimizer.step)
            assert models.largest_difference(before, models.weights_of(model)) > 0
            assert optimizer._rubato.step_begun.step >= 10
        else:
            for seed in range(10):
                optimizer.zero_grad()
                backward(model, seed)
                optimizer.step()
            session._client.put("ten steps", b"done")
        for seed in range(3):
            optimizer.zero_grad()
            backward(model, seed)
            if session.rank == 0 and seed == 0:
                with pytest.raises(rubato.InvalidCall, match="pause between step"):
                    with session.pause("evaluation"):
                        pass
            optimizer.step()


def test_pause_lets_others_go_on():
    run_ranks(2, pauses)


def raises_in_training():
    with rubato.init() as session:
        model, optimizer = wrapped()
        for step in range(20):
            optimizer.zero_grad()
            backward(model)
            if session.rank == 1 and step == 3:
                raise ValueError("bad picture 17")
            optimizer.step()


def test_an_exception_is_told_and_the_others_go_on():
    with Job(2) as job:
        for rank in range(2):
            job.start(rank, raises_in_training)
        outcomes = [job.outcome(rank) for rank in range(2)]
        assert job.hub is None or job.hub.left[1] == "ValueError: bad picture 17"
    assert not outcomes[0].kind, outcomes[0]
    assert outcomes[1].kind == "ValueError"


def never_closes():
    rubato.init()
    model, optimizer = wrapped()
    backward(model)
    optimizer.step()


def test_the_end_of_the_program_leaves():
    with Job(1) as job:
        job.start(0, never_closes)
        assert job.outcome(0).exit_status == 0
        assert job.hub is None or job.hub.left == {0: None}


def trains_until_it_ends():
    with rubato.init():
        model, optimizer = wrapped()
        steps = 0
        for _ in rubato.torch.batches(range(100000), optimizer):
            optimizer.zero_grad()
            backward(model)
            optimizer.step()
            steps += 1
    return steps


def trains_without_batches():
    with rubato.init():
        model, optimizer = wrapped()
        while True:
            optimizer.zero_grad()
            backward(model)
            optimizer.step()
    return "after the block"


@fake_only
@pytest.mark.parametrize("function", [trains_until_it_ends, trains_without_batches])
def test_a_stopped_job_ends_quietly(function):
    with Job(1) as job:
        job.start(0, function)
        job.hub.wait_until(lambda hub: len(hub.pushes) > 5)
        job.hub.stop()
        outcome = job.outcome(0)
        assert outcome.value and not outcome.kind, outcome
        assert job.hub.left == {0: None}


@fake_only
def test_draining_ends_quietly():
    with Job(2) as job:
        job.start(0, drains)
        job.start(1, trains_until_it_ends)
        assert job.outcome(0).value == 4
        job.hub.stop()
        assert job.outcome(1).value


def drains():
    with rubato.init() as session:
        model, optimizer = wrapped()
        steps = 0
        for _ in rubato.torch.batches(range(1000), optimizer):
            backward(model)
            if steps == 3:
                session.drain()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
        return steps


@fake_only
def test_a_rollback_goes_on_from_older_weights():
    with Job(1) as job:
        job.start(0, trains_until_it_ends)
        job.hub.wait_until(lambda hub: len(hub.pushes) > 5)
        job.hub.roll_back()
        job.hub.wait_until(lambda hub: len(hub.pushes) > 20)
        job.hub.stop()
        assert not job.outcome(0).kind


def waits_for_an_interrupt():
    """How long it takes until an interrupt ends a wait."""
    with rubato.init() as session:
        wrapped()
        session.barrier("ready")
        if session.rank == 1:
            session._client.get("interrupted", 30.0)
            return 0.0
        sent = []

        def send():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.3, send).start()
        try:
            session.barrier("nobody comes", timeout=30.0)
        except KeyboardInterrupt:
            taken = time.monotonic() - sent[0]
            session._client.put("interrupted", b"")
            return taken


def test_interrupts_take_effect_at_once():
    # Half of it is a loaded machine's.
    assert run_ranks(2, waits_for_an_interrupt)[0] < 0.4


def interrupted_begin():
    """Rank 0 waits for the next step, and rank 1 is not there to push its part."""
    with rubato.init() as session:
        model, optimizer = wrapped()
        session.barrier("ready")
        if session.rank == 1:
            session._client.get("interrupted", 30.0)
            return None
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        backward(model)
        try:
            optimizer.step()
        except KeyboardInterrupt:
            session._client.put("interrupted", b"")
            return "interrupted"


def test_a_wait_for_the_next_step_can_be_interrupted():
    assert run_ranks(2, interrupted_begin)[0] == "interrupted"


def forks():
    with rubato.init() as session:
        model, optimizer = wrapped()
        backward(model)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                optimizer.step()
            except rubato.Forked as error:
                os.write(writer, str(error).encode())
            session.close()  # Nothing of the parent's is closed.
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        optimizer.step()
        assert session.is_open
        return said


def test_a_forked_child_is_told():
    assert "whose session it cannot use" in run_ranks(1, forks)[0]


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full([4], float(index))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_loaders_with_processes(start):
    assert run_ranks(1, loads, start) == [6]


def loads(start):
    with rubato.init():
        model, optimizer = wrapped()
        loader = torch.utils.data.DataLoader(
            Numbers(), batch_size=2, num_workers=1, multiprocessing_context=start
        )
        count = 0
        for batch in rubato.torch.batches(loader, optimizer):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            count += 1
        return count


def after_close():
    session = rubato.init()
    session.close()
    session.close()
    assert "closed" in raised(rubato.InvalidCall, session.log, {"loss": 1.0})


def test_a_closed_session_says_so():
    run_ranks(1, after_close)


def no_session():
    return raised(rubato.InvalidCall, rubato.current_session)


def test_without_a_session():
    from rubato import session

    if session._current is None:
        assert "rubato.init()" in no_session()


def test_versions_that_differ(monkeypatch):
    from fake_library import FakeLibrary
    from rubato import _library

    with pytest.raises(rubato.Unavailable, match="interface 7, and this package needs 1"):
        _library.check_version(FakeLibrary(abi=7), "lib.so")
    with pytest.raises(rubato.Unavailable, match="version 9.9.9, and this package is"):
        _library.check_version(FakeLibrary(version="9.9.9"), "lib.so")
    monkeypatch.setenv("RUBATO_LIBRARY", "/nowhere/lib.so")
    with pytest.raises(rubato.Unavailable, match="RUBATO_LIBRARY=/nowhere/lib.so"):
        _library.load()
    monkeypatch.setenv("RUBATO_LIBRARY", __file__)
    with pytest.raises(rubato.Unavailable, match="no library of Rubato's that fits"):
        _library.load()


def test_the_packages_version_is_the_trees():
    import pathlib

    tree = pathlib.Path(__file__).resolve().parents[2] / "VERSION"
    assert tree.read_text().strip() == rubato.__version__


def bad_coordinator():
    return raised(
        rubato.Unavailable, rubato.init, coordinator="/nowhere/coordinator", rank=0, size=1
    )


@fake_only
def test_a_coordinator_that_is_not_there():
    assert "/nowhere/coordinator" in run_ranks(1, bad_coordinator)[0]


@fake_only
@pytest.mark.parametrize(
    "how, status, left, printed",
    [
        ("ERROR", 1, "ValueError: bad picture 18", "Traceback"),
        ("JobEnded", 0, None, "rubato: the job has ended: stopped by somebody"),
        ("exit", 0, None, ""),
    ],
)
def test_uncaught_exceptions_leave_with_their_text(how, status, left, printed):
    program = os.path.join(os.path.dirname(__file__), "uncaught.py")
    with Job(1) as job:
        done = subprocess.run(
            [sys.executable, program, how],
            env={**os.environ, "RUBATO_COORDINATOR": job.hub.address},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == status, done.stderr
        assert job.hub.left == {0: left}
        assert printed in done.stderr


def many_steps():
    """Growth in bytes of resident memory, and in descriptors, over 1,000 steps."""
    with rubato.init():
        model = torch.nn.Linear(500, 100)
        optimizer = torch.optim.Adam(model.parameters())
        rubato.torch.DistributedOptimizer(optimizer, model)
        x = torch.randn(2, 500)
        sizes = []
        for step in range(1201):
            optimizer.zero_grad(set_to_none=True)
            model(x).square().mean().backward()
            optimizer.step()
            if step in (200, 1200):
                with open("/proc/self/statm") as statm:
                    pages = int(statm.read().split()[1])
                sizes.append((pages * os.sysconf("SC_PAGESIZE"), len(os.listdir("/proc/self/fd"))))
        return sizes[1][0] - sizes[0][0], sizes[1][1] - sizes[0][1]


def test_a_thousand_steps_need_no_more_memory():
    memory, descriptors = run_ranks(1, many_steps)[0]
    # A gradient is 200 kB: were one kept a step, it would be 200 MB.
    assert memory < 4 << 20 and descriptors == 0
