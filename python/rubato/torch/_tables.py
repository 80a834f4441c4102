"""The tables of a model's EmbeddingBags: rows that a step reads, and gradients that go back with it."""

from __future__ import annotations

from typing import Any, Optional

import torch

from rubato import errors
from rubato._library import Client
from rubato._specs import TableSpec
from rubato.torch._tensors import Model
from rubato.torch.embedding_bag import EmbeddingBag


class Table:
    """What is known of one table in the step that has begun."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        # Of the next step, as far as it is known.
        self.asked: list[torch.Tensor] = []
        # Keys and their gradients, in the order in which backward came to them.
        self.keys: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor] = []

    def drop_gradients(self) -> None:
        """As if backward had not been."""
        self.keys.clear()
        self.gradients.clear()


def _joined(tensors: list[torch.Tensor]) -> torch.Tensor:
    """One after another; a single one as it is."""
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


class Tables:
    """All tables of a model, in the order of its modules. Keys are contiguous tensors of int64 on the CPU."""

    def __init__(self, model: Model) -> None:
        self._tables: list[Table] = []
        self._bags: list[tuple[EmbeddingBag, int]] = []
        if not isinstance(model, torch.nn.Module):
            return
        numbers: dict[str, int] = {}
        for module in model.modules():
            if not isinstance(module, EmbeddingBag):
                continue
            number = numbers.setdefault(module.spec.name, len(self._tables))
            if number == len(self._tables):
                self._tables.append(Table(module.spec))
            elif self._tables[number].spec != module.spec:
                raise errors.InvalidCall(
                    f"two EmbeddingBags have the table {module.spec.name} with different settings: "
                    f"{self._tables[number].spec} and {module.spec}"
                )
            self._bags.append((module, number))

    def __len__(self) -> int:
        return len(self._tables)

    @property
    def specs(self) -> list[TableSpec]:
        """What rubato_define is told."""
        return [table.spec for table in self._tables]

    def bind(self, training: Any, client: Client) -> None:
        """From now on the modules read from these tables, in this training."""
        self._training = training
        self._client = client
        for module, number in self._bags:
            module._bind(self, number)

    def read(self, number: int, keys: torch.Tensor) -> torch.Tensor:
        """A row for each key, in their order."""
        dimension = self._tables[number].spec.dimension
        rows = torch.empty(len(keys), dimension, dtype=torch.float32, device="cpu")
        training = self._training
        if not training.session._paused:
            training.settle()
        # The job has ended under a forward pass, of which nothing is of use.
        if training.ended is not None and training._state.dropped:
            return rows.zero_()
        self._client.read_rows(number, keys.data_ptr(), len(keys), rows.data_ptr())
        return rows

    def add_gradient(self, number: int, keys: torch.Tensor, gradient: torch.Tensor) -> None:
        """Backward has come to rows that were read."""
        table = self._tables[number]
        table.keys.append(keys)
        table.gradients.append(gradient)

    def prefetch(self, number: int, keys: torch.Tensor) -> None:
        """The next step needs the rows of these keys too."""
        self._tables[number].asked.append(keys)

    @property
    def have_gradients(self) -> bool:
        """Whether backward has come to rows in this step."""
        return any(table.keys for table in self._tables)

    def ask(self) -> None:
        """Tells what the next step needs, before anything is pushed."""
        for number, table in enumerate(self._tables):
            if table.asked:
                keys = _joined(table.asked)
                self._client.ask_rows(number, keys.data_ptr(), len(keys))

    def push(self, examples: int, scale: Optional[float]) -> None:
        """The gradients of this step, divided by `scale`."""
        self.ask()
        for number, table in enumerate(self._tables):
            if not table.keys:
                self._client.push_rows(number, 0, 0, 0, examples)
                continue
            keys = _joined(table.keys)
            gradients = _joined(table.gradients)
            if scale is not None:
                gradients = gradients / scale
            self._client.push_rows(
                number, keys.data_ptr(), len(keys), gradients.data_ptr(), examples
            )

    def drop_gradients(self) -> None:
        """As if backward had not been in this step."""
        for table in self._tables:
            table.drop_gradients()

    def new_step(self) -> None:
        """Nothing is known of it."""
        for table in self._tables:
            table.asked.clear()
            table.drop_gradients()
