#!/usr/bin/env bash
# `rubato deploy ssh` over an SSH server of this test's own, with two addresses of this machine as hosts: a package, a job
# to its end, one that is detached and taken down, an interrupted launcher, and hosts that cannot be used. Hosts that
# have nothing in common are in tests/deploy/ssh_test.sh, which needs root.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

user="$(id -un)"
identity="$work/key"
sshd="$(PATH="$PATH:/usr/sbin" command -v sshd)" || skip "there is no SSH server (sshd) here"
for program in ssh ssh-keygen; do command -v "$program" >/dev/null || skip "there is no $program here"; done
# The server insists on this folder if it is root's.
if [[ "$(id -u)" == 0 ]]; then mkdir -p /run/sshd; fi

# Of all jobs here: their processes are the server's, and would outlive a test that fails.
mark="ssh-test-$$-$RANDOM"
job_processes() { grep -lz "^RUBATO_JOB=$mark" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true; }
end_all() {
  # shellcheck disable=SC2046  # One argument per process.
  kill -9 $(job_processes) 2>/dev/null || true
  cleanup
}
trap end_all EXIT

start_ssh_server() {
  local key
  for key in key other_key host_key; do ssh-keygen -q -t ed25519 -N '' -f "$work/$key"; done
  cp "$work/key.pub" "$work/authorized_keys"
  # A port that is taken is found out by trying. Its sessions begin as if within a shell, as bash then leaves the user's
  # start-up files alone, which may take their time or wait.
  for _ in {1..20}; do
    port=$((20000 + RANDOM % 12000))
    "$sshd" -D -e -f /dev/null -p "$port" -o ListenAddress=127.0.0.1 -o ListenAddress=127.0.0.2 -o PidFile=none \
      -o HostKey="$work/host_key" -o AuthorizedKeysFile="$work/authorized_keys" -o StrictModes=no -o UsePAM=no \
      -o MaxStartups=100 -o SetEnv=SHLVL=1 2>"$work/sshd.log" &
    local server=$!
    until (($(grep -c 'Server listening on' "$work/sshd.log") == 2)); do
      kill -0 "$server" 2>/dev/null || continue 2
      sleep 0.1
    done
    return
  done
  fail "no SSH server: $(<"$work/sshd.log")"
}

# write_hosts LINE...: the hosts file, with further lines.
write_hosts() {
  local login="port: $port user: \"$user\""
  {
    printf '%s\n' "$@"
    echo "hosts { host: \"127.0.0.1\" $login directory: \"$work/first host\" servers: 1 workers: 1"
    echo "        coordinator: true evaluators: 1 }"
    echo "hosts { host: \"127.0.0.2\" $login directory: \"$work/second host\" servers: 1 workers: 1 }"
  } >"$work/hosts.textproto"
}

# up_command RUN ARGUMENTS...: into $command.
up_command() {
  local run="$1"
  shift
  command=("$rubato" deploy ssh up "$work/hosts.textproto" configs/teacher_mlp.textproto --package "$package"
    --identity "$identity" --run_directory "$work/$run" --ssh_option StrictHostKeyChecking=no
    --ssh_option UserKnownHostsFile=/dev/null --set "name=$mark-$run" "$@")
}
# up EXIT-STATUS RUN ARGUMENTS...: what it says is in RUN.out.
up() {
  local expected="$1" run="$2" status=0
  shift
  up_command "$@"
  timeout $((120 * timeout_factor)) "${command[@]}" >"$work/$run.out" 2>&1 || status=$?
  ((status == expected)) || fail "$run: exit status $status instead of $expected: $(<"$work/$run.out")"
}
says() { grep -q -- "$2" "$work/$1.out" || fail "$1 does not say: $2, but: $(<"$work/$1.out")"; }
# The program that evaluates, not the shell that it is started from.
evaluator_process() {
  local process
  for process in $(job_processes); do
    [[ "$(readlink "/proc/$process/exe")" == */worker ]] || continue
    if finds '^evaluator$' < <(tr '\0' '\n' <"/proc/$process/cmdline"); then echo "$process"; fi
  done
}
has_successor() { [[ -n "$(evaluator_process)" && "$(evaluator_process)" != "$1" ]]; }
nothing_left() { [[ -z "$(job_processes)" ]] || fail "$1: processes are left: $(job_processes)"; }
is_at_step() {
  local record
  record="$(echo "$work/first host/jobs/$mark-$1-"*/run/metrics.jsonl)"
  [[ -f "$record" ]] && (($(last_value "$(dirname "$record")" step) >= $2))
}

