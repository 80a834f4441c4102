"""The programs of a job, `rubato serve`, as children of rank 0: if nobody else has started them."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from typing import Optional

from rubato import errors
from rubato._library import find


def find_program() -> str:
    """The rubato program: RUBATO_PROGRAM, the wheel's, or the one in PATH. Raises Unavailable."""
    found = find("RUBATO_PROGRAM", "rubato")
    if found is not None:
        return str(found)
    # The wheel puts a script of that name into PATH too, which runs the wheel's program.
    in_path = shutil.which("rubato")
    if in_path is None:
        raise errors.Unavailable(
            "there is no coordinator, and no `rubato` to start one with: install the wheel, put the program into "
            "PATH, or name it in RUBATO_PROGRAM"
        )
    return in_path


class Serve:
    """A coordinator and servers. They end when the job does, when they are closed, or when this process ends."""

    def __init__(
        self,
        workers: int,
        servers: int,
        timeout: float,
        mode: Optional[str],
        config: Optional[str],
        host: Optional[str] = None,
    ) -> None:
        """`host`: what other hosts call this one; None: all workers are on this one."""
        self._folder = tempfile.TemporaryDirectory(prefix="rubato-")
        path = pathlib.Path(self._folder.name, "coordinator")
        command = [
            find_program(),
            "serve",
            f"--workers={workers}",
            f"--servers={servers}",
            f"--address_file={path}",
            # The ranks know the address, and nothing else that they could prove themselves with.
            "--set=security.insecure=true",
        ]
        if mode:
            command.append(f"--mode={mode}")
        if config:
            command.append(f"--config={config}")
        if host:
            command.append(f"--host={host}")
        try:
            # A session of its own: Ctrl-C is for this process, which then closes the job in good order.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise errors.Unavailable(f"{command[0]} cannot be started: {error}") from error
        self.address = self._wait_for_address(path, command, timeout)

    def _wait_for_address(self, path: pathlib.Path, command: list[str], timeout: float) -> str:
        deadline = time.monotonic() + timeout
        while True:
            text = path.read_text().strip() if path.exists() else ""
            if text:
                return text
            status = self._process.poll()
            if status is not None:
                raise errors.Unavailable(
                    f"`{' '.join(command)}` has ended with {status} before its coordinator listened"
                )
            if time.monotonic() > deadline:
                self.close(0)
                raise errors.Timeout(
                    f"`{' '.join(command)}`: its coordinator does not listen within {timeout:g} s"
                )
            time.sleep(0.01)

    def close(self, seconds: Optional[float] = None) -> Optional[int]:
        """Waits until the job has ended by itself, and ends it after that time, if one is given. Returns its exit status."""
        try:
            status: Optional[int] = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            if self._process.stdin:
                self._process.stdin.close()
            try:
                status = self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                status = self._process.wait()
        return self._ended(status)

    def end(self, reason: str) -> Optional[int]:
        """Ends the job at once: it has no worker any more, and none will come. Returns its exit status."""
        # Asked once it would wait for a worker, for the sake of a last checkpoint.
        stop = [find_program(), "stop", self.address, f"--reason={reason}"]
        for _ in range(2):
            subprocess.run(stop, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return self.close(10.0)

    def _ended(self, status: Optional[int]) -> Optional[int]:
        if self._process.stdin:
            self._process.stdin.close()
        self._folder.cleanup()
        return status


def run_program() -> None:
    """The `rubato` command that the wheel installs: becomes the wheel's program."""
    import sys

    path = pathlib.Path(__file__).parent / "_lib" / "rubato"
    if not path.exists():
        sys.exit(f"rubato: {path} is missing; install the package from its wheel")
    os.execv(str(path), [str(path), *sys.argv[1:]])
