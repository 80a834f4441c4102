"""Tensors that servers do not hold: buffers, and parameters before an optimizer is wrapped."""

from __future__ import annotations

import io
from typing import Iterable, List, Mapping, Optional, Tuple, Union

import torch

from rubato import errors
from rubato.session import Session, current_session
from rubato.torch._training import Training

Source = Union[torch.nn.Module, Mapping[str, torch.Tensor], Iterable[Tuple[str, torch.Tensor]]]


def broadcast_parameters(
    model: Source, root: int = 0, *, session: Optional[Session] = None, timeout: float = 60.0
) -> None:
    """All ranks have the tensors of rank `root` afterwards: parameters and buffers of a module, or those of a state_dict.
    All ranks call it.

    Parameters that a DistributedOptimizer trains are left alone: it has made them those of rank 0. Before it was made,
    workers cannot talk: then the rest is sent when it is.
    """
    here = session or current_session()
    if not 0 <= root < here.size:
        raise errors.InvalidCall(f"root {root}: 0 to {here.size - 1} is allowed")
    named = _named(model)

    def send() -> None:
        trained = _trained(here)
        _broadcast(here, [(n, t) for n, t in named if t.data_ptr() not in trained], root, timeout)

    here._when_defined(send)


def sync_buffers(
    model: torch.nn.Module,
    how: str = "mean",
    *,
    session: Optional[Session] = None,
    timeout: float = 60.0,
) -> None:
    """Makes the buffers of all ranks equal, those of batch normalisation for one. All ranks call it.

    how: "mean": of those of floating point; others are rank 0's. "root": all are rank 0's.
    """
    if how not in ("mean", "root"):
        raise errors.InvalidCall(f'sync_buffers: how="{how}": "mean", "root" allowed')
    session = session or current_session()
    session._check_model("sync_buffers")
    if session.size == 1:
        return
    buffers = list(model.named_buffers())
    if how == "mean":
        averaged = [(name, b) for name, b in buffers if b.is_floating_point()]
        buffers = [(name, b) for name, b in buffers if not b.is_floating_point()]
        _average(session, averaged, timeout)
    _broadcast(session, buffers, 0, timeout)


def _trained(session: Session) -> set[int]:
    member = session._member
    if not isinstance(member, Training):
        return set()
    return {p.data_ptr() for p in member.parameters.tensors}


def _named(model: Source) -> List[Tuple[str, torch.Tensor]]:
    if isinstance(model, torch.nn.Module):
        return [*model.named_parameters(), *model.named_buffers()]
    pairs = model.items() if isinstance(model, Mapping) else model
    return [(name, tensor) for name, tensor in pairs if isinstance(tensor, torch.Tensor)]


def _broadcast(
    session: Session, tensors: List[Tuple[str, torch.Tensor]], root: int, timeout: float
) -> None:
    if session.size == 1:
        return
    data = _written(tensors) if session.rank == root else b""
    received = _read(session._values.send(data, root, timeout))
    _check_same(tensors, received, root)
    with torch.no_grad():
        for (_, mine), (_, theirs) in zip(tensors, received):
            mine.copy_(theirs)


def _average(session: Session, tensors: List[Tuple[str, torch.Tensor]], timeout: float) -> None:
    """Each rank sends its own in turn; the sum goes by rank, so all have the same bits."""
    totals = [torch.zeros_like(tensor, dtype=torch.float64) for _, tensor in tensors]
    for rank in range(session.size):
        data = _written(tensors) if session.rank == rank else b""
        received = _read(session._values.send(data, rank, timeout))
        _check_same(tensors, received, rank)
        for total, (_, tensor) in zip(totals, received):
            total.add_(tensor.to(total.device))
    with torch.no_grad():
        for (_, tensor), total in zip(tensors, totals):
            tensor.copy_(total / session.size)


def _written(tensors: List[Tuple[str, torch.Tensor]]) -> bytes:
    stream = io.BytesIO()
    torch.save([(name, tensor.detach().cpu()) for name, tensor in tensors], stream)
    return stream.getvalue()


def _read(data: bytes) -> List[Tuple[str, torch.Tensor]]:
    received: List[Tuple[str, torch.Tensor]] = torch.load(io.BytesIO(data))
    return received


def _check_same(
    mine: List[Tuple[str, torch.Tensor]], theirs: List[Tuple[str, torch.Tensor]], root: int
) -> None:
    def described(tensors: List[Tuple[str, torch.Tensor]], index: int) -> str:
        if index >= len(tensors):
            return "no tensor"
        name, tensor = tensors[index]
        return f"{name} {tuple(tensor.shape)}"

    for index in range(max(len(mine), len(theirs))):
        if described(mine, index) != described(theirs, index):
            raise errors.Refused(
                f"tensor {index} is {described(mine, index)} here, and {described(theirs, index)} on rank {root}"
            )
