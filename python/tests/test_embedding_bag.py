"""EmbeddingBag: rows on the servers, against torch's own with sparse gradients, and what is refused."""

from __future__ import annotations

import copy
import io
import subprocess

import pytest
import torch
from torch import nn

import rubato
import rubato.torch
from bags import rows_of, wrap
from ranks import Job, run_ranks
from rubato import errors
from rubato.torch import EmbeddingBag
from servers import real_only
from wrapped import raised

KEYS, DIMENSION, STEPS = 40, 6, 20
# Keys of the second field are no small numbers.
FAR = 3 << 60


class Bags(nn.Module):
    """Bags of words, and two fields of another table, before a layer."""

    def __init__(self, mode="sum", algorithm="adagrad", epsilon=1e-10):
        super().__init__()
        settings = {"algorithm": algorithm, "learning_rate": 0.1, "epsilon": epsilon}
        self.words = EmbeddingBag(DIMENSION, table="words", mode=mode, **settings)
        self.fields = EmbeddingBag(DIMENSION, table="fields", mode=None, **settings)
        torch.manual_seed(2)
        self.output = nn.Linear(3 * DIMENSION, 1)

    def forward(self, words, offsets, fields, weights=None):
        rows = self.words(words, offsets, weights)
        return self.output(torch.cat([rows, self.fields(fields).flatten(1)], 1))


class TorchBags(nn.Module):
    """The same of torch: the second field's keys are those after the first one's."""

    def __init__(self, mode="sum"):
        super().__init__()
        self.words = nn.EmbeddingBag(KEYS, DIMENSION, mode=mode, sparse=mode != "max")
        self.fields = nn.Embedding(2 * KEYS, DIMENSION, sparse=True)
        torch.manual_seed(2)
        self.output = nn.Linear(3 * DIMENSION, 1)

    def forward(self, words, offsets, fields, weights=None):
        fields = torch.where(fields >= FAR, fields - FAR + KEYS, fields)
        rows = self.words(words, offsets, weights)
        return self.output(torch.cat([rows, self.fields(fields).flatten(1)], 1))


