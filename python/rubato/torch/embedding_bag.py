"""`EmbeddingBag`: rows of a table on the servers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional

import torch
from torch.autograd.function import once_differentiable

from rubato import _abi, errors
from rubato._specs import TableSpec

if TYPE_CHECKING:
    from rubato.torch._tables import Tables

_MODES = ("sum", "mean", "max")

# It has backward called for rows, and nothing else.
_ASKS = torch.zeros(0, requires_grad=True, device="cpu")


class EmbeddingBag(torch.nn.Module):
    """As torch.nn.EmbeddingBag, with rows that stay on the job's servers: any 64-bit number is a key, and a row is made
    when it gets its first gradient.

        self.words = rubato.torch.EmbeddingBag(16, table="words", learning_rate=0.05)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model)  # Finds it in the model.
        bags = self.words(keys, offsets)                                 # [bags, 16]
        self.words.prefetch(next_keys)                                   # If they are known: they come with the step.

    The rows are no parameters: the table has an algorithm of its own on the servers, "sgd", "adagrad",
    "row_wise_adagrad", "lazy_adam" or "ftrl", which has no part in the optimizer's values and schedulers. Their
    gradients go with the wrapped optimizer's step(). Several modules may have one table, with the same settings.

    mode: how the rows of a bag become one: "sum", "mean" or "max". None: they do not, and keys of any shape become rows
      [*shape, dimension]; so one module and one table serve several fields, whose keys differ.
    initial_bound: rows begin as uniform in [-initial_bound, initial_bound); None: 1 / sqrt(dimension), "ftrl": 0.
    shards, memory_bytes: into how many parts the table is dealt to servers, and what it may take on each of them; 0:
      the job's defaults.
    admit_after: with which push a key gets its row, 1 to 255; until then it reads its initial row, and its gradients are
      dropped. admission_counters: bytes that these pushes are counted in; 0: the job's default.
    expire_after_steps: a row without an update for so many steps is removed; 0: none is.
    most_rows: beyond so many those rows go whose last update is the longest ago; 0: none does.
    precision: how weights lie in servers' memory, "float32" or "bf16", half the bytes; updates are rounded up or down at
      random, so that small ones are not lost.
    push, pull: how gradients and rows are sent, "float32" or "bf16".

    In eval(), or without gradients, rows are read and nothing is changed.
    """

    def __init__(
        self,
        dimension: int,
        *,
        table: str,
        mode: Optional[str] = "sum",
        algorithm: str = "adagrad",
        learning_rate: float = 0.01,
        initial_bound: Optional[float] = None,
        epsilon: float = 1e-8,
        beta1: float = 0.9,
        beta2: float = 0.999,
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        shards: int = 0,
        memory_bytes: int = 0,
        admit_after: int = 1,
        admission_counters: int = 0,
        expire_after_steps: int = 0,
        most_rows: int = 0,
        precision: str = "float32",
        push: str = "float32",
        pull: str = "float32",
    ) -> None:
        super().__init__()
        if mode is not None and mode not in _MODES:
            raise errors.InvalidCall(f'mode="{mode}": {", ".join(_MODES)} or None is allowed')
        if algorithm not in _abi.TABLE_ALGORITHMS:
            raise errors.InvalidCall(
                f'algorithm="{algorithm}": {", ".join(_abi.TABLE_ALGORITHMS)} are allowed'
            )
        if dimension < 1:
            raise errors.InvalidCall(f"dimension={dimension}: 1 or more is allowed")
        for name, number in (("precision", precision), ("push", push), ("pull", pull)):
            if number not in _abi.NUMBERS:
                raise errors.InvalidCall(
                    f'{name}="{number}": {", ".join(_abi.NUMBERS)} are allowed'
                )
        # What ctypes would make another number of.
        for name, value in (
            ("admit_after", admit_after),
            ("admission_counters", admission_counters),
            ("expire_after_steps", expire_after_steps),
            ("most_rows", most_rows),
        ):
            if not 0 <= value < 2 ** (32 if name == "admit_after" else 64):
                raise errors.InvalidCall(f"{name}={value}: a number of 0 or more is allowed")
        if initial_bound is None:
            initial_bound = 0.0 if algorithm == "ftrl" else 1 / math.sqrt(dimension)
        self.mode = mode
        self.spec = TableSpec(
            name=table,
            dimension=dimension,
            algorithm=algorithm,
            learning_rate=learning_rate,
            initial_bound=initial_bound,
            epsilon=epsilon,
            beta1=beta1,
            beta2=beta2,
            beta=beta,
            l1=l1,
            l2=l2,
            shards=shards,
            memory_bytes=memory_bytes,
            admit_after=admit_after,
            admission_counters=admission_counters,
            expire_after_steps=expire_after_steps,
            most_rows=most_rows,
            precision=precision,
            push=push,
            pull=pull,
        )
        self._tables: Optional[Tables] = None
        self._number = 0

    def forward(
        self,
        input: torch.Tensor,
        offsets: Optional[torch.Tensor] = None,
        per_sample_weights: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """Of keys, torch.int64 or torch.int32: [bags, n], or one after another with the offsets where bags begin. Rows
        [bags, dimension]; with mode=None those of each key.
        """
        keys = self._kept_keys(input)
        if self.mode is None:
            if offsets is not None or per_sample_weights is not None:
                raise self._invalid("offsets and per_sample_weights are for modes other than None")
            rows = self._rows(keys).to(input.device)
            return rows if input.dim() == 1 else rows.view(*input.shape, self.spec.dimension)
        offsets = self._offsets(input, offsets)
        weights = self._weights(input, per_sample_weights)
        if len(keys) == 0:
            shape = (len(offsets), self.spec.dimension)
            return torch.zeros(shape, dtype=torch.float32, device=input.device)
        return torch.nn.functional.embedding_bag(
            torch.arange(len(keys), device=input.device),
            self._rows(keys).to(input.device),
            offsets,
            mode=self.mode,
            per_sample_weights=weights,
        )

    def prefetch(self, input: torch.Tensor) -> None:
        """The keys of the next step's batch: their rows come with it. Before step(); several calls add up."""
        self._bound().prefetch(self._number, self._kept_keys(input))

    def extra_repr(self) -> str:
        """See torch.nn.Module."""
        spec = self.spec
        return f'{spec.dimension}, table="{spec.name}", mode={self.mode!r}, algorithm="{spec.algorithm}"'

    def __getstate__(self) -> dict[str, Any]:
        # A copy has no part in the training.
        return {**self.__dict__, "_tables": None}

    def _bind(self, tables: Tables, number: int) -> None:
        self._tables, self._number = tables, number

    def _bound(self) -> Tables:
        if self._tables is None:
            raise self._invalid(
                "rows are on the servers: call DistributedOptimizer(optimizer, model) with this module in the model"
            )
        return self._tables

    def _rows(self, keys: torch.Tensor) -> torch.Tensor:
        tables = self._bound()
        if not (self.training and torch.is_grad_enabled()):
            return tables.read(self._number, keys)
        rows: torch.Tensor = _Rows.apply(_ASKS, tables, self._number, keys)
        return rows

    def _kept_keys(self, input: torch.Tensor) -> torch.Tensor:
        """A copy: contiguous, of int64 and on the CPU, whatever becomes of `input`."""
        if input.dtype not in (torch.int64, torch.int32):
            raise self._invalid(f"input is of {input.dtype}: keys are torch.int64 or torch.int32")
        if input.dtype == torch.int64 and input.device.type == "cpu":
            keys = input.clone(memory_format=torch.contiguous_format)
        else:
            keys = torch.empty(input.shape, dtype=torch.int64, device="cpu").copy_(input)
        return keys if keys.dim() == 1 else keys.view(-1)

    def _offsets(self, input: torch.Tensor, offsets: Optional[torch.Tensor]) -> torch.Tensor:
        if input.dim() == 2:
            if offsets is not None:
                raise self._invalid("offsets of an input of two dimensions: its rows are the bags")
            bags, size = input.shape
            return torch.arange(bags, device=input.device) * size
        if input.dim() != 1 or offsets is None:
            shape = list(input.shape)
            raise self._invalid(
                f"input of shape {shape}: [bags, n] is allowed, or one dimension with offsets"
            )
        if offsets.dim() != 1 or offsets.dtype not in (torch.int64, torch.int32):
            raise self._invalid(
                f"offsets of shape {list(offsets.shape)} and {offsets.dtype}: one dimension of torch.int64 or "
                "torch.int32 is allowed"
            )
        here = offsets.to("cpu", torch.int64)
        if len(here) > 0 and int(here[0]) != 0 or len(here) == 0 and len(input) > 0:
            raise self._invalid("offsets begin with 0: the first bag begins with the first key")
        if bool((here[1:] < here[:-1]).any()) or len(here) > 0 and int(here[-1]) > len(input):
            raise self._invalid(
                f"offsets {here.tolist()[:8]}: ascending numbers up to {len(input)}, the number of keys, are allowed"
            )
        return offsets.to(input.device, torch.int64)

    def _weights(
        self, input: torch.Tensor, weights: Optional[torch.Tensor]
    ) -> Optional[torch.Tensor]:
        if weights is None:
            return None
        if self.mode != "sum":
            raise self._invalid(
                f'per_sample_weights with mode="{self.mode}": mode="sum" is allowed'
            )
        if weights.shape != input.shape or weights.dtype != torch.float32:
            raise self._invalid(
                f"per_sample_weights of shape {list(weights.shape)} and {weights.dtype}: {list(input.shape)}, as the "
                "input has, and torch.float32 are allowed"
            )
        return weights.reshape(-1)

    def _invalid(self, what: str) -> errors.InvalidCall:
        return errors.InvalidCall(f"EmbeddingBag of table {self.spec.name}: {what}")


class _Rows(torch.autograd.Function):
    """Rows of the servers, whose gradients are for the servers."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, asks: torch.Tensor, tables: Tables, number: int, keys: torch.Tensor
    ) -> torch.Tensor:
        ctx.tables, ctx.number, ctx.keys = tables, number, keys
        return tables.read(number, keys)

    @staticmethod
    @once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        ctx.tables.add_gradient(ctx.number, ctx.keys, gradient.contiguous())
        return None, None, None, None
