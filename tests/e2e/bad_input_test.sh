#!/usr/bin/env bash
# Bad files, configs, addresses, tasks and gradients: each is answered soon, with an error that names the thing and a
# status that says whose fault it is. Nothing crashes and nothing hangs.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh

teacher="$root/configs/teacher_mlp.textproto"

# refused STATUS PATTERN COMMAND...: the command ends by itself with this exit status and says the pattern.
refused() {
  local expected="$1" pattern="$2" status=0
  shift 2
  rm -rf "$work/run"
  timeout -k 2 $((30 * timeout_factor)) "$@" >"$work/refused.log" 2>&1 || status=$?
  if ((status != expected)) || ! grep -q -- "$pattern" "$work/refused.log"; then
    tail -n 20 "$work/refused.log" >&2
    fail "exit status $status instead of $expected, or it does not say '$pattern': $*"
  fi
  say "  $(grep -m 1 -- "$pattern" "$work/refused.log")"
}

# A run of the teacher job with overrides, in $work/run.
train_with() {
  local arguments=() override
  for override in "$@"; do arguments+=(--set "$override"); done
  "$rubato" train "$teacher" --binaries "$root" --run_directory="$work/run" "${arguments[@]}"
}
export -f train_with
export rubato teacher root work

bytes() { printf '%b' "$1"; }
zeros() { head -c "$1" /dev/zero; }

data_files() {
  say "data files"
  # 40 images of 28 x 28 and their labels, 0 to 9.
  { bytes '\0\0\x8\x3\0\0\0\x28\0\0\0\x1c\0\0\0\x1c' && zeros 31360; } >"$work/images"
  { bytes '\0\0\x8\x1\0\0\0\x28' && zeros 40; } >"$work/labels"
  { bytes '\0\0\x9\x3\0\0\0\x28\0\0\0\x1c\0\0\0\x1c' && zeros 31360; } >"$work/wrong-magic"
  head -c 31370 "$work/images" >"$work/truncated"
  { bytes '\0\0\x8\x1\0\0\0\x28' && zeros 39 && bytes '\xa'; } >"$work/wrong-label"
  local mnist=("$rubato" train "$root/configs/mnist_mlp_sync.textproto" --binaries "$root" --run_directory="$work/run"
    --set "data.idx.test_images=$work/images" --set "data.idx.test_labels=$work/labels")
  local images="data.idx.train_images=$work" labels="data.idx.train_labels=$work"
  refused 1 'wrong-magic: magic number 0x00000903; expected' "${mnist[@]}" --set "$images/wrong-magic" \
    --set "$labels/labels"
  refused 1 'truncated: truncated: 31354 bytes .*expected: 31360' "${mnist[@]}" --set "$images/truncated" \
    --set "$labels/labels"
  refused 1 'wrong-label: label 10 of example 39; expected: 0 to 9' "${mnist[@]}" --set "$images/images" \
    --set "$labels/wrong-label"
  refused 1 'absent: No such file' "${mnist[@]}" --set "$images/absent" --set "$labels/labels"
}

configs() {
  say "configs and flags"
  local config=("$rubato" train "$teacher" --binaries "$root" --run_directory="$work/run")
  refused 2 'cluster.workers: value 0; allowed: 1 to 1024' "${config[@]}" --set cluster.workers=0
  refused 2 'cluster.chunk_bytes: value 0; allowed: 4096' "${config[@]}" --set cluster.chunk_bytes=0
  refused 2 'consistency.staleness_bound: value -1; allowed: 1 to' "${config[@]}" --set consistency.mode=SSP \
    --set consistency.staleness_bound=-1
  { cat "$teacher" && echo 'traning { }'; } >"$work/unknown.textproto"
  refused 2 'unknown.textproto:.*no field named "traning"' "$rubato" train "$work/unknown.textproto"
  for program in coordinator "server --task_index=0 --coordinator=127.0.0.1:1" \
    "worker --task_index=0 --coordinator=127.0.0.1:1"; do
    # shellcheck disable=SC2086  # Words of a command line.
    refused 2 'no field named "traning"' "$root/${program%% *}"/$program "--config=$work/unknown.textproto"
  done
  refused 2 '--modes: value "fast"; allowed: sync, async' "$rubato" compare "$teacher" --binaries "$root" \
    --modes=sync,fast --run_directory="$work/run"
  refused 2 '--baseline: value "ssp:2"; allowed: sync, async' "$rubato" compare "$teacher" --binaries "$root" \
    --modes=sync,async --baseline=ssp:2 --run_directory="$work/run"
  mkdir -p "$work/empty"
  refused 2 'empty/checkpoints: there is no checkpoint final or stopped' "$rubato" export "$work/empty" \
    --output="$work/model.safetensors"
  [[ ! -e "$work/model.safetensors" ]] || fail "an export without a checkpoint has left a file"
}

# refused_at_once PATTERN FIELD COMMAND...: exit status 2 and the pattern, with a line of a task's log that names the field,
# and training has not begun.
refused_at_once() {
  local pattern="$1" field="$2"
  shift 2
  refused 2 "$pattern" "$@"
  grep -q "E .*$field" "$work/refused.log" || fail "no line of a log names $field"
  grep -q 'training begins' "$work/run/logs/coordinator.log" && fail "training began all the same"
  return 0
}

