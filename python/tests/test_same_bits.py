"""The same bits of the weights however they travel, in sync; and three ranks against DistributedDataParallel."""

from __future__ import annotations

import os
import tempfile

import pytest
import torch

import models
import rubato
import rubato.torch
from ranks import run_ranks
from servers import Servers, real_only
from test_equal_to_torch import against_ddp, many_servers
from test_matrix import OVERLAPS

STEPS = 12
PATHS = [(servers, memory) for memory in ("AUTO", "OFF") for servers in (1, 3)]
OPTIMIZER = {"server": "adam", "worker": "momentum", "local": "adamw"}


def on_each(addresses, apply, overlap):
    """The weights after the same training on each job."""
    rank, size = int(os.environ["RUBATO_RANK"]), int(os.environ["RUBATO_SIZE"])
    results = []
    for address in addresses:
        model = models.make_model("cnn", seed=rank)
        with rubato.init(coordinator=address, rank=rank, size=size):
            optimizer = models.OPTIMIZERS[OPTIMIZER[apply]](model.parameters())
            rubato.torch.DistributedOptimizer(
                optimizer,
                model,
                apply=apply,
                sync_every=4 if apply == "local" else 1,
                overlap=overlap,
            )
            models.train(model, optimizer, models.make_batches("cnn", rank, STEPS))
            if overlap != "step":
                optimizer.synchronize()
        results.append(models.weights_of(model))
    return results


@real_only
@pytest.mark.parametrize(
    "apply, overlap",
    [(a, o) for a in OPTIMIZER for o in OVERLAPS if a == "server" or o == "step"],
)
def test_the_same_bits_on_every_path(apply, overlap):
    """Over TCP and through shared memory, on one server and on three."""
    jobs = [
        # Small chunks, so that there are some for each server.
        Servers(
            2,
            servers=servers,
            settings=[f"cluster.shared_memory={memory}", "cluster.chunk_bytes=4096"],
        )
        for servers, memory in PATHS
    ]
    try:
        ranks = run_ranks(2, on_each, [job.address for job in jobs], apply, overlap)
    finally:
        for job in jobs:
            job.close()
    first = ranks[0][0]
    assert models.largest_difference(first, models.weights_of(models.make_model("cnn", 0))) > 1e-3
    for weights in (result for rank in ranks for result in rank):
        assert all(map(torch.equal, weights, first))


@real_only
@pytest.mark.parametrize("kind", ["mlp", "cnn", "encoder"])
def test_three_ranks_equal_ddp(kind, monkeypatch):
    """Within 1e-6: gloo adds up in another order than servers do."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder, many_servers(
        3, len(models.OPTIMIZERS)
    ) as addresses:
        for differences in run_ranks(3, against_ddp, kind, addresses, folder):
            assert {n: d for n, d in differences.items() if d > 1e-6} == {}
