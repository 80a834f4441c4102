"""librubato_client.so: where it is, and its functions as methods that raise.

A `Client` belongs to one thread at a time and to the process that opened it. Calls that wait come back every 50 ms, so
that Python handles its signals: Ctrl-C takes effect at once.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
import threading
import time
from typing import Any, Callable, Optional

from rubato import _abi, errors
from rubato._specs import ModelSpec, admission_of, row_format_of, table_of
from rubato._version import __version__

SLICE_SECONDS = 0.05
_PATH_BYTES = 4096
MODE_NAMES = {value: name for name, value in _abi.MODES.items()}


class Moved(Exception):
    """`begin`: weights that `await_weights` has announced are void, and what was computed with them."""


_EXCEPTIONS: dict[int, type[Exception]] = {
    _abi.ENDED: errors.JobEnded,
    _abi.MOVED: Moved,
    _abi.INVALID: errors.InvalidCall,
    _abi.REFUSED: errors.Refused,
    _abi.UNAVAILABLE: errors.Unavailable,
    _abi.FAILED: errors.JobFailed,
    _abi.FORKED: errors.Forked,
    _abi.NOT_FOUND: errors.NotFound,
}


@dataclasses.dataclass(frozen=True)
class Step:
    """A step that has begun, and the plan that it belongs to."""

    step: int
    generation: int
    mode: str
    staleness: int
    workers: int
    lr_scale: float
    rollbacks: int


@dataclasses.dataclass(frozen=True)
class Lease:
    """Positions [begin, end) of an epoch's order of examples, leased to this worker."""

    shard: int
    epoch: int
    begin: int
    end: int


def _packaged(name: str) -> pathlib.Path:
    return pathlib.Path(__file__).parent / "_lib" / name


def find(variable: str, name: str) -> Optional[pathlib.Path]:
    """A file of the wheel, or the one that an environment variable names. None: neither is there.

    Raises Unavailable if the variable names a file that does not exist.
    """
    named = os.environ.get(variable)
    if named:
        if not os.path.exists(named):
            raise errors.Unavailable(f"{variable}={named}: there is no such file")
        return pathlib.Path(named)
    packaged = _packaged(name)
    return packaged if packaged.exists() else None


def load() -> Any:
    """The library, with its version checked. Raises Unavailable."""
    path = find("RUBATO_LIBRARY", "librubato_client.so")
    if path is None:
        raise errors.Unavailable(
            f"librubato_client.so is not in {_packaged('')} and RUBATO_LIBRARY is not set: install the wheel, or "
            "set RUBATO_LIBRARY and RUBATO_SIDECAR to what was built"
        )
    try:
        library = ctypes.CDLL(str(path))
        _abi.declare(library)
    except (OSError, AttributeError) as error:
        raise errors.Unavailable(f"{path} is no library of Rubato's that fits: {error}") from error
    check_version(library, str(path))
    return library


def check_version(library: Any, path: str) -> None:
    """Raises Unavailable unless the library is of this package's version."""
    abi = int(library.rubato_abi_version())
    if abi != _abi.ABI_VERSION:
        raise errors.Unavailable(
            f"{path} has interface {abi}, and this package needs {_abi.ABI_VERSION}: use both of one version"
        )
    version = library.rubato_version().decode()
    if version != __version__:
        raise errors.Unavailable(
            f"{path} is version {version}, and this package is {__version__}: use both of one version"
        )


class KeptWeights:
    """The memory of a client's weights: it is given back when the client is closed and nobody has this object any more."""

    def __init__(self, library: Any, address: int) -> None:
        self._library = library
        self._address = address
        self.closed = False

    def __del__(self) -> None:
        if self.closed:
            self._library.rubato_free_weights(self._address)


