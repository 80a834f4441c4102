#!/usr/bin/env bash
# What users read of a job that has ended: a server that cannot be kept is named, a job that was stopped says by whom and
# how to go on, and commands that name a run which has ended say so instead of a connection error.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

# says FILE PATTERN: a line of it is like that.
says() { grep -Eq -- "$2" "$work/$1" || fail "$1 does not say: $2, but: $(<"$work/$1")"; }
never_says() { ! grep -Eq -- "$2" "$work/$1" || fail "$1 says $2: $(<"$work/$1")"; }
# answers STATUS FILE ARGUMENTS...: a command that ends with this exit status; what it says is in the file.
answers() {
  local expected="$1" file="$2" status=0
  shift 2
  timeout $((30 * timeout_factor)) "$rubato" "$@" >"$work/$file" 2>&1 || status=$?
  ((status == expected)) || fail "$*: exit status $status instead of $expected: $(<"$work/$file")"
  never_says "$file" 'connect|UNAVAILABLE|addresses'
}
# start NAME STEP ARGUMENTS...: a job in the background, until it has got to the step.
start() {
  local name="$1" step="$2"
  shift 2
  train "$work/$name" "$@" &
  job=$!
  wait_for 60 "$name: step $step" has_step "$work/$name" "$step"
}
ends() {
  local status=0
  wait "$job" || status=$?
  ((status == $2)) || fail "$1: exit status $status instead of $2: $(<"$work/$1.out")"
}
# Commands that need a job which runs.
cannot_be_changed() {
  local name="$1" pattern="$2"
  answers 1 switch.txt switch "$work/$name" --to=async
  says switch.txt "^rubato switch: $pattern"
  answers 1 stop.txt stop "$work/$name"
  says stop.txt "^rubato stop: $pattern"
}
when='on [0-9]{4}-[0-9]{2}-[0-9]{2} at [0-9:]{8}, [0-9].* after training began'

say "a server that is killed again and again is named, with how it ended"
start killed 20 --set training.epochs=1000 --set cluster.lease_seconds=3
ends_by_itself() { ! kill -0 "$job" 2>/dev/null; }
kill_server() {
  local process
  process="$(pgrep -f -- "^[^ ]*/server --config $work/killed/job.textproto --task_index 1 ")" || return 1
  kill -9 "$process"
}
deadline=$((SECONDS + 60 * timeout_factor))
until ends_by_itself; do
  ((SECONDS < deadline)) || fail "the job goes on: $(<"$work/killed.out")"
  kill_server || sleep 0.1
done
ends killed 1
says killed.out '^server 1 was killed by signal 9; it is started again in 4s$'
says killed.out '^rubato train: server 1 was lost more than 5 times within 1m$'
says killed.out '^server 1 ended with signal 9 \(Killed\); the end of .*/logs/server-1.log:$'
(($(grep -c 'coordinator ended with' "$work/killed.out") == 0)) || fail "the coordinator's exit status is no news"
never_says killed.out '^worker [01] ended with'

say "status, switch and stop of a run that has ended"
answers 0 status.txt status "$work/killed"
says status.txt "^The run in $work/killed (failed|was stopped) $when: .*server 1 was lost more than 5 times"
cannot_be_changed killed "The run in $work/killed (failed|was stopped) $when"

say "a job that its operator stops"
start stopped 20 --set training.epochs=1000
"$rubato" stop "$work/stopped" --reason="lunch"
ends stopped 1
weights="$work/stopped/checkpoints/stopped"
says stopped.out '^rubato train: stopped by the operator.*: lunch$'
way_on="go on with rubato train CONFIG --resume, or begin another job with them: --set training.start_from="
says stopped.out "^Its weights are in $weights; $way_on$weights\$"
never_says stopped.out '^(worker|server|evaluator) [01] ended with'
[[ "$(tail -n 1 "$work/stopped.out")" == "Its weights are in "* ]] || fail "it ends with: $(tail -n 1 "$work/stopped.out")"
answers 0 status.txt status "$work/stopped"
says status.txt "^The run in $work/stopped was stopped $when: stopped by the operator.*: lunch\$"
cannot_be_changed stopped "The run in $work/stopped was stopped $when"

say "an interrupted job, that goes on from there"
start interrupted 20 --set training.epochs=1000 --set "training.start_from=$weights"
# The launcher itself, of which $job is the shell.
kill -INT "$(pgrep -f -- "^[^ ]*/rubato train .*--run_directory=$work/interrupted ")"
ends interrupted 1
says interrupted.out '^rubato train: stopped by a signal$'
says interrupted.out "^Its weights are in .*/interrupted/checkpoints/stopped; $way_on"

say "a run that is done"
train "$work/done" --set training.epochs=1 || fail "done: $(<"$work/done.out")"
answers 0 status.txt status "$work/done"
says status.txt "^The run in $work/done is done: it ended $when\$"
says status.txt "^Its weights are in $work/done/checkpoints/final\$"
answers 0 watch.txt status "$work/done" --watch
cannot_be_changed "done" "The run in $work/done is done"

say "an address where nothing answers"
for command in "status" "switch --to=async" "stop"; do
  # shellcheck disable=SC2086  # Words of a command line.
  answers 1 nobody.txt ${command} 127.0.0.1:1
  says nobody.txt "^rubato ${command%% *}: nothing answers at 127.0.0.1:1. Check that"
done
say passed
