# shellcheck shell=bash disable=SC2034
# Sourced by the end-to-end tests: finds the real programs and the configs, fails with a reason, leaves no process.
set -euo pipefail

# shellcheck source=tests/skip.sh
source tests/skip.sh

root="$PWD"
# How many times longer everything may take than usual. A machine whose host is busy wakes processors up in milliseconds,
# and a job of short steps takes four times as long; under a sanitizer programs are slower still.
timeout_factor="${RUBATO_TEST_TIMEOUT_FACTOR:-2}"
rubato="$root/cli/command/rubato"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/e2e.XXXXXX")"

cleanup() {
  local children
  children="$(jobs -p)"
  # shellcheck disable=SC2086  # One argument per process.
  if [[ -n "$children" ]]; then kill -9 $children 2>/dev/null || true; fi
}
trap cleanup EXIT

say() { printf '[%s] %s\n' "$(date +%T)" "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# finds ARGUMENTS...: grep -q for the end of a pipe. It reads everything, so that nobody before it is interrupted.
finds() { (($(grep -ac "$@") > 0)); }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local seconds=$(($1 * timeout_factor)) what="$2"
  shift 2
  local deadline=$((SECONDS + seconds))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "$what: not within $seconds s"
    sleep 0.1
  done
}

# train DIRECTORY ARGUMENTS...: a run of the small teacher job, whose output is in DIRECTORY.out.
train() {
  local directory="$1"
  shift
  timeout $((120 * timeout_factor)) "$rubato" train "$root/configs/teacher_mlp.textproto" --binaries "$root" \
    --run_directory="$directory" "$@" >"$directory.out" 2>&1
}

# The last number that the run record has for a key.
last_value() {
  grep -o "\"$2\":[-0-9.e]*" "$1/metrics.jsonl" | tail -n 1 | cut -d: -f2
}

# has_line DIRECTORY PART...: a line of the run record has all of these, whatever their order.
has_line() {
  local lines part
  lines="$(<"$1/metrics.jsonl")" || return 1
  shift
  for part in "$@"; do lines="$(grep -aF -- "$part" <<<"$lines")" || return 1; done
}

# has_step DIRECTORY STEP: the run record has got there.
has_step() {
  [[ -f "$1/metrics.jsonl" ]] && (($(last_value "$1" step) >= $2))
}

# trained_once RUN EXAMPLES: after audit_holds, which says that none was trained twice: so many were.
trained_once() {
  grep -q "^  $2 examples were trained" "$1.audit" || {
    cat "$1.audit" >&2
    fail "$1: not $2 examples were trained"
  }
}

audit_holds() {
  "$rubato" audit "$1" >"$1.audit" || {
    cat "$1.audit" >&2
    fail "the audit of $1 found a broken invariant"
  }
}
