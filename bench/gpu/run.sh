#!/usr/bin/env bash
# Measures a GPU, then checks it; bench/gpu/README.md says how long that takes and what it needs.
#
#   bench/gpu/run.sh [--programs=DIR] [--precisions=bf16,fp32,fp16,tf32] [STAGE...]
#   bench/gpu/run.sh bundle FILE     programs, scripts, configs and MNIST for machines without bazel, as FILE (.tar.xz)
#
# Stages, in this order if none is named, each of at most ten minutes:
#   steps        steps of whole models, also without CUDA graphs, cuDNN and fused attention
#   torch        the same in PyTorch, eager and compiled, and products
#   operations   every operation, beside what products and copies allow
#   jobs         whole jobs: MNIST in every mode, losses on the CPU and on the GPU, how busy the GPU is
#   tests        operations against float64 references; models and jobs against the CPU
#   sanitizers   our kernels under compute-sanitizer
#
# Programs are in DIR as bazel has them in bazel-bin, and are built if --programs is absent. What fails does not end
# the rest; it is listed at the end, and the exit status is 1. All that is printed is also in $OUT/STAGE/*.log; OUT is
# bench/gpu/out if it is not set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

all_stages=(steps torch operations jobs tests sanitizers)
conformance=(elementwise encode graph_replay image linear_algebra peer sequence update)
tests=("${conformance[@]/#/kernels/conformance/}")
tests=("${tests[@]/%/_test}" kernels/cuda/device_test worker/nn/cuda_model_test
  tests/integration/device_test)
programs_needed=(bench/gpu/gpu_bench bench/gpu/gpu_step_bench cli/command/rubato coordinator/coordinator server/server
  worker/worker tests/e2e/make_cifar "${tests[@]}")
stage_seconds=570

say() { printf '%s\n' "$*"; }
fail() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 1
}

# //bench/gpu:gpu_bench for bench/gpu/gpu_bench.
labels() { printf '%s\n' "${programs_needed[@]}" | sed 's|\(.*\)/|//\1:|'; }

bundle() {
  local file="$1" built name work root
  # Beside the usual build, which it would have to do anew each time.
  local portable=(bazel "--output_base=$(bazel info output_base 2>/dev/null)-portable")
  # Without the last flag tests need libraries of their own.
  local options=(--config=portable --dynamic_mode=off)
  labels | xargs "${portable[@]}" build "${options[@]}" --symlink_prefix=/
  built="$("${portable[@]}" info "${options[@]}" bazel-bin 2>/dev/null)"
  "${portable[@]}" shutdown
  work="$(mktemp -d)"
  # shellcheck disable=SC2064  # The folder's name is wanted as it is now.
  trap "rm -rf '$work'" EXIT
  root="$work/rubato-gpu"
  for name in "${programs_needed[@]}"; do
    install -D -m 755 "$built/$name" "$root/bin/$name"
    strip "$root/bin/$name"
  done
  install -D -m 755 -t "$root/bench/gpu" bench/gpu/run.sh
  install -D -m 644 -t "$root/bench/gpu" bench/gpu/{jobs,step_torch,summary}.py
  install -D -m 644 -t "$root/configs" configs/*.textproto
  if [[ -d data/mnist ]]; then
    install -D -m 644 -t "$root/data/mnist" data/mnist/*-ubyte
  else
    say "run.sh: no data/mnist to pack; ./rubato.sh fetch-data gets it" >&2
  fi
  # The programs have most of their code in common, far apart.
  tar -C "$work" --sort=name --owner=0 --group=0 -cf - rubato-gpu | xz --lzma2=preset=3,dict=512MiB >"$file"
  say "$file: $(stat -c %s "$file") bytes"
}

failures=()
notes=()
note() {
  notes+=("$*")
  say "NOTE: $*"
}
failed() {
  failures+=("$*")
  say "FAILED: $*"
}

# attempt NAME SECONDS COMMAND...: runs a command of the stage, for so long at most and not beyond the stage's end.
attempt() {
  local name="$1" seconds="$2" left=$((deadline - SECONDS)) status=0
  shift 2
  ((seconds < left)) || seconds="$left"
  if ((seconds <= 0)); then
    failed "$stage $name: the stage had no time left for it"
    return
  fi
  say "== $stage $name"
  timeout --kill-after=10 "$seconds" "$@" 2>&1 | tee "$out/$stage/$name.log" || status="${PIPESTATUS[0]}"
  case "$status" in
    0) ;;
    124 | 137) failed "$stage $name: not done within $seconds s" ;;
    *) failed "$stage $name: exit status $status" ;;
  esac
}

# cuBLAS and cuDNN, if pip has brought them.
python_libraries() {
  python3 - <<'PYTHON' || true
import glob, sys
print(":".join(folder for place in sys.path if place for folder in sorted(glob.glob(f"{place}/nvidia/*/lib"))))
PYTHON
}

