"""Targets of the kernels' packages that differ in their names alone."""

# `-fopenmp-simd` reads the simd pragmas only; it starts no threads and needs no library. Clang warns where it does not
# vectorise one of them.
LOOP_COPTS = [
    "-O3",
    "-fopenmp-simd",
    "-Wno-pass-failed",
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
