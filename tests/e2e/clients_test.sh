#!/usr/bin/env bash
# Whole jobs whose workers are clients: real coordinator and servers, and two processes that know rubato_client.h alone.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh

sidecar="$root/client/sidecar/rubato-sidecar"
cat >"$work/job.textproto" <<END
name: "clients"
cluster {
  servers: 2
  workers: 2
  chunk_bytes: 65536
  update_log: true
  lease_seconds: 3
  start_timeout_seconds: 30
}
consistency { mode: SYNC }
END

# begin_job NAME ARGUMENTS...: coordinator and servers.
begin_job() {
  job="$1"
  # Of its sidecars.
  export RUBATO_CREDENTIALS="$work/$job/credentials"
  shift
  local task=(--config="$work/job.textproto" --set "run_directory=$work/$job" "$@")
  start_coordinator "$job-coordinator" "${task[@]}"
  for index in 0 1; do
    start "$job-server-$index" server "${task[@]}" --coordinator="$address" --task_index="$index" --listen=127.0.0.1:0
  done
}

# client RANK WAY [awaits|keeps]: in the background.
client() {
  "$root/client/testing/job_client" "$address" "$1" "$sidecar" "${@:2}" >>"$work/$job-client-$1.log" 2>&1 &
  process[$job-client-$1]=$!
}

# end_job [SECONDS]: coordinator and servers end by themselves, and nobody is left.
end_job() {
  for name in "$job-server-0" "$job-server-1" "$job-coordinator"; do ends "$name" 0 "${1:-30}"; done
  wait_for 10 "no sidecar is left" no_sidecars
  grep -q '"end":{.*"ok":true' "$work/$job/metrics.jsonl" || fail "the run record of $job has no good end"
  audit_holds "$work/$job"
}

no_sidecars() { ! pgrep -f "^$sidecar" >/dev/null; }

say "the mean of two clients, absent tensors and values that are not finite"
begin_job mean
client 1 mean
client 0 mean
for rank in 0 1; do ends "mean-client-$rank" 0 60; done
says mean-client-0 '^steps 20$'
end_job

say "the same over TCP"
begin_job tcp --set cluster.shared_memory=OFF
for rank in 0 1; do client "$rank" mean; done
for rank in 0 1; do ends "tcp-client-$rank" 0 60; done
end_job

say "one of them reads weights before the step begins"
begin_job awaits
client 0 mean awaits
client 1 mean
for rank in 0 1; do ends "awaits-client-$rank" 0 60; done
end_job

say "SGD on the servers equals its formula"
begin_job sgd
client 0 sgd keeps
client 1 sgd awaits
for rank in 0 1; do ends "sgd-client-$rank" 0 60; done
end_job

say "rows of a table by keys in any order, of a model without tensors"
begin_job rows
for rank in 0 1; do client "$rank" rows; done
for rank in 0 1; do ends "rows-client-$rank" 0 60; done
says rows-client-0 '^steps 12$'
end_job

say "an optimizer's state goes to the servers and comes back, and a checkpoint is waited for"
begin_job state
for rank in 0 1; do client "$rank" state; done
for rank in 0 1; do ends "state-client-$rank" 0 60; done
written="$(sed -n 's/^checkpoint //p' "$work/state-client-0.log")"
[[ -f "$written/cut" && "$written" == "$work/state/checkpoints/"* ]] || fail "there is no checkpoint at '$written'"
end_job

say "a client that is killed is evicted, and the other one goes on"
begin_job killed
client 0 survive
client 1 killed
wait_for 30 "client 1 steps" grep -q '^step 20$' "$work/killed-client-1.log"
stop killed-client-1
ends killed-client-0 0 60
says killed-client-0 '^alone at step'
grep '"member":{' "$work/killed/metrics.jsonl" | grep '"task":"worker 1"' | finds 'has ended without rubato_close' ||
  fail "the run record does not say why worker 1 was evicted"
end_job

say "what is missing is named"
begin_job errors
client 0 errors
ends errors-client-0 0 30
says errors-client-0 'no coordinator answers at 127.0.0.1:1 within 500ms'
says errors-client-0 'the sidecar /does/not/exist cannot be started: No such file or directory'
says errors-client-0 'the sidecar (process [0-9]*) was ended by signal 9'
for name in errors-server-0 errors-server-1 errors-coordinator; do stop "$name"; done

say "a model that differs is refused, with both by name"
begin_job differ
client 0 differ
wait_for 20 "client 0 defines its model" grep -q '^defined' "$work/differ-client-0.log"
client 1 differ
for rank in 0 1; do ends "differ-client-$rank" 0 60; done
for rank in 0 1; do says "differ-client-$rank" '"small" 3 in group 0, but this worker has "small" 4'; done
for name in differ-server-0 differ-server-1 differ-coordinator; do ends "$name" 1 30; done
wait_for 10 "no sidecar is left" no_sidecars

say "SIGTERM to a client's process: it leaves, and the other one goes on"
begin_job drained
client 0 survive
client 1 ended
wait_for 30 "client 1 steps" grep -q '^step 20$' "$work/drained-client-1.log"
kill -TERM "${process[drained-client-1]}"
ends drained-client-1 0 30
says drained-client-1 '^ended at step'
ends drained-client-0 0 30
end_job

