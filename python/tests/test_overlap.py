"""Weights that come after step() has returned: overlap="forward" and "layer"."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import signal
import threading
import time

import pytest
import torch
from torch import nn

import models
import rubato
import rubato.torch
from ranks import Job, fake_only, run_ranks
from servers import REAL, Servers
from wrapped import backward, linear, raised, wrapped

BOTH = ("forward", "layer")


class Tied(nn.Module):
    """A transformer encoder that puts out the embedding's scores, and uses a layer twice."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.embedding = nn.Embedding(32, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.scripted = nn.Sequential(torch.jit.script(nn.Linear(16, 16)))
        self.again = nn.utils.weight_norm(nn.Linear(16, 16))
        self.output = nn.Linear(16, 32, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.encoder(self.embedding(tokens)).mean(1)
        return self.output(self.again(torch.tanh(self.scripted(self.again(x)))))


@contextlib.contextmanager
def jobs(size):
    """An address for each way that steps overlap and tensors travel."""
    with contextlib.ExitStack() as stack:
        addresses = {}
        for path in ("shared memory", "tcp") if REAL else ("fake",):
            for overlap in ("step", *BOTH):
                addresses[path, overlap] = stack.enter_context(servers(size, path))
        yield addresses


@contextlib.contextmanager
def servers(size, path):
    if path == "tcp":
        from rubato._serve import Serve

        with open("tcp.textproto", "w", encoding="utf-8") as file:
            # Chunks of a tensor are on both servers.
            file.write("cluster { shared_memory: OFF chunk_bytes: 4096 }\n")
        one = Serve(size, 2, 30.0, None, "tcp.textproto")
        address, close = one.address, lambda: one.close(5.0)
    else:
        one = Servers(size)
        address, close = one.address, one.close
    try:
        yield address
    finally:
        close()


def what_is_seen(overlap, address):
    """Everything that can be seen of weights in 12 steps, in evaluations and otherwise."""
    rank, size = int(os.environ["RUBATO_RANK"]), int(os.environ["RUBATO_SIZE"])
    model, seen = Tied(), []
    with rubato.init(coordinator=address, rank=rank, size=size) as session:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model, overlap=overlap)
        for number, (x, y) in enumerate(models.make_batches("encoder", rank, 12)):
            optimizer.zero_grad()
            models.loss_of(model(x), y).backward()
            optimizer.step()
            session.log({"loss": 1.0, "epoch": number / 12})
            if number % 4 == 1:
                model.eval()
                with torch.no_grad():
                    # Containers, which compute with what others own.
                    seen.append(model.encoder.layers[0](torch.ones(1, 2, 16)))
                    seen.append(model(x))
                model.train()
            elif number % 4 == 2:
                seen.extend(value.clone() for value in model.encoder.state_dict().values())
            elif number % 4 == 3 and overlap != "step":
                optimizer.synchronize()
                seen.extend(models.weights_of(model))
            elif number % 4 == 3:
                seen.extend(models.weights_of(model))
    return seen + models.weights_of(model)


def same_bits(addresses):
    return {key: what_is_seen(key[1], address) for key, address in addresses.items()}


def test_each_overlap_has_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with jobs(2) as addresses:
        for results in run_ranks(2, same_bits, addresses):
            expected = next(iter(results.values()))
            assert not torch.equal(expected[-1], Tied().again.weight_v)
            for key, seen in results.items():
                assert len(seen) == len(expected), key
                for one, other in zip(seen, expected):
                    assert torch.equal(one, other), key


def steps_before_the_other(overlap):
    """Rank 1 pushes only after step() has returned on rank 0."""
    with rubato.init() as session:
        model, optimizer = wrapped(overlap=overlap)
        before = models.weights_of(model)
        if session.rank == 1:
            session._client.get("stepped", 30.0)
        backward(model)
        optimizer.step()
        if session.rank == 0:
            assert models.largest_difference(models.weights_of(model), before) == 0
            session._client.put("stepped", b"")
        backward(model)
        assert models.largest_difference(models.weights_of(model), before) > 0


@pytest.mark.parametrize("overlap", BOTH)
def test_step_does_not_wait_for_others(overlap):
    run_ranks(2, steps_before_the_other, overlap)


