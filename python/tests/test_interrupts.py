"""Ctrl-C ends each kind of wait within 0.2 s."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import sys
import threading
import time

import pytest
import torch

import rubato
import rubato.torch
from ranks import Job, fake_only
from servers import real_only
from wrapped import backward, wrapped

ALLOWED_SECONDS = 0.2
# A loaded machine may be late; a wait that cannot be interrupted is late each time.
ATTEMPTS = 3
PACKAGE = str(pathlib.Path(rubato.__file__).parent)


def interrupt_when_it_waits(sent):
    """Has this process sent SIGINT when its main thread has been in one call of the package for 0.1 s."""
    main = threading.main_thread().ident

    def place():
        """The outermost call of the package that the main thread is in."""
        frame, found = sys._current_frames()[main], None
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                found = frame
            frame = frame.f_back
        return found

    def watch():
        since, waiting = time.monotonic(), None
        while True:
            now = place()
            if now is None or now is not waiting:
                since, waiting = time.monotonic(), now
            elif time.monotonic() - since > 0.1:
                break
            time.sleep(0.01)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def taken_to_interrupt(wait):
    """Seconds from the signal to the exception."""
    sent = []
    interrupt_when_it_waits(sent)
    try:
        wait()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    raise AssertionError("the wait has ended by itself")


# What rank 0 waits for. Rank 1 has a model and does nothing more.


def a_coordinator():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # And does not listen.
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        return taken_to_interrupt(lambda: rubato.init(coordinator=address, rank=0, size=1))


def a_meeting(launcher):
    """Rank 1, whose rank 0 does not come."""
    for name in [n for n in os.environ if n.startswith("RUBATO_") and "TEST" not in n]:
        if name not in ("RUBATO_LIBRARY", "RUBATO_SIDECAR", "RUBATO_PROGRAM"):
            del os.environ[name]
    if launcher == "torchrun":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        os.environ.update(RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        os.environ.update(LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
    else:
        prefix = "OMPI_COMM_WORLD_"
        for name in ("SIZE", "LOCAL_SIZE"):
            os.environ[prefix + name] = "2"
        os.environ.update({prefix + "RANK": "1", prefix + "LOCAL_RANK": "1"})
        os.environ["PMIX_NAMESPACE"] = f"nobody-{os.getpid()}"
    return taken_to_interrupt(lambda: rubato.init(timeout=30.0))


def the_other_ranks():
    rubato.init()
    return taken_to_interrupt(wrapped)


def in_a_job(wait):
    """`wait` gets session, model and optimizer of a job that has begun."""
    session = rubato.init()
    model, optimizer = wrapped()
    session.barrier("both are there")
    return taken_to_interrupt(lambda: wait(session, model, optimizer))


def the_next_step(session, model, optimizer):
    backward(model)
    optimizer.step()


def a_barrier(session, model, optimizer):
    session.barrier("nobody else comes")


def an_object(session, model, optimizer):
    session.broadcast_object(None, root=1)


def a_mean(session, model, optimizer):
    session.mean(1.0)


def a_switch(session, model, optimizer):
    # The second is decided when the first has begun, and rank 1 begins no step.
    for _ in range(2):
        session.switch("async")
        session.switch("sync")


def the_end_of_a_pause(session, model, optimizer):
    with session.pause("evaluation"):
        pass


def a_lease():
    session = rubato.init()
    data = torch.utils.data.TensorDataset(torch.zeros(8, 4))
    sampler = rubato.torch.LeasedSampler(data, batch_size=4, shard_batches=2)
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
    model, optimizer = wrapped()
    batches = rubato.torch.batches(loader, optimizer)
    if session.rank == 1:
        next(batches)  # All that there is.
        session.barrier("both are there")
        threading.Event().wait()
    session.barrier("both are there")
    return taken_to_interrupt(lambda: next(batches))


def the_end(processes):
    """Coordinator and servers are stopped, and do not hear that the rank leaves."""
    session = rubato.init()
    wrapped()
    session.barrier("both are there")
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        return taken_to_interrupt(session.close)
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def is_there():
    session = rubato.init()
    wrapped()
    session.barrier("both are there")
    threading.Event().wait()


def fastest(function, *arguments, other=is_there):
    """The best of some attempts of rank 0, the others doing nothing."""
    taken = []
    while len(taken) < ATTEMPTS and (not taken or min(taken) >= ALLOWED_SECONDS):
        with Job(2) as job:
            if other is not None:
                job.start(1, other)
            if function is the_end:
                arguments = (children_of(job.serve.process.pid),)
            job.start(0, function, *arguments)
            word = job.word_of(0)
            assert not word.kind, word
            taken.append(word.value)
    return min(taken)


def children_of(process):
    listed = pathlib.Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in listed.read_text().split()]


@pytest.mark.parametrize("wait", [the_next_step, a_barrier, an_object, a_mean, the_end_of_a_pause])
def test_waits_in_a_job(wait):
    assert fastest(in_a_job, wait) < ALLOWED_SECONDS


# The fake ones switch at once.
@real_only
def test_the_wait_for_a_switch():
    assert fastest(in_a_job, a_switch) < ALLOWED_SECONDS


def test_the_wait_for_the_other_ranks():
    assert fastest(the_other_ranks, other=None) < ALLOWED_SECONDS


def test_the_wait_for_a_lease():
    assert fastest(a_lease, other=a_lease) < ALLOWED_SECONDS


@real_only
def test_the_wait_for_a_coordinator():
    assert fastest(a_coordinator, other=None) < ALLOWED_SECONDS


@real_only
def test_the_wait_for_the_end():
    assert fastest(the_end) < ALLOWED_SECONDS


@fake_only
@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_the_wait_for_rank_0(launcher):
    assert fastest(a_meeting, launcher, other=None) < ALLOWED_SECONDS
