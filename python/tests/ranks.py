"""Runs a function on each rank of a job, each in a process of its own."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import pickle
import signal
import traceback

import pytest

from servers import REAL, Servers

# Marks tests that look into the fake servers. run_tests.sh runs the others against the real ones, if they are there.
fake_only = pytest.mark.fake

# Processes come from one that has torch loaded and no threads: quick, and safe to fork.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "numpy", "rubato.torch", "rubato.client", "fake_library"])


@dataclasses.dataclass
class Outcome:
    """What became of a rank."""

    value: object = None
    error: str = ""
    kind: str = ""
    exit_status: int | None = None


def _run(connection, function, arguments, environment):
    # In the background a shell has interrupts ignored, and what it starts inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import torch

    torch.set_num_threads(1)
    os.environ.update(environment)
    if not REAL:
        import fake_library
        from rubato import _library

        library = fake_library.FakeLibrary()
        _library.load = lambda: library
    try:
        outcome = Outcome(value=function(*arguments))
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        outcome = Outcome(error=str(error), kind=type(error).__name__)
        if os.environ.get("RUBATO_TEST_TRACE"):
            traceback.print_exc()
    # Torch would hand its tensors over in another way, for which this process has to stay.
    connection.send_bytes(pickle.dumps(outcome))
    connection.close()
    # Leave as a program would whose main module ends: the session may be open.
    from rubato import _exit

    _exit._at_exit()


class Job:
    """A job whose ranks run in processes. A context manager: what is left at its end is killed.

    `hub`: the fake coordinator and servers, or None; `serve`: the real ones, or None. `options`: as those of Servers.
    """

    def __init__(self, size, **options):
        self.size = size
        self.processes = {}
        self._pipes = {}
        self._servers = Servers(size, **options)
        self.hub, self.serve = self._servers.hub, self._servers.serve

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.is_alive():
                process.kill()
            process.join()
        self._servers.close()

    def start(self, rank, function, *arguments):
        """Starts the function as this rank; it calls rubato.init() itself."""
        environment = {
            "RUBATO_COORDINATOR": self._servers.address,
            "RUBATO_RANK": str(rank),
            "RUBATO_SIZE": str(self.size),
            "RUBATO_LOCAL_RANK": str(rank),
            "RUBATO_LOCAL_SIZE": str(self.size),
        }
        mine, theirs = _context.Pipe()
        process = _context.Process(target=_run, args=(theirs, function, arguments, environment))
        process.start()
        theirs.close()
        self.processes[rank], self._pipes[rank] = process, mine
        return process

    def outcome(self, rank, seconds=180.0):
        """Waits for what the rank returns, and for its end."""
        outcome, process = self.word_of(rank, seconds), self.processes[rank]
        process.join(seconds)
        outcome.exit_status = process.exitcode
        return outcome

    def word_of(self, rank, seconds=180.0):
        """Waits for what the rank returns; its process may go on."""
        pipe = self._pipes[rank]
        if not pipe.poll(seconds):
            raise AssertionError(f"rank {rank} has not ended within {seconds} s")
        try:
            return pickle.loads(pipe.recv_bytes())
        except EOFError:
            return Outcome(error="ended without a word", kind="EOFError")

    def values(self, function, *arguments):
        """The function's values of all ranks; an exception of one fails the test."""
        for rank in range(self.size):
            self.start(rank, function, *arguments)
        outcomes = [self.outcome(rank) for rank in range(self.size)]
        for rank, outcome in enumerate(outcomes):
            assert not outcome.kind, f"rank {rank}: {outcome.kind}: {outcome.error}"
        return [outcome.value for outcome in outcomes]


def run_ranks(size, function, *arguments, **options):
    """The function's values of all ranks of a job; an exception of one fails the test."""
    with Job(size, **options) as job:
        return job.values(function, *arguments)