has_stopped() {
  local stopped="$work/*host/jobs/$mark-$1-*/run/checkpoints/stopped"
  compgen -G "$stopped/server-0.manifest" >/dev/null && compgen -G "$stopped/server-1.manifest" >/dev/null
}

start_ssh_server
deploy/make_package.sh --any-libraries "$root" "$work" >/dev/null
package="$(echo "$work"/rubato-*.tar.gz)"
write_hosts

say "a job to its end"
up 0 whole
"$rubato" audit "$work/whole" >/dev/null || fail "the audit"
[[ -s "$work/whole/report.html" && -s "$work/whole/checkpoints/final/server-1.manifest" ]] ||
  fail "the run directory is not whole"
nothing_left whole

say "a job that is detached, looked at, and taken down"
up 0 detached --set training.epochs=100000 --detach
wait_for 60 "steps" is_at_step detached 10
evaluator="$(evaluator_process)"
kill -9 "$evaluator"
wait_for 60 "the evaluator's successor" has_successor "$evaluator"
"$rubato" deploy ssh logs "$work/detached" evaluator-0 --lines 50 >"$work/evaluator.log" || fail "the evaluator's log"
"$rubato" deploy ssh status "$work/detached" >"$work/status.out" || fail "status"
says status "127.0.0.2: worker-1 running"
"$rubato" deploy ssh logs "$work/detached" worker-1 --lines 3 >"$work/logs.out" || fail "logs"
says logs "== worker-1"
"$rubato" deploy ssh trace "$work/detached" --seconds=1 >"$work/trace.out" || fail "trace"
says trace "Recording 4 tasks for 1 s"
says trace "^  [1-9][0-9]* pushes from worker to server, 0 of them applied before they were sent"
compgen -G "$work/detached/traces/*/merged.json" >/dev/null || fail "the merged trace is not in the run directory"
"$rubato" deploy ssh switch "$work/detached" --to=async >"$work/switch.out" || fail "switch"
says switch "^ASYNC from step [0-9]* on: plan"
"$rubato" deploy ssh stop "$work/detached" --reason="has been seen" >"$work/stop.out" || fail "stop"
says stop "^The job at .* stops"
wait_for 60 "the weights of a job that was stopped" has_stopped detached
"$rubato" deploy ssh down "$work/detached" --remove || fail "down"
nothing_left detached
[[ -s "$work/detached/checkpoints/stopped/server-1.manifest" ]] || fail "what was stopped has not been brought"
"$rubato" deploy ssh status "$work/detached" >"$work/ended.out" || fail "status of a run that has ended"
says ended "was stopped on .*: stopped by the operator.*: has been seen"
says ended "begin another job with them: --set training.start_from=$work/detached/checkpoints/stopped"
finds "evaluator-0 was killed by signal 9; it is started again in 0 s" "$work/evaluator.log" ||
  fail "the evaluator was not started again: $(<"$work/evaluator.log")"
[[ -z "$(find "$work"/*host/jobs -maxdepth 1 -name "$mark-detached-*")" ]] || fail "folders are left"

