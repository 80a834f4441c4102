"""Models on a GPU: the same weights as torch alone, and copies that come while the GPU computes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import models
import rubato
import rubato.torch
from ranks import Job, run_ranks
from servers import real_only
from wrapped import Branches, backward, linear, wrapped

gpu_only = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
on_gpu = [real_only, gpu_only]
STEPS = 30


def marked(test):
    for mark in on_gpu:
        test = mark(test)
    return test


# Copies that take as long as a test wants, on any machine.


class LateCopies:
    """In the place of a GPU's: gradients that are copied when somebody waits for them, or has asked often enough."""

    def __init__(self, parameters, asked):
        self._parameters, self._asked = parameters, asked
        self._coming = []
        self.log = []
        # What must not be sent.
        for gradient in parameters.gradients:
            gradient.fill_(float("nan"))
        self._give = parameters.give_gradient
        parameters.give_gradient, parameters.arrived = self.give_gradient, self.arrived

    def give_gradient(self, index, factor):
        self._coming.append([index, factor, self._asked])
        return False

    def arrived(self, wait):
        while self._coming:
            first = self._coming[0]
            first[2] -= 1
            if not wait and first[2] > 0:
                return
            del self._coming[0]
            assert self._give(first[0], first[1])
            self.log.append(first[0])
            yield first[0]


def late(asked, options):
    reference = linear()
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    come = []
    with rubato.init():
        model, optimizer = wrapped(**options)
        copies = LateCopies(optimizer._rubato.parameters, asked)
        for seed in range(4):
            plain.zero_grad()
            backward(reference, seed)
            plain.step()
            optimizer.zero_grad()
            backward(model, seed)
            come.append(len(copies.log) - 4 * seed)
            optimizer.step()
    assert models.largest_difference(models.weights_of(model), models.weights_of(reference)) < 1e-6
    return come


@pytest.mark.parametrize("options", [{}, {"apply": "worker"}, {"overlap": "layer"}], ids=str)
def test_gradients_that_come_late_are_pushed_when_they_are_there(options):
    assert run_ranks(1, late, 100, options) == [[0] * 4]
    # The first ones are pushed while later ones are computed.
    assert run_ranks(1, late, 2, options) == [[3] * 4]


def skipped():
    with rubato.init():
        model, optimizer = wrapped(Branches())
        copies = LateCopies(optimizer._rubato.parameters, 100)
        model(torch.ones(2, 3), "right").sum().backward()
        optimizer.skip()
        return sorted(copies.log)


def test_what_was_computed_before_a_step_is_given_up_is_pushed():
    assert run_ranks(1, skipped) == [[2, 3]]


# Real copies.


def batches_on(device, kind, steps, channels_last=False):
    form = torch.channels_last if channels_last else torch.contiguous_format
    return [
        (x.to(device, memory_format=form) if channels_last else x.to(device), y.to(device))
        for x, y in models.make_batches(kind, 0, steps)
    ]


def equal_to_torch(kind, name, options, channels_last):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    form = torch.channels_last if channels_last else torch.contiguous_format
    batches = batches_on("cuda", kind, STEPS, channels_last)
    reference = models.make_model(kind).to("cuda", memory_format=form)
    optimizer = models.OPTIMIZERS[name](reference.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        models.loss_of(reference(x), y).backward()
        if "clip_norm" in options:
            nn.utils.clip_grad_norm_(reference.parameters(), options["clip_norm"])
        optimizer.step()
    state = optimizer.state_dict()["state"]
    model = models.make_model(kind).to("cuda", memory_format=form)
    with rubato.init():
        ours = rubato.torch.DistributedOptimizer(
            models.OPTIMIZERS[name](model.parameters()), model, **options
        )
        copies = ours._rubato.parameters._gpu
        assert copies is not None and copies._is_registered
        assert ours._rubato.parameters.weights[0].is_pinned()
        models.train(model, ours, batches)
        for index, values in ours.state_dict()["state"].items():
            for key, value in values.items():
                if key != "step" and isinstance(value, torch.Tensor):
                    assert value.device.type == "cuda"
                    assert torch.allclose(value, state[index][key], atol=1e-5), (index, key)
        if ours._rubato.overlaps:
            ours.synchronize()
    return models.largest_difference(models.weights_of(model), models.weights_of(reference))


@marked
@pytest.mark.parametrize("kind", ["mlp", "cnn", "encoder"])
@pytest.mark.parametrize("name", list(models.OPTIMIZERS))
def test_equal_to_torch_on_the_gpu(kind, name):
    assert run_ranks(1, equal_to_torch, kind, name, {}, False)[0] < 2e-5


@marked
@pytest.mark.parametrize(
    "options",
    [
        {"apply": "worker"},
        {"apply": "local", "sync_every": 3},
        {"overlap": "forward"},
        {"overlap": "layer"},
        {"push": "step"},
        {"clip_norm": 0.05},
        {"apply": "worker", "clip_norm": 0.05},
    ],
    ids=str,
)
@pytest.mark.parametrize("channels_last", [False, True])
def test_options_are_equal_to_torch_on_the_gpu(options, channels_last):
    largest = run_ranks(1, equal_to_torch, "cnn", "momentum", options, channels_last)[0]
    assert largest < 2e-5


def with_autocast(options):
    torch.manual_seed(1)
    x = torch.randn(64, 10, device="cuda")
    y = (x.sum(1) > 0).long()
    model = models.make_model("mlp").cuda()
    losses = []
    with rubato.init():
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model, **options)
        # Torch 1.13 has it in torch.cuda.amp alone, where torch 2 warns of it.
        kind = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        scaler = kind(init_scale=2.0**40, growth_interval=1000)
        for _ in range(100):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.float16):
                loss = models.loss_of(model(x).float(), y)
            scaler.scale(loss).backward()
            if options.get("apply") == "worker":
                optimizer.synchronize()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        # It has overflowed at first.
        assert 1.0 <= scaler.get_scale() < 2.0**40
    return losses


