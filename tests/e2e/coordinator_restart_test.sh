#!/usr/bin/env bash
# kill -9 of the coordinator while a job runs: servers and workers go on, the next coordinator takes the job over from
# its journal, and every example is trained exactly once.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh

tasks=(server-0 server-1 worker-0 worker-1 evaluator)

# Bytes that the servers have logged of the pushes that they applied.
logged() { cat "$1"/updates-server*.log | wc -c; }
has_logged() { (($(logged "$1") >= $2)); }

run() {
  local mode="$1" run="$work/$1" name
  # Each worker has its first shard, 6250 steps, to do without a coordinator; the third is given out after the restart.
  local job=(--config="$root/configs/teacher_mlp.textproto" --set "run_directory=$run" --set "consistency.mode=$mode"
    --set data.teacher.train_examples=512000 --set data.shard_examples=200000 --set training.epochs=1
    --set cluster.start_timeout_seconds=30)
  say "$mode: training begins"
  start_coordinator coordinator "${job[@]}"
  local task=("${job[@]}" --coordinator="$address")
  for index in 0 1; do
    start "server-$index" server "${task[@]}" "--task_index=$index" --listen=127.0.0.1:0
    start "worker-$index" worker "${task[@]}" "--task_index=$index"
  done
  start evaluator worker "${task[@]}" --task_index=0 --role=evaluator
  wait_for 30 "$mode: training begins" has_step "$run" 200

  stop coordinator
  local before
  before="$(logged "$run")"
  # Logs are written in blocks of 256 KiB. Of three, one is whole steps that were taken since.
  wait_for 20 "$mode: steps go on without a coordinator" has_logged "$run" $((before + 3 * 262144))
  for name in "${tasks[@]}"; do
    wait_for 20 "$mode: $name notices" grep -q 'lost the connection to the coordinator' "$work/$name.log"
    runs "$name" || fail "$mode: $name has ended with the coordinator"
  done
  say "$mode: $(($(logged "$run") - before)) bytes of updates were logged without a coordinator"

  start coordinator coordinator "${job[@]}" --listen="$address" --resume
  for name in coordinator "${tasks[@]}"; do ends "$name" 0 60; done
  (($(grep -c '"start":{' "$run/metrics.jsonl") == 1)) || fail "$mode: the run was begun anew"
  grep -q '"end":{.*"ok":true' "$run/metrics.jsonl" || fail "$mode: the run record has no good end"
  ! grep -q '"event":"EVICTED"' "$run/metrics.jsonl" || fail "$mode: a task was evicted"
  local examples
  examples="$(last_value "$run" examples)"
  ((examples == 512000)) || fail "$mode: $examples examples were trained instead of 512000"
  [[ -s "$run/checkpoints/final/server-1.manifest" ]] || fail "$mode: there is no final checkpoint"
  audit_holds "$run"
  say "$mode: $examples examples"
  for name in coordinator "${tasks[@]}"; do mv "$work/$name.log" "$run/"; done
}

run SYNC
run ASYNC
say passed
