#!/usr/bin/env bash
# checkpoint.copies, with a checkpoint directory of its own for each task, as on hosts that share no file system. A server
# is lost with its disk, and then another one that does not come back; a worker with error-feedback residuals moves to an
# empty disk. The job goes on from copies each time.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh

run="$work/run"
job=(--config="$root/configs/teacher_mlp.textproto" --set "run_directory=$run" --set training.epochs=100
  --set cluster.servers=3 --set cluster.evaluators=0 --set evaluation.target_accuracy=0 --set cluster.update_log=true
  --set cluster.server_grace_seconds=4 --set checkpoint.every_seconds=1 --set checkpoint.copies=2
  --set compression.push.codec=TOP_K --set compression.push.fraction=0.2)

# start_task ROLE INDEX: the task, whose checkpoints are on a disk of its own.
start_task() {
  local role="$1" index="$2" program=worker
  if [[ "$role" == server ]]; then program=server; fi
  local arguments=("${job[@]}" --coordinator="$address" --task_index="$index"
    --set "checkpoint.directory=$work/disk/$role-$index")
  if [[ "$role" == server ]]; then arguments+=(--listen=127.0.0.1:0); else arguments+=(--role=worker); fi
  start "$role-$index" "$program" "${arguments[@]}"
}

# How many checkpoints the run record has.
checkpoints() { grep -c '"checkpoint":{' "$run/metrics.jsonl" || true; }
has_checkpoints() { (($(checkpoints) >= $1)); }
rollbacks() { grep -c '"rollback":{' "$run/metrics.jsonl" || true; }
has_rollbacks() { (($(rollbacks) >= $1)); }

# lose ROLE INDEX: the machine with its disk.
lose() {
  stop "$1-$2"
  rm -rf "$work/disk/$1-$2"
}

start_coordinator coordinator "${job[@]}" --set "checkpoint.directory=$work/disk/coordinator"
for index in 0 1 2; do start_task server "$index"; done
for index in 0 1; do start_task worker "$index"; done
wait_for 40 "two checkpoints" has_checkpoints 2
for index in 0 1 2; do
  next=$(((index + 1) % 3))
  compgen -G "$work/disk/server-$next/step*/server-$index.manifest" >/dev/null ||
    fail "server $next has no copy of the part of server $index"
done
compgen -G "$work/disk/server-*/step*/worker-0.manifest" >/dev/null || fail "nobody has a copy of worker 0's part"

say "server 1 and worker 0 are lost with their disks, and started again on empty ones"
lose worker 0
lose server 1
start_task server 1
start_task worker 0
wait_for 40 "the job goes back" has_rollbacks 1
before="$(checkpoints)"
wait_for 40 "and goes on" has_checkpoints $((before + 2))
says server-1 'asks other servers for parts of checkpoint step'
compgen -G "$work/disk/server-1/step*/server-1.manifest" >/dev/null || fail "server 1 writes no parts again"
says worker-0 'goes on with what it kept in'

say "server 2 is lost with its disk, and does not come back"
lose server 2
wait_for 40 "the job goes back again" has_rollbacks 2
before="$(checkpoints)"
wait_for 40 "and goes on" has_checkpoints $((before + 2))
says coordinator 'goes on without server 2'
kept=$(find "$work/disk/server-0" -maxdepth 1 -name 'step*' ! -name step0 | wc -l)
((kept <= 4)) || fail "server 0 keeps parts of $kept checkpoints"

say "the job is stopped"
timeout 60 "$rubato" stop "$address" --credentials="$run/credentials" >"$work/stop.out" || fail "the job cannot be stopped: $(<"$work/stop.out")"
for name in worker-0 worker-1 server-0 server-1; do ends "$name" 0 60; done
ends coordinator 1 60
audit_holds "$run"
if grep -h 'cannot go back' "$work"/*.log; then fail "a checkpoint could not be read"; fi
say passed
