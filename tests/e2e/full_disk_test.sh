#!/usr/bin/env bash
# The disk of a job's checkpoints is full, then read-only: the job trains on and says so, and the first checkpoint after
# that is whole. Real file system, on a loop device; needs root.

# With a namespace of its own for what it mounts: the disk goes with the test's last process, also if that is killed.
if [[ -z "${RUBATO_OWN_MOUNTS:-}" ]] && unshare --mount true 2>/dev/null; then
  RUBATO_OWN_MOUNTS=1 exec unshare --mount "$0" "$@"
fi

# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

disk="$work/disk"
run="$work/run"
mkdir "$disk"
unmount() {
  cleanup
  umount --lazy "$disk" 2>/dev/null || true
}
truncate -s 16M "$work/image"
mkfs.ext4 -q "$work/image" 2>"$work/mkfs.err" || skip "no ext4 here: $(<"$work/mkfs.err")"
mount -o loop "$work/image" "$disk" 2>"$work/mount.err" || skip "no loop device for us: $(<"$work/mount.err")"
trap unmount EXIT

checkpoints() { grep -c '"checkpoint":{' "$run/metrics.jsonl" || true; }
has_checkpoints() { (($(checkpoints) >= $1)); }
status_says() { "$rubato" status "$run" | finds -E -- "$1"; }
is_read_only() { mount -o remount,ro "$disk"; }

# trains_on WHY: for 2,000 steps, without another checkpoint; `rubato status` names the reason.
trains_on() {
  wait_for 30 "the job says: $1" status_says "$1"
  local before step
  before="$(checkpoints)"
  step="$(last_value "$run" step)"
  wait_for 60 "the job trains on" has_step "$run" $((step + 2000))
  (($(checkpoints) == before)) || fail "a checkpoint was complete on a disk of which is said: $1"
  say "  $1: trained on to step $(last_value "$run" step)"
}
# can_be_read NAME: a checkpoint.
can_be_read() {
  "$rubato" checkpoint "$run" --name="$1" >"$work/checkpoint.txt" 2>&1 || fail "$1 is not whole: $(<"$work/checkpoint.txt")"
  finds 'all checksums are right' <"$work/checkpoint.txt" || fail "$1 is not whole: $(<"$work/checkpoint.txt")"
  say "  $1 is whole"
}
# is_whole_again: two more checkpoints, the first of which may have been begun before, and the last can be read.
is_whole_again() {
  wait_for 60 "a checkpoint is complete" has_checkpoints $(($(checkpoints) + 2))
  local newest
  newest="$(grep -o '"name":"step[0-9]*"' "$run/metrics.jsonl" | tail -n 1 | cut -d'"' -f4)"
  can_be_read "$newest"
}

train "$run" --set "training.epochs=" --set "training.max_steps=25000" --set "checkpoint.every_steps=500" \
  --set "checkpoint.directory=$disk/checkpoints" --set "checkpoint.keep=50" &
job=$!
wait_for 60 "two checkpoints" has_checkpoints 2

say "the disk is full"
dd if=/dev/zero of="$disk/fill" bs=64K 2>/dev/null && fail "the disk did not become full"
trains_on 'No space left on device'
rm "$disk/fill"
is_whole_again

say "the disk is read-only"
wait_for 30 "nobody writes to the disk" is_read_only
trains_on 'Read-only file system'
mount -o remount,rw "$disk"
is_whole_again

wait "$job" || fail "the job failed: $(tail -n 30 "$run.out")"
has_line "$run" '"end":{' '"ok":true' || fail "the record has no good end"
can_be_read final