has_torch() { python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; }

run_steps() {
  local precision bench=("${ours[@]}" "$programs/bench/gpu/gpu_step_bench")
  for precision in "${precisions[@]}"; do
    attempt "$precision" 120 "${bench[@]}" "--precision=$precision"
    attempt "$precision-no-graphs" 120 "${bench[@]}" "--precision=$precision" --no-graphs
    if grep -q '"name":"[^"]*cuDNN' "$out/steps/$precision.log"; then
      attempt "$precision-no-cudnn" 60 "${bench[@]}" "--precision=$precision" --model=resnet20 --no-cudnn
    elif grep -q '"name"' "$out/steps/$precision.log"; then
      note "$precision: NO cuDNN was found, so all convolutions measured here are products of im2col matrices"
    fi
    case "$precision" in
      bf16 | fp16)
        attempt "$precision-no-fused-attention" 60 "${bench[@]}" "--precision=$precision" --model=language_model \
          --no-fused-attention
        ;;
    esac
  done
}

run_torch() {
  local precision
  if ! has_torch; then
    note "there is no PyTorch with CUDA to compare with"
    return
  fi
  # Compiling takes long, so that it comes last.
  for precision in "${precisions[@]}"; do
    attempt "$precision-eager" 120 python3 bench/gpu/step_torch.py "--precision=$precision" --modes=eager
  done
  for precision in "${precisions[@]}"; do
    attempt "$precision-compiled" 400 python3 bench/gpu/step_torch.py "--precision=$precision" \
      --modes=reduce-overhead,default
  done
}

run_operations() {
  local precision bench=("${ours[@]}" "$programs/bench/gpu/gpu_bench")
  for precision in "${precisions[@]}"; do
    case "$precision" in
      # Everything else is as in the other two.
      tf32 | fp16)
        attempt "$precision" 150 "${bench[@]}" "--precision=$precision" \
          --only=product,linear,convolution,attention
        ;;
      *) attempt "$precision" 240 "${bench[@]}" "--precision=$precision" ;;
    esac
  done
}

run_jobs() {
  local precision
  for precision in "${precisions[@]}"; do
    case "$precision" in
      fp32 | bf16)
        attempt "$precision" 400 "${ours[@]}" python3 bench/gpu/jobs.py "--precision=${precision^^}" \
          --rubato="$programs/cli/command/rubato" --make_cifar="$programs/tests/e2e/make_cifar" \
          --work="$out/jobs/$precision"
        ;;
    esac
  done
}

