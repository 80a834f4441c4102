#!/usr/bin/env bash
# kill -9 of a worker in each mode, and of the evaluator: the job ends by itself, with its target accuracy, and says who
# was lost.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

process_of() {  # Of a task whose command line has both words.
  pgrep -f -- "--config $1/job.textproto .*--task_index $2 .*--role $3" | head -n 1
}

run() {
  local mode="$1"
  shift
  local directory="$work/$mode"
  say "$mode"
  train "$directory" --set "consistency.mode=$mode" --set cluster.lease_seconds=3 --set cluster.update_log=true \
    --set training.epochs=20 "$@" &
  local job=$!
  wait_for 60 "$mode: training begins" has_step "$directory" 20
  kill -9 "$(process_of "$directory" 1 worker)"
  wait_for 20 "$mode: worker 1 is evicted" grep -q '"event":"EVICTED".*\|"task":"worker 1".*EVICTED' \
    "$directory/metrics.jsonl"
  kill -9 "$(process_of "$directory" 0 evaluator)" || say "the evaluator had left already"
  wait "$job" || {
    cat "$directory.out" >&2
    fail "$mode: the job failed"
  }
  grep -q 'worker 1' "$directory/logs/coordinator.log" || fail "$mode: the log does not name worker 1"
  grep -q '"end":{.*"ok":true' "$directory/metrics.jsonl" || fail "$mode: the record has no good end"
  local accuracy
  accuracy="$(grep '"final":true' "$directory/metrics.jsonl" | grep -o '"accuracy":[0-9.]*' | cut -d: -f2)"
  awk -v got="$accuracy" 'BEGIN { exit !(got >= 0.9) }' || fail "$mode: final accuracy $accuracy is under 0.9"
  audit_holds "$directory"
  say "$mode: accuracy $accuracy, $(last_value "$directory" examples) examples"
}

run SYNC
run SSP --set consistency.staleness_bound=2
run ASYNC
say passed