devices() {
  say "devices and memory"
  # A GPU that no machine has, and batches that none holds: 1.2 TB for each layer's outputs.
  refused_at_once 'worker [01] ended before the job could begin' 'training.device: CUDA: ' \
    bash -c 'train_with training.device=CUDA training.device_index=1023 cluster.evaluators=0 evaluation.target_accuracy=0'
  sed -e '/hidden2/,/relu/d' -e 's/units: 128/units: 300000/' "$teacher" >"$work/wide.textproto"
  local wide=("$rubato" train "$work/wide.textproto" --binaries "$root" --run_directory="$work/run"
    --set training.device=CPU --set cluster.chunk_bytes=4194304)
  refused_at_once 'worker [01] ended before the job could begin' \
    'training.batch_size: value 1048576; allowed: 1 to [0-9]*, or more training.micro_batches' "${wide[@]}" \
    --set training.batch_size=1048576
  refused 2 'evaluation.batch_size: value 1048576; allowed: 1 to [0-9]*, because evaluating' "${wide[@]}" \
    --set evaluation.batch_size=1048576
  grep -q 'evaluator 0 cannot evaluate' "$work/refused.log" || fail "it does not say why the job was stopped"
}

addresses() {
  say "addresses"
  local short=(--config="$teacher" --set "run_directory=$work/waiting" --set cluster.start_timeout_seconds=6)
  start_coordinator coordinator "${short[@]}"
  refused 2 "^--listen: cannot listen on $address: the port is taken" "$root/coordinator/coordinator" "--config=$teacher" "--listen=$address" \
    --set "run_directory=$work/run"
  refused 1 "cannot listen on $address: the port is taken" "$root/server/server" "${short[@]}" --task_index=0 "--coordinator=$address" "--listen=$address"
  refused 1 'the coordinator at 127.0.0.1:1 could not be reached' "$root/worker/worker" "--config=$teacher" \
    --set cluster.start_timeout_seconds=1 --task_index=0 --coordinator=127.0.0.1:1

  say "tasks that do not belong to the job"
  local worker=("$root/worker/worker" "--coordinator=$address")
  refused 1 'worker 0 is refused: its job config has fingerprint [0-9a-f]*, the coordinator.s [0-9a-f]*' \
    "${worker[@]}" "${short[@]}" --task_index=0 --set seed=2
  refused 1 'worker 1024 is refused: task.index: value 1024; allowed: below 1024' "${worker[@]}" "${short[@]}" \
    --task_index=1024
  refused 1 'evaluator 1 is refused: task.index: value 1; allowed: below 1' "${worker[@]}" "${short[@]}" \
    --task_index=1 --role=evaluator
  refused 2 '--task_index: 2; cluster.servers is 2' "$root/server/server" "${short[@]}" --task_index=2 \
    "--coordinator=$address"

  say "a server that does not come"
  for index in 0 1; do start "worker-$index" worker "${short[@]}" "--coordinator=$address" "--task_index=$index"; done
  start server-0 server "${short[@]}" "--coordinator=$address" --task_index=0 --listen=127.0.0.1:0
  for name in coordinator worker-0 worker-1 server-0; do ends "$name" 1 20; done
  for name in coordinator worker-0 worker-1 server-0; do
    says "$name" 'could not start within cluster.start_timeout_seconds, 6: missing server 1$'
  done
}

gradients() {
  say "gradients that are not finite"
  local explodes='train_with training.epochs=1 optimizer.learning_rate=1e30 optimizer.algorithm=SGD optimizer.momentum='
  refused 1 'worker [01], step [0-9]*: the loss is' bash -c "$explodes consistency.on_non_finite=STOP_JOB"
  grep -q '"end":{.*"ok":false.*step [0-9]' "$work/run/metrics.jsonl" || fail "the run record does not name the step"
  refused 0 'Report:' bash -c "$explodes consistency.on_non_finite=SKIP_STEP"
  local count
  count="$(last_value "$work/run" non_finite)"
  ((count > 0)) || fail "SKIP_STEP: the run record counts no contribution that is not finite"
  say "  SKIP_STEP: $count contributions were counted and left out"
}

switches() {
  say "a switch of a job that cannot be switched"
  train "$work/static" --set data.dispatch=STATIC --set training.epochs=200 &
  local job=$!
  wait_for 30 "training begins" has_step "$work/static" 20
  refused 1 'STATIC' "$rubato" switch "$work/static" --to=async
  refused 2 '--to: value "ssp:0"; allowed: ' "$rubato" switch "$work/static" --to=ssp:0
  "$rubato" stop "$work/static" --reason="it has been long enough"
  local status=0
  wait "$job" || status=$?
  ((status == 1)) || fail "a stopped job ends with exit status $status instead of 1"
  grep -q 'it has been long enough' "$work/static.out" || fail "the job does not say why it was stopped"
}

data_files
configs
devices
addresses
gradients
switches
say passed
