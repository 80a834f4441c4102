#!/usr/bin/env bash
# On a machine with a card: checks every operation against the float64 references, also under compute-sanitizer where that
# is installed, and models and jobs against the CPU. Then measures operations and steps of whole models in each
# precision, and products and steps of PyTorch's where that is installed. Further arguments go to gpu_bench.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tests=(//kernels/conformance/... //kernels/cuda/... //worker/nn:cuda_model_test //tests/integration:device_test)
bazel build //bench/gpu:gpu_bench //bench/gpu:gpu_step_bench
bazel test --test_output=errors "${tests[@]}"
logs="$(bazel info bazel-testlogs 2>/dev/null)"
# One card is enough.
skipped="$(grep -rhs --include=test.xml '<skipped' "$logs/kernels/conformance" "$logs/kernels/cuda" |
  grep -v 'there is no card 1:' || true)"
if [[ -n "$skipped" ]]; then
  echo "run.sh: tests were skipped: there is no usable card here" >&2
  exit 1
fi
# What kernels read and write, and where they wait for each other.
if sanitizer="$(command -v compute-sanitizer)"; then
  for tool in memcheck racecheck synccheck; do
    for test in bazel-bin/kernels/conformance/{elementwise,image,linear_algebra,message,sequence}_test; do
      "$sanitizer" --tool="$tool" --error-exitcode=1 "$test" --gtest_filter='*Cuda*' --gtest_brief=1
    done
  done
else
  echo "run.sh: no compute-sanitizer in the PATH" >&2
fi
for precision in fp32 tf32 bf16 fp16; do
  echo "== $precision"
  bazel-bin/bench/gpu/gpu_bench --precision="$precision" "$@"
  bazel-bin/bench/gpu/gpu_step_bench --precision="$precision"
  bazel-bin/bench/gpu/gpu_step_bench --precision="$precision" --no-graphs
  bazel-bin/bench/gpu/gpu_step_bench --precision="$precision" --model=resnet20 --no-cudnn
  bazel-bin/bench/gpu/gpu_step_bench --precision="$precision" --model=language_model --no-fused-attention
done
bazel build //cli/command:rubato //tests/e2e:make_cifar
for precision in FP32 BF16; do
  python3 bench/gpu/jobs.py --precision="$precision"
done
if ! python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  echo "run.sh: no PyTorch with CUDA to compare with" >&2
  exit 0
fi
for precision in fp32 tf32 bf16 fp16; do
  python3 bench/gpu/step_torch.py --precision="$precision"
  python3 bench/gpu/step_torch.py --precision="$precision" --compile ||
    echo "run.sh: PyTorch does not compile here" >&2
done

python3 - <<'PYTHON'
import json, time
import torch

for name, dtype, tf32 in [("fp32", torch.float32, False), ("tf32", torch.float32, True),
                          ("bf16", torch.bfloat16, False), ("fp16", torch.float16, False)]:
    torch.backends.cuda.matmul.allow_tf32 = tf32
    for n in (256, 1024, 4096):
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        for _ in range(10):
            a @ b.T
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(100):
            a @ b.T
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - begin) / 100
        print(json.dumps({"name": f"PyTorch product {n}, {name}", "microseconds": seconds * 1e6,
                          "tflop_per_s": 2 * n**3 / seconds / 1e12}))
PYTHON
