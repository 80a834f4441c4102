"""What a worker has for itself, for `Session.save` and `Session.load`."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO, Iterable, Optional, Protocol

# Of the folder that `save` writes.
MANIFEST = "saved.json"
FORMAT_VERSION = 1


class OwnState(Protocol):
    """What a worker has besides the weights and the state on the servers; DistributedOptimizer and Client give it."""

    # Workers have the weights, and servers only average.
    keeps_weights: bool

    def why_not_now(self) -> Optional[str]:
        """Why it is the wrong time to save or to load; None: it is not."""

    def described(self) -> dict[str, Any]:
        """What has to be the same where it is loaded, in what JSON has."""

    def weights(self) -> Iterable[Any]:
        """The job's weights of this step, as arrays."""

    def resumed(self, step: Any) -> None:
        """Steps without examples have passed, and this one has begun."""

    def kept(self) -> Any:
        """What goes into the file."""

    def check(self, kept: Any) -> None:
        """Raises Refused unless `take` can take it."""

    def take(self, kept: Any) -> None:
        """Goes on with it."""

    def write(self, obj: Any, file: BinaryIO) -> None:
        """Writes an object with what it may have in it."""

    def read(self, file: BinaryIO) -> Any:
        """Reads it again."""


def weights_crc(own: OwnState) -> int:
    """Of all weights, in the model's order."""
    crc = 0
    for weights in own.weights():
        crc = zlib.crc32(memoryview(weights).cast("B") if weights.ndim else weights.tobytes(), crc)
    return crc
