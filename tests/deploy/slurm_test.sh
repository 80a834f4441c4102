#!/usr/bin/env bash
# deploy/slurm on a real Slurm of three nodes: jobs by sbatch on MNIST over TLS, placement, GPUs, jobs that do not fit, a
# lost worker, the time limit, scancel and requeue.
# shellcheck source=tests/deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tests/deploy/slurm_cluster.sh
source tests/deploy/slurm_cluster.sh

work="$(mktemp -d)"
cleanup() {
  local status=$?
  stop_slurm
  # What a job has left is a failure of its own, and does not stay either.
  local left
  left="$(job_processes)"
  if [[ -n "$left" ]]; then
    status=1
    echo "left behind: $left" >&2
    # shellcheck disable=SC2086  # One argument per process.
    kill -9 $left
  fi
  if ((status != 0)); then tail -n 20 "$work"/*.log "$work"/runs/*/attempt-*/logs/*-*.log 2>/dev/null || true; fi
  rm -rf "$work"
  exit "$status"
}

# Processes of this test's programs. Others that end meanwhile are no error.
job_processes() {
  { find /proc -maxdepth 2 -path '/proc/[0-9]*/exe' -lname "$work/bin/*" -printf '%h\n' 2>/dev/null || true; } |
    sed 's#/proc/##'
}
no_processes() { [[ -z "$(job_processes)" ]]; }