def forward_says_when_the_first_layer_is_done():
    with rubato.init() as session:
        model, optimizer = wrapped(overlap="layer")
        backward(model)
        optimizer.step()
        before = models.weights_of(model)

        def after_the_first(*_):
            # The first layer has new weights, and the second one not yet.
            moved = [bool((a != b).any()) for a, b in zip(models.weights_of(model), before)]
            assert moved == [True, True, False, False]
            session._client.put("first", b"")

        model[0].register_forward_hook(after_the_first)
        backward(model)
        moved = [bool((a != b).any()) for a, b in zip(models.weights_of(model), before)]
        optimizer.step()
        return moved


@fake_only
def test_a_layer_waits_for_its_own_weights():
    with Job(1) as job:
        job.hub.arrived = 2
        job.start(0, forward_says_when_the_first_layer_is_done)
        job.hub.wait_until(lambda hub: b"first" in hub.values)
        let_arrive(job.hub)
        outcome = job.outcome(0)
        assert outcome.value == [True] * 4, outcome.error


def let_arrive(hub):
    with hub._changed:
        hub.arrived = None
        hub._changed.notify_all()


class Borrows(nn.Module):
    """Uses the second layer's weights outside of it, and before."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.second(nn.functional.linear(self.first(x), self.second.weight))


def borrows():
    with rubato.init():
        model, optimizer = wrapped(Borrows(), overlap="layer")
        backward(model)
        optimizer.step()
        return raised(RuntimeError, backward, model)


def test_weights_that_are_used_too_early_are_noticed():
    assert "modified by an inplace operation" in run_ranks(1, borrows)[0]


@pytest.mark.parametrize("overlap", BOTH)
def test_gradients_of_old_weights_are_an_error(overlap):
    run_ranks(1, no_forward, overlap)


def no_forward(overlap):
    with rubato.init():
        model, optimizer = wrapped(overlap=overlap)
        backward(model)
        optimizer.step()
        said = raised(rubato.InvalidCall, model[1].weight.sum().backward)
        assert "gradient of 1.weight" in said and "optimizer.synchronize()" in said
        optimizer.synchronize()
        optimizer.zero_grad()
        model[1].weight.sum().backward()
        assert "after backward()" in raised(rubato.InvalidCall, optimizer.synchronize)
        optimizer.step()


def a_rollback_in_forward():
    """Gradients that were computed with weights of two lines of history are not pushed."""
    with rubato.init() as session:
        model, optimizer = wrapped(overlap="layer")
        initial = models.weights_of(model)
        backward(model)
        optimizer.step()
        handle = model[0].register_forward_hook(lambda *_: session._client.put("first", b""))
        optimizer.zero_grad()
        backward(model)
        handle.remove()
        optimizer.step()
        assert session._step.rollbacks == 1
        optimizer.synchronize()
        assert models.largest_difference(models.weights_of(model), initial) == 0
        optimizer.zero_grad()
        backward(model)
        optimizer.step()
        optimizer.synchronize()
        return models.largest_difference(models.weights_of(model), initial)


@fake_only
def test_a_rollback_while_weights_are_awaited():
    with Job(1) as job:
        job.hub.arrived = 2
        job.start(0, a_rollback_in_forward)
        job.hub.wait_until(lambda hub: b"first" in hub.values)
        job.hub.roll_back()
        let_arrive(job.hub)
        outcome = job.outcome(0)
        assert outcome.error == "" and outcome.value > 0
        full, none = dict.fromkeys(range(4), 1), dict.fromkeys(range(4))
        # The first step, the one that was void, and the one that took its place.
        assert job.hub.pushes == [(0, 0, full), (0, 0, none), (0, 1, full)]


def until_stopped(overlap):
    """How many batches there were until the job ended."""
    with rubato.init() as session:
        model, optimizer = wrapped(overlap=overlap)
        count = 0
        for seed in rubato.torch.batches(range(1000), optimizer):
            optimizer.zero_grad()
            backward(model, seed)
            optimizer.step()
            count += 1
            if seed == 3:
                session._client.put("stop", b"")
                while session._client.get("stopped", 30.0) != b"":
                    pass
        assert optimizer._rubato.ended is not None
        assert raised(rubato.JobEnded, backward, model)
        return count


@fake_only
@pytest.mark.parametrize("overlap", BOTH)
def test_the_end_of_the_job_ends_the_batches(overlap):
    with Job(1) as job:
        job.start(0, until_stopped, overlap)
        job.hub.wait_until(lambda hub: b"stop" in hub.values)
        job.hub.stop()
        with job.hub._changed:
            job.hub.values[b"stopped"] = b""
            job.hub._changed.notify_all()
        outcome = job.outcome(0)
        assert outcome.value == 5, outcome.error


def interrupted(overlap):
    """How long it takes until an interrupt ends the wait in forward; then the step goes on."""
    with rubato.init() as session:
        model, optimizer = wrapped(overlap=overlap)
        if session.rank == 1:
            session._client.get("interrupted", 30.0)
        backward(model)
        optimizer.step()
        taken = 0.0
        if session.rank == 0:
            sent = []

            def send():
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

            threading.Timer(0.2, send).start()
            with pytest.raises(KeyboardInterrupt):
                backward(model)
            taken = time.monotonic() - sent[0]
            session._client.put("interrupted", b"")
        optimizer.zero_grad()
        backward(model)
        optimizer.step()
        return taken, models.weights_of(model)


@pytest.mark.parametrize("overlap", BOTH)
def test_a_wait_in_forward_can_be_interrupted(overlap):
    (taken, mine), (_, theirs) = run_ranks(2, interrupted, overlap)
    # Half of it is a loaded machine's.
    assert taken < 0.4
    assert models.largest_difference(mine, theirs) == 0


def leaves_with_the_last_weights(overlap):
    with rubato.init() as session:
        model, optimizer = wrapped(overlap=overlap)
        for seed in range(3):
            backward(model, seed)
            optimizer.step()
            optimizer.zero_grad()
            if seed == 1:
                with session.pause("an evaluation"):
                    backward(copy.deepcopy(model))
    return [weights.numpy() for weights in models.weights_of(model)]


@fake_only
@pytest.mark.parametrize("overlap", BOTH)
def test_closing_leaves_the_jobs_weights(overlap):
    with Job(1) as job:
        job.start(0, leaves_with_the_last_weights, overlap)
        outcome = job.outcome(0)
        assert outcome.error == ""
        for mine, servers_own in zip(outcome.value, job.hub.weights()):
            assert (mine == servers_own).all()


def copies_of_the_model_are_left_alone():
    with rubato.init():
        model, optimizer = wrapped(overlap="forward")
        backward(model)
        optimizer.step()
        stream = io.BytesIO()
        torch.save(model, stream)
        stream.seek(0)
        for other in (copy.deepcopy(model), torch.load(stream, weights_only=False)):
            other(torch.ones(1, 4)).sum().backward()
            assert optimizer._rubato._taken is not None
        other = linear()
        for no_module in (other.named_parameters(), torch.jit.script(other)):
            said = raised(
                rubato.InvalidCall,
                rubato.torch.DistributedOptimizer,
                torch.optim.SGD(other.parameters(), lr=0.1),
                no_module,
                overlap="layer",
            )
            assert "give the module" in said


def test_copies_of_the_model_are_left_alone():
    run_ranks(1, copies_of_the_model_are_left_alone)


def leased(overlap, accumulate=1):
    with rubato.init():
        data = torch.utils.data.TensorDataset(torch.arange(40))
        sampler = rubato.torch.LeasedSampler(data, batch_size=4, epochs=2)
        loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
        model, optimizer = wrapped(overlap=overlap, accumulate=accumulate)
        seen = []
        batches = rubato.torch.batches(loader, optimizer)
        if overlap == "layer" or accumulate > 1:
            return raised(rubato.Unsupported, next, batches)
        for (batch,) in batches:
            optimizer.zero_grad()
            backward(model)
            optimizer.step()
            seen.extend(batch.tolist())
        return seen


def test_leased_data_is_trained_once_with_forward():
    values = run_ranks(2, leased, "forward")
    assert sorted(values[0] + values[1]) == sorted(2 * list(range(40)))
    assert 'use overlap="forward"' in run_ranks(1, leased, "layer")[0]
    assert 'use overlap="step"' in run_ranks(1, leased, "forward", 2)[0]


def saves(overlap):
    with rubato.init() as session:
        model, optimizer = wrapped(overlap=overlap)
        for seed in range(4):
            optimizer.zero_grad()
            backward(model, seed)
            optimizer.step()
            if seed == 2:
                session.save("here")
                saved = models.weights_of(model)
                assert len(optimizer.state_dict()["param_groups"]) == 1
        optimizer.synchronize()
        return saved + models.weights_of(model)


@pytest.mark.skipif(not REAL, reason="fake servers write no checkpoints")
@pytest.mark.parametrize("overlap", BOTH)
def test_what_is_saved_waits(overlap):
    mine, theirs = run_ranks(2, saves, overlap)
    assert models.largest_difference(mine, theirs) == 0
    assert models.largest_difference(mine[:4], mine[4:]) > 0
