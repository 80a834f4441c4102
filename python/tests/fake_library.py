"""librubato_client.so without servers: the functions of rubato_client.h, as ctypes would call them, over a `FakeHub`."""

from __future__ import annotations

import ctypes
import multiprocessing.connection
import threading

import numpy as np

from rubato import _abi
from rubato._version import __version__


def _fields(structure):
    return {name: getattr(structure, name) for name, _ in structure._fields_}


class FakeLibrary:
    """One a process. Handles are not looked at: a process has one client."""

    def __init__(self, abi=_abi.ABI_VERSION, version=__version__):
        self._abi, self._version = abi, version
        self._text = ""
        self._lock = threading.Lock()

    def rubato_abi_version(self):
        return self._abi

    def rubato_version(self):
        return self._version.encode()

    def rubato_error(self, handle):
        return self._text.encode()

    def rubato_open(self, options, client):
        assert options._obj.struct_bytes == ctypes.sizeof(_abi.Options)
        try:
            self._connection = multiprocessing.connection.Client(options._obj.coordinator.decode())
        except OSError as error:
            self._text = f"coordinator {options._obj.coordinator.decode()}: {error}"
            return _abi.UNAVAILABLE
        self._unread = 0
        client._obj.value = 1
        return self._ask("open", options._obj.rank)[0]

    def _ask(self, name, *arguments):
        with self._lock:
            try:
                # An answer that an interrupt has come before.
                while self._unread:
                    self._connection.recv()
                    self._unread -= 1
                self._unread += 1
                self._connection.send((name, arguments))
                result, answer = self._connection.recv()
                self._unread -= 1
            except (EOFError, OSError):
                result, answer = _abi.UNAVAILABLE, "the coordinator is gone"
        if result != _abi.OK:
            self._text = answer
        return result, answer

    def rubato_define(self, handle, model):
        model = model._obj
        assert model.struct_bytes == ctypes.sizeof(_abi.Model)
        tensors = [model.tensors[i] for i in range(model.tensor_count)]
        manifest = [
            (t.name.decode(), tuple(t.shape[i] for i in range(t.dimensions)), t.group)
            for t in tensors
        ]
        groups = [_fields(model.groups[i]) for i in range(model.group_count)]
        leased = (model.leased_examples, model.shard_examples, model.epochs)
        self.weights = [np.zeros(shape, np.float32) for _, shape, _ in manifest]
        self.gradients = [np.zeros(shape, np.float32) for _, shape, _ in manifest]
        return self._ask(
            "define", manifest, groups, model.algorithm, model.initial_accumulator, leased
        )[0]

    def rubato_weights(self, handle, tensor):
        return self.weights[tensor].ctypes.data

    def rubato_free_weights(self, address):
        pass

    def rubato_gradient(self, handle, tensor):
        return self.gradients[tensor].ctypes.data

    def rubato_start(self, handle):
        return self._ask("start", self.weights)[0]

    def rubato_begin(self, handle, step, seconds):
        result, answer = self._ask("begin", seconds)
        if result == _abi.OK:
            values, weights = answer
            for (name, _), value in zip(_abi.Step._fields_, values):
                setattr(step._obj, name, value)
            for mine, theirs in zip(self.weights, weights):
                mine[...] = theirs
            self._begun = weights
        return result

    def rubato_has_weights(self, handle, tensor, has, seconds):
        has._obj.value = int(np.array_equal(self.weights[tensor], self._begun[tensor]))
        return _abi.OK

    def rubato_await(self, handle, tensor, seconds):
        result, weights = self._ask("await", tensor, seconds)
        if result == _abi.OK:
            self.weights[tensor][...] = weights
        return result

    def rubato_set_hyperparameters(self, handle, group, values):
        return self._ask("set_hyperparameters", group, _fields(values._obj))[0]

    def rubato_set_slice(self, handle, shard, begin, end):
        return self._ask("set_slice", shard, begin, end)[0]

    def rubato_set_epoch(self, handle, epoch):
        return self._ask("set_epoch", epoch)[0]

    def rubato_push(self, handle, tensor, examples):
        return self._ask("push", tensor, self.gradients[tensor], examples)[0]

    def rubato_push_absent(self, handle, tensor):
        return self._ask("push", tensor, None, 0)[0]

    def rubato_skip(self, handle):
        return self._ask("skip")[0]

    def rubato_report(self, handle, examples, loss_sum, correct):
        return self._ask("report", examples, loss_sum, correct)[0]

    def rubato_lease(self, handle, found, seconds):
        result, answer = self._ask("lease", seconds)
        if result == _abi.OK:
            for (name, _), value in zip(_abi.LeaseRange._fields_, answer):
                setattr(found._obj, name, value)
        return result

    def rubato_put(self, handle, key, value, size):
        return self._ask("put", key, value[:size])[0]

    def rubato_get(self, handle, key, value, capacity, size, seconds):
        result, answer = self._ask("get", key, seconds)
        if result == _abi.OK:
            size._obj.value = len(answer)
            ctypes.memmove(value, answer, min(capacity, len(answer)))
        return result

    def rubato_erase(self, handle, key):
        return self._ask("erase", key)[0]

    def rubato_barrier(self, handle, name, count, seconds):
        return self._ask("barrier", name.decode(), count, seconds)[0]

    def rubato_switch(self, handle, mode, staleness, quorum, scale, seconds):
        return self._ask("switch", mode, staleness, quorum, scale, seconds)[0]

    def rubato_checkpoint(self, handle):
        return self._ask("checkpoint")[0]

    def rubato_pause(self, handle, why):
        return _abi.OK

    def rubato_drain(self, handle):
        return self._ask("drain")[0]

    def rubato_close(self, handle, error):
        result = self._ask("close", error and error.decode())[0]
        self._connection.close()
        return result
