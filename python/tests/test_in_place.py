"""Parameters that are where the servers' weights come to."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn

import rubato
from rubato.torch._in_place import may_move
from ranks import run_ranks
from wrapped import alone, backward, linear, wrapped


def addresses(model):
    return [parameter.data_ptr() for parameter in model.parameters()]


def values(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def same(ours, theirs):
    return all(torch.equal(a, b) for a, b in zip(ours, theirs))


def step(model, optimizer):
    optimizer.zero_grad()
    backward(model)
    optimizer.step()


def expect_steps(model, optimizer):
    for _ in range(2):
        before = values(model)
        step(model, optimizer)
        assert not any(torch.equal(a, b) for a, b in zip(values(model), before))


def they_are_there_until_the_session_ends():
    with rubato.init() as session:
        model, optimizer = wrapped()
        client = session._client
        assert addresses(model) == [client.weights(i) for i in range(4)]
        for _ in range(3):
            before = values(model)
            backward(model)
            assert same(values(model), before)
            optimizer.step()
            assert not same(values(model), before)
            optimizer.zero_grad()
        last, shared = values(model), addresses(model)
    assert same(values(model), last)
    assert not set(addresses(model)) & set(shared)
    model(torch.randn(5, 4))


test_parameters_are_there_until_the_session_ends = alone(they_are_there_until_the_session_ends)


def stay_where_they_are(options):
    with rubato.init():
        model = linear()
        before = addresses(model)
        _, optimizer = wrapped(model, **options)
        step(model, optimizer)
        assert addresses(model) == before


@pytest.mark.parametrize("options", [{"apply": "worker"}, {"overlap": "forward"}])
def test_they_are_not_where_weights_come_at_other_times(options):
    run_ranks(1, stay_where_they_are, options)


def a_graph_of_the_step_before_cannot_be_used():
    """As after torch's optimizers, which change parameters in place."""
    with rubato.init():
        model, optimizer = wrapped()
        loss = model(torch.randn(5, 4)).square().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        with pytest.raises(RuntimeError, match="inplace operation"):
            loss.backward()


test_a_graph_of_the_step_before_cannot_be_used = alone(a_graph_of_the_step_before_cannot_be_used)


def other_memory_gets_the_weights_too():
    with rubato.init():
        model, optimizer = wrapped()
        step(model, optimizer)
        model[0].weight.data = model[0].weight.data.clone()
        model[1].weight.share_memory_()
        expect_steps(model, optimizer)


test_other_memory_gets_the_weights_too = alone(other_memory_gets_the_weights_too)


def a_pause_leaves_them_as_they_are():
    with rubato.init() as session:
        model, optimizer = wrapped()
        step(model, optimizer)
        before, shared = values(model), addresses(model)
        with session.pause("evaluation"):
            assert not set(addresses(model)) & set(shared)
            assert same(values(model), before)
            model[1].weight.data = model[1].weight.data.clone()
        assert addresses(model)[:2] == shared[:2]
        assert addresses(model)[2] != shared[2]
        expect_steps(model, optimizer)


test_a_pause_leaves_them_as_they_are = alone(a_pause_leaves_them_as_they_are)


def a_forked_child_has_a_copy():
    with rubato.init():
        model, optimizer = wrapped()
        before = values(model)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(reading, 1)  # Until the parent has made a step.
            os._exit(0 if same(values(model), before) else 1)
        step(model, optimizer)
        assert not same(values(model), before)
        os.write(writing, b"x")
        assert os.waitpid(child, 0)[1] == 0


test_a_forked_child_has_a_copy = alone(a_forked_child_has_a_copy)


def test_what_others_may_use_does_not_move():
    alone_, shared, part = nn.Linear(3, 2), nn.Linear(3, 2), torch.randn(4, 3)
    shared.share_memory()
    tied = nn.Linear(3, 2)
    tied.weight.data = alone_.weight.data
    parameters = [
        alone_.weight,  # With tied.weight.
        alone_.bias,
        tied.weight,
        shared.bias,
        nn.Parameter(part[1:]),
        nn.Parameter(torch.randn(3, 4).t()),
        nn.Parameter(torch.tensor(1.0)),
    ]
    assert may_move(parameters) == [False, True, False, False, False, False, True]


def what_others_have_of_them_stays():
    with rubato.init():
        model, optimizer = wrapped()
        step(model, optimizer)
        state, last = model.state_dict(), values(model)
    assert same(state.values(), last)
    with torch.no_grad():
        model[0].weight.zero_()
    assert same(state.values(), last)


test_what_others_have_of_them_stays = alone(what_others_have_of_them_stays)