say "an interrupted launcher"
up_command interrupted --set training.epochs=100000
"${command[@]}" >"$work/interrupted.out" 2>&1 &
launcher=$!
wait_for 60 "steps" is_at_step interrupted 10
kill -TERM "$launcher"
status=0
wait "$launcher" || status=$?
((status == 1)) || fail "exit status $status instead of 1"
says interrupted "stopped by a signal"
says interrupted "begin another job with them: --set training.start_from=$work/interrupted/checkpoints/stopped"
nothing_left interrupted

say "a launcher that is killed, with everything else, and a job that goes on with what is on its hosts"
up_command killed --set training.epochs=40 --set checkpoint.every_steps=200
"${command[@]}" >"$work/killed.out" 2>&1 &
launcher=$!
wait_for 60 "steps" is_at_step killed 1000
"$rubato" deploy ssh checkpoint "$work/killed" >"$work/checkpoint.out" || fail "checkpoint: $(<"$work/checkpoint.out")"
says checkpoint "^checkpoint step[0-9]* is complete"
kill -9 "$launcher"
wait "$launcher" && fail "a launcher that was killed has ended well"
# shellcheck disable=SC2046  # One argument per process.
kill -9 $(job_processes) 2>/dev/null || true
up 0 killed --set training.epochs=40 --set checkpoint.every_steps=200 --resume
says killed "^the job went back to step [0-9]* of checkpoint step"
"$rubato" audit "$work/killed" >/dev/null || fail "the audit of the job that went on"
nothing_left killed

say "modes that are compared on the hosts, and a comparison that is interrupted and goes on"
compare_command=("$rubato" compare configs/teacher_mlp.textproto --hosts="$work/hosts.textproto" --package "$package"
  --identity "$identity" --ssh_option StrictHostKeyChecking=no --ssh_option UserKnownHostsFile=/dev/null
  --modes="sync,async" --set "name=$mark-compared" --run_directory="$work/compared" --set training.epochs=12)
is_async_there() { compgen -G "$work/compared/async-seed1/deployment.textproto" >/dev/null && is_at_step compared 10; }
"${compare_command[@]}" >"$work/compared.out" 2>&1 &
launcher=$!
wait_for 90 "the second run" is_async_there
kill -TERM "$launcher"
status=0
wait "$launcher" || status=$?
((status == 1)) || fail "compare: exit status $status instead of 1: $(<"$work/compared.out")"
nothing_left compared
"${compare_command[@]}" --resume >"$work/compared.out" 2>&1 || fail "compare --resume: $(<"$work/compared.out")"
if finds "^sync seed 1 .*Starting job" "$work/compared.out"; then fail "a run that was done was made again"; fi
says compared "^async seed 1 .*Ending what is left of the job"
for run in sync-seed1 async-seed1; do
  "$rubato" audit "$work/compared/$run" >/dev/null || fail "the audit of $run"
done
[[ -s "$work/compared/report.html" ]] || fail "there is no report"
[[ -z "$(find "$work"/*host/jobs -maxdepth 1 -name "$mark-compared-*")" ]] || fail "folders of runs that were brought are left"
nothing_left compared
status=0
"${compare_command[@]}" --overwrite --slow=worker:1:x2 >"$work/slow.out" 2>&1 || status=$?
((status == 2)) || fail "compare --hosts --slow: exit status $status instead of 2"
says slow "--slow excludes --hosts"

status=0
"$rubato" compare configs/teacher_mlp.textproto --identity "$identity" >"$work/no_hosts.out" 2>&1 || status=$?
((status == 2)) || fail "compare --identity without --hosts: exit status $status instead of 2"
says no_hosts "--identity requires --hosts"

say "hosts that cannot be used"
write_hosts "coordinator_port: $port" "hosts { host: \"127.0.0.3\" port: $port user: \"$user\" workers: 1 }"
up 1 unusable --set cluster.workers=3
says unusable "127.0.0.1: port $port is taken"
says unusable "127.0.0.3: .*Connection refused"
write_hosts
identity="$work/other_key"
up 1 wrong_key
says wrong_key "Permission denied"
nothing_left wrong_key
say passed
