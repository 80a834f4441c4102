"""Session.save and Session.load: a job that goes on is the one that went on; what does not fit is refused by name."""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil

import numpy as np
import pytest
import torch
from torch import nn

import rubato
import rubato.torch
from ranks import Job, run_ranks
from servers import real_only
from rubato import _together
from rubato.client import Client, Group
from wrapped import raised

pytestmark = real_only
STEPS = 5


def normed(seed):
    """Depends on batch statistics and on random numbers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 3))


def train(model, optimizer, scheduler):
    for _ in range(STEPS):
        # Of the generator whose state is saved.
        x = torch.randn(8, 6) + random.random() + np.random.rand()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        scheduler.step()


def wrapped(session, options, seed):
    model = normed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.7)
    rubato.torch.DistributedOptimizer(optimizer, model, **options)
    torch.manual_seed(seed + session.rank)
    random.seed(seed)
    np.random.seed(seed)
    return model, optimizer, scheduler


def state_of(model):
    return [tensor.numpy().copy() for tensor in model.state_dict().values()]


def first_job(options):
    """Saves in the middle: the path, and what there is at the end."""
    with rubato.init() as session:
        model, optimizer, scheduler = wrapped(session, options, 1)
        train(model, optimizer, scheduler)
        if options.get("apply") == "local":
            optimizer.synchronize()
        extra = {"scheduler": scheduler.state_dict(), "rank": session.rank}
        path = session.save("half-way", extra)
        train(model, optimizer, scheduler)
        if options.get("apply") == "local":
            optimizer.synchronize()
        return path, state_of(model)


def next_job(options, path):
    with rubato.init() as session:
        model, optimizer, scheduler = wrapped(session, options, 20)
        extra = session.load(path)
        assert extra["rank"] == session.rank
        scheduler.load_state_dict(extra["scheduler"])
        train(model, optimizer, scheduler)
        if options.get("apply") == "local":
            optimizer.synchronize()
        return state_of(model)


def going_on_from(path, tmp_path):
    """A config for a job that does so."""
    config = tmp_path / "cluster.textproto"
    config.write_text(f'training {{ start_from: "{path}" }}\n')
    return str(config)


@pytest.mark.parametrize(
    "options", [{}, {"apply": "worker"}, {"apply": "local", "sync_every": 2}], ids=str
)
def test_a_job_that_goes_on_is_the_one_that_went_on(options, tmp_path):
    # What the first job has left is there as long as its servers are.
    with Job(2) as job:
        first = job.values(first_job, options)
        path = first[0][0]
        assert path == first[1][0] and os.path.isabs(path)
        config = None if options.get("apply") == "worker" else going_on_from(path, tmp_path)
        second = run_ranks(2, next_job, options, path, config=config)
    for (_, expected), got in zip(first, second):
        assert all(np.array_equal(a, b) for a, b in zip(expected, got))
    # Ranks have statistics of their own.
    assert not all(np.array_equal(a, b) for a, b in zip(second[0], second[1]))


def in_async():
    with rubato.init() as session:
        model, optimizer, scheduler = wrapped(session, {}, 1)
        train(model, optimizer, scheduler)
        paths = [session.save("one"), session.save("two"), session.save("one")]
        assert os.path.exists(os.path.join(paths[0], "saved.json"))
        return paths, sorted(os.listdir(pathlib.Path(paths[0]).parent))


def test_saves_in_async_and_replaces_one_of_the_same_name():
    paths, files = run_ranks(2, in_async, mode="async")[0]
    assert files == ["one", "two"]
    assert paths[0] == paths[2]


def altered(path, to, change):
    """A copy with another manifest."""
    shutil.copytree(path, to)
    manifest = json.loads((to / "saved.json").read_text())
    change(manifest)
    (to / "saved.json").write_text(json.dumps(manifest))
    return str(to)


def refusals(folder):
    folder = pathlib.Path(folder)
    said = {}
    with rubato.init() as session:
        model, optimizer, scheduler = wrapped(session, {}, 1)
        train(model, optimizer, scheduler)
        path = session.save("good", 7)
        assert session.load(path) == 7

        def refuse(name, where, kind=rubato.Refused):
            said[name] = raised(kind, session.load, str(where))

        refuse("nothing", folder / "nothing", rubato.NotFound)
        more = altered(path, folder / "ranks", lambda m: m["workers"].append(m["workers"][0]))
        refuse("ranks", more)

        def rename(manifest):
            manifest["model"]["tensors"][1][0] = "another"

        refuse("model", altered(path, folder / "model", rename))
        newer = altered(path, folder / "newer", lambda m: m.update(format_version=9))
        refuse("newer", newer)
        refuse("manifest", altered(path, folder / "manifest", lambda m: m.pop("workers")))
        damaged = pathlib.Path(altered(path, folder / "damaged", lambda m: None))
        data = bytearray((damaged / "client-0.state").read_bytes())
        data[len(data) // 2] ^= 1
        (damaged / "client-0.state").write_bytes(data)
        refuse("damaged", damaged)
        (damaged / "client-0.state").unlink()
        refuse("missing", damaged)
        train(model, optimizer, scheduler)
        refuse("weights", path)
        assert session.load(path, check_weights=False) == 7
    return said


def test_what_does_not_fit_is_refused_by_name(tmp_path):
    said = run_ranks(1, refusals, str(tmp_path))[0]
    for name, text in {
        "nothing": "nothing is no checkpoint of Session.save",
        "ranks": "it is of 2 workers, and this job has 1",
        "model": "tensors[1] is ['another', [16], 0] there, and ['0.bias', [16], 0] here",
        "newer": "has version 9",
        "manifest": "saved.json is damaged",
        "damaged": "client-0.state is damaged",
        "missing": "client-0.state is missing",
        "weights": "training.start_from=",
    }.items():
        assert text in said[name], name


def misused():
    said = []
    with rubato.init() as session:
        said.append(raised(rubato.InvalidCall, session.save, "early"))
        model, optimizer, scheduler = wrapped(session, {}, 1)
        train(model, optimizer, scheduler)
        said.append(raised(rubato.InvalidCall, session.save, "../up"))
        said.append(raised(rubato.InvalidCall, session.save, f"name{session.rank}"))
        # What one rank cannot write, none has written.
        extra = (lambda: 0) if session.rank == 1 else None
        said.append(raised(rubato.InvalidCall, session.save, "lambda", extra))
        if session.rank == 0:
            model(torch.randn(8, 6)).mean().backward()
        said.append(raised(rubato.InvalidCall, session.save, "late"))
        if session.rank == 1:
            model(torch.randn(8, 6)).mean().backward()
        optimizer.step()
        path = pathlib.Path(session.save("good"))
        session.barrier("saved")
        return said, sorted(os.listdir(path.parent))


def test_misuse_is_told_to_all_ranks():
    for said, left in run_ranks(2, misused):
        for text, part in zip(
            said,
            [
                "after DistributedOptimizer",
                "'../up'",
                "different names: 'name0', 'name1'",
                "rank 1: ",
                "rank 0: gradients of this step were computed already",
            ],
        ):
            assert part in text
        assert left == ["good"]


def unequal():
    """Rank 0 has fewer batches, and waits for the other one."""
    with rubato.init() as session:
        model, optimizer, scheduler = wrapped(session, {}, 1)
        for _ in range(1 + session.rank):
            train(model, optimizer, scheduler)
        path = session.save("unequal")
        weights = [parameter.detach().numpy().copy() for parameter in model.parameters()]
        session.load(path)
        train(model, optimizer, scheduler)
        return weights


def test_a_rank_that_is_early_lets_the_others_go_on():
    zero, one = run_ranks(2, unequal)
    assert all(np.array_equal(a, b) for a, b in zip(zero, one))


def lonely():
    _together._LAST_WORD_SECONDS = 0.2
    with rubato.init() as session:
        wrapped(session, {}, 1)
        said = None
        if session.rank == 0:
            said = raised(rubato.Timeout, session.save, "alone", timeout=0.2)
        session.barrier("end")
        return said


def test_a_rank_that_does_not_call_it_is_named():
    said = run_ranks(2, lonely)[0]
    assert "all ranks have to call it, and rank 1 has not" in said


def with_numpy():
    with rubato.init() as session:
        client = Client(session, {"w": np.zeros(3, np.float32)}, [Group(["w"], learning_rate=1.0)])
        said = raised(rubato.InvalidCall, session.save, "early")
        client.begin()
        client.grad("w")[:] = 1
        client.push()
        client.begin()
        path = session.save("numpy", {"step": 1})
        before = np.random.rand()
        extra = session.load(path)
        out = np.zeros(3, np.float32)
        client.pull("w", out)
        return said, extra, before == np.random.rand(), out.tolist()


def test_a_client_of_numpy_saves_too():
    said, extra, same, weights = run_ranks(1, with_numpy)[0]
    assert "between begin() and the first push()" in said
    assert (extra, same, weights) == ({"step": 1}, True, [-1.0, -1.0, -1.0])
