"""Targets of CUDA code, which vanish if there is no toolkit."""

load("@local_cuda//:cuda.bzl", "CUDA_ROOT", "CUDA_VERSION", "HAVE_CUDA")

# The GPUs that are built for: machine code for Ampere and Hopper data-centre GPUs, and PTX for what comes after.
# kernels/cuda/device.cc refuses GPUs older than the first of these.
_ARCHITECTURES = [
    "arch=compute_80,code=sm_80",
    "arch=compute_90,code=sm_90",
    "arch=compute_90,code=compute_90",
]

def if_cuda(with_cuda, without = []):
    """One of two values for an attribute, by whether this build has a toolkit."""
    return with_cuda if HAVE_CUDA else without

def _cuda_objects_impl(ctx):
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    objects = []
    for source in ctx.files.srcs:
        # The suffix says position-independent, so that programs and shared libraries can both hold it.
        output = ctx.actions.declare_file(source.basename[:-len(".cu.cc")] + ".pic.o")
        arguments = ctx.actions.args()
        arguments.add_all(["-x", "cu", "-std=c++20", "-O3", "-Werror", "all-warnings", "-ccbin", "g++"])
        arguments.add("-Xcompiler", "-fPIC,-Wall,-Wextra,-Werror,-Wno-missing-field-initializers,-ffp-contract=off")
        arguments.add_all(_ARCHITECTURES, before_each = "-gencode")
        arguments.add_all(ctx.attr.copts)
        arguments.add_all(context.quote_includes, before_each = "-I")
        arguments.add_all(context.includes, before_each = "-I")
        arguments.add_all(context.system_includes, before_each = "-isystem")
        arguments.add_all(["-c", source, "-o", output])
        ctx.actions.run(
            executable = CUDA_ROOT + "/bin/nvcc",
            arguments = [arguments],
            # The version is not used, but part of what the result depends on.
            env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "RUBATO_CUDA_VERSION": CUDA_VERSION},
            inputs = depset(ctx.files.srcs + ctx.files.hdrs, transitive = [context.headers]),
            mnemonic = "CudaCompile",
            outputs = [output],
            progress_message = "Compiling %s with nvcc" % source.short_path,
        )
        objects.append(output)
    return [DefaultInfo(files = depset(objects))]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "srcs": attr.label_list(allow_files = [".cu.cc"]),
    },
)

def cuda_library(name, srcs = [], hdrs = [], deps = [], copts = [], testonly = None, visibility = None):
    """A cc_library with kernels; no target at all if there is no toolkit.

    nvcc calls g++ whatever compiler the rest is built with, and its objects hold no sanitizer's instrumentation: they
    link into every configuration. Host headers keep CUDA's types out, so that the rest is checked as always.

    Args:
      name: the library's name.
      srcs: .cu.cc files go to nvcc, all others to the C++ compiler.
      hdrs: as usual.
      deps: as usual.
      copts: for nvcc.
      testonly: as usual.
      visibility: as usual.
    """
    if not HAVE_CUDA:
        return
    kernels = [source for source in srcs if source.endswith(".cu.cc")]
    private = [source for source in srcs if source.endswith(".h")]
    if kernels:
        _cuda_objects(
            name = name + "_objects",
            srcs = kernels,
            hdrs = hdrs + private,
            copts = copts,
            testonly = testonly,
            deps = deps + ["@local_cuda//:headers"],
        )
    native.cc_library(
        name = name,
        srcs = [source for source in srcs if not source.endswith(".cu.cc")] +
               ([":" + name + "_objects"] if kernels else []),
        hdrs = hdrs,
        # One copy of the runtime, in the program itself: kernels register with the copy that they are linked to.
        linkstatic = True,
        testonly = testonly,
        visibility = visibility,
        deps = deps + ["@local_cuda//:cudart_static", "@local_cuda//:headers"],
    )

def cuda_test(name, **kwargs):
    """A cc_test, if there is a toolkit. It skips its cases, with the reason, if there is no device."""
    if HAVE_CUDA:
        native.cc_test(name = name, **kwargs)
