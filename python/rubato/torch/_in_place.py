"""Parameters that are in the memory that the servers' weights come to, so that nobody has to copy them."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Sequence

import torch


def shared_view(address: int, shape: torch.Size, owner: Any = None) -> torch.Tensor:
    """A tensor over memory that outlives it if `owner` does, which it keeps."""
    count = shape.numel()
    memory: Any = (ctypes.c_float * count).from_address(address)
    memory.owner = owner
    return torch.frombuffer(memory, dtype=torch.float32, count=count).view(shape)


def may_move(parameters: Sequence[torch.Tensor]) -> list[bool]:
    """Of each, whether its values may go to other memory: nothing that can be seen from here uses the same."""
    addresses = [parameter.data_ptr() for parameter in parameters]
    return [_is_alone(p) and addresses.count(a) == 1 for p, a in zip(parameters, addresses)]


def _is_alone(parameter: Any) -> bool:
    """On the CPU, and all of its storage."""
    if parameter.is_cuda or not parameter.is_contiguous() or parameter.is_shared():
        return False
    # Torch before 2.0 has no untyped_storage.
    storage = getattr(parameter, "untyped_storage", parameter.storage)()
    return bool(storage.nbytes() == parameter.numel() * parameter.element_size())


class InPlace:
    """A parameter whose values are where `memory` has its own, which somebody else writes to.

    That lasts until somebody gives it other memory, as `p.data = ...`, `.to(...)` and `share_memory_()` do. A child
    process that is forked has a copy of its own.
    """

    def __init__(self, parameter: torch.Tensor, memory: torch.Tensor, owner: Any) -> None:
        """`memory` has the parameter's values. `owner`: as of shared_view."""
        self._parameter = parameter
        self._memory = memory
        self._address = memory.data_ptr()
        # With a storage of its own, which goes elsewhere if the parameter's does.
        self._view = shared_view(self._address, memory.shape, owner)
        parameter.data = self._view
        # Of no elements, with the parameter's version.
        self._nothing = parameter.detach().view(-1)[:0]
        # Of the memory that it has meanwhile; 0: none.
        self._aside = 0
        _all.add(self)

    def is_there(self) -> bool:
        """Whether the parameter still is there."""
        return self._parameter.data_ptr() == self._address

    def stand_aside(self) -> None:
        """The parameter keeps its values, in memory of its own, until `come_back`."""
        if self.is_there():
            self._parameter.data = self._memory.clone()
            self._aside = self._parameter.data_ptr()

    def come_back(self) -> bool:
        """Ends `stand_aside`. Whether the parameter is there now."""
        aside, self._aside = self._aside, 0
        if aside != 0 and self._parameter.data_ptr() == aside:
            self._parameter.data = self._view
        return self.is_there()

    def has_changed(self) -> None:
        """Others' values have come: for autograd the parameter was changed in place."""
        self._nothing.zero_()

    def leave(self) -> None:
        """The parameter gets memory of its own. The memory stays for whoever has a view of it, as `state_dict()`."""
        _all.discard(self)
        if self.is_there():
            self._parameter.data = self._memory.clone()


_all: weakref.WeakSet[InPlace] = weakref.WeakSet()
# While this process forks.
_copies: list[tuple[InPlace, torch.Tensor]] = []


def _before_fork() -> None:
    for one in _all:
        if one.is_there():
            _copies.append((one, one._memory.clone()))


def _in_child() -> None:
    for one, copy in _copies:
        one._parameter.data = copy
    _copies.clear()
    _all.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_copies.clear, after_in_child=_in_child
    )