# submit NAME SBATCH-OPTIONS -- ARGUMENTS: prints the job's id.
submit() {
  local name="$1" options=()
  shift
  while [[ "$1" != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  sbatch --parsable --output="$work/$name.log" "${options[@]}" deploy/slurm/rubato.sbatch "$@" \
    --binaries="$work/bin" --run_directory="$work/runs/$name"
}

job_field() { scontrol --oneliner show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
job_is() { [[ "$(job_field "$1" JobState)" == "$2" ]]; }
job_is_over() { [[ ! "$(job_field "$1" JobState)" =~ PENDING|CONFIGURING|RUNNING|COMPLETING ]]; }
has_step() { [[ -f "$1/metrics.jsonl" ]] && at_least "$(last_value "$1" step)" "$2"; }

# ends NAME ID STATE EXIT
ends() {
  wait_for 120 "job $1 is over" job_is_over "$2"
  local state exit
  state="$(job_field "$2" JobState)"
  exit="$(job_field "$2" ExitCode)"
  if [[ "$state $exit" != "$3 $4" ]]; then
    cat "$work/$1.log" >&2
    fail "$1: state $state, exit $exit instead of $3, $4"
  fi
  wait_for 20 "no process of $1 is left" no_processes
}

# says NAME TEXT
says() { grep -qF -- "$2" "$work/$1.log" || { cat "$work/$1.log" >&2 && fail "$1 does not say: $2"; }; }

mnist=configs/mnist_mlp_sync.textproto
# Until it is stopped.
endless=(--set training.max_steps= --set training.epochs=1000 --set cluster.update_log=false)

# Each running task but the coordinator: "ROLE INDEX NODE GPU VISIBLE-GPUS".
running_tasks() {
  local pid arguments role index node gpus
  for pid in $(job_processes); do
    arguments="$(tr '\0' ' ' <"/proc/$pid/cmdline")"
    [[ "$arguments" =~ /bin/([a-z]+)\ .*--task_index=([0-9]+) ]] || continue
    role="${BASH_REMATCH[1]}" index="${BASH_REMATCH[2]}"
    if [[ "$arguments" == *--role=evaluator* ]]; then role=evaluator; fi
    node="$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^SLURMD_NODENAME=//p')"
    gpus="$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^CUDA_VISIBLE_DEVICES=//p')"
    echo "$role $index $node $(sed -n 's/.*device_index=\([0-9]*\).*/\1/p' <<<"$arguments") $gpus"
  done | sort
}

# certificates_are_secret RUN TASK...: these tasks and an operator have one each, and nobody else may read their keys.
certificates_are_secret() {
  local folder="$1/credentials" expected
  shift
  expected="$(printf '%s.key 600\n' ca operator "$@" | sort)"
  [[ "$(stat --format=%a "$folder")" == 700 ]] || fail "others may enter $folder"
  [[ "$(cd "$folder" && stat --format='%n %a' -- *.key | sort)" == "$expected" ]] ||
    fail "not the keys of the tasks, or not with mode 0600: $(ls -l "$folder")"
  ! grep -q '^  insecure: true' "$(dirname "$folder")/slurm/job.textproto" || fail "the job is insecure"
}

# refused TEXT STATUS-ARGUMENTS...: a status that is not told, with a reason that has the text.
refused() {
  local text="$1" said
  shift
  if said="$("$work/bin/rubato" status "$@" 2>&1)"; then fail "rubato status $* is answered: $said"; fi
  grep -qF -- "$text" <<<"$said" || fail "rubato status $* does not say \"$text\": $said"
}

# members_alone RUN: who has no certificate of this running job learns nothing from its coordinator.
members_alone() {
  local run="$1" address server kind other="$work/other" impostor="$work/impostor"
  address="$(<"$run/coordinator.address")"
  server="$(sed -nE 's/.* listens on port ([0-9]+)$/127.0.0.1:\1/p' "$run/logs/server-0.log" | tail -n 1)"
  needs_a_certificate "$address" "$run/credentials"
  needs_a_certificate "${server:?the log of server 0 has no port}" "$run/credentials"
  refused "nothing answers at $address" "$address"
  "$work/bin/rubato" credentials "$run" --directory="$other" >/dev/null
  refused "nothing answers at $address" "$address" "--credentials=$other"
  mkdir -m 0700 "$impostor"
  cp "$run/credentials/ca.crt" "$impostor/"
  refused "credentials of operator: cannot open $impostor/operator.crt" "$address" "--credentials=$impostor"
  for kind in crt key; do cp "$run/credentials/worker-0.$kind" "$impostor/operator.$kind"; done
  refused "is the certificate of worker 0, not of operator" "$address" "--credentials=$impostor"
  "$work/bin/rubato" status "$address" --credentials="$run/credentials" >/dev/null || fail "an operator is refused"
}

a_job_by_sbatch_reaches_its_accuracy() {
  say "two servers, two workers and an evaluator, dealt round three nodes"
  local job run="$work/runs/packed/attempt-0" expected
  job="$(submit packed --nodes=3 --ntasks-per-node=2 -- "$mnist" --set training.batch_size=32)"
  ends packed "$job" COMPLETED 0:0
  at_least "$(last_value "$run" accuracy)" 0.93 || fail "held-out accuracy $(last_value "$run" accuracy)"
  say "held-out accuracy $(last_value "$run" accuracy)"
  expected=$'server 0 n2\nserver 1 n3\nworker 0 n1\nworker 1 n2\nevaluator 0 n3'
  [[ "$(<"$run/slurm/tasks")" == "$expected" ]] || fail "placed as: $(<"$run/slurm/tasks")"
  grep -q ' worker 1 [0-9a-f]*\]' "$run/logs/worker-1.log" || fail "the log of worker 1 is of another task"
  "$work/bin/rubato" audit "$run" >/dev/null || fail "the audit found a broken invariant"
  certificates_are_secret "$run" coordinator-0 server-0 server-1 worker-0 worker-1 evaluator-0
  say "the same run directory is refused"
  job="$(submit packed --nodes=3 --ntasks-per-node=2 -- "$mnist")"
  ends packed "$job" FAILED 2:0
  says packed "holds an earlier run"
  say "--continue sees that it is done"
  job="$(submit packed --nodes=3 --ntasks-per-node=2 -- "$mnist" --continue)"
  ends packed "$job" COMPLETED 0:0
  says packed "the job is done"
}

what_does_not_fit_is_refused() {
  say "jobs that do not fit"
  local job
  job="$(submit small --nodes=2 --ntasks=4 -- "$mnist")"
  ends small "$job" FAILED 2:0
  says small "2 workers (cluster.workers) and 1 evaluators (cluster.evaluators), 6 tasks; the allocation has 4 tasks"
  job="$(submit by_node_small --nodes=2 --ntasks-per-node=3 -- "$mnist" --place=by_node)"
  ends by_node_small "$job" FAILED 2:0
  says by_node_small "the workers on nodes of their own"
  job="$(submit wrong -- "$mnist" --set cluster.servers=none)"
  ends wrong "$job" FAILED 2:0
  says wrong "--set cluster.servers=none"
  [[ ! -e "$work/runs/small" ]] || fail "a job that was refused has left a run directory"
}

has_joined_again() {
  (($(sed -n "/\"task\":\"$2\",\"event\":\"EVICTED\"/,\$p" "$1/metrics.jsonl" | grep -c "\"task\":\"$2\",\"event\":\"JOINED\"") > 0))
}

gpus_and_a_lost_worker() {
  say "workers on nodes of their own, as many as there is room for, a GPU each; one is lost"
  local job run="$work/runs/by_node/attempt-0" placed lost
  job="$(submit by_node --nodes=3 --ntasks-per-node=4 --gres=gpu:2 -- "$mnist" --place=by_node --workers=allocation \
    --set consistency.mode=ASYNC --set data.dispatch=DYNAMIC "${endless[@]}")"
  wait_for 60 "training begins" has_step "$run" 20
  placed="$(running_tasks)"
  echo "$placed"
  [[ "$(cut -d' ' -f1-3 <<<"$placed")" == "$(sort "$run/slurm/tasks")" ]] || fail "not where slurm/tasks says"
  # Of four workers on a node, two have each of its GPUs.
  [[ "$(grep '^worker' <<<"$placed" | cut -d' ' -f3- | sort | uniq -c | awk '{ print $1, $2, $3, $4 }')" == \
    $'2 n2 0 0,1\n2 n2 1 0,1\n2 n3 0 0,1\n2 n3 1 0,1' ]] || fail "the GPUs are not shared out"
  members_alone "$run"
  lost="$(pgrep -f -- "^$work/bin/worker.*--task_index=5 --coordinator.*--role=worker")"
  kill -9 "$lost"
  wait_for 30 "the lost worker is named" grep -q '"task":"worker 5","event":"EVICTED"' "$run/metrics.jsonl"
  wait_for 30 "it is started again" has_joined_again "$run" "worker 5"
  wait_for 30 "the others go on" has_step "$run" $(($(last_value "$run" step) + 50))
  wait_for 90 "the job is told to stop" "$work/bin/rubato" stop "$run" --reason="seen enough"
  ends by_node "$job" FAILED 1:0
  says by_node "seen enough"
}

scancel_stops_everything() {
  say "scancel"
  local job run="$work/runs/cancelled/attempt-0" began
  job="$(submit cancelled --nodes=3 --ntasks-per-node=2 -- "$mnist" "${endless[@]}")"
  wait_for 60 "training begins" has_step "$run" 20
  began="$SECONDS"
  scancel "$job"
  wait_for 30 "the job is over" job_is_over "$job"
  wait_for 20 "no process is left" no_processes
  say "nothing is left after $((SECONDS - began)) s"
  job_is "$job" CANCELLED || fail "state $(job_field "$job" JobState)"
  grep -q '"end":{.*stopped by SIGTERM\|"end":{.*Slurm sent SIGTERM' "$run/metrics.jsonl" ||
    fail "the run record does not say who stopped the job"
}

started_again() { [[ "$(job_field "$1" Restarts)" == 1 ]]; }

the_time_limit_keeps_the_weights() {
  say "near its time limit a job writes a checkpoint and is started again, from there"
  local job run="$work/runs/limited" examples
  job="$(submit limited --nodes=3 --ntasks-per-node=2 -- "$mnist" --set training.max_steps=1500 --requeue_at_limit)"
  wait_for 60 "training begins" has_step "$run/attempt-0" 20
  # What Slurm does a minute before the limit.
  scancel --batch --signal=USR1 "$job"
  wait_for 60 "Slurm starts it again" started_again "$job"
  grep -q '"ok":false,"error":"stopped by the operator at [^ ]*: Slurm sent SIGUSR1"' "$run/attempt-0/metrics.jsonl" || fail "no reason in the record"
  ends limited "$job" COMPLETED 0:0
  says limited "goes on with what $run/attempt-0 holds"
  [[ ! -e "$run/attempt-1" ]] || fail "the job was begun again"
  examples="$(last_value "$run/attempt-0" examples)"
  # Three epochs of 469 steps, the last of which is cut at the epoch's end, and 93 steps: each is trained once.
  ((examples == 3 * 60000 + 93 * 128)) || fail "$examples examples were trained"
  "$work/bin/rubato" audit "$run/attempt-0" >/dev/null || fail "the audit found a broken invariant"
}

a_requeue_without_warning_goes_on() {
  say "scontrol requeue, without a warning"
  local job run="$work/runs/requeued"
  job="$(submit requeued --nodes=3 --ntasks-per-node=2 -- "$mnist" --set training.max_steps=1500 \
    --set checkpoint.every_steps=50)"
  wait_for 60 "training begins" has_step "$run/attempt-0" 120
  scontrol requeue "$job"
  ends requeued "$job" COMPLETED 0:0
  started_again "$job" || fail "not started again"
  says requeued "goes on with what $run/attempt-0 holds"
  grep -q '"ok":true' "$run/attempt-0/metrics.jsonl" || fail "it did not end well"
}

a_lost_coordinator_and_server_come_back() {
  say "kill -9 of a server and of the coordinator"
  local job run="$work/runs/lost/attempt-0"
  job="$(submit lost --nodes=3 --ntasks-per-node=2 -- "$mnist" --set training.max_steps=1500 \
    --set checkpoint.every_steps=50)"
  wait_for 60 "training begins" has_step "$run" 120
  kill -9 "$(pgrep -f -- "^$work/bin/server.*--task_index=1 ")"
  wait_for 60 "the job goes back" grep -q '"rollback":{' "$run/metrics.jsonl"
  wait_for 60 "and goes on" has_step "$run" $(($(last_value "$run" step) + 100))
  kill -9 "$(pgrep -f -- "^$work/bin/coordinator ")"
  ends lost "$job" COMPLETED 0:0
  says lost "the coordinator was killed by signal 9; it is started again"
  grep -q 'ended with status 137; it is started again' "$run/logs/server-1.log" || fail "server 1 was not started again"
  at_least "$(last_value "$run" accuracy)" 0.93 || fail "held-out accuracy $(last_value "$run" accuracy)"
  "$work/bin/rubato" audit "$run" >/dev/null || fail "the audit found a broken invariant"
}

your_own_program() {
  local program="$work/bin/linear_regression" job run="$work/runs/clients/attempt-0" rank
  if [[ ! -x "$program" || ! -x "$work/bin/rubato-sidecar" ]]; then
    say "the C client is not built (bazel build //client/...): workers that are somebody's program are left out"
    return
  fi
  say "workers that are somebody's program"
  printf 'name: "clients" cluster {\n  servers: 2\n  workers: 3\n}\nconsistency { mode: ASYNC }\n' >"$work/clients.textproto"
  # shellcheck disable=SC2016  # For the workers' shell.
  job="$(submit clients --nodes=3 --ntasks-per-node=2 -- "$work/clients.textproto" --set cluster.update_log=true \
    --command="sh -c 'echo place \$RUBATO_LOCAL_RANK of \$RUBATO_LOCAL_SIZE; LD_LIBRARY_PATH=$work/bin exec \"\$0\" \$RUBATO_COORDINATOR \$RUBATO_RANK \$RUBATO_SIDECAR' $program")"
  ends clients "$job" COMPLETED 0:0
  for rank in 0 1 2; do
    grep -q "worker $rank learned y = 3.0" "$run/logs/worker-$rank.log" || fail "worker $rank has learned nothing"
    grep -qx 'place 0 of 1' "$run/logs/worker-$rank.log" || fail "worker $rank does not know that it is alone on its node"
  done
  "$work/bin/rubato" audit "$run" >/dev/null || fail "the audit found a broken invariant"
  say "one of them fails"
  job="$(submit failed --nodes=3 --ntasks-per-node=2 -- "$work/clients.textproto" \
    --command="sh -c '[ \$RUBATO_RANK = 1 ] || exec sleep 600; exit 3'")"
  ends failed "$job" FAILED 1:0
  grep -q 'worker 1 ended with exit status 3; it ends the job' "$work/runs/failed/attempt-0/logs/worker-1.log" ||
    fail "the log of worker 1 does not say that it ends the job"
}

need_packages slurm-wlm munge procps openssl
./rubato.sh fetch-data >/dev/null
gather_programs "$work/bin" "$@"
trap cleanup EXIT
start_slurm
a_job_by_sbatch_reaches_its_accuracy
what_does_not_fit_is_refused
gpus_and_a_lost_worker
scancel_stops_everything
the_time_limit_keeps_the_weights
a_requeue_without_warning_goes_on
a_lost_coordinator_and_server_come_back
your_own_program
say passed
