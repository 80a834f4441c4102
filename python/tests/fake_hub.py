"""A job's coordinator and servers in one thread-safe object, for tests: what `FakeLibrary` of each worker talks to."""

from __future__ import annotations

import collections
import itertools
import multiprocessing.connection
import threading


from fake_rules import FakeOptimizer, weighted_mean
from rubato import _abi

ALGORITHM_NAMES = {number: name for name, number in _abi.ALGORITHMS.items()}


class Failure(Exception):
    """A result other than OK, with its text."""

    def __init__(self, result, text):
        super().__init__(text)
        self.result = result
        self.text = text


AGAIN = Failure(_abi.AGAIN, "")


class Worker:
    """What is known of one rank."""

    def __init__(self):
        self.done = 0  # Steps that it has pushed.
        self.begun = -1  # The step that it has begun; -1: none.
        self.parts = {}  # Of that step: tensor: (gradient, examples), or None if absent.
        self.values = {}  # group: hyperparameters.
        self.slice = None
        self.lease = None
        self.draining = False
        self.stale = False  # The step that it has begun was before a rollback.
        self.told = set()  # Tensors whose weights it has awaited since the last step began.
        self.void = False  # They are not those of the step that begins.


class FakeHub:
    """Listens at `address`. Methods named `on_*` are the calls of rubato_client.h."""

    def __init__(self, size):
        self.size = size
        self.manifest = None
        self.version = 0  # Updates in SYNC; a step begins when all before it are in.
        self.generation, self.mode, self.staleness, self.scale = 1, _abi.MODES["sync"], 0, 1.0
        self.rollbacks = 0
        self.workers = {}
        self.left = {}  # rank: None, or the error that it left with.
        self.gone = set()  # Ranks whose process is gone without a word.
        self.values = {}
        self.barriers = collections.defaultdict(set)
        self.passed = collections.Counter()
        self.arrivals = collections.Counter()
        self.optimizers = []
        self.initial = {}
        self.pushes = []  # (rank, step, {tensor: examples or None}), for tests to look at.
        self.reports = []
        self.epochs = []
        self.trained = []  # (epoch, begin, end)
        self.awaited = []  # (rank, tensor)
        self.arrived = None  # So many of the first tensors arrive before `begin`; None: all.
        self.stopped = False
        self._changed = threading.Condition()
        self._listener = multiprocessing.connection.Listener(family="AF_UNIX")
        self.address = self._listener.address
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def weights(self):
        """Copies of the servers' weights."""
        with self._changed:
            return [optimizer.weights.copy() for optimizer in self.optimizers]

    def wait_until(self, condition, seconds=20.0):
        """Waits for a condition of this hub's state."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), seconds):
                raise AssertionError("the condition did not come true")

    def roll_back(self):
        """As if a server was lost: back to the initial weights."""
        with self._changed:
            self.rollbacks += 1
            self.version = 0
            self._make_optimizers()
            for worker in self.workers.values():
                worker.stale = worker.begun >= 0
                worker.void = bool(worker.told)
                worker.done, worker.begun, worker.parts = 0, -1, {}
            self._changed.notify_all()

    def stop(self):
        """The job was stopped by somebody."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    # Connections.

    def _accept(self):
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        rank = None
        try:
            while True:
                name, arguments = connection.recv()
                if name == "open":
                    (rank,), arguments = arguments, ()
                with self._changed:
                    try:
                        answer = (_abi.OK, getattr(self, f"on_{name}")(rank, *arguments))
                    except Failure as failure:
                        answer = (failure.result, failure.text)
                    self._changed.notify_all()
                connection.send(answer)
        except (EOFError, OSError):
            with self._changed:
                if rank is not None and rank not in self.left:
                    self.gone.add(rank)
                    self._forget(rank)
                self._changed.notify_all()
        finally:
            connection.close()

    def _wait(self, seconds, condition):
        if not self._changed.wait_for(condition, seconds):
            raise AGAIN

    def _forget(self, rank):
        worker = self.workers.pop(rank, None)
        if worker is not None and worker.lease is not None:
            epoch, begin, end = worker.lease
            self.shards.insert(0, [epoch, worker.trained_to, end])
        self._complete_steps()

    # Calls.

    def on_open(self, rank):
        self.gone.discard(rank)

    def on_define(self, rank, manifest, groups, algorithm, accumulator, leased):
        if self.manifest is None:
            self.manifest = manifest
            self.algorithm, self.accumulator = ALGORITHM_NAMES[algorithm], accumulator
            self.defaults = groups
            examples, shard, epochs = leased
            self.leases = examples > 0
            self.shards = [
                [epoch, begin, min(begin + shard, examples)]
                for epoch in range(epochs)
                for begin in range(0, examples, shard)
            ]
        for mine, first in itertools.zip_longest(manifest, self.manifest):
            if mine != first:
                raise Failure(
                    _abi.REFUSED, f"worker {rank} has {mine}, and the first worker has {first}"
                )

    def on_start(self, rank, weights):
        self.initial[rank] = weights
        worker = self.workers[rank] = Worker()
        if self.optimizers:  # It came later.
            worker.done = self.version
            return
        if len(self.workers) == self.size:
            self._make_optimizers()

    def _make_optimizers(self):
        initial = self.initial[min(self.initial)]
        self.optimizers = [
            FakeOptimizer(self.algorithm, weights.copy(), self.accumulator) for weights in initial
        ]

    def on_begin(self, rank, seconds):
        worker = self._worker(rank)
        if worker.begun >= 0:
            missing = [name for i, (name, *_) in enumerate(self.manifest) if i not in worker.parts]
            raise Failure(_abi.INVALID, f"{missing[0]} of step {worker.begun} was not pushed")
        self._wait(seconds, lambda: self._may_begin(rank))
        if not self.optimizers and not self.stopped:
            raise Failure(_abi.FAILED, self._early_errors()[0])
        if self.stopped:
            raise Failure(_abi.ENDED, "the job was stopped")
        if worker.draining:
            raise Failure(_abi.ENDED, "this worker was asked to leave")
        worker.told = set()
        if worker.void:
            worker.void = False
            raise Failure(_abi.MOVED, "weights were replaced")
        worker.begun, worker.parts, worker.stale = worker.done, {}, False
        step = (
            worker.begun,
            self.generation,
            self.mode,
            self.staleness,
            len(self.workers),
            self.scale,
        )
        return step + (self.rollbacks,), [optimizer.weights.copy() for optimizer in self.optimizers]

    def on_await(self, rank, tensor, seconds):
        worker = self._worker(rank)
        if worker.begun >= 0:
            raise Failure(_abi.INVALID, f"step {worker.begun} was not pushed")
        self._wait(seconds, lambda: self._may_begin(rank) and self._has_arrived(tensor))
        if self.stopped:
            raise Failure(_abi.ENDED, "the job was stopped")
        self.awaited.append((rank, tensor))
        worker.told.add(tensor)
        return self.optimizers[tensor].weights.copy()

    def _has_arrived(self, tensor):
        return self.stopped or self.arrived is None or tensor < self.arrived

    def _early_errors(self):
        """Of workers without which the job has not started; later the others go on without them."""
        return [f"worker {other}: {text}" for other, text in self.left.items() if text is not None]

    def _may_begin(self, rank):
        if self.stopped or self.workers[rank].draining:
            return True
        if not self.optimizers:
            return bool(self._early_errors())
        done = self.workers[rank].done
        if self.mode == _abi.MODES["sync"]:
            return self.version >= done
        if self.mode == _abi.MODES["ssp"]:
            return min(w.done for w in self.workers.values()) >= done - self.staleness
        return True

    def on_set_hyperparameters(self, rank, group, values):
        self._worker(rank).values[group] = values

    def on_set_slice(self, rank, shard, begin, end):
        worker = self._worker(rank)
        if worker.parts:
            raise Failure(_abi.INVALID, "set_slice after the first push")
        if worker.slice is not None:
            raise Failure(_abi.INVALID, "the step has a slice already")
        worker.slice = (begin, end)

    def on_set_epoch(self, rank, epoch):
        self.epochs.append(epoch)

    def on_push(self, rank, tensor, gradient, examples):
        worker = self._worker(rank)
        if worker.stale:
            return
        if worker.begun < 0 or tensor in worker.parts:
            raise Failure(
                _abi.INVALID,
                f"tensor {tensor} of worker {rank}: pushed twice, or no step has begun",
            )
        worker.parts[tensor] = None if gradient is None else (gradient, examples)
        if len(worker.parts) == len(self.manifest):
            self._finish(rank, worker)

    def on_skip(self, rank):
        worker = self._worker(rank)
        if worker.stale:
            return
        if worker.begun < 0:
            raise Failure(_abi.INVALID, "skip: no step has begun")
        for tensor in range(len(self.manifest)):
            worker.parts.setdefault(tensor, None)
        self._finish(rank, worker)

    def _finish(self, rank, worker):
        counts = {t: part and part[1] for t, part in worker.parts.items()}
        self.pushes.append((rank, worker.begun, counts))
        if worker.slice is not None:
            begin, end = worker.slice
            self.trained.append((worker.lease[0], begin, end))
            worker.trained_to, worker.slice = end, None
            if end == worker.lease[2]:
                worker.lease = None
        worker.begun = -1
        worker.done += 1
        if self.mode == _abi.MODES["sync"]:
            self._complete_steps()
        else:
            self._update([worker])

    def _complete_steps(self):
        if self.mode != _abi.MODES["sync"]:
            return
        while self.workers and all(w.done > self.version for w in self.workers.values()):
            self.version += 1
            self._update([self.workers[rank] for rank in sorted(self.workers)])

    def _update(self, workers):
        values = dict(enumerate(self.defaults))
        values.update(workers[0].values)
        for tensor, optimizer in enumerate(self.optimizers):
            parts = [w.parts[tensor] for w in workers if w.parts.get(tensor) is not None]
            if parts:
                optimizer.apply(weighted_mean(parts), values[self.manifest[tensor][2]], self.scale)

    def on_report(self, rank, examples, loss_sum, correct):
        self.reports.append((rank, examples, loss_sum, correct))

    def on_lease(self, rank, seconds):
        worker = self._worker(rank)
        if worker.lease is not None:
            raise Failure(_abi.INVALID, "lease: the last one is not trained")
        self._wait(seconds, lambda: self.shards or self._all_trained())
        if not self.shards:
            raise Failure(_abi.ENDED, "the data is used up")
        epoch, begin, end = self.shards.pop(0)
        worker.lease, worker.trained_to = (epoch, begin, end), begin
        return begin, epoch, begin, end

    def _all_trained(self):
        return not any(w.lease for w in self.workers.values())

    def on_put(self, rank, key, value):
        if len(value) > 1 << 20:
            raise Failure(_abi.INVALID, f"{key}: {len(value)} bytes")
        self.values[key] = value

    def on_get(self, rank, key, seconds):
        self._wait(seconds, lambda: key in self.values)
        return self.values[key]

    def on_erase(self, rank, key):
        self.values.pop(key, None)

    def on_barrier(self, rank, name, count, seconds):
        entry = (rank, name)
        mine = self.arrivals[entry]
        self.barriers[name, mine].add(rank)
        self._wait(seconds, lambda: len(self.barriers[name, mine]) >= count)
        self.arrivals[entry] += 1

    def on_switch(self, rank, mode, staleness, quorum, scale, seconds):
        pending = [w for w in self.workers.values() if w.done > self.version]
        if self.mode == _abi.MODES["sync"] and mode != self.mode:
            for worker in pending:
                self._update([worker])
        self.mode, self.staleness, self.scale = mode, staleness, scale
        self.generation += 1
        if mode == _abi.MODES["sync"]:
            self.version = max(w.done for w in self.workers.values())
            for worker in self.workers.values():
                worker.done = self.version
                worker.begun = min(worker.begun, self.version)

    def on_checkpoint(self, rank):
        self.values["checkpoint"] = rank

    def on_drain(self, rank):
        self._worker(rank).draining = True

    def on_close(self, rank, error):
        self.left[rank] = error
        self._forget(rank)

    def _worker(self, rank):
        if rank not in self.workers:
            raise Failure(_abi.INVALID, "the worker has not started")
        return self.workers[rank]
