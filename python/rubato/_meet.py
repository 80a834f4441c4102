"""How rank 0 tells the other ranks where its coordinator is, if the launcher has no word on that.

All of these hand over one short text. An error of rank 0 travels the same way, so that nobody waits for it in vain.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import threading
import time
from typing import Any, Callable, Mapping, Optional

from rubato import errors
from rubato._library import interruptibly
from rubato._place import Place, job_name

_ERROR = "error: "


def share(
    place: Place, environment: Mapping[str, str], timeout: float, start: Callable[[], str]
) -> tuple[str, Any]:
    """The coordinator's address, which `start` gives on rank 0, on all ranks.

    Second: what has to be kept as long as the session. Raises Unavailable, or on rank 0 what `start` raises.
    """
    if place.size == 1:
        return start(), None
    meeting = _meeting(place, environment, timeout)
    if place.rank != 0:
        text = meeting.receive()
        if text.startswith(_ERROR):
            raise errors.Unavailable(f"rank 0 could not start the job: {text[len(_ERROR):]}")
        return text, meeting
    try:
        address = start()
    except BaseException as error:
        meeting.send(f"{_ERROR}{error}")
        raise
    meeting.send(address)
    return address, meeting


def _meeting(place: Place, environment: Mapping[str, str], timeout: float) -> Any:
    if place.launcher == "torchrun":
        return _Store(place, environment, timeout)
    if place.launcher == "mpirun" and place.local_size < place.size:
        raise errors.Unavailable(
            f"mpirun started {place.local_size} of {place.size} ranks on this host: ranks on several hosts need "
            "`-x RUBATO_COORDINATOR=HOST:PORT`, the address of a `rubato serve` that runs on one of them"
        )
    if place.launcher == "mpirun" or (place.launcher == "srun" and place.local_size == place.size):
        name = f"\0rubato-{os.getuid()}-{job_name(environment, place)}"
        return _Socket(place, socket.AF_UNIX, name, name, timeout)
    if place.launcher == "srun":
        port = _port_of(job_name(environment, place))
        return _Socket(place, socket.AF_INET, ("", port), (_first_host(environment), port), timeout)
    raise errors.Unavailable(
        f'{place.size} workers, and no coordinator: give coordinator="HOST:PORT" or RUBATO_COORDINATOR, or start '
        "the program by `rubato run`, torchrun, mpirun or srun"
    )


def host_for_others(place: Place, environment: Mapping[str, str]) -> Optional[str]:
    """On rank 0: what the other hosts of the job call this one. None: there are no others."""
    if place.local_size >= place.size:
        return None
    if place.launcher == "torchrun":
        return environment.get("MASTER_ADDR")
    return _first_host(environment) if place.launcher == "srun" else None


def _port_of(name: str) -> int:
    """Outside of the range from which kernels take ports, and the same on all hosts."""
    digest = hashlib.sha256(name.encode()).digest()
    return 20000 + int.from_bytes(digest[:4], "big") % 10000


def _first_host(environment: Mapping[str, str]) -> str:
    """The address of the step's first node, where rank 0 is."""
    nodes = environment.get("SLURM_STEP_NODELIST", "")
    try:
        names = subprocess.run(
            ["scontrol", "show", "hostnames", nodes],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.split()
        shown = subprocess.run(
            ["scontrol", "--oneliner", "show", "node", names[0]],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        raise errors.Unavailable(
            f"scontrol does not say which node of {nodes} is the first: {error}; give RUBATO_COORDINATOR instead"
        ) from error
    for word in shown.split():
        if word.startswith("NodeAddr="):
            return word[len("NodeAddr=") :]
    return names[0]


class _Store:
    """torchrun's TCPStore. Where its agent has none, rank 0 holds it, as torch.distributed would."""

    def __init__(self, place: Place, environment: Mapping[str, str], timeout: float) -> None:
        import datetime

        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._key = f"rubato/{environment.get('TORCHELASTIC_RUN_ID', '')}/{attempt}/coordinator"
        try:
            host, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
            is_master = (
                place.rank == 0 and environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
            )
            if not is_master:
                _wait_until_listening(host, port, timeout)
            self._store: Any = TCPStore(
                host,
                port,
                is_master=is_master,
                timeout=datetime.timedelta(seconds=timeout),
                wait_for_workers=False,
                multi_tenant=True,
            )
        except (KeyError, ValueError, RuntimeError, TimeoutError) as error:
            raise errors.Unavailable(
                f"torchrun's store (MASTER_ADDR, MASTER_PORT): {error}"
            ) from error

    def send(self, text: str) -> None:
        self._store.set(self._key, text)

    def receive(self) -> str:
        received: list[bytes] = []

        def wait() -> None:
            try:
                received.append(bytes(self._store.get(self._key)))
            except (RuntimeError, TimeoutError) as error:
                raise errors.Timeout(
                    f"rank 0's coordinator in torchrun's store: {error}"
                ) from error

        interruptibly(wait)
        return received[0].decode()


def _wait_until_listening(host: str, port: int, timeout: float) -> None:
    """Raises TimeoutError. TCPStore would wait by itself, but torch 1.13 keeps all of Python waiting then, Ctrl-C too."""
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        try:
            with socket.create_connection((host, port), timeout=max(0.1, left)):
                return
        except OSError as error:
            if left <= 0:
                raise TimeoutError(
                    f"nobody listens at {host}:{port} within {timeout:g} s: {error}"
                ) from error
        time.sleep(0.02)


class _Socket:
    """A socket on which rank 0 answers everybody who connects."""

    def __init__(
        self, place: Place, family: int, listen: Any, connect: Any, timeout: float
    ) -> None:
        self._family = family
        self._connect = connect
        self._timeout = timeout
        self._text: Optional[str] = None
        self._ready = threading.Event()
        if place.rank == 0:
            self._listener = socket.socket(family, socket.SOCK_STREAM)
            try:
                self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._listener.bind(listen)
            except OSError as error:
                raise errors.Unavailable(
                    f"rank 0 cannot listen at {_readable(listen)} for the other ranks: {error}; "
                    "give RUBATO_COORDINATOR instead"
                ) from error
            self._listener.listen(1024)
            self._left = place.size - 1
            self._thread = threading.Thread(target=self._answer, name="rubato-meet", daemon=True)
            self._thread.start()

    def _answer(self) -> None:
        self._ready.wait()
        self._listener.settimeout(self._timeout)
        try:
            while self._left > 0:
                connection, _ = self._listener.accept()
                with connection:
                    connection.sendall((self._text or "").encode())
                self._left -= 1
        except OSError:
            pass  # Those who have not come find nobody, and say so.
        self._listener.close()

    def send(self, text: str) -> None:
        self._text = text
        self._ready.set()
        if text.startswith(_ERROR):
            self._thread.join(5)  # This process ends now; the others are to know why.

    def receive(self) -> str:
        deadline = time.monotonic() + self._timeout
        while True:
            with socket.socket(self._family, socket.SOCK_STREAM) as connection:
                try:
                    connection.settimeout(self._timeout)
                    connection.connect(self._connect)
                    text = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
                    if text:
                        return text
                except OSError:
                    pass  # Not there yet.
            if time.monotonic() > deadline:
                raise errors.Timeout(
                    f"rank 0 at {_readable(self._connect)}: has not said where the coordinator is "
                    f"within {self._timeout:g} s"
                )
            time.sleep(0.02)


def _readable(address: Any) -> str:
    return address.replace("\0", "@") if isinstance(address, str) else f"{address[0]}:{address[1]}"
