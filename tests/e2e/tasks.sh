# Sourced after common.sh by the tests that start a job's tasks one by one, as the README shows.
# shellcheck shell=bash disable=SC2154  # root and work are common.sh's.

declare -A process=()

# start NAME PROGRAM ARGUMENTS...: in the background; its output is in $work/NAME.log, its id in process[NAME].
start() {
  local name="$1" program="$2"
  shift 2
  "$root/$program/$program" "$@" >>"$work/$name.log" 2>&1 &
  process[$name]=$!
}

runs() { kill -0 "${process[$1]}" 2>/dev/null; }
is_gone() { ! runs "$1"; }

# ends NAME STATUS SECONDS: the task exits with the status within the time.
ends() {
  local name="$1" expected="$2" status=0
  wait_for "$3" "$name ends" is_gone "$name"
  wait "${process[$name]}" || status=$?
  if ((status != expected)); then
    tail -n 20 "$work/$name.log" >&2
    fail "$name: exit status $status instead of $expected"
  fi
}

# stop NAME: kill -9, and its end is waited for.
stop() {
  kill -9 "${process[$1]}"
  wait "${process[$1]}" 2>/dev/null || true
}

# says NAME PATTERN: the task's log has it.
says() {
  if ! grep -q -- "$2" "$work/$1.log"; then
    tail -n 20 "$work/$1.log" >&2
    fail "the log of $1 does not say: $2"
  fi
}

# start_coordinator NAME ARGUMENTS...: on a free port; where it is reached is in $address.
start_coordinator() {
  local name="$1"
  shift
  rm -f "$work/address"
  start "$name" coordinator --listen=127.0.0.1:0 --port_file="$work/address" "$@"
  wait_for 20 "$name listens" test -s "$work/address"
  # shellcheck disable=SC2034  # For whoever sources this.
  address="$(<"$work/address")"
}
