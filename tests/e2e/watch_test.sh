#!/usr/bin/env bash
# A worker is stopped (kill -STOP) while its job is watched: within its lease the doctor and the watch name it, and the
# watch whom the others wait for; then it is evicted, the job goes on, and the watch ends with it. The checkpoints that are left are whole.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

directory="$work/run"
train "$directory" --set cluster.workers=3 --set consistency.mode=SYNC --set cluster.lease_seconds=6 \
  --set training.epochs=30 &
job=$!
wait_for 60 "training begins" has_step "$directory" 20
"$rubato" status "$directory" --watch --interval=0.2 >"$work/watch.txt" 2>&1 &
watch=$!
wait_for 10 "the watch shows steps" grep -q "ex/s" "$work/watch.txt"
stopped="$(pgrep -f -- "--config $directory/job.textproto .*--task_index 1 .*--role worker" | head -n 1)"
kill -STOP "$stopped"
doctor_names_it() {
  "$rubato" doctor --job="$directory" >"$work/doctor.txt" && return 1
  grep -q "^PROBLEM  *worker 1  *is silent for" "$work/doctor.txt"
}
wait_for 6 "the doctor names the silent worker" doctor_names_it
grep -A1 "worker 1" "$work/doctor.txt" | finds "process $stopped of" || fail "its process is not named"
wait_for 6 "the silent worker is named" grep -q "worker 1 is silent for" "$work/watch.txt"
grep -q '"event":"EVICTED"' "$directory/metrics.jsonl" && fail "it was named only after its lease"
wait_for 10 "the waits are named" grep -Eq "worker [02] waits for .*worker 1.*, for [0-9.]+ s" "$work/watch.txt"
wait_for 20 "worker 1 is evicted" has_line "$directory" '"member":{' '"task":"worker 1"' '"event":"EVICTED"'
"$rubato" status "$directory" | finds '^worker 1  *evicted' || fail "status does not show the eviction"
kill -9 "$stopped"
wait "$job" || {
  cat "$directory.out" >&2
  fail "the job failed"
}
wait "$watch" || {
  tail -n 5 "$work/watch.txt" >&2
  fail "the watch of a job that is done failed"
}
grep -m 4 -E "silent|waits for" "$work/watch.txt"

"$rubato" checkpoint "$directory" >"$work/checkpoint.txt"
cat "$work/checkpoint.txt"
for name in step0 final; do
  grep -q "^Checkpoint $name of job" "$work/checkpoint.txt" || fail "checkpoint $name is not shown"
done
printf 'xxxxxxxx' | dd of="$directory/checkpoints/final/server-0.data" bs=1 seek=5 conv=notrunc status=none
if "$rubato" checkpoint "$directory" --name=final >"$work/damaged.txt" 2>&1; then fail "damage was not found"; fi
grep -q "server-0.data: its CRC is" "$work/damaged.txt" || fail "the damaged file is not named"
say passed
