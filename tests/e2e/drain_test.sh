#!/usr/bin/env bash
# SIGTERM to the tasks of a running job: a worker and the evaluator leave gracefully, and the job goes on; a server takes
# it back to its last checkpoint, and it goes on without; the coordinator ends the job, which says who it was.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh

# start_job NAME OVERRIDE...: two servers and two workers, until they train.
start_job() {
  local name="$1" index override
  shift
  run="$work/$name"
  job=(--config="$root/configs/teacher_mlp.textproto" --set "run_directory=$run" --set training.epochs=16
    --set cluster.update_log=true --set cluster.evaluators=1)
  for override in "$@"; do job+=(--set "$override"); done
  say "$name"
  start_coordinator "$name-coordinator" "${job[@]}"
  for index in 0 1; do
    start "$name-server-$index" server "${job[@]}" --coordinator="$address" --task_index="$index" --listen=127.0.0.1:0
    start "$name-worker-$index" worker "${job[@]}" --coordinator="$address" --task_index="$index"
  done
  start "$name-evaluator" worker "${job[@]}" --coordinator="$address" --task_index=0 --role=evaluator
  wait_for 30 "$name: training begins" has_step "$run" 50
}

# end_job NAME COORDINATOR TASKS: the exit statuses of the coordinator, and of tasks.
end_job() {
  local name="$1" task
  for task in worker-0 server-0 server-1; do ends "$name-$task" "$3" 60; done
  ends "$name-coordinator" "$2" 60
}

a_worker_leaves() {
  local mode="$1" name="worker-$1" examples
  shift
  start_job "$name" "consistency.mode=$mode" "$@"
  kill -TERM "${process[$name-worker-1]}"
  ends "$name-worker-1" 0 20
  says "$name-worker-1" 'leaves the job, as it was asked to'
  end_job "$name" 0 0
  ends "$name-evaluator" 0 20
  says "$name-coordinator" 'worker 1 left: asked to stop'
  # What is trained twice is at most the shards that the worker held.
  examples="$(last_value "$run" examples)"
  ((examples >= 16 * 40000)) || fail "$mode: $examples examples were trained, less than 16 epochs of 40000"
  audit_holds "$run"
}

a_worker_leaves SYNC
a_worker_leaves SSP consistency.staleness_bound=2
a_worker_leaves ASYNC

start_job evaluator
kill -TERM "${process[evaluator-evaluator]}"
ends evaluator-evaluator 0 30
kill -TERM "${process[evaluator-coordinator]}"
# A job that is stopped is not a failure of its tasks.
end_job evaluator 1 0
ends evaluator-worker-1 0 20
says evaluator-worker-1 'the coordinator ended the job: stopped by SIGTERM'

start_job server checkpoint.every_steps=500 cluster.server_grace_seconds=2
wait_for 30 "a checkpoint" grep -q '"checkpoint":{' "$run/metrics.jsonl"
kill -TERM "${process[server-server-0]}"
ends server-server-0 1 20
for task in worker-0 worker-1 server-1 evaluator coordinator; do ends "server-$task" 0 60; done
says server-coordinator 'server 0 (127.0.0.1:[0-9]*) is lost: stopped by SIGTERM; the job goes back to checkpoint step[0-9]*'
says server-coordinator 'goes on without server 0'
examples="$(last_value "$run" examples)"
((examples == 16 * 40000)) || fail "server: $examples examples were trained instead of 16 epochs of 40000"
audit_holds "$run"
say passed
