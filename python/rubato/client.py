"""Training with gradients as NumPy arrays, computed by whatever.

    with rubato.init() as session:
        client = Client(session, {"w": np.zeros(3, np.float32)}, [Group(["w"], learning_rate=0.1)])
        weights = np.empty(3, np.float32)
        while (step := client.begin()) is not None and step.step < 100:
            client.pull("w", weights)
            client.grad("w")[:] = gradient_of(weights)
            client.push(["w"], examples=64)
"""

from __future__ import annotations

import ctypes
import dataclasses
import pickle
import random
from typing import Any, BinaryIO, Iterable, Mapping, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from rubato import _abi, errors
from rubato._library import Step
from rubato._specs import TensorSpec
from rubato.session import Session

Array = NDArray[np.float32]


@dataclasses.dataclass
class Group:
    """Tensors that are updated with the same values; the servers take those that their algorithm has."""

    names: Sequence[str]
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    momentum: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    rho: float = 0.99
    epsilon: float = 1e-8

    def values(self) -> dict[str, float]:
        """As the library takes them."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "names"
        }


class Client:
    """A model of float32 tensors that this worker trains with the others. One a session; one thread at a time."""

    def __init__(
        self,
        session: Session,
        tensors: Mapping[str, Array],
        groups: Sequence[Group],
        *,
        algorithm: str = "sgd",
        initial_accumulator: float = 0.0,
    ) -> None:
        """`tensors`: names and initial weights; those of rank 0 count. Each is in one group. `algorithm`: "sgd",
        "momentum", "nesterov", "adagrad", "rmsprop", "adam" or "adamw"; "mean" leaves the mean gradients in the place
        of weights.

        Raises InvalidCall, and Refused if the models of workers differ.
        """
        if algorithm not in _abi.ALGORITHMS:
            raise errors.InvalidCall(
                f'algorithm="{algorithm}": {", ".join(_abi.ALGORITHMS)} are allowed'
            )
        self._session = session
        self._client = session._client
        self._groups = list(groups)
        self._sent = [group.values() for group in self._groups]
        self._index = {name: i for i, name in enumerate(tensors)}
        self._step: Optional[Step] = None
        self._waiting: Optional[Step] = None
        self._pushed: set[str] = set()
        of = _group_of_each(tensors, self._groups)
        session._claim("Client", self)
        specs = [
            TensorSpec(name, tuple(np.shape(tensor)), of[name]) for name, tensor in tensors.items()
        ]
        session._define(specs, self._sent, algorithm, initial_accumulator)
        shapes = [np.shape(tensor) for tensor in tensors.values()]
        self._weights = [_view(self._client.weights(i), s) for i, s in enumerate(shapes)]
        self._gradients = [_view(self._client.gradient(i), s) for i, s in enumerate(shapes)]
        for view, tensor in zip(self._weights, tensors.values()):
            view[...] = tensor
        session._own = _ClientState(self, specs, algorithm)
        session._start()

    def grad(self, name: str) -> Array:
        """Where to write the tensor's gradient, from `begin` until it is pushed. Memory of the session."""
        return self._gradients[self._at(name)]

    def pull(self, name: str, out: Array) -> bool:
        """Copies the tensor's weights of this step. False: no step has begun, and nothing is copied."""
        if self._step is None:
            return False
        out[...] = self._weights[self._at(name)]
        return True

    def begin(self) -> Optional[Step]:
        """Waits for the weights of the next step, and begins it; all of the last step was pushed. None: the job is over."""
        try:
            step = self._waiting or self._session._begin()
        except errors.JobEnded:
            return None
        self.resumed(step)
        return step

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until what was pushed is acknowledged and the next step's weights are there. False: not within the time.

        Raises JobEnded.
        """
        if self._waiting is None:
            try:
                self._waiting = self._session._begin(timeout)
            except errors.Timeout:
                return False
        return True

    def push(self, names: Optional[Iterable[str]] = None, examples: int = 1) -> None:
        """These gradients are complete, or all that were not pushed. `examples`: their weight in the mean."""
        if self._step is None:
            raise errors.InvalidCall("push: no step has begun: call begin()")
        if examples < 1:
            raise errors.InvalidCall(f"push: examples={examples}: 1 or more is allowed")
        self._send_values()
        left = [name for name in self._index if name not in self._pushed]
        for name in left if names is None else names:
            self._client.push(self._at(name), examples)
            self._pushed.add(name)

    def skip(self) -> None:
        """Contributes nothing more to this step."""
        self._client.skip()
        self._pushed.update(self._index)

    def why_not_pause(self) -> Optional[str]:
        """See rubato.session.Member."""
        if self._step is None or self._pushed or self._waiting is not None:
            return "pause between begin() and the first push()"
        return None

    def pausing(self) -> None:
        """See rubato.session.Member. A script's weights are the copies that `pull` has made."""

    def resumed(self, step: Step) -> None:
        """See rubato.session.Member."""
        self._step, self._waiting = step, None
        self._pushed.clear()

    def closing(self) -> None:
        """See rubato.session.Member. What was not pushed stays out."""

    def _send_values(self) -> None:
        for number, group in enumerate(self._groups):
            values = group.values()
            if values != self._sent[number]:
                self._client.set_hyperparameters(number, values)
                self._sent[number] = values

    def _at(self, name: str) -> int:
        index = self._index.get(name)
        if index is None:
            raise errors.NotFound(
                f'there is no tensor "{name}"; there are {", ".join(self._index)}'
            )
        return index


class _ClientState:
    """See rubato._own_state.OwnState."""

    keeps_weights = False

    def __init__(self, client: Client, specs: Sequence[TensorSpec], algorithm: str) -> None:
        self._client = client
        self._specs = list(specs)
        self._algorithm = algorithm

    def why_not_now(self) -> Optional[str]:
        """See OwnState."""
        if self._client.why_not_pause() is not None:
            return "to be called between begin() and the first push()"
        return None

    def described(self) -> dict[str, Any]:
        """See OwnState."""
        tensors = [[spec.name, list(spec.shape), spec.group] for spec in self._specs]
        return {"algorithm": self._algorithm, "tensors": tensors}

    def weights(self) -> Iterable[Array]:
        """See OwnState."""
        return self._client._weights

    def resumed(self, step: Step) -> None:
        """See OwnState."""
        self._client.resumed(step)

    def kept(self) -> dict[str, Any]:
        """See OwnState."""
        return {"python": random.getstate(), "numpy": np.random.get_state()}

    def check(self, kept: dict[str, Any]) -> None:
        """See OwnState."""

    def take(self, kept: dict[str, Any]) -> None:
        """See OwnState."""
        random.setstate(kept["python"])
        np.random.set_state(kept["numpy"])

    def write(self, obj: Any, file: BinaryIO) -> None:
        """See OwnState."""
        pickle.dump(obj, file)

    def read(self, file: BinaryIO) -> Any:
        """See OwnState."""
        return pickle.load(file)


def _group_of_each(tensors: Mapping[str, Array], groups: Sequence[Group]) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, group in enumerate(groups):
        for name in group.names:
            if name not in tensors:
                raise errors.InvalidCall(f'group {number} names "{name}", which is no tensor')
            if name in found:
                raise errors.InvalidCall(f'tensor "{name}" is in group {found[name]} and {number}')
            found[name] = number
    missing = [name for name in tensors if name not in found]
    if missing:
        raise errors.InvalidCall(f'tensor "{missing[0]}" is in no group')
    return found


def _view(address: int, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_float * count).from_address(address)
    array: Array = np.ctypeslib.as_array(memory).reshape(shape)
    return array