def make_batch(seed, examples=8):
    """Words and offsets (some bags are empty), fields, a label and a weight for each word."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 5, (examples,), generator=generator)
    words = torch.randint(0, KEYS, (int(counts.sum()),), generator=generator)
    offsets = counts.cumsum(0) - counts
    fields = torch.randint(0, KEYS, (examples, 2), generator=generator)
    fields[:, 1] += FAR
    labels = torch.randn(examples, 1, generator=generator)
    weights = torch.rand(len(words), generator=generator)
    return words, offsets, fields, labels, weights


def all_rows(model):
    first = torch.arange(KEYS)
    fields = rows_of(model.fields, torch.cat([first, first + FAR]))
    dense = [tensor.clone() for tensor in model.output.state_dict().values()]
    return [rows_of(model.words, first), fields, *dense]


def train(model, optimizer, batches, weighted=False):
    losses = []
    for words, offsets, fields, labels, weights in batches:
        optimizer.zero_grad()
        loss = (model(words, offsets, fields, weights if weighted else None) - labels).square()
        loss.mean().backward()
        optimizer.step()
        losses.append(float(loss.mean()))
    return losses


def as_torch(mode, algorithm, weighted):
    batches = [make_batch(seed) for seed in range(STEPS)]
    with rubato.init():
        model = Bags(mode, algorithm)
        optimizer = wrap(model)
        other = TorchBags(mode)
        before = all_rows(model)
        with torch.no_grad():
            other.words.weight.copy_(before[0])
            other.fields.weight.copy_(before[1])
            assert 0.2 < before[0].abs().max() <= DIMENSION**-0.5
        kind = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[algorithm]
        rows = kind([other.words.weight, other.fields.weight], lr=0.1)
        dense = torch.optim.SGD(other.output.parameters(), lr=0.1)
        losses = train(model, optimizer, batches, weighted)
        for batch, loss in zip(batches, losses):
            dense.zero_grad()
            rows.zero_grad()
            # torch.optim.Adagrad takes the sparse gradients of one table and the dense ones of another.
            (expected,) = train(other, dense, [batch], weighted)
            rows.step()
            assert abs(loss - expected) < 1e-5
        after = all_rows(model)
        expected = [other.words.weight, other.fields.weight, *other.output.state_dict().values()]
        for one, start, end in zip(after, before, expected):
            assert (one - end).abs().max() < 1e-5
            assert (one - start).abs().max() > 1e-3


@real_only
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("algorithm", ["sgd", "adagrad"])
def test_equals_torch(mode, algorithm):
    run_ranks(1, as_torch, mode, algorithm, False)


@real_only
def test_equals_torch_with_weights_of_samples():
    run_ranks(1, as_torch, "sum", "adagrad", True)


def train_in_job(options, prefetch, steps=STEPS):
    """All rows and weights after some steps, as bytes."""
    with rubato.init() as session:
        model = Bags()
        optimizer = wrap(model, **options)
        batches = [make_batch(100 * seed + session.rank) for seed in range(steps)]

        def announce(batch):
            model.words.prefetch(batch[0])
            model.fields.prefetch(batch[2])

        announced = rubato.torch.batches(
            batches, optimizer, prefetch=announce if prefetch else None
        )
        losses = train(model, optimizer, announced)
        assert len(losses) == steps
        # Both have pushed their last step then.
        session.barrier("trained")
        return [rows.numpy().tobytes() for rows in all_rows(model)]


@real_only
def test_two_workers_have_the_same_bits_in_every_run():
    first = run_ranks(2, train_in_job, {}, False)
    assert first[0] == first[1]
    for prefetch, options in [(False, {}), (True, {}), (True, {"overlap": "forward"})]:
        assert run_ranks(2, train_in_job, options, prefetch) == first
    assert run_ranks(2, train_in_job, {"overlap": "layer"}, True, servers=1) == first


def half_of_each():
    """What a worker with every other batch comes to."""
    with rubato.init() as session:
        model = Bags(algorithm="sgd")
        batches = [make_batch(100 * seed + session.rank) for seed in range(STEPS)]
        train(model, wrap(model), batches)
        session.barrier("trained")
        return all_rows(model)


@real_only
def test_the_step_of_two_workers_is_that_of_one_with_both_batches():
    first, second = run_ranks(2, half_of_each, settings=["seed=7"])
    (alone,) = run_ranks(1, accumulated, settings=["seed=7"])
    assert all(bool((one == other).all()) for one, other in zip(first, second))
    assert all((one - other).abs().max() < 1e-5 for one, other in zip(first, alone))


def accumulated():
    with rubato.init():
        model = Bags(algorithm="sgd")
        optimizer = wrap(model, accumulate=2)
        for seed in range(STEPS):
            optimizer.zero_grad()
            for rank in range(2):
                words, offsets, fields, labels, _ = make_batch(100 * seed + rank)
                loss = (model(words, offsets, fields) - labels).square().mean()
                (loss / 2).backward()
            optimizer.step()
        return all_rows(model)


@real_only
@pytest.mark.parametrize("mode", ["sync", "ssp:2", "async"])
def test_every_push_is_applied_once(mode):
    with Job(2, mode=mode, settings=["cluster.update_log=true"]) as job:
        job.values(train_in_job, {}, True)
        assert job.serve.end() == 0
        audit = subprocess.run(
            [job.serve.program, "audit", job.serve.run], capture_output=True, text=True
        )
        assert audit.returncode == 0, audit.stdout + audit.stderr


def only_rows():
    with rubato.init():
        model = nn.Sequential(
            EmbeddingBag(2, table="only", algorithm="sgd", learning_rate=0.5, initial_bound=0)
        )
        optimizer = wrap(model)
        for _ in range(3):
            model(torch.tensor([[7, 7, -1]])).sum().backward()
            optimizer.step()
        return rows_of(model[0], torch.tensor([7, -1, 8])).tolist()


@real_only
def test_a_model_may_have_rows_alone():
    assert run_ranks(1, only_rows) == [[[-3.0, -3.0], [-1.5, -1.5], [0.0, 0.0]]]


def with_mean_gradients():
    with rubato.init() as session:
        model = Bags()
        optimizer = wrap(model, apply="worker")
        train(model, optimizer, [make_batch(100 * s + session.rank) for s in range(5)])
        session.barrier("trained")
        return [rows.numpy().tobytes() for rows in all_rows(model)]


@real_only
def test_the_dense_part_may_be_updated_by_workers():
    first, second = run_ranks(2, with_mean_gradients)
    assert first == second


def without_changes():
    with rubato.init() as session:
        model = Bags()
        optimizer = wrap(model)
        words, offsets, fields, labels, _ = make_batch(1)
        before = all_rows(model)
        model.eval()
        loss = (model(words, offsets, fields) - labels).square().mean()
        loss.backward()
        assert model.output.weight.grad is not None
        optimizer.step()
        after = all_rows(model)
        model.train()
        with session.pause("evaluation"), torch.no_grad():
            paused = all_rows(model)
        # Backward, and no step of it.
        model(words, offsets, fields).sum().backward()
        optimizer.skip()
        model(words, offsets, fields).sum().backward()
        optimizer.zero_grad()
        optimizer.skip()
        return [
            all(bool((a == b).all()) for a, b in zip(rows[:2], before[:2]))
            for rows in (after, paused, all_rows(model))
        ]


@real_only
def test_reading_rows_changes_nothing():
    assert run_ranks(1, without_changes) == [[True, True, True]]


def train_and_save(name, steps, more, load):
    """Steps up to `steps`, a checkpoint if it has a name, and `more` steps."""
    with rubato.init() as session:
        model = Bags()
        optimizer = wrap(model)
        first = session.load(load) if load else 0
        batches = [make_batch(100 * seed + session.rank) for seed in range(30)]
        train(model, optimizer, batches[first:steps])
        path = session.save(name, steps) if name else None
        train(model, optimizer, batches[steps : steps + more])
        session.barrier("trained")
        return path, [rows.numpy().tobytes() for rows in all_rows(model)]


@real_only
def test_a_checkpoint_has_the_rows():
    with Job(2) as job:
        (path, expected), _ = job.values(train_and_save, "half", 5, 5, None)
        settings = [f"training.start_from={path}"]
        other = run_ranks(2, train_and_save, None, 5, 5, path, settings=settings)
    assert [rows for _, rows in other] == [expected, expected]


# What is refused.


def another_dimension():
    with rubato.init() as session:
        bag = EmbeddingBag(4 + session.rank, table="users")
        text = raised(errors.Refused, wrap, nn.Sequential(bag))
    return text


@real_only
def test_tables_that_differ_between_ranks_are_named():
    texts = []
    with Job(2) as job:
        for rank in range(2):
            job.start(rank, another_dimension)
        outcomes = [job.outcome(rank) for rank in range(2)]
    texts = [str(outcome.value) + outcome.error for outcome in outcomes]
    named = [text for text in texts if 'table 0: { name: "users" dimension: ' in text]
    assert named and "but this worker has" in named[0], texts


def server_refuses():
    with rubato.init():
        bag = EmbeddingBag(4, table="users", learning_rate=-1.0)
        return raised(errors.Refused, wrap, nn.Sequential(bag))


@real_only
def test_what_servers_do_not_take_is_named():
    (text,) = run_ranks(1, server_refuses)
    assert "model.manifest.tables[0].learning_rate: value -1; allowed: a number > 0" in text


def test_settings_that_are_none():
    assert 'algorithm="adam": sgd, adagrad' in raised(
        errors.InvalidCall, EmbeddingBag, 4, table="a", algorithm="adam"
    )
    assert 'mode="min": sum, mean, max or None' in raised(
        errors.InvalidCall, EmbeddingBag, 4, table="a", mode="min"
    )
    assert "dimension=0: 1 or more" in raised(errors.InvalidCall, EmbeddingBag, 0, table="a")
    assert "most_rows=-1: a number of 0 or more" in raised(
        errors.InvalidCall, EmbeddingBag, 4, table="a", most_rows=-1
    )


@pytest.mark.parametrize(
    "mode, arguments, text",
    [
        ("sum", [torch.zeros(2, 3)], "input is of torch.float32: keys are torch.int64 or"),
        (
            "sum",
            [torch.zeros(3, dtype=torch.int64)],
            "input of shape [3]: [bags, n] is allowed, or",
        ),
        ("sum", [torch.arange(3), torch.tensor([0, 2, 1])], "offsets [0, 2, 1]: ascending numbers"),
        (
            "sum",
            [torch.arange(3), torch.tensor([0, 4])],
            "ascending numbers up to 3, the number of",
        ),
        ("sum", [torch.arange(3), torch.tensor([1, 2])], "offsets begin with 0"),
        ("sum", [torch.arange(3), torch.tensor([0.0])], "offsets of shape [1] and torch.float32"),
        (
            "sum",
            [torch.zeros(2, 2, dtype=torch.int64), torch.tensor([0])],
            "offsets of an input of",
        ),
        (
            "sum",
            [torch.arange(3).view(1, 3), None, torch.ones(3)],
            "per_sample_weights of shape [3]",
        ),
        (
            "mean",
            [torch.arange(3).view(1, 3), None, torch.ones(1, 3)],
            'with mode="mean": mode="sum"',
        ),
        (
            None,
            [torch.arange(3), torch.tensor([0])],
            "offsets and per_sample_weights are for modes",
        ),
        (
            "sum",
            [torch.arange(3).view(1, 3)],
            "rows are on the servers: call DistributedOptimizer(",
        ),
    ],
)
def test_bad_input_is_named(mode, arguments, text):
    said = raised(errors.InvalidCall, EmbeddingBag(4, table="users", mode=mode), *arguments)
    assert said.startswith("EmbeddingBag of table users: ") and text in said


def refused_models():
    bag = EmbeddingBag(4, table="users")
    with rubato.init():
        two = nn.ModuleList([bag, EmbeddingBag(5, table="users")])
        different = raised(errors.InvalidCall, wrap, two)
        local = raised(errors.Unsupported, wrap, nn.Sequential(bag), apply="local")
    return different, local


def test_models_that_are_refused():
    ((different, local),) = run_ranks(1, refused_models)
    assert "two EmbeddingBags have the table users with different settings" in different
    assert 'apply="local" with EmbeddingBag (table users)' in local


def test_a_copy_has_no_part_in_the_training():
    bag = EmbeddingBag(4, table="users", mode="mean")
    bag._bind(object(), 0)
    stream = io.BytesIO()
    torch.save(bag, stream)
    stream.seek(0)
    for other in (copy.deepcopy(bag), torch.load(stream)):
        assert other._tables is None and other.mode == "mean"
    assert list(bag.parameters()) == []
    assert 'table="users"' in repr(bag)
