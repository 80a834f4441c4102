"""Imports modules in the order of its arguments, uses them, and trains a step in a job of one: one_step.py MODULE..."""

import importlib
import os
import sys
import tempfile


def use_grpc(grpc):
    """A channel to a server of its own."""
    from concurrent import futures

    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(20)
    server.stop(None).wait()


def use_tensorboard(tensorboard):
    with tempfile.TemporaryDirectory() as folder:
        with tensorboard.SummaryWriter(folder) as writer:
            writer.add_scalar("loss", 1.0, 1)
        assert os.listdir(folder)


def use_protobuf(protobuf):
    from google.protobuf import struct_pb2

    message = struct_pb2.Struct(fields={"a": struct_pb2.Value(number_value=1.0)})
    assert struct_pb2.Struct.FromString(message.SerializeToString()) == message


USES = {
    "grpc": use_grpc,
    "torch.utils.tensorboard": use_tensorboard,
    "google.protobuf": use_protobuf,
}


def use(modules):
    for name, module in modules.items():
        USES.get(name, lambda module: None)(module)


def main():
    modules = {name: importlib.import_module(name) for name in sys.argv[1:]}
    import torch

    import rubato
    import rubato.torch

    if os.environ.get("RUBATO_TEST_REAL") != "1":
        import fake_library
        from rubato import _library

        library = fake_library.FakeLibrary()
        _library.load = lambda: library
    use(modules)
    with rubato.init():
        model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
        rubato.torch.DistributedOptimizer(optimizer, model)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        use(modules)
        print(model.weight.tolist())


main()
