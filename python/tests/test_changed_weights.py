"""Weights that a script changes by itself: the servers would not know of it."""

from __future__ import annotations

import copy

import pytest
import torch

import rubato
from ranks import run_ranks
from wrapped import backward, linear, raised, wrapped


def step(model, optimizer):
    optimizer.zero_grad()
    backward(model)
    optimizer.step()


def loads_weights_after_the_servers_have_them():
    other = linear()
    with torch.no_grad():
        other[1].bias += 1
    with rubato.init():
        model, optimizer = wrapped()
        step(model, optimizer)
        model.load_state_dict(other.state_dict())
        error = raised(rubato.InvalidCall, backward, model)
        assert "0.weight was changed after DistributedOptimizer" in error
        assert "Load weights before" in error


def clips_weights_as_it_trains(push):
    with rubato.init():
        model, optimizer = wrapped(push=push)
        step(model, optimizer)
        with torch.no_grad():
            model[1].weight.clamp_(-0.01, 0.01)
        error = raised(rubato.InvalidCall, step, model, optimizer)
        assert "1.weight was changed after DistributedOptimizer" in error


def evaluates_with_averaged_weights_and_puts_its_own_back():
    with rubato.init():
        model, optimizer = wrapped()
        averaged = linear().state_dict()
        for _ in range(3):
            step(model, optimizer)
            own = copy.deepcopy(model.state_dict())
            model.load_state_dict(averaged)
            model.load_state_dict(own)
        step(model, optimizer)


def clips_weights_that_are_its_own():
    with rubato.init():
        model, optimizer = wrapped(apply="worker")
        for _ in range(2):
            step(model, optimizer)
            with torch.no_grad():
                model[1].weight.clamp_(-0.01, 0.01)
        assert float(model[1].weight.detach().abs().max()) <= 0.01


def test_weights_loaded_too_late():
    run_ranks(1, loads_weights_after_the_servers_have_them)


@pytest.mark.parametrize("push", ["backward", "step"])
def test_weights_clipped_between_steps(push):
    run_ranks(1, clips_weights_as_it_trains, push)


def test_weights_put_back():
    run_ranks(1, evaluates_with_averaged_weights_and_puts_its_own_back)


def test_weights_of_a_worker():
    run_ranks(1, clips_weights_that_are_its_own)
