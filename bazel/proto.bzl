"""Protocol buffers compiled with the system's protoc and gRPC plugin."""

def rubato_cc_proto(name, srcs, deps = [], grpc = False, visibility = None):
    """A cc_library of the messages (and, with grpc, the services) of .proto files in proto/.

    Args:
      name: the library's name.
      srcs: .proto files of the package.
      deps: other rubato_cc_proto targets that the files import.
      grpc: whether the services' stubs are generated too.
      visibility: as usual.
    """
    bases = [src[:-len(".proto")] for src in srcs]
    headers = [base + ".pb.h" for base in bases]
    sources = [base + ".pb.cc" for base in bases]
    plugin = ""
    if grpc:
        headers += [base + ".grpc.pb.h" for base in bases]
        sources += [base + ".grpc.pb.cc" for base in bases]
        plugin = "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR) "
    native.filegroup(
        name = name + "_srcs",
        srcs = srcs + [dep + "_srcs" for dep in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_generated",
        srcs = [":" + name + "_srcs"],
        outs = headers + sources,
        cmd = "/usr/bin/protoc -I. --cpp_out=$(GENDIR) " + plugin +
              " ".join(["$(location " + src + ")" for src in srcs]),
        tools = srcs,
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        # Generated code is not ours to keep free of warnings.
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["//third_party/system:protobuf"] + (["//third_party/system:grpc"] if grpc else []),
    )
