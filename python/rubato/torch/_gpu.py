"""Copies between parameters on GPUs and the memory that is shared with the sidecar, while the GPUs compute.

The shared memory is registered with CUDA, so that copies need not go through another buffer. Weights go to a GPU in the
order of its work: whatever is launched after `to_gpu` has them. Gradients come on a stream of their own, when what computes
them is done; backward goes on launching its work meanwhile.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, Deque, Iterator, Sequence

import torch

# Its streams and events have no types in torch 1.13.
_cuda: Any = torch.cuda

# Gradients that are copied behind one event, at least; others come when all are asked for.
_COPY_BYTES = 256 << 10


@dataclasses.dataclass(frozen=True)
class _Gradient:
    index: int
    shared: torch.Tensor
    values: torch.Tensor
    factor: float


class GpuCopies:
    """Of one model. Belongs to the thread that trains; in backward to autograd's, one at a time."""

    def __init__(self, address: int, size: int) -> None:
        """`size` bytes from `address` on hold all shared weights and gradients. If CUDA refuses to register them, copies
        are as right, and slower.
        """
        self._cudart = _cuda.cudart()
        self._address = address
        self._is_registered = int(self._cudart.cudaHostRegister(address, size, 0)) == 0
        # Gradients come on these.
        self._streams: dict[torch.device, Any] = {}
        # Of each stream that weights were copied on, what comes after the last copy.
        self._weights_read: dict[Any, Any] = {}
        self._collected: list[_Gradient] = []
        self._collected_bytes = 0
        # Events after copies, and which gradients these are.
        self._coming: Deque[tuple[list[Any], list[int]]] = collections.deque()

    def to_gpu(self, targets: Sequence[torch.Tensor], shared: Sequence[torch.Tensor]) -> None:
        """Copies what is shared to its targets: parameters, or their gradients. `shared` must stay until wait_for_weights."""
        with torch.no_grad():
            for target, source in zip(targets, shared):
                target.copy_(source, non_blocking=True)
        for device in {target.device for target in targets if target.is_cuda}:
            stream = _cuda.current_stream(device)
            self._weights_read[stream] = stream.record_event()

    def wait_for_weights(self) -> None:
        """Returns when all that to_gpu copies was read: the shared weights may get other values."""
        for event in self._weights_read.values():
            event.synchronize()
        self._weights_read.clear()

    def from_gpu(
        self, index: int, shared: torch.Tensor, gradient: torch.Tensor, factor: float
    ) -> None:
        """Copies a gradient, times `factor`, to its shared memory, sooner or later: see `arrived`."""
        self._collected.append(_Gradient(index, shared, gradient.detach(), factor))
        self._collected_bytes += 4 * shared.numel()
        if self._collected_bytes >= _COPY_BYTES:
            self._copy_collected()

    def arrived(self, wait: bool) -> Iterator[int]:
        """The gradients that have come since they were last asked for, in the order of from_gpu. `wait`: each as it comes,
        until all have.
        """
        if wait:
            self._copy_collected()
        while self._coming:
            events, indices = self._coming[0]
            if wait:
                for event in events:
                    event.synchronize()
            elif not all(event.query() for event in events):
                return
            self._coming.popleft()
            yield from indices

    def release(self) -> None:
        """Before the shared memory goes away: nothing is copied any more."""
        try:
            for stream in {*self._streams.values(), *self._weights_read}:
                stream.synchronize()
        except RuntimeError:
            pass  # What has failed on the GPU has been said, and it copies nothing any more.
        if self._is_registered:
            self._is_registered = False
            self._cudart.cudaHostUnregister(self._address)

    def _copy_collected(self) -> None:
        collected, self._collected, self._collected_bytes = self._collected, [], 0
        if not collected:
            return
        events = []
        for device in {one.values.device for one in collected}:
            stream = self._streams.get(device)
            if stream is None:
                stream = self._streams[device] = _cuda.Stream(device)
            stream.wait_stream(_cuda.current_stream(device))
            with _cuda.stream(stream), torch.no_grad():
                for one in collected:
                    if one.values.device == device:
                        _copy(one, stream)
                events.append(stream.record_event())
        self._coming.append((events, [one.index for one in collected]))


def _copy(one: _Gradient, stream: Any) -> None:
    # Its memory is not to be given to others before it was read, whoever lets go of it.
    one.values.record_stream(stream)
    values = one.values if one.factor == 1.0 else one.values * one.factor
    one.shared.copy_(values, non_blocking=True)
