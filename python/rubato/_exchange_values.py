"""Small values that workers tell each other through the coordinator: broadcast, mean, barrier."""

from __future__ import annotations

import json
import pickle
import time
from typing import Any, Callable, Iterator, Optional

from rubato import errors
from rubato._library import Client

# The coordinator takes values up to 1 MiB and keeps 64 MiB in all.
PIECE_BYTES = 1 << 20
PIECES_AT_A_TIME = 16
# How long a rank that waits for others does nothing.
MEANWHILE_SECONDS = 0.2


class Values:
    """Calls that all workers make, in the same order."""

    def __init__(self, client: Client, rank: int, size: int) -> None:
        self._client = client
        self._rank = rank
        self._size = size
        self._calls = 0
        self._answer = ""

    def barrier(self, name: str, timeout: float) -> None:
        """Raises Timeout."""
        if self._size > 1:
            self._client.barrier(name, self._size, timeout)

    def broadcast(self, obj: Any, root: int, timeout: float) -> Any:
        """The object of `root`. Raises Timeout, InvalidCall."""
        if not 0 <= root < self._size:
            raise errors.InvalidCall(f"root {root}: 0 to {self._size - 1} is allowed")
        if self._size == 1:
            return obj
        if self._rank == root:
            self.send(pickle.dumps(obj), root, timeout)
            return obj
        return pickle.loads(self.send(b"", root, timeout))

    def send(self, data: bytes, root: int, timeout: float) -> bytes:
        """The bytes of `root`, in pieces; a few of them at a time are with the coordinator."""
        deadline = time.monotonic() + timeout

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        name = self._next("broadcast")
        if self._rank == root:
            self._client.put(f"{name}/bytes", str(len(data)).encode())
            total = len(data)
        else:
            total = int(self._client.get(f"{name}/bytes", left()))
        parts = []
        for keys in _windows(name, total):
            for key, begin in keys:
                if self._rank == root:
                    self._client.put(key, data[begin : begin + PIECE_BYTES])
                else:
                    parts.append(self._client.get(key, left()))
            self.barrier(name, left())
            if self._rank == root:
                for key, _ in keys:
                    self._client.erase(key)
        if self._rank == root:
            self._client.erase(f"{name}/bytes")
            return data
        return b"".join(parts)

    def mean(self, values: Any, weight: float, timeout: float) -> Any:
        """Of a number, a dict or a list of numbers. Raises Timeout, InvalidCall."""
        names, numbers, rebuild = _flatten(values)
        if not weight >= 0:
            raise errors.InvalidCall(f"mean: weight {weight}: 0 or more is allowed")
        if self._size == 1:
            return rebuild([float(number) for number in numbers])
        part = [names, weight, [float(number) for number in numbers]]
        answer = self._combined("mean", part, _weighted_mean, timeout)
        if isinstance(answer, str):
            raise errors.InvalidCall(answer)
        return rebuild(answer)

    def gather(
        self, what: str, part: Any, timeout: float, meanwhile: Optional[Callable[[], None]] = None
    ) -> list[Any]:
        """What each rank says, by rank: of what JSON has. `meanwhile` is called now and then where others take their time.
        Raises Timeout, which says whose word on `what` is missing.
        """
        if self._size == 1:
            return [part]
        parts: list[Any] = self._combined(what, part, lambda parts: parts, timeout, meanwhile)
        return parts

    def _combined(
        self,
        what: str,
        part: Any,
        combine: Callable[[list[Any]], Any],
        timeout: float,
        meanwhile: Optional[Callable[[], None]] = None,
    ) -> Any:
        """What rank 0 makes of the parts of all ranks, on all ranks."""
        deadline = time.monotonic() + timeout

        def get(key: str, rank: int) -> Any:
            while True:
                left = max(0.0, deadline - time.monotonic())
                try:
                    wait = left if meanwhile is None else min(left, MEANWHILE_SECONDS)
                    return json.loads(self._client.get(key, wait))
                except errors.Timeout as error:
                    if time.monotonic() >= deadline:
                        raise errors.Timeout(
                            f"{what}: all ranks have to call it, and rank {rank} has not within {timeout:g} s"
                        ) from error
                if meanwhile is not None:
                    meanwhile()

        name = self._next(what)
        if self._rank != 0:
            self._client.put(f"{name}/{self._rank}", json.dumps(part).encode())
            return get(f"{name}/answer", 0)
        parts = [part]
        for rank in range(1, self._size):
            parts.append(get(f"{name}/{rank}", rank))
            self._client.erase(f"{name}/{rank}")
        # All others have the last answer when they ask for this one.
        if self._answer:
            self._client.erase(self._answer)
        self._answer = f"{name}/answer"
        answer = combine(parts)
        self._client.put(self._answer, json.dumps(answer).encode())
        return answer

    @property
    def count(self) -> int:
        """How many of these calls there were: the same on all ranks."""
        return self._calls

    def _next(self, what: str) -> str:
        self._calls += 1
        return f"rubato/{what}/{self._calls}"


def _windows(name: str, total: int) -> Iterator[list[tuple[str, int]]]:
    pieces = [(f"{name}/{begin}", begin) for begin in range(0, total, PIECE_BYTES)]
    # One at least: there all have the length.
    for first in range(0, max(1, len(pieces)), PIECES_AT_A_TIME):
        yield pieces[first : first + PIECES_AT_A_TIME]


def _flatten(values: Any) -> tuple[list[str], list[float], Callable[[list[float]], Any]]:
    if isinstance(values, dict):
        names = sorted(values)
        return names, [values[n] for n in names], lambda means: dict(zip(names, means))
    if isinstance(values, (list, tuple)):
        return [str(len(values))], list(values), lambda means: type(values)(means)
    return [], [values], lambda means: means[0]


def _weighted_mean(parts: list[Any]) -> Any:
    """The means, or what is wrong, as text."""
    for rank, part in enumerate(parts):
        if part[0] != parts[0][0]:
            return f"mean: rank 0 has {parts[0][0]}, and rank {rank} has {part[0]}"
    total = sum(part[1] for part in parts)
    if total == 0:
        return "mean: all weights are 0"
    columns = range(len(parts[0][2]))
    return [sum(part[1] * part[2][i] for part in parts) / total for i in columns]
