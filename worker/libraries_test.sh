#!/usr/bin/env bash
# The worker needs no CUDA library to start: the driver and cuBLAS are opened when there is a GPU, and the runtime is
# part of the program.
set -euo pipefail

libraries="$(ldd worker/worker)"
if ! grep -q 'libc\.so' <<<"$libraries"; then
  echo "FAILED: ldd does not list the worker's libraries: $libraries" >&2
  exit 1
fi
if grep -E 'lib(cuda|cudart|cublas|cublasLt|cudnn|nccl|nvidia|nvrtc)[^/ ]*\.so' <<<"$libraries"; then
  echo "FAILED: the worker does not start if there is no CUDA" >&2
  exit 1
fi
