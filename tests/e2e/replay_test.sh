#!/usr/bin/env bash
# An asynchronous run with a slow worker, a live switch and a killed worker is trained again from its update logs: the
# weights are the same bit by bit, whatever the number of servers, and so are the rows of a job with a table. A log that was
# changed is refused, or the weights differ, and both are said.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

directory="$work/run"
train "$directory" --set consistency.mode=ASYNC --set cluster.workers=4 --set cluster.servers=2 \
  --set cluster.update_log=true --set cluster.lease_seconds=3 --set training.epochs=12 --slow=worker:3:x4 &
job=$!
wait_for 60 "training begins" has_step "$directory" 50
"$rubato" switch "$directory" --to=ssp:3
wait_for 60 "plan 2 is SSP" has_line "$directory" '"plan":{' '"generation":2,' '"mode":"SSP"'
kill -9 "$(pgrep -f -- "^[^ ]*/worker --config $directory/job.textproto --task_index 1 .*--role worker( |$)")"
wait_for 60 "worker 1 is evicted" has_line "$directory" '"member":{' '"task":"worker 1"' '"event":"EVICTED"'
"$rubato" switch "$directory" --to=async
wait "$job" || {
  cat "$directory.out" >&2
  fail "the job failed"
}
audit_holds "$directory"

# export_of RUN
export_of() {
  "$rubato" export "$1" --output="$work/weights" >/dev/null
  sha256sum <"$work/weights"
}
original="$(export_of "$directory")"
for servers in 1 3; do
  "$rubato" replay "$directory" --servers="$servers" --output="$work/replay$servers" >"$work/replay.out" || {
    cat "$work/replay.out" >&2
    fail "the replay with $servers servers failed, or differs"
  }
  cat "$work/replay.out"
  grep -q "weights are the run's, bit by bit" "$work/replay.out" || fail "the replay does not say that the weights agree"
  [[ "$(export_of "$work/replay$servers")" == "$original" ]] || fail "the export of the replay differs"
done

# again NAME ARGUMENTS...: a run whose workers keep something from step to step, and its replay.
again() {
  local directory="$work/$1"
  train "$directory" --set training.epochs=2 --set cluster.update_log=true "${@:2}" || {
    cat "$directory.out" >&2
    fail "$1: the job failed"
  }
  "$rubato" replay "$directory" >"$work/replay.out" || {
    cat "$work/replay.out" >&2
    fail "$1: the replay failed, or differs"
  }
  say "$1: $(grep 'bit by bit' "$work/replay.out")"
}
again codecs --set consistency.mode=ASYNC --set compression.push.codec=TOP_K --set compression.push.fraction=0.05 \
  --set compression.pull.codec=BF16
# Epochs of half a second, so that each change is heard of at a heartbeat well before the job ends.
again codecs_on_and_off --set training.epochs=8 --set compression.push.codec=TOP_K --set compression.push.fraction=0.05 \
  --set compression.off_at_first=true --set 'consistency.schedule[0]={at_epoch: 1 mode: ASYNC compress: true}' \
  --set 'consistency.schedule[1]={at_epoch: 4 mode: SYNC compress: false}'
for generation in 1 3; do
  has_line "$work/codecs_on_and_off" '"plan":{' "\"generation\":$generation," '"uncompressed":true' ||
    fail "plan $generation is not one with gradients as they are"
done
again local_sgd --set consistency.mode=ASYNC --set consistency.sync_every=4
again static --set data.dispatch=STATIC
again quorum --set cluster.workers=3 --set consistency.quorum=2 --slow=worker:0:x3

say "rows of a table, some of which are removed"
table="$work/table"
timeout $((120 * timeout_factor)) "$rubato" train "$root/configs/clicks_dlrm.textproto" --binaries "$root" \
  --run_directory="$table" --set cluster.evaluators=0 --set data.clicks.train_examples=30000 \
  --set data.clicks.test_examples=100 --set consistency.mode=SYNC --set 'consistency.schedule[0]={at_epoch: 0.2 mode: ASYNC}' \
  --set 'model.tables[0].admit_after=2' --set 'model.tables[0].expire_after_steps=40' \
  --set 'model.tables[0].most_rows=2560' --set 'model.tables[0].precision=BF16' --set 'model.tables[0].push=BF16' \
  --set 'model.tables[0].pull=BF16' --set 'model.tables[0].shards=8' --slow=worker:1:x2 >"$table.out" 2>&1 || {
  cat "$table.out" >&2
  fail "the job with a table failed"
}
for servers in 1 2; do
  "$rubato" replay "$table" --servers="$servers" --output="$work/table$servers" >"$work/replay.out" || {
    cat "$work/replay.out" >&2
    fail "the replay of a table with $servers servers failed, or differs"
  }
  grep -Eq 'weights are the run.s, bit by bit, with those of [0-9]+ rows of tables' "$work/replay.out" ||
    fail "the replay does not say that the rows agree: $(<"$work/replay.out")"
  [[ "$(export_of "$work/table$servers")" == "$(export_of "$table")" ]] || fail "the export of the rows differs"
done
cat "$work/replay.out"
! "$rubato" replay "$table" --output="$work/no" --set 'model.tables[0].learning_rate=1' 2>"$work/error" ||
  fail "another learning rate of a table was taken"
python3 tests/e2e/alter_log.py "$table/updates-server0-partition0.log" --last_chunk
! "$rubato" replay "$table" --output="$work/table_altered" >"$work/altered.out" 2>&1 ||
  fail "a log with a changed reading of rows gives the same weights"
grep -Eq 'pushes another gradient to chunk|the record contradicts itself|was computed from version' "$work/altered.out" ||
  fail "the replay does not say what is wrong: $(<"$work/altered.out")"
cat "$work/altered.out"

say "one thing computed otherwise, in the same order"
"$rubato" replay "$directory" --output="$work/other" --set training.clip_norm=0.01
[[ "$(export_of "$work/other")" != "$original" ]] || fail "clipping changed nothing"
"$rubato" replay "$directory" --output="$work/half" --until-step=100
[[ "$(export_of "$work/half")" != "$original" ]] || fail "a hundred updates are all of them"
! "$rubato" replay "$directory" --output="$work/no" --set training.batch_size=7 2>"$work/error" ||
  fail "another batch size was taken"
grep -q 'training.batch_size' "$work/error" || fail "the error does not name the field: $(<"$work/error")"

say "a log with one byte changed"
log="$directory/updates-server1-partition0.log"
middle=$(($(stat -c %s "$log") / 2))
cp "$log" "$work/log"
byte="$(od -An -tu1 -j "$middle" -N 1 "$log" | tr -d ' ')"
# shellcheck disable=SC2059  # The byte, as an escape.
printf "$(printf '\\x%02x' $((byte ^ 1)))" | dd of="$log" bs=1 seek="$middle" conv=notrunc 2>/dev/null
! "$rubato" replay "$directory" --output="$work/changed" 2>"$work/error" || fail "a changed log was replayed"
grep -Eq 'updates-server1-partition0.log: record at byte [0-9]+' "$work/error" ||
  fail "the error does not say where: $(<"$work/error")"

say "a log with one record changed, and a good CRC"
cp "$work/log" "$log"
python3 tests/e2e/alter_log.py "$log"
! "$rubato" replay "$directory" --output="$work/altered" >"$work/altered.out" 2>&1 ||
  fail "a log with a changed record gives the same weights"
grep -Eq 'step [0-9]+ of worker [0-9]+ pushes another gradient to chunk [0-9]+' "$work/altered.out" ||
  fail "the replay does not say where: $(<"$work/altered.out")"
cat "$work/altered.out"
say passed
