"""Coordinator and servers of a test's job: the fake ones, or `rubato serve`, which starts ahead of time."""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

REAL = os.environ.get("RUBATO_TEST_REAL") == "1"
# Marks tests of what the fake servers do not do: codecs, leases of workers, the run record.
real_only = pytest.mark.skipif(
    not REAL, reason="needs RUBATO_LIBRARY, RUBATO_SIDECAR and RUBATO_PROGRAM"
)


class Serve:
    """`rubato serve` in a folder of its own. Making one starts it and does not wait."""

    def __init__(self, size, mode=None, servers=2, settings=(), config=None):
        from rubato._serve import find_program

        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rubato-test-"))
        self.run = self.folder / "run"
        self.program = find_program()
        self._address_file = self.folder / "address"
        command = [
            self.program,
            "serve",
            f"--workers={size}",
            f"--servers={servers}",
            f"--address_file={self._address_file}",
            f"--run_directory={self.run}",
            "--set=security.insecure=true",
            *([f"--mode={mode}"] if mode else []),
            *([f"--config={config}"] if config else []),
            *(f"--set={setting}" for setting in settings),
        ]
        # A session of its own: an interrupt of the tests is not for it. It ends with its standard input.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=open(self.folder / "log", "wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def log(self):
        """What it has printed."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def address(self):
        """The coordinator's, when it is there."""
        deadline = time.monotonic() + 30
        while not self._address_file.exists():
            assert self.process.poll() is None, f"rubato serve has ended early: {self.log}"
            assert time.monotonic() < deadline, f"no coordinator within 30 s: {self.log}"
            time.sleep(0.005)
        return self._address_file.read_text().strip()

    def end(self, seconds=30.0):
        """The exit status of the job, which ends by itself."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the job has not ended within {seconds} s: {self.log}") from None

    def close(self, timeout=2.0):
        """Ends it, if it has not ended by itself after some time, and removes its folder."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Spares:
    """For the usual jobs a started `rubato serve` is kept, so that the next test need not wait for its start, and nobody
    waits for the end of an old one.
    """

    def __init__(self):
        self._spares = {}
        self._closing = []
        atexit.register(self.close)

    def take(self, size):
        found = self._spares.pop(size, None)
        if found is None or found.process.poll() is not None:
            found = Serve(size)
        self._spares[size] = Serve(size)
        return found

    def close_later(self, serve, timeout=2.0):
        thread = threading.Thread(target=serve.close, args=[timeout])
        thread.start()
        self._closing = [t for t in self._closing if t.is_alive()] + [thread]

    def close(self):
        for serve in self._spares.values():
            self.close_later(serve, 0.0)
        self._spares.clear()
        for thread in self._closing:
            thread.join()


_spares = _Spares()


class Servers:
    """Coordinator and servers of one job. `settings`: "path=value" of its config, `config`: a file; of real ones alone."""

    def __init__(self, size, *, mode=None, servers=2, settings=(), config=None):
        self.hub = self.serve = None
        if REAL:
            usual = mode is None and servers == 2 and not settings and config is None
            self.serve = (
                _spares.take(size) if usual else Serve(size, mode, servers, settings, config)
            )
        else:
            from fake_hub import FakeHub

            self.hub = FakeHub(size)

    @property
    def address(self):
        """Where workers find them."""
        return self.hub.address if self.hub is not None else self.serve.address

    def close(self):
        """Ends them, real ones a little later."""
        if self.hub is not None:
            self.hub.close()
        else:
            _spares.close_later(self.serve)
