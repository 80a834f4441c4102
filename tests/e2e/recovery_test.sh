#!/usr/bin/env bash
# kill -9 of a server, then of the coordinator, then of everything: the job goes back to a checkpoint, resumes with
# another number of servers, and ends with its accuracy and with the same bits of the weights as a job that nothing
# happened to. A job that was stopped goes on too.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

steps=10000
options=(--set "data.dispatch=STATIC" --set "consistency.mode=SYNC" --set "training.epochs=" --set "cluster.update_log=true"
  --set "training.max_steps=$steps" --set "checkpoint.every_steps=500" --set "cluster.lease_seconds=3"
  --set "cluster.server_grace_seconds=5")

# The processes of the job in a directory: tasks DIRECTORY; task DIRECTORY PROGRAM WORDS-OF-ITS-COMMAND-LINE.
tasks() { pgrep -f -- "^[^ ]*/(coordinator|server|worker) --config $1/job.textproto " || true; }
task() {
  pgrep -f -- "^[^ ]*/$2 --config $1/job.textproto .*$3" || fail "there is no $2 $3 of $1"
}
launcher() { pgrep -f -- "^[^ ]*/rubato train .*--run_directory=$1 "; }
nothing_runs() { [[ -z "$(tasks "$1")" ]] && ! launcher "$1"; }

# Of an output of the launcher, or of a command.
says() { grep -Eq -- "$2" "$work/$1" || fail "$1 does not say: $2, but: $(tail -n 30 "$work/$1")"; }
rollbacks() { grep -c '"rollback":{' "$1/metrics.jsonl" || true; }
has_rolled_back() { (($(rollbacks "$1") >= $2)); }
# has_trained_since DIRECTORY STEP: has got there since the last rollback.
has_trained_since() {
  (($(sed -n '/"rollback":{/h;//!H;$!d;x;p' "$1/metrics.jsonl" | grep -o '"progress":{.*' | grep -o '"step":[0-9]*' |
    tail -n 1 | cut -d: -f2) >= $2))
}
is_well() {
  local accuracy
  has_line "$1" '"end":{' '"ok":true' || fail "$1: the record has no good end"
  accuracy="$(grep '"final":true' "$1/metrics.jsonl" | tail -n 1 | grep -o '"accuracy":[0-9.]*' | cut -d: -f2)"
  awk -v got="$accuracy" 'BEGIN { exit !(got >= 0.9) }' || fail "$1: final accuracy $accuracy is under 0.9"
  audit_holds "$1"
  say "  accuracy $accuracy, rollbacks: $(rollbacks "$1")"
}
# finishes RUN: the launcher in the background, $job, ends well.
finishes() {
  wait "$job" || fail "$1 failed: $(tail -n 30 "$work/$1.out")"
}

run="$work/run"
say "kill -9 of server 0"
train "$run" "${options[@]}" &
job=$!
wait_for 60 "training begins" has_step "$run" 1000
"$rubato" checkpoint "$run" --now >"$work/now.txt" || fail "checkpoint --now: $(<"$work/now.txt")"
says now.txt '^checkpoint step[0-9]+ is complete: all steps before [0-9]+, written in [0-9.]+ s$'
kill -9 "$(task "$run" server '--task_index 0 ')"
wait_for 30 "the job goes back" has_rolled_back "$run" 1
says run.out '^server 0 was killed by signal 9; it is started again$'
wait_for 30 "the job trains again" has_trained_since "$run" 2500
says run.out '^the job went back to step [0-9]+ of checkpoint step[0-9]+ \(term [0-9]+\)'
"$rubato" status "$run" >"$work/status.txt" || fail "status: $(<"$work/status.txt")"
says status.txt '^Term [0-9]+; checkpoint step[0-9]+, all steps before [0-9]+, complete for .*; rollbacks: 1, the last because of: '

say "kill -9 of the coordinator"
kill -9 "$(task "$run" coordinator '')"
wait_for 20 "it is started again" grep -q '^the coordinator was killed by signal 9; it is started again$' "$run.out"
wait_for 30 "the job trains on" has_trained_since "$run" 4500