@marked
@pytest.mark.parametrize(
    "options", [{"push": "step"}, {"apply": "worker"}, {"apply": "local"}], ids=str
)
def test_autocast_with_a_scaler_that_overflows(options):
    losses = run_ranks(1, with_autocast, options)[0]
    assert losses[-1] < 0.3 * losses[0], losses


class Wide(nn.Module):
    """Large enough for copies to take longer than a launch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.layers = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8)))

    def forward(self, x):
        return self.layers(x)


def many_steps(overlap):
    """Each step moves each weight by as much as one gradient says: any that was torn shows."""
    model = Wide().cuda()
    before = [p.detach().clone() for p in model.parameters()]
    x = torch.ones(16, 2048, device="cuda")
    with rubato.init() as session:
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model, overlap=overlap)
        for _ in range(40):
            optimizer.zero_grad()
            # Gradients of 2^-10 whatever the weights are.
            (
                sum((p.sum() for p in model.parameters())) * 2.0**-10 + 0 * model(x).sum()
            ).backward()
            optimizer.step()
        if overlap != "step":
            optimizer.synchronize()
        for parameter, old in zip(model.parameters(), before):
            assert float((parameter - old + 40 * 2.0**-10).abs().max()) < 1e-4
        return session.rank


@marked
@pytest.mark.parametrize("overlap", ["step", "forward", "layer"])
@pytest.mark.parametrize("size", [1, 2])
def test_no_weight_is_torn(overlap, size):
    assert run_ranks(size, many_steps, overlap) == list(range(size))


def two_sessions():
    """The memory of the first is gone when the second registers its own."""
    for _ in range(2):
        with Job(1) as job:
            with rubato.init(coordinator=job._servers.address, rank=0, size=1):
                model, optimizer = wrapped(linear().cuda())
                model(torch.randn(5, 4, device="cuda")).square().mean().backward()
                optimizer.step()
                copies = optimizer._rubato.parameters._gpu
                assert copies._is_registered
            assert not copies._is_registered and optimizer._rubato.parameters._gpu is None


@marked
def test_registers_memory_anew_in_each_session():
    two_sessions()


def normed(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2)).cuda()
    return wrapped(model, torch.optim.Adam(model.parameters(), lr=0.01))


def saves():
    with rubato.init() as session:
        model, optimizer = normed(1)
        x = torch.randn(16, 4, device="cuda")
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        path = session.save("half-way", {"x": x})
        return path, [b.cpu() for b in model.buffers()], torch.cuda.get_rng_state(), x.cpu()


def loads(path):
    with rubato.init() as session:
        model, _ = normed(2)
        extra = session.load(path, check_weights=False)
        assert extra["x"].is_cuda
        buffers = [b.cpu() for b in model.buffers()]
        return path, buffers, torch.cuda.get_rng_state(), extra["x"].cpu()


@marked
def test_saves_and_loads_buffers_and_random_states_of_the_gpu():
    with Job(1) as job:
        (saved,) = job.values(saves)
        (loaded,) = run_ranks(1, loads, saved[0])
    assert all(torch.equal(a, b) for a, b in zip(saved[1], loaded[1]))
    assert torch.equal(saved[2], loaded[2]) and torch.equal(saved[3], loaded[3])
