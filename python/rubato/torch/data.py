"""Batches: of data that each worker has, and of data whose parts the coordinator leases to workers."""

from __future__ import annotations

import collections
from typing import Any, Callable, Deque, Iterable, Iterator, List, Optional, Sized

import torch
from torch.utils.data import Sampler

from rubato import errors
from rubato._library import Lease
from rubato.session import LeasedData, Session, current_session
from rubato.torch._step import Slice
from rubato.torch._training import Training

# How long a worker waits for a lease before it lets a step pass without it, so that others need not wait.
_LEASE_SECONDS = 0.2
_LEASE_AGAIN_SECONDS = 0.02


class LeasedSampler(Sampler[List[int]]):
    """A batch sampler over the coordinator's shards: what a lost worker has not trained is given to the others, and one
    that comes later takes its share.

        loader = DataLoader(data, batch_sampler=LeasedSampler(data, batch_size=64, epochs=3))
        optimizer = DistributedOptimizer(optimizer, model)  # After the sampler.
        for x, y in rubato.torch.batches(loader, optimizer):  # All epochs.

    All workers have the same data. Each position of an epoch is trained once; a batch lies within a shard, and so does a
    step. With accumulate=k a step has k batches, or what is left of a shard: `ends_step` says when to call step().
    """

    def __init__(
        self,
        data: Sized,
        session: Optional[Session] = None,
        *,
        batch_size: int,
        epochs: int = 1,
        shuffle: bool = True,
        seed: int = 0,
        shard_batches: int = 8,
    ) -> None:
        if batch_size < 1 or epochs < 1 or shard_batches < 1:
            raise errors.InvalidCall(
                f"LeasedSampler: batch_size={batch_size}, epochs={epochs}, shard_batches={shard_batches}: "
                "1 or more is allowed"
            )
        self._count = len(data)
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._seed = seed
        self._lease: Optional[Lease] = None
        self._ends_step = False
        self._orders: dict[int, torch.Tensor] = {}
        # Those that were handed out and not trained: a loader may be ahead.
        self._slices: Deque[Slice] = collections.deque()
        (session or current_session())._lease_data(
            LeasedData(self._count, batch_size * shard_batches, epochs)
        )

    @property
    def epoch(self) -> int:
        """Of the shard that is being trained."""
        return self._lease.epoch if self._lease is not None else 0

    @property
    def ends_step(self) -> bool:
        """Whether the batch that was taken last is the last one of its step."""
        return self._ends_step

    def __iter__(self) -> Iterator[List[int]]:
        if self._lease is None:
            raise errors.InvalidCall(
                "a loader with a LeasedSampler: iterate over rubato.torch.batches(loader, optimizer)"
            )
        lease = self._lease
        order = self._order(lease.epoch)
        for begin in range(lease.begin, lease.end, self._batch_size):
            end = min(begin + self._batch_size, lease.end)
            self._slices.append(Slice(lease.shard, begin, end))
            yield order[begin:end].tolist()

    def _order(self, epoch: int) -> torch.Tensor:
        if not self._shuffle:
            epoch = 0
        if epoch not in self._orders:
            if len(self._orders) > 1:
                self._orders.clear()
            generator = torch.Generator().manual_seed(self._seed + epoch)
            permutation = torch.randperm(self._count, generator=generator)
            self._orders[epoch] = permutation if self._shuffle else torch.arange(self._count)
        return self._orders[epoch]

    def _start_lease(self, lease: Lease) -> None:
        self._lease = lease
        self._slices.clear()

    def _next_slice(self) -> Slice:
        return self._slices.popleft()

    def _position(self, part: Slice) -> float:
        return self.epoch + part.begin / self._count


def batches(
    loader: Iterable[Any],
    optimizer: torch.optim.Optimizer,
    *,
    prefetch: Optional[Callable[[Any], None]] = None,
) -> Iterator[Any]:
    """The batches of a loader, until they or the job end. One `step()` or `skip()` of the optimizer belongs to each.

    With a LeasedSampler: all that is leased to this worker, of all epochs.

    prefetch: is called with each batch when the one before it is about to be computed, to say which rows it needs:
      `lambda batch: model.words.prefetch(batch[0])`.
    """
    training: Training = _training_of(optimizer)
    sampler = _leased_sampler(loader)
    if sampler is not None:
        yield from _leased_batches(loader, sampler, training, prefetch)
        return
    for batch in _announced(loader, prefetch):
        if training.ended:
            return
        yield batch


def _announced(loader: Iterable[Any], prefetch: Optional[Callable[[Any], None]]) -> Iterator[Any]:
    """The batches, each after `prefetch` was called with the next one."""
    if prefetch is None:
        yield from loader
        return
    known: List[Any] = []
    for batch in loader:
        if known:
            prefetch(batch)
            yield known.pop()
        known.append(batch)
    yield from known


def _training_of(optimizer: torch.optim.Optimizer) -> Training:
    training = getattr(optimizer, "_rubato", None)
    if not isinstance(training, Training):
        raise errors.InvalidCall("batches: the optimizer is no DistributedOptimizer")
    return training


def _leased_sampler(loader: Any) -> Optional[LeasedSampler]:
    if isinstance(getattr(loader, "sampler", None), LeasedSampler):
        raise errors.InvalidCall(
            "LeasedSampler gives whole batches: DataLoader(batch_sampler=..), not sampler="
        )
    sampler = getattr(loader, "batch_sampler", None)
    return sampler if isinstance(sampler, LeasedSampler) else None


def _leased_batches(
    loader: Iterable[Any],
    sampler: LeasedSampler,
    training: Training,
    prefetch: Optional[Callable[[Any], None]],
) -> Iterator[Any]:
    training.check_leases()
    while not training.ended:
        lease = _next_lease(training)
        if lease is None:
            return
        rollbacks = training.rollbacks
        sampler._start_lease(lease)
        # The batches since the last step.
        taken: List[Slice] = []
        for batch in _announced(loader, prefetch):
            taken.append(sampler._next_slice())
            part = Slice(lease.shard, taken[0].begin, taken[-1].end)
            training.set_slice(part, sampler._position(part))
            sampler._ends_step = len(taken) == training.accumulate or part.end == lease.end
            done = training.optimizer_steps
            yield batch
            if training.optimizer_steps != done:
                taken.clear()
            elif sampler.ends_step and not training.ended:
                raise errors.InvalidCall(_why_step(training))
            # What was leased before a rollback is leased anew.
            if training.ended or training.rollbacks != rollbacks:
                break
        else:
            training.end_lease()


def _why_step(training: Training) -> str:
    if training.accumulate == 1:
        return "batches: each batch of leased data needs a step() or a skip()"
    return (
        f"batches: {training.accumulate} batches of leased data, or the last ones of a shard, need a step() or a skip(): "
        "call it when the sampler's ends_step is true"
    )


def _next_lease(training: Training) -> Optional[Lease]:
    """None: the data is used up, or the job has ended."""
    seconds = _LEASE_SECONDS
    while not training.ended:
        training.settle()
        try:
            lease = training.session._lease(seconds)
        except errors.JobEnded:
            return None
        if lease is not None:
            return lease
        training.skip_without_data()
        seconds = _LEASE_AGAIN_SECONDS
    return None
