"""Targets of the kernels' packages: a file and its header, which differ in little but their names."""

load(":cuda.bzl", "cuda_library")

# `-fopenmp-simd` reads the simd pragmas only; it starts no threads and needs no library. Clang warns if it does not
# vectorise one of them.
LOOP_COPTS = [
    "-O3",
    "-fopenmp-simd",
    "-Wno-pass-failed",
]

# For loops of which every path of the dispatch computes the same bits: multiplications and additions are never fused.
SAME_BITS_COPTS = [
    "-O3",
    "-ffp-contract=off",
]

def cpu_kernel(name, deps = []):
    """A cc_library of NAME.cc and NAME.h, loops that the compiler vectorises."""
    native.cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        copts = LOOP_COPTS,
        deps = deps,
    )

def cuda_kernel(name, srcs = [], deps = [], copts = []):
    """A cuda_library of NAME.cu.cc and NAME.h.

    Args:
      name: the library's name.
      srcs: headers that nobody else includes.
      deps: beside what all kernels need.
      copts: for nvcc.
    """
    cuda_library(
        name = name,
        srcs = srcs + [name + ".cu.cc"],
        hdrs = [name + ".h"],
        copts = copts,
        deps = [":launch"] + deps + ["//third_party/system:absl"],
    )

def cuda_host(name, deps = []):
    """A cuda_library of NAME.cc and NAME.h, with the host's calls of CUDA.

    Args:
      name: the library's name.
      deps: beside what all of them need.
    """
    cuda_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        deps = deps + ["//third_party/system:absl"],
    )

def cuda_vendor_library(name, deps = []):
    """A cuda_host around a library of the toolkit's, which is opened when it is needed.

    Args:
      name: the library's name.
      deps: beside what all of them need.
    """
    cuda_host(
        name = name,
        deps = [":shared_library"] + deps + [
            "//common:status",
            "//kernels:backend",
            "//kernels:backend_cuda_header",
            "@local_cuda//:toolkit",
        ],
    )
