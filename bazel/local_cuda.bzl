"""A repository that says where the CUDA toolkit is, or that there is none."""

_BUILD = """package(default_visibility = ["//visibility:public"])

exports_files(["cuda.bzl"])

# Headers alone: nothing of the toolkit but the static runtime is ever linked.
cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)

# Where the toolkit's shared libraries are.
cc_library(
    name = "toolkit",
    hdrs = ["toolkit.h"],
    includes = ["."],
)

cc_library(
    name = "cudart_static",
    srcs = glob(["lib/libcudart_static.a"]),
    linkopts = ["-ldl", "-lpthread", "-lrt"],
    linkstatic = True,
)
"""

_OLDEST_MAJOR = 12

def _find(repository_ctx):
    """The toolkit's folder, or None: CUDA_PATH, else /usr/local/cuda, else that of the nvcc in PATH."""
    candidates = []
    if repository_ctx.os.environ.get("CUDA_PATH"):
        candidates.append(repository_ctx.path(repository_ctx.os.environ["CUDA_PATH"]))
    candidates.append(repository_ctx.path("/usr/local/cuda"))
    nvcc = repository_ctx.which("nvcc")
    if nvcc != None:
        candidates.append(nvcc.realpath.dirname.dirname)
    for root in candidates:
        parts = ["bin/nvcc", "include/cuda_runtime_api.h", "include/cublas_v2.h", "lib64/libcudart_static.a"]
        if all([repository_ctx.path("%s/%s" % (root, part)).exists for part in parts]):
            return root
    return None

def _version(repository_ctx, root):
    """ "13.0.88" as nvcc says it, or "0". """
    result = repository_ctx.execute([str(root) + "/bin/nvcc", "--version"])
    for word in result.stdout.replace(",", " ").replace("\n", " ").split(" "):
        if word.startswith("V") and word[1:2].isdigit():
            return word[1:]
    return "0"

def _local_cuda_impl(repository_ctx):
    root = None
    version = "0"
    if repository_ctx.os.environ.get("RUBATO_CUDA") != "0":
        root = _find(repository_ctx)
    if root != None:
        version = _version(repository_ctx, root)
        if int(version.split(".")[0]) < _OLDEST_MAJOR:
            # buildifier: disable=print
            print("CUDA %s in %s is left out: Rubato needs %d.0 or later" % (version, root, _OLDEST_MAJOR))
            root = None
    if root == None:
        repository_ctx.file("BUILD", "exports_files([\"cuda.bzl\"])\n")
    else:
        repository_ctx.symlink("%s/include" % root, "include")
        repository_ctx.symlink("%s/lib64" % root, "lib")
        repository_ctx.file("toolkit.h", "#define RUBATO_CUDA_LIBRARIES \"%s/lib64\"\n" % root)
        repository_ctx.file("BUILD", _BUILD)
    repository_ctx.file("cuda.bzl", "HAVE_CUDA = %s\nCUDA_ROOT = %r\nCUDA_VERSION = %r\n" % (
        root != None,
        str(root) if root != None else "",
        version,
    ))

local_cuda = repository_rule(
    implementation = _local_cuda_impl,
    configure = True,
    doc = "Looks for a toolkit when the build is configured. --repo_env=RUBATO_CUDA=0 builds as if there were none.",
    environ = ["CUDA_PATH", "PATH", "RUBATO_CUDA"],
    local = True,
)
