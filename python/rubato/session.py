"""A worker's part in a job: who it is, and what workers say to each other besides tensors."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Optional, Protocol, Sequence

from rubato import _exit, _library, _loads, _meet, _saves, errors
from rubato._exchange_values import Values
from rubato._library import Lease, Step
from rubato._specs import ModelSpec, TableSpec, TensorSpec
from rubato._own_state import OwnState
from rubato._place import Place, find_place
from rubato._serve import Serve
from rubato._together import Together

_MODES = ("sync", "ssp", "async")


@dataclasses.dataclass(frozen=True)
class Plan:
    """Under which rule the job trains. `generation` grows with each change."""

    generation: int
    mode: str
    staleness: int
    workers: int
    lr_scale: float


class Member(Protocol):
    """What trains in a session: `DistributedOptimizer` or `rubato.client.Client`."""

    def why_not_pause(self) -> Optional[str]:
        """None: others may go on without this worker. "": they wait for it. Otherwise why it is the wrong time."""

    def pausing(self) -> None:
        """Others go on without this worker, and their weights come to the shared memory, until `resumed`."""

    def resumed(self, step: Step) -> None:
        """A pause has ended, with this step begun."""

    def closing(self) -> None:
        """The session is about to leave a job that goes well: the time to push what is left."""


@dataclasses.dataclass(frozen=True)
class LeasedData:
    """Data that the coordinator leases."""

    examples: int
    shard_examples: int
    epochs: int


_current: Optional["Session"] = None


def current_session() -> "Session":
    """The session that `init` began in this process. Raises InvalidCall if there is none."""
    if _current is None:
        raise errors.InvalidCall("there is no session: call rubato.init() first")
    return _current


def init(
    *,
    coordinator: Optional[str] = None,
    rank: Optional[int] = None,
    size: Optional[int] = None,
    local_rank: Optional[int] = None,
    servers: int = 1,
    mode: Optional[str] = None,
    config: Optional[str] = None,
    timeout: float = 60.0,
) -> "Session":
    """Takes part in a job as one of its workers. Once a process at a time.

    Which worker this is, is said by the arguments, by `rubato run`, torchrun, mpirun or srun, the first that applies;
    otherwise it is the only one. Where nobody has started a coordinator, rank 0 starts `rubato serve` with that many
    `servers`, in `mode` ("sync", "ssp:4", "async"), with the settings of the file `config`.

    Raises Unavailable if there is no coordinator, or if it cannot be reached within `timeout` seconds.
    """
    global _current
    if _current is not None and _current.is_open:
        raise errors.InvalidCall("this process has a session already: close it first")
    place = find_place(
        os.environ, coordinator=coordinator, rank=rank, size=size, local_rank=local_rank
    )
    library = _library.load()
    serve: Optional[Serve] = None

    def start() -> str:
        nonlocal serve
        host = _meet.host_for_others(place, os.environ)
        serve = Serve(place.size, servers, timeout, mode, config, host)
        return serve.address

    try:
        address, keep = place.coordinator, None
        if address is None:
            address, keep = _meet.share(place, os.environ, timeout, start)
        sidecar = _library.find("RUBATO_SIDECAR", "rubato-sidecar")
        client = _library.Client(
            library,
            coordinator=address,
            rank=place.rank,
            timeout=timeout,
            sidecar=str(sidecar) if sidecar else None,
        )
    except BaseException:
        if serve is not None:
            serve.close(0)
        raise
    _current = Session(client, place, serve, keep, timeout)
    _exit.watch(_current)
    return _current


class Session:
    """A worker's part in a job; `init` makes it. A context manager: leaving the block closes it, with an exception as the
    reason that the others are told.

    One thread at a time uses it. It cannot be used in a child process.
    """

    def __init__(
        self,
        client: _library.Client,
        place: Place,
        serve: Optional[Serve],
        keep: Any,
        timeout: float,
    ) -> None:
        self._client = client
        self._place = place
        self._serve = serve
        self._keep = keep
        self._timeout = timeout
        self._values = Values(client, place.rank, place.size)
        self._member: Optional[Member] = None
        self._own: Optional[OwnState] = None
        self._claimed_by: Optional[str] = None
        self._leased: Optional[LeasedData] = None
        self._step: Optional[Step] = None
        self._plan = Plan(0, "sync", 0, place.size, 1.0)
        self._on_plan: list[Callable[[Plan], None]] = []
        self._paused = False
        self._defined = False
        self._deferred: list[Callable[[], None]] = []
        self._leaving: list[Callable[[], None]] = []
        # Told the sidecar beside the initial weights.
        self._before_start: Optional[Callable[[], None]] = None

    def __repr__(self) -> str:
        return f"<rubato.Session: rank {self.rank} of {self.size}, {self._plan.mode}>"

    @property
    def rank(self) -> int:
        """Which worker this is, from 0."""
        return self._place.rank

    @property
    def size(self) -> int:
        """How many workers the job was started with."""
        return self._place.size

    @property
    def local_rank(self) -> int:
        """Which of this host's workers this is, from 0: for choosing a GPU."""
        return self._place.local_rank

    @property
    def plan(self) -> Plan:
        """The plan that the current step belongs to."""
        return self._plan

    @property
    def is_open(self) -> bool:
        """Whether this process can use it."""
        return self._client.is_open

    def switch(
        self,
        mode: str,
        *,
        staleness: int = 0,
        quorum: int = 0,
        lr_scale: Optional[float] = None,
        timeout: float = 60.0,
    ) -> None:
        """Changes the mode of the job, for all workers: "sync", "ssp" or "async".

        `lr_scale` is a factor on the learning rate. None: in proportion to the contributions in one update, so that an
        example moves the weights as far (from sync with 4 workers to async: 1/4), or to the square root of that with
        optimizers that divide by the gradient's size. Returns when the change is decided. `plan` changes with the step
        that it begins with, and `on_plan` tells of it. Raises Timeout.
        """
        if mode not in _MODES:
            raise errors.InvalidCall(f'mode "{mode}": {", ".join(_MODES)} are allowed')
        if mode != "sync" and self._member is not None and self._member.why_not_pause() == "":
            raise errors.InvalidCall('apply="worker" is for mode sync alone: use apply="server"')
        self._client.switch(mode, staleness, quorum, lr_scale or 0.0, timeout)

    def on_plan(self, function: Callable[[Plan], None]) -> None:
        """Has a function called with each new plan, by the thread that trains, before the plan's first step."""
        self._on_plan.append(function)

    @contextlib.contextmanager
    def pause(self, why: str) -> Iterator[None]:
        """Others go on training meanwhile: for an evaluation on one rank, say.

        This worker contributes nothing to the steps that pass; its weights stay as they are until the block ends. With
        apply="worker" nobody can go on without it, and the others wait.
        """
        reason = self._member.why_not_pause() if self._member is not None else ""
        if reason:
            raise errors.InvalidCall(f"pause({why!r}): {reason}")
        if self._paused:
            raise errors.InvalidCall(f"pause({why!r}) within a pause")
        if reason is None:
            with self._skipping():
                yield
        else:
            if self._step is not None:
                self._client.pause(why)
            yield

    @contextlib.contextmanager
    def _skipping(self) -> Iterator[None]:
        stop = threading.Event()
        failure: list[BaseException] = []
        begun: list[Step] = []

        def skip_steps() -> None:
            try:
                while not stop.is_set():
                    self._client.skip()
                    begun[:] = [self._client.begin()]
                    # Nobody waits for this worker then: look now and then whether the mode has changed.
                    if begun[0].mode == "async" or begun[0].workers == 1:
                        stop.wait(_library.SLICE_SECONDS)
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=skip_steps, name="rubato-pause", daemon=True)
        if self._member is not None:
            self._member.pausing()
        self._paused = True
        thread.start()
        try:
            yield
        finally:
            stop.set()
            while thread.is_alive():
                thread.join(_library.SLICE_SECONDS)
            self._paused = False
        if failure:
            raise failure[0]
        if begun:
            self._began(begun[0])
            assert self._member is not None
            self._member.resumed(begun[0])

    # The coordinator takes values when it knows the model.

    def barrier(self, name: str, timeout: float = 60.0) -> None:
        """Waits until all workers have called it, after DistributedOptimizer or Client. Raises Timeout."""
        self._check_model("barrier")
        self._values.barrier(f"user/{name}", timeout)

    def broadcast_object(self, obj: Any, root: int = 0, timeout: float = 60.0) -> Any:
        """The object of rank `root`, on all ranks: all have to call it, after DistributedOptimizer or Client. What pickle
        can write.
        """
        self._check_model("broadcast_object")
        return self._values.broadcast(obj, root, timeout)

    def mean(self, values: Any, weight: float = 1.0, timeout: float = 60.0) -> Any:
        """The weighted mean over all ranks of a number, or of each number in a dict or list: all have to call it, after
        DistributedOptimizer or Client.
        """
        self._check_model("mean")
        return self._values.mean(values, weight, timeout)

    def log(self, values: Mapping[str, float], examples: int = 1) -> None:
        """What this worker has seen in this step, for `rubato status`, curves and reports.

        "loss" and "accuracy" are means over that many `examples`; "epoch" is the position in epochs, before a step's
        first push. Other names are refused.
        """
        unknown = sorted(set(values) - {"loss", "accuracy", "epoch"})
        if unknown:
            raise errors.Unsupported(
                f"log: {', '.join(unknown)}: loss, accuracy and epoch are what a job records"
            )
        if "epoch" in values:
            self._client.set_epoch(float(values["epoch"]))
        if "loss" in values:
            accuracy = values.get("accuracy")
            correct = -1.0 if accuracy is None else float(accuracy) * examples
            self._client.report(examples, float(values["loss"]) * examples, correct)
        elif "accuracy" in values:
            raise errors.InvalidCall("log: accuracy without loss")

    def checkpoint(self) -> None:
        """Has the job write a checkpoint of the weights and of the optimizer's state on the servers."""
        self._client.checkpoint()

    def save(self, name: str, extra: Any = None, *, timeout: float = 600.0) -> str:
        """Writes a checkpoint of the job and of each worker, and returns its path, a directory. All ranks call it with the
        same name, between step() and the next backward(); one that is early lets the others' steps pass.

        In it are the weights and the optimizer's state on the servers, and of each worker the model's buffers (batch
        normalisation's statistics), the states of the random generators, the values of the parameter groups, and
        `extra`: anything that pickle can write, a scheduler's state_dict for one. With apply="worker" and "local" also the
        optimizer's own state. It stays until somebody removes it; one of the same name is replaced, and nothing has the
        name before it is whole.

        Raises InvalidCall at the wrong time, Timeout if not all ranks come, Unavailable if it cannot be written; on all
        ranks alike.
        """
        return _saves.save(self._together(f"save({name!r})", timeout), name, extra)

    def load(self, path: str, *, check_weights: bool = True, timeout: float = 600.0) -> Any:
        """Goes on from what `save` has written, and returns its `extra`. All ranks call it, after DistributedOptimizer and
        before the first backward(), in a job that has the checkpoint's weights:
        `rubato run --set training.start_from=PATH`. With apply="worker" in any new job.

        Each worker gets its own buffers, random states and group values, or own optimizer state. Raises NotFound and
        Refused, which say what does not fit, on all ranks alike; nothing has changed then. `check_weights=False`: the job's
        weights may be others, as they are with a codec for pulls that rounds at random. Reads pickled objects: load only
        what you trust.
        """
        return _loads.load(self._together(f"load({path!r})", timeout), path, check_weights)

    def drain(self) -> None:
        """Leaves the job after this step, so that others take over this worker's part: the next step raises JobEnded, and
        `batches` ends. SIGTERM does the same in a program that does not handle it.
        """
        self._client.drain()

    def close(self, error: Optional[str] = None) -> None:
        """Leaves the job: with an error as the reason, which the others are told, or because the work is done.

        On the rank that has started the job's programs it returns when the job is over. Closing twice is nothing.
        """
        if not self.is_open:
            return
        try:
            if error is None and self._member is not None:
                self._member.closing()
        except BaseException as failure:
            self._leave(_exit.reason(failure))
            raise
        self._leave(error)

    def _leave(self, error: Optional[str]) -> None:
        try:
            for function in self._leaving:
                function()
        finally:
            self._close_client(error)

    def _close_client(self, error: Optional[str]) -> None:
        try:
            self._client.close(error, wait=self._timeout + 40)
        finally:
            _exit.unwatch()
            if self._serve is not None:
                if error is not None and self.size == 1:
                    status = self._serve.end(error)
                else:
                    status = self._serve.close(None if error is None else 10.0)
                if status != 0 and error is None:
                    print(f"rubato: `rubato serve` has ended with status {status}", file=sys.stderr)

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> bool:
        if isinstance(error, errors.JobEnded):
            self.close()
            return True
        try:
            self.close(_exit.reason(error))
        except errors.RubatoError:
            if error is None:
                raise  # Otherwise what came first is what counts.
        return False

    # What rubato.torch and rubato.client are made of.

    def _check_model(self, what: str) -> None:
        if self.size > 1 and not self._defined:
            raise errors.InvalidCall(
                f"{what}: to be called after DistributedOptimizer, or Client: workers talk when the coordinator knows "
                "their model"
            )

    def _together(self, what: str, timeout: float) -> Together:
        if self._own is None or not self._defined:
            raise errors.InvalidCall(f"{what}: to be called after DistributedOptimizer, or Client")
        if self._paused:
            raise errors.InvalidCall(f"{what} within a pause")
        return Together(self, self._own, what, time.monotonic() + timeout)

    def _when_defined(self, function: Callable[[], None]) -> None:
        """Calls it as soon as workers can talk: now, or when the model is defined. On all ranks in the same order."""
        if self._defined:
            function()
        else:
            self._deferred.append(function)

    def _before_leaving(self, function: Callable[[], None]) -> None:
        """Calls it when the session ends, however it does: before the memory of weights and gradients goes away."""
        self._leaving.append(function)

    def _claim(self, who: str, member: Member) -> None:
        if self._claimed_by is not None:
            raise errors.InvalidCall(
                f"{who}: this session has a {self._claimed_by} already, and a job trains one model with one optimizer"
            )
        self._claimed_by = who
        self._member = member

    def _define(
        self,
        tensors: Sequence[TensorSpec],
        groups: Sequence[dict[str, float]],
        algorithm: str,
        initial_accumulator: float = 0.0,
        tables: Sequence[TableSpec] = (),
        keep_weights: bool = False,
    ) -> None:
        leased = self._leased or LeasedData(0, 0, 0)
        self._client.define(
            ModelSpec(
                tensors,
                groups,
                algorithm,
                initial_accumulator,
                leased.examples,
                leased.shard_examples,
                leased.epochs,
                tables,
                keep_weights,
            )
        )

    def _start(self) -> None:
        before, self._before_start = self._before_start, None
        if before is not None:
            before()
        self._client.start()
        self._defined = True
        deferred, self._deferred = self._deferred, []
        for function in deferred:
            function()

    def _lease_data(self, data: LeasedData) -> None:
        if self._claimed_by is not None:
            raise errors.InvalidCall(
                f"LeasedSampler: to be made before the {self._claimed_by}, which tells the coordinator of it"
            )
        if self._leased is not None:
            raise errors.InvalidCall("LeasedSampler: this session has one already")
        self._leased = data

    def _lease(self, seconds: float) -> Optional[Lease]:
        return self._client.lease(seconds)

    def _begin(self, timeout: Optional[float] = None) -> Step:
        if self._paused:
            raise errors.InvalidCall("a step within `pause`")
        step = self._client.begin(timeout)
        self._began(step)
        return step

    def _began(self, step: Step) -> None:
        self._step = step
        known = self._plan.generation
        # A worker that is lost is not of the plan any more, which goes on without a new one.
        self._plan = Plan(step.generation, step.mode, step.staleness, step.workers, step.lr_scale)
        if step.generation == known:
            return
        for function in self._on_plan:
            function(self._plan)