say "kill -9 of everything, and on with three servers"
kill -9 "$(launcher "$run")"
# shellcheck disable=SC2046  # One argument per process.
kill -9 $(tasks "$run") 2>/dev/null || true
wait "$job" && fail "a launcher that was killed has ended well"
wait_for 20 "nothing is left" nothing_runs "$run"
! has_line "$run" '"end":{' || fail "the job has ended before it was killed"
status=0
train "$run" "${options[@]}" || status=$?
((status == 1)) || fail "a run directory that is not empty: exit status $status instead of 1"
says run.out 'is not empty; .*--resume'
train "$run" "${options[@]}" --set cluster.servers=3 --resume &
job=$!
finishes run
is_well "$run"
[[ -s "$run/checkpoints/final/server-2.manifest" ]] || fail "server 2 has no part of the weights"
train "$run" "${options[@]}" --resume && fail "a job that is done was resumed"
says run.out 'there is nothing left to do. The run in .* is done'

say "the same job without an interruption"
train "$work/whole" "${options[@]}" || fail "whole: $(tail -n 30 "$work/whole.out")"
for name in run whole; do "$rubato" export "$work/$name" --output="$work/$name.safetensors" >/dev/null; done
cmp "$work/run.safetensors" "$work/whole.safetensors" || fail "the weights are others"

say "kill -9 of a server when all is trained"
# The evaluator stands still so that the job does not end before.
late="$work/late"
train "$late" "${options[@]}" --set training.max_steps=1500 --set cluster.lease_seconds=20 &
job=$!
wait_for 60 "training begins" has_step "$late" 200
evaluator="$(task "$late" worker '--role evaluator')"
kill -STOP "$evaluator"
wait_for 60 "all is trained" grep -q 'the data is used up' "$late/logs/coordinator.log"
kill -9 "$(task "$late" server '--task_index 1 ')"
wait_for 30 "the job goes back" has_rolled_back "$late" 1
kill -CONT "$evaluator"
finishes late
grep -q 'has done its part, and waits for the end of the job' "$late/logs/worker-0.log" || fail "worker 0 has not waited"
is_well "$late"

say "a job that is stopped, and goes on"
other=(--set consistency.mode=SSP --set consistency.staleness_bound=2 --set training.epochs=12)
train "$work/stopped" "${other[@]}" &
job=$!
wait_for 60 "training begins" has_step "$work/stopped" 200
"$rubato" stop "$work/stopped" >"$work/stop.txt" || fail "stop: $(<"$work/stop.txt")"
says stop.txt 'rubato train CONFIG --resume \(or rubato run --resume\) goes on with it'
wait "$job" && fail "a job that was stopped has ended well"
says stopped.out 'go on with rubato train CONFIG --resume'

say "and is stopped again, before it has another checkpoint"
stopped_at="$(last_value "$work/stopped" step)"
train "$work/stopped" "${other[@]}" --resume &
job=$!
# The record of its first life may show a step past this one; what counts is trained after it went back.
wait_for 60 "it goes back" has_rolled_back "$work/stopped" 1
wait_for 60 "it goes on" has_trained_since "$work/stopped" $((stopped_at + 100))
"$rubato" stop "$work/stopped" >"$work/stop.txt" || fail "stop: $(<"$work/stop.txt")"
wait "$job" && fail "a job that was stopped again has ended well"
says stopped.out 'Its weights are in .*/checkpoints/step[0-9]+; go on with rubato train CONFIG --resume'
[[ -s "$work/stopped/checkpoints/stopped/cut" ]] || fail "the checkpoint that it went on from is gone"
train "$work/stopped" "${other[@]}" --set optimizer.learning_rate=0.01 --resume && fail "another job went on"
says stopped.out 'this is not the config of the run in .*optimizer.learning_rate: .* -> 0.01'
train "$work/stopped" "${other[@]}" --resume || fail "stopped: $(tail -n 30 "$work/stopped.out")"
is_well "$work/stopped"
examples="$(last_value "$work/stopped" examples)"
((examples == 12 * 40000)) || fail "$examples examples were trained instead of 12 epochs of 40000"
train "$work/nothing" --resume && fail "nothing was resumed"
says nothing.out "$work/nothing holds no journal"
say passed