class Client:
    """One worker of a job. See client/rubato_client.h for what each call means.

    Methods raise the exceptions of rubato.errors; JobEnded if the job needs nothing more of this worker.
    """

    def __init__(
        self, library: Any, *, coordinator: str, rank: int, timeout: float, sidecar: Optional[str]
    ) -> None:
        self._library = library
        self._process = os.getpid()
        # Of the thread that trains and the one of a pause.
        self._lock = threading.Lock()
        self._wanted = 0
        self._handle = ctypes.c_void_p()
        # Of a model that was defined with keep_weights.
        self.kept_weights: Optional[KeptWeights] = None
        options = _abi.Options(
            struct_bytes=ctypes.sizeof(_abi.Options),
            coordinator=coordinator.encode(),
            sidecar=sidecar.encode() if sidecar else None,
            rank=rank,
            timeout_seconds=timeout,
            log_path=None,
        )

        def open_client() -> None:
            result = library.rubato_open(ctypes.byref(options), ctypes.byref(self._handle))
            if result != _abi.OK:
                self._raise(result, library.rubato_error(None))

        interruptibly(open_client)

    @property
    def is_open(self) -> bool:
        """Whether calls are possible: not closed, and in the process that opened it."""
        return bool(self._handle) and os.getpid() == self._process

    def define(self, model: ModelSpec) -> None:
        """The tensors, and how servers update them. Once."""
        shapes = [(ctypes.c_int64 * len(t.shape))(*t.shape) for t in model.tensors]
        tensors = (_abi.Tensor * len(model.tensors))(
            *(
                _abi.Tensor(
                    t.name.encode(), ctypes.cast(s, ctypes.POINTER(ctypes.c_int64)), len(s), t.group
                )
                for t, s in zip(model.tensors, shapes)
            )
        )
        groups = (_abi.Hyperparameters * len(model.groups))(
            *(_abi.Hyperparameters(**group) for group in model.groups)
        )
        tables = (_abi.Table * len(model.tables))(*(table_of(table) for table in model.tables))
        admission = (_abi.Admission * len(model.tables))(
            *(admission_of(table) for table in model.tables)
        )
        row_formats = (_abi.RowFormat * len(model.tables))(
            *(row_format_of(table) for table in model.tables)
        )
        described = _abi.Model(
            struct_bytes=ctypes.sizeof(_abi.Model),
            tensors=tensors,
            tensor_count=len(tensors),
            groups=groups,
            group_count=len(groups),
            algorithm=_abi.ALGORITHMS[model.algorithm],
            initial_accumulator=model.initial_accumulator,
            leased_examples=model.leased_examples,
            shard_examples=model.shard_examples,
            epochs=model.epochs,
            tables=tables,
            table_count=len(tables),
            admission=admission,
            row_formats=row_formats,
            keep_weights=int(model.keep_weights),
        )
        interruptibly(lambda: self._call("rubato_define", ctypes.byref(described)))
        if model.keep_weights and model.tensors:
            self.kept_weights = KeptWeights(self._library, self.weights(0))

    def weights(self, tensor: int) -> int:
        """Address of the tensor's weights."""
        return self._address("rubato_weights", tensor)

    def gradient(self, tensor: int) -> int:
        """Address of the tensor's gradient."""
        return self._address("rubato_gradient", tensor)

    def start(self) -> None:
        """The initial weights are in place: takes part as a worker."""
        interruptibly(lambda: self._call("rubato_start"))

    def begin(self, timeout: Optional[float] = None) -> Step:
        """Waits for the weights of the next step. Without a timeout, as long as the job lets it wait."""
        step = _abi.Step()
        self._wait("rubato_begin", "the next step", timeout, ctypes.byref(step))
        return Step(
            step.step,
            step.generation,
            MODE_NAMES[step.mode],
            step.staleness_bound,
            step.workers,
            step.learning_rate_scale,
            step.rollbacks,
        )

    def has_weights(self, tensor: int) -> bool:
        """With keep_weights, between `begin` and the first push: whether the tensor still has the step's weights."""
        has = ctypes.c_int()
        self._wait(
            "rubato_has_weights", f"weights of tensor {tensor}", None, tensor, ctypes.byref(has)
        )
        return bool(has.value)

    def await_weights(self, tensor: int) -> None:
        """Before `begin`: waits for the weights of one tensor in the next step. They may turn out as void: see Moved."""
        self._wait("rubato_await", f"the weights of tensor {tensor}", None, tensor)

    def set_hyperparameters(self, group: int, values: dict[str, float]) -> None:
        """Those of a group, from the next push on."""
        self._call(
            "rubato_set_hyperparameters", group, ctypes.byref(_abi.Hyperparameters(**values))
        )

    def set_slice(self, shard: int, begin: int, end: int) -> None:
        """Which leased examples this step has."""
        self._call("rubato_set_slice", shard, begin, end)

    def set_epoch(self, epoch: float) -> None:
        """Position in epochs of this step."""
        self._call("rubato_set_epoch", epoch)

    def push(self, tensor: int, examples: int = 1) -> None:
        """The tensor's gradient is complete."""
        self._call("rubato_push", tensor, examples)

    def push_absent(self, tensor: int) -> None:
        """There is no gradient of the tensor in this step."""
        self._call("rubato_push_absent", tensor)

    def skip(self) -> None:
        """Contributes nothing more to this step."""
        self._call("rubato_skip")

    def report(self, examples: int, loss_sum: float, correct: float = -1.0) -> None:
        """Sums over the examples of this step."""
        self._call("rubato_report", examples, loss_sum, correct)

    def lease(self, seconds: float) -> Optional[Lease]:
        """The next part of the data. None: not there yet. JobEnded: the data is used up."""
        found = _abi.LeaseRange()
        deadline = time.monotonic() + seconds
        while True:
            left = min(SLICE_SECONDS, max(0.0, deadline - time.monotonic()))
            result = self._result("rubato_lease", ctypes.byref(found), left)
            if result == _abi.OK:
                return Lease(found.shard, found.epoch, found.begin, found.end)
            if time.monotonic() >= deadline:
                return None

    def put(self, key: str, value: bytes) -> None:
        """Tells the other workers a value, up to 1 MiB."""
        self._call("rubato_put", key.encode(), value, len(value))

    def get(self, key: str, timeout: Optional[float]) -> bytes:
        """What another worker has put."""
        size = ctypes.c_size_t()
        capacity = 1 << 16
        while True:
            value = ctypes.create_string_buffer(capacity)
            self._wait(
                "rubato_get",
                f'the value "{key}"',
                timeout,
                key.encode(),
                ctypes.cast(value, ctypes.c_void_p),
                capacity,
                ctypes.byref(size),
            )
            if size.value <= capacity:
                return ctypes.string_at(value, size.value)
            capacity = size.value

    def erase(self, key: str) -> None:
        """Removes a value."""
        self._call("rubato_erase", key.encode())

    def barrier(self, name: str, count: int, timeout: Optional[float]) -> None:
        """Waits until `count` workers are here."""
        what = f'{count} workers at the barrier "{name}"'
        self._wait("rubato_barrier", what, timeout, name.encode(), count)

    def switch(
        self, mode: str, staleness: int, quorum: int, lr_scale: float, timeout: Optional[float]
    ) -> None:
        """Changes the job's mode."""
        number = _abi.MODES[mode]
        self._wait(
            "rubato_switch", f"the switch to {mode}", timeout, number, staleness, quorum, lr_scale
        )

    def checkpoint(self) -> None:
        """Asks for a checkpoint."""
        self._call("rubato_checkpoint")

    def await_checkpoint(self, seconds: float) -> Optional[str]:
        """Asks for a checkpoint. Its directory once it is complete; None: not yet."""
        directory = ctypes.create_string_buffer(_PATH_BYTES)
        deadline = time.monotonic() + seconds
        while True:
            left = min(SLICE_SECONDS, max(0.0, deadline - time.monotonic()))
            result = self._result("rubato_await_checkpoint", directory, _PATH_BYTES, left)
            if result == _abi.OK:
                return directory.value.decode()
            if time.monotonic() >= deadline:
                return None

    def set_state(self, tensor: int, slot: int, address: int, updates: int) -> None:
        """What an optimizer keeps of a tensor that has stepped before; the values are at `address`."""
        self._call("rubato_set_state", tensor, slot, address, updates)

    def fetch_state(self, slot: int, tensors: int) -> list[int]:
        """Copies a slot of all tensors to their gradients; returns how many updates it stands for, by tensor."""
        updates = (ctypes.c_int64 * tensors)()
        self._wait("rubato_fetch_state", "the optimizer's state", None, slot, updates)
        return list(updates)

    def ask_rows(self, table: int, keys: int, count: int) -> None:
        """The next step needs the rows of the keys at this address."""
        self._call("rubato_ask_rows", table, keys, count)

    def read_rows(self, table: int, keys: int, count: int, rows: int) -> None:
        """Writes a row for each of the keys to the address `rows`."""
        what = f"rows of table {table}"
        self._wait("rubato_read_rows", what, None, table, keys, count, rows)

    def push_rows(self, table: int, keys: int, count: int, gradients: int, examples: int) -> None:
        """The gradients of all rows of a table in this step."""
        self._call("rubato_push_rows", table, keys, count, gradients, examples)

    def pause(self, why: str) -> None:
        """Until the next begin this worker does something else than a step."""
        self._call("rubato_pause", why.encode())

    def drain(self) -> None:
        """Leaves after this step: the next begin raises JobEnded."""
        self._call("rubato_drain")

    def close(self, error: Optional[str] = None, wait: Optional[float] = None) -> None:
        """Leaves the job. Nothing happens if that was done, or in another process.

        `wait`: seconds after which the call goes on without an answer.
        """
        if not self.is_open:
            return
        handle, self._handle = self._handle, ctypes.c_void_p()
        text = error.encode(errors="replace") if error is not None else None

        def close_client() -> None:
            result = self._library.rubato_close(handle, text)
            if result not in (_abi.OK, _abi.ENDED):
                self._raise(result, self._library.rubato_error(None))

        kept, self.kept_weights = self.kept_weights, None
        try:
            interruptibly(close_client, wait)
        finally:
            if kept is not None:
                kept.closed = True

    def _address(self, name: str, tensor: int) -> int:
        address = getattr(self._library, name)(self._own(), tensor)
        if not address:
            raise errors.InvalidCall(f"{name}: there is no tensor {tensor}")
        return int(address)

    def _own(self) -> ctypes.c_void_p:
        if os.getpid() != self._process:
            raise errors.Forked(
                f"process {os.getpid()} was forked from process {self._process}, whose session it cannot use: "
                "start processes before rubato.init, or by spawn"
            )
        if not self._handle:
            raise errors.InvalidCall("the session is closed")
        return self._handle

    def _wait(self, name: str, what: str, timeout: Optional[float], *arguments: Any) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = SLICE_SECONDS
            if deadline is not None:
                left = min(left, max(0.0, deadline - time.monotonic()))
            if self._result(name, *arguments, left) != _abi.AGAIN:
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise errors.Timeout(f"{what}: not within {timeout:g} s")

    def _call(self, name: str, *arguments: Any) -> None:
        while self._result(name, *arguments) == _abi.AGAIN:
            pass

    def _result(self, name: str, *arguments: Any) -> int:
        handle = self._own()
        self._wanted += 1
        with self._lock:
            self._wanted -= 1
            result = int(getattr(self._library, name)(handle, *arguments))
            text = None
            if result not in (_abi.OK, _abi.AGAIN):
                text = self._library.rubato_error(handle)
        if self._wanted > 0:
            time.sleep(0.001)  # A lock is not given to who waits for it by itself.
        if result not in (_abi.OK, _abi.AGAIN):
            self._raise(result, text)
        return result

    @staticmethod
    def _raise(result: int, text: Optional[bytes]) -> None:
        kind = _EXCEPTIONS.get(result)
        said = (text or b"").decode(errors="replace")
        if kind is errors.JobEnded:
            raise errors.JobEnded(said or "the job is over")
        if kind is None:
            raise errors.RubatoError(f"the library gave the unknown result {result}: {said}")
        raise kind(said or f"{kind.__name__}, and the library does not say why")


def interruptibly(work: Callable[[], None], wait: Optional[float] = None) -> None:
    """Runs what may block in a thread of its own, so that this one goes on handling signals."""
    failure: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True, name="rubato")
    deadline = None if wait is None else time.monotonic() + wait
    thread.start()
    while thread.is_alive() and (deadline is None or time.monotonic() < deadline):
        thread.join(SLICE_SECONDS)
    if failure:
        raise failure[0]