run_tests() {
  local test skipped temporary
  for test in "${tests[@]}"; do
    # Tests leave what they wrote, and do not like to find it.
    temporary="$(mktemp -d)"
    # The CPU's cases need no GPU.
    local filter='*'
    if [[ "$test" == kernels/conformance/* ]]; then filter='*Cuda*'; fi
    attempt "${test//\//-}" 200 "${ours[@]}" "TEST_TMPDIR=$temporary" "$programs/$test" "--gtest_filter=$filter"
    rm -rf "$temporary"
  done
  # One GPU is enough.
  skipped="$(grep -hA1 ': Skipped$' "$out"/tests/*.log | grep -v -e ': Skipped$' -e '^--$' -e 'there is no GPU 1' |
    sed 's/^Cuda[A-Za-z0-9]*: //' | sort -u || true)"
  if [[ -n "$skipped" ]]; then failed "tests were skipped: ${skipped//$'\n'/; }"; fi
}

# What our kernels read and write, and where they wait for each other.
run_sanitizers() {
  local sanitizer tool test
  if ! sanitizer="$(PATH="$PATH:/usr/local/cuda/bin" command -v compute-sanitizer)"; then
    note "there is no compute-sanitizer"
    return
  fi
  for tool in memcheck racecheck synccheck; do
    # Without what it only suspects.
    local options=()
    if [[ "$tool" == racecheck ]]; then options=(--racecheck-detect-level error); fi
    for test in elementwise image linear_algebra message sequence; do
      local filter='*/CudaWithoutCudnn:*/CudaFp16'
      # It breaks cuDNN's own kernels (seen with cuDNN 9.19 on an H100).
      if [[ "$tool $test" == 'racecheck image' ]]; then filter='*/CudaWithoutCudnn'; fi
      # Libraries' kernels are not looked at, and errors that the backend itself handles are none.
      attempt "$tool-$test" 90 "${ours[@]}" "$sanitizer" --tool="$tool" "${options[@]}" --report-api-errors no \
        --kernel-name kns=rubato --error-exitcode=1 \
        "$programs/kernels/conformance/${test}_test" "--gtest_filter=$filter" --gtest_brief=1
    done
  done
}

summarize() {
  local logs=()
  mapfile -t logs < <(find "$out/steps" "$out/torch" -name '*.log' 2>/dev/null | sort)
  if ((${#logs[@]} > 0)); then python3 bench/gpu/summary.py "${logs[@]}" | tee "$out/summary.txt"; fi
}

programs=""
precisions=(bf16 fp32 fp16 tf32)
while [[ "${1:-}" == --* ]]; do
  case "$1" in
    --programs=*) programs="$(realpath -- "${1#*=}")" ;;
    --precisions=*) IFS=, read -ra precisions <<<"${1#*=}" ;;
    *) fail "$1 is not known; --programs=DIR and --precisions=LIST are" ;;
  esac
  shift
done
if [[ "${1:-}" == bundle ]]; then
  (($# == 2)) || fail "usage: run.sh bundle FILE"
  bundle "$2"
  exit
fi
stages=("$@")
if ((${#stages[@]} == 0)); then stages=("${all_stages[@]}"); fi
for stage in "${stages[@]}"; do
  [[ " ${all_stages[*]} " == *" $stage "* ]] || fail "there is no stage $stage; there are ${all_stages[*]}"
done
for precision in "${precisions[@]}"; do
  [[ "$precision" =~ ^(fp32|tf32|bf16|fp16)$ ]] ||
    fail "--precisions: \"$precision\" is none; fp32, tf32, bf16 and fp16 are"
done
if [[ -z "$programs" ]]; then
  labels | xargs bazel build
  programs="$(bazel info bazel-bin 2>/dev/null)"
fi

out="$(realpath -m -- "${OUT:-bench/gpu/out}")"
libraries="$(python_libraries)"
# PyTorch has its own.
ours=(env "LD_LIBRARY_PATH=${libraries:+$libraries:}${LD_LIBRARY_PATH:-}")
for stage in "${stages[@]}"; do
  mkdir -p "$out/$stage"
  deadline=$((SECONDS + stage_seconds))
  "run_$stage"
  say "== $stage took $((SECONDS + stage_seconds - deadline)) s"
done
summarize || failed "summary"
if ((${#notes[@]} > 0)); then printf 'NOTE: %s\n' "${notes[@]}"; fi
if ((${#failures[@]} > 0)); then
  printf 'FAILED: %s\n' "${failures[@]}"
  exit 1
fi
say "Everything succeeded; logs are in $out"