say "a client that does nothing is given up"
begin_job silent --set training.step_timeout_seconds=1
client 0 survive
client 1 silent
ends silent-client-0 0 60
kill -TERM "${process[silent-client-1]}"
ends silent-client-1 0 30
says silent-client-1 'neither begun a step nor pushed for longer than training.step_timeout_seconds = 1 after step 0'
end_job

say "a job with a last step ends for its clients"
begin_job last --set training.max_steps=30
for rank in 0 1; do client "$rank" ended; done
for rank in 0 1; do
  ends "last-client-$rank" 0 30
  says "last-client-$rank" '^ended at step 29$'
done
end_job

say "a job that is stopped ends for its clients"
begin_job stopped
for rank in 0 1; do client "$rank" ended; done
wait_for 30 "client 1 steps" grep -q '^step 20$' "$work/stopped-client-1.log"
"$rubato" stop "$address" --credentials="$RUBATO_CREDENTIALS" >/dev/null
for rank in 0 1; do ends "stopped-client-$rank" 0 30; done
for name in stopped-server-0 stopped-server-1; do ends "$name" 0 30; done
ends stopped-coordinator 1 30

say "each of 1000 leased examples is trained once an epoch"
begin_job lease
for rank in 0 1; do client "$rank" lease; done
for rank in 0 1; do ends "lease-client-$rank" 0 90; done
end_job
cat "$work"/lease-client-?.log | awk '/^trained/ { for (i = $3; i < $4; ++i) ++count[$2 " " i] }
  END { for (key in count) { if (count[key] != 1) exit 1; ++all }; exit all == 2000 ? 0 : 1 }' ||
  fail "not every example was trained once"

# lose_a_server JOB: the job goes back, and the clients with it.
lose_a_server() {
  # What the codec leaves out of a gradient is part of a checkpoint; of ones it leaves out nothing.
  local settings=(--set checkpoint.every_steps=20 --set compression.push.codec=ONE_BIT)
  begin_job "$1" "${settings[@]}"
  client 0 rollback keeps
  client 1 rollback awaits
  wait_for 60 "a checkpoint is complete" compgen -G "$work/$1/checkpoints/step[2-9]*/cut"
  stop "$1-server-0"
  start "$1-server-0" server --config="$work/job.textproto" --set "run_directory=$work/$1" "${settings[@]}" \
    --coordinator="$address" --task_index=0 --listen=127.0.0.1:0
  for rank in 0 1; do ends "$1-client-$rank" 0 60; done
  says "$1-client-0" '^step again'
  compgen -G "$work/$1/checkpoints/step[1-9]*/worker-1.manifest" >/dev/null ||
    fail "what the codec left out is in no checkpoint"
  end_job
}

say "a server is lost: the job goes back, and the clients with it"
# Of the small tensor, which the other server has, weights have come by then: they are void. Not if it is lost between its
# answers to the two clients, for then one of them does not push.
for try in 1 2 3; do
  lose_a_server "rollback$try"
  grep -q '^moved 1$' "$work/rollback$try-client-1.log" && break
  ((try < 3)) || says "rollback$try-client-1" '^moved 1$'
done

say "the same with rows of a table, which come with a step or are read in it"
begin_job rows-rollback --set checkpoint.every_steps=20
for rank in 0 1; do client "$rank" rows-rollback; done
wait_for 60 "a checkpoint is complete" compgen -G "$work/rows-rollback/checkpoints/step[2-9]*/cut"
stop rows-rollback-server-0
start rows-rollback-server-0 server --config="$work/job.textproto" --set "run_directory=$work/rows-rollback" \
  --set checkpoint.every_steps=20 --coordinator="$address" --task_index=0 --listen=127.0.0.1:0
for rank in 0 1; do ends "rows-rollback-client-$rank" 0 60; done
says rows-rollback-client-0 '^step again'
end_job

say "the coordinator is killed: steps go on, and values are kept"
begin_job restart
for rank in 0 1; do client "$rank" restart; done
wait_for 60 "client 1 steps" grep -q '^step 20$' "$work/restart-client-1.log"
stop restart-coordinator
wait_for 60 "client 0 puts its value" grep -q '^puts at step' "$work/restart-client-0.log"
start restart-coordinator coordinator --config="$work/job.textproto" --set "run_directory=$work/restart" \
  --listen="$address" --resume
for rank in 0 1; do ends "restart-client-$rank" 0 60; done
end_job

say "values, barriers, misuse, a checkpoint and a change of mode"
begin_job talk
for rank in 0 1; do client "$rank" talk; done
for rank in 0 1; do ends "talk-client-$rank" 0 90; done
says talk-client-0 '^asynchronous at step'
compgen -G "$work/talk/checkpoints/step[1-9]*" >/dev/null || fail "no checkpoint was written"
end_job

say "the examples"
begin_job linear
for rank in 0 1; do
  "$root/client/examples/linear_regression" "$address" "$rank" "$sidecar" >"$work/linear-$rank.log" 2>&1 &
  process[linear-$rank]=$!
done
for rank in 0 1; do
  ends "linear-$rank" 0 60
  says "linear-$rank" 'learned y = 3.000 a + -2.000 b + 0.500'
done
end_job
begin_job logistic
for rank in 0 1; do
  "$root/client/examples/logistic" "$address" "$rank" "$sidecar" >"$work/logistic-$rank.log" 2>&1 &
  process[logistic-$rank]=$!
done
for rank in 0 1; do
  ends "logistic-$rank" 0 60
  says "logistic-$rank" '9[5-9][.0-9]* % of others are right'
done
end_job
say passed
