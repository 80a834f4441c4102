#!/usr/bin/env bash
# run.sh with programs that only say how they were called: stages go on after a failure and list it, logs are kept, and
# nothing is built.
set -euo pipefail

run="$PWD/$1"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/run.XXXXXX")"
export OUT="$work/out"

# program PATH: a program, from standard input.
program() {
  mkdir -p "$(dirname "$work/$1")"
  { printf '#!/usr/bin/env bash\n'; cat; } >"$work/$1"
  chmod +x "$work/$1"
}
# run.sh with these arguments, whose output is in $work/said. Returns its exit status.
try() { "$run" --programs="$work/programs" "$@" >"$work/said" 2>&1; }
fail() {
  printf 'FAILED: %s; run.sh said:\n' "$*" >&2
  cat "$work/said" >&2
  exit 1
}
says() { grep -q -e "$1" "$work/said" || fail "it does not say \"$1\""; }
is_silent_about() { ! grep -q -e "$1" "$work/said" || fail "it says \"$1\""; }

program tools/bazel <<<"exit 99"
program tools/compute-sanitizer <<<'echo "sanitizer $*"'
export PATH="$work/tools:$PATH"
mkdir -p "$work/packages/nvidia/cublas/lib"
export PYTHONPATH="$work/packages"

# Without graphs it fails; in fp32 it has no cuDNN.
program programs/bench/gpu/gpu_step_bench <<'PROGRAM'
case "$*" in
  *--no-graphs*) exit 3 ;;
  *fp32*) echo '{"name":"mlp fp32 on cuda:0 (GPU)","step_milliseconds":4}' ;;
  *) echo '{"name":"mlp bf16 on cuda:0 (GPU, cuDNN 9)","step_milliseconds":2}' ;;
esac
PROGRAM
mkdir -p "$OUT/torch"
cat >"$OUT/torch/earlier.log" <<'LOG'
# PyTorch
{"name": "mlp bf16 in PyTorch, eager, autocast", "step_milliseconds": 5.0}
{"name": "mlp bf16 in PyTorch, compiled, autocast, channels last", "step_milliseconds": 3.5}
{"name": "mlp bf16 in PyTorch, compiled with reduce-overhead, autocast", "step_milliseconds": 3.0}
LOG
if try --precisions=bf16,fp32 steps; then fail "it succeeded although a program failed"; fi
says '^FAILED: steps bf16-no-graphs: exit status 3$'
says '^== steps bf16-no-fused-attention$'
says '^== steps bf16-no-cudnn$'
says '^NOTE: fp32: NO cuDNN was found'
is_silent_about '^== steps fp32-no-cudnn$'
is_silent_about '^== steps fp32-no-fused-attention$'
grep -q '"mlp bf16' "$OUT/steps/bf16.log" || fail "there is no log of bf16"
for row in 'mlp +bf16 +autocast +2 +5 +3 +2.50 +1.50' 'mlp +fp32 +- +4 +- +- +- +-'; do
  grep -Eq "^$row\$" "$OUT/summary.txt" || fail "no row \"$row\" in: $(cat "$OUT/summary.txt")"
done

# shellcheck disable=SC2016
program programs/bench/gpu/gpu_bench <<<'echo "$* with $LD_LIBRARY_PATH"'
try --precisions=fp32,tf32 operations || fail "it failed"
says "^--precision=fp32 with $work/packages/nvidia/cublas/lib:"
says '^--precision=tf32 --only=product,linear,convolution,attention with'
says '^Everything succeeded'

for test in kernels/conformance/{elementwise,encode,graph_replay,image,linear_algebra,peer,sequence,update}_test \
  kernels/cuda/device_test worker/nn/cuda_model_test tests/integration/device_test; do
  # shellcheck disable=SC2016
  program "programs/$test" <<<'printf "a.cc:1: Skipped\nthere is no GPU 1: there is 1\n" && mkdir "$TEST_TMPDIR/job"'
done
try tests || fail "it failed, although a second GPU alone is missing"
program programs/kernels/conformance/update_test <<<'printf "a.cc:1: Skipped\nCudaBf16: there is no driver\n"'
if try tests; then fail "it succeeded although tests were skipped"; fi
says '^FAILED: tests were skipped: there is no driver$'

try sanitizers || fail "it failed"
says '^sanitizer --tool=racecheck --racecheck-detect-level error --report-api-errors no --kernel-name kns=rubato'
says '^sanitizer --tool=memcheck --report-api-errors no '

if try measurements; then fail "it knows a stage that there is not"; fi
says 'there is no stage measurements; there are steps torch operations jobs tests sanitizers'
