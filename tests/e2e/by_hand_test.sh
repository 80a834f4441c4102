#!/usr/bin/env bash
# The tasks of a job started by hand, as the README shows, and in the wrong order; a third worker joins while it runs.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh

run="$work/run"
job=(--config="$root/configs/teacher_mlp.textproto" --set "run_directory=$run" --set training.epochs=16
  --set cluster.start_timeout_seconds=30)

say "workers before servers"
start_coordinator coordinator "${job[@]}"
task=("${job[@]}" --coordinator="$address")
start worker-1 worker "${task[@]}" --task_index=1 --role=worker
start worker-0 worker "${task[@]}" --task_index=0 --role=worker
wait_for 20 "the coordinator waits for the servers alone" grep -q 'waiting for server 0, server 1$' \
  "$work/coordinator.log"
wait_for 20 "a worker says what it waits for" grep -q 'waits for server 0, server 1$' "$work/worker-0.log"
start evaluator worker "${task[@]}" --task_index=0 --role=evaluator
start server-1 server "${task[@]}" --task_index=1 --listen=127.0.0.1:0
wait_for 20 "the coordinator waits for one server" grep -q 'waiting for server 0$' "$work/coordinator.log"
start server-0 server "${task[@]}" --task_index=0 --listen=127.0.0.1:0
wait_for 20 "training begins" has_step "$run" 50

say "worker 2 joins"
start worker-2 worker "${task[@]}" --task_index=2 --role=worker
wait_for 20 "worker 2 is a member" grep -q '"plan":{.*"members":\[0,1,2\]' "$run/metrics.jsonl"
grep '"plan":{' "$run/metrics.jsonl"
grep '"member":{' "$run/metrics.jsonl" | grep '"task":"worker 2"' | finds '"event":"JOINED"' ||
  fail "the run record does not say that worker 2 joined"

say "every task ends by itself"
for name in worker-0 worker-1 worker-2 evaluator server-0 server-1 coordinator; do ends "$name" 0 60; done
grep -q '"end":{.*"ok":true' "$run/metrics.jsonl" || fail "the run record has no good end"
examples="$(last_value "$run" examples)"
((examples == 16 * 40000)) || fail "$examples examples were trained instead of 16 epochs of 40000"
for index in 0 1; do
  [[ -s "$run/checkpoints/final/server-$index.manifest" ]] || fail "server $index has no final checkpoint"
done
audit_holds "$run"
"$rubato" export "$run" --output="$work/model.safetensors" >/dev/null || fail "the weights cannot be exported"
say passed
