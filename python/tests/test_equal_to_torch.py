"""The same weights as torch alone: DistributedDataParallel with gloo, and one process with all of the batch."""

from __future__ import annotations

import contextlib
import os
import tempfile

import pytest
import torch

import models
import rubato
import rubato.torch
from ranks import run_ranks
from servers import Servers

STEPS = 50


@contextlib.contextmanager
def many_servers(size, count):
    servers = [Servers(size) for _ in range(count)]
    try:
        yield [one.address for one in servers]
    finally:
        for one in servers:
            one.close()


def train_ours(kind, name, address, rank, size, apply, batches):
    model = models.make_model(kind, seed=1 if rank == 0 else 50 + rank)
    with rubato.init(coordinator=address, rank=rank, size=size):
        optimizer = rubato.torch.DistributedOptimizer(
            models.OPTIMIZERS[name](model.parameters()), model, apply=apply
        )
        models.train(model, optimizer, batches)
    return models.weights_of(model)


def against_ddp(kind, addresses, folder):
    rank, size = int(os.environ["RUBATO_RANK"]), int(os.environ["RUBATO_SIZE"])
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size
    )
    differences = {}
    for name, address in zip(models.OPTIMIZERS, addresses):
        batches = models.make_batches(kind, rank, STEPS)
        model = models.make_model(kind)
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        models.train(wrapped, models.OPTIMIZERS[name](model.parameters()), batches)
        ours = train_ours(kind, name, address, rank, size, "worker", batches)
        moved = models.largest_difference(ours, models.weights_of(models.make_model(kind)))
        assert moved > 1e-3
        differences[name] = models.largest_difference(ours, models.weights_of(model))
    torch.distributed.destroy_process_group()
    return differences


@pytest.mark.parametrize("kind", ["mlp", "cnn", "encoder"])
@pytest.mark.parametrize("size, largest", [(2, 0.0), (4, 1e-6)])
def test_worker_equals_ddp(kind, size, largest, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder, many_servers(
        size, len(models.OPTIMIZERS)
    ) as addresses:
        for differences in run_ranks(size, against_ddp, kind, addresses, folder):
            assert {n: d for n, d in differences.items() if d > largest} == {}


def against_one_process(kind, addresses):
    rank, size = int(os.environ["RUBATO_RANK"]), int(os.environ["RUBATO_SIZE"])
    parts = [models.make_batches(kind, r, STEPS) for r in range(size)]
    whole = [tuple(map(torch.cat, zip(*step))) for step in zip(*parts)]
    differences = {}
    for name, address in zip(models.OPTIMIZERS, addresses):
        model = models.make_model(kind)
        models.train(model, models.OPTIMIZERS[name](model.parameters()), whole)
        ours = train_ours(kind, name, address, rank, size, "server", parts[rank])
        differences[name] = models.largest_difference(ours, models.weights_of(model))
    return differences


@pytest.mark.parametrize("kind", ["mlp", "cnn", "encoder"])
def test_server_equals_one_process(kind):
    with many_servers(2, len(models.OPTIMIZERS)) as addresses:
        for differences in run_ranks(2, against_one_process, kind, addresses):
            assert {n: d for n, d in differences.items() if d > 1e-5} == {}
