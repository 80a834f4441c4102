#!/usr/bin/env bash
# kill -9 of a worker and of the evaluator in each mode: the job goes on without them, says who was lost, starts them
# again, and ends by itself, with its target accuracy.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

# kill_task DIRECTORY INDEX ROLE: the one process of the job whose command line has both words.
kill_task() {
  local process
  process="$(pgrep -f -- "^[^ ]*/worker --config $1/job.textproto --task_index $2 .*--role $3( |$)")" ||
    fail "there is no $3 $2 to be killed"
  kill -9 "$process"
}

has_joined_again() {
  (($(sed -n '/"event":"EVICTED"/,$p' "$1/metrics.jsonl" | grep '"task":"worker 1"' | grep -c '"event":"JOINED"') > 0))
}

run() {
  local mode="$1"
  shift
  local directory="$work/$mode" job accuracy task
  say "$mode"
  train "$directory" --set "consistency.mode=$mode" --set cluster.lease_seconds=3 --set cluster.update_log=true \
    --set training.epochs=20 "$@" &
  job=$!
  wait_for 60 "$mode: training begins" has_step "$directory" 20
  kill_task "$directory" 0 evaluator
  kill_task "$directory" 1 worker
  for task in "worker 1" "evaluator 0"; do
    wait_for 20 "$mode: $task is started again" \
      grep -q "^$task was killed by signal 9; it is started again\$" "$directory.out"
  done
  wait_for 20 "$mode: worker 1 is evicted" has_line "$directory" '"member":{' '"task":"worker 1"' '"event":"EVICTED"'
  wait_for 20 "$mode: worker 1 joins again" has_joined_again "$directory"
  wait "$job" || {
    cat "$directory.out" >&2
    fail "$mode: the job failed"
  }
  ! has_line "$directory" '"task":"worker 0"' '"event":"EVICTED"' || fail "$mode: worker 0 was evicted too"
  grep -Eq ' worker 1 evicted: (no heartbeat for [0-9.]* s|replaced by a new incarnation)$' \
    "$directory/logs/coordinator.log" ||
    fail "$mode: the coordinator's log does not say that worker 1 was evicted"
  has_line "$directory" '"end":{' '"ok":true' || fail "$mode: the record has no good end"
  accuracy="$(grep '"final":true' "$directory/metrics.jsonl" | grep -o '"accuracy":[0-9.]*' | cut -d: -f2)"
  awk -v got="$accuracy" 'BEGIN { exit !(got >= 0.9) }' || fail "$mode: final accuracy $accuracy is under 0.9"
  audit_holds "$directory"
  trained_once "$directory" $((20 * 40000))
  say "$mode: accuracy $accuracy, $(last_value "$directory" examples) examples"
}

run SYNC
run SSP --set consistency.staleness_bound=2
run ASYNC
say passed
