#!/usr/bin/env bash
# rubato.sh, whose output is no terminal, says at least once a minute what is done of what, and says it at once: a program
# in the place of a real one goes on when its line has arrived, and fails if that takes too long.
set -euo pipefail

rubato="$PWD/$1"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/progress.XXXXXX")"
export work said="$work/said"
export PATH="$work/tools:$PATH"
mkdir -p "$work/tools" "$work/checkout/python" "$work/installed"
cp "$rubato" "$work/checkout/rubato.sh"

fail() {
  printf 'FAILED: %s; rubato.sh said:\n' "$*" >&2
  cat "$said" >&2
  exit 1
}
# says COUNT LINE: the whole line has been said so many times.
says() {
  local count
  count="$(grep -cxF -e "$2" "$said" || true)"
  ((count == $1)) || fail "it says \"$2\" $count times instead of $1"
}
# ends_with LINE
ends_with() { [[ "$(tail -n 1 "$said")" == "$1" ]] || fail "its last line is not \"$1\""; }

# program NAME: a program, from standard input. It may call `await LINE`: until rubato.sh has said that.
program() {
  {
    cat <<'PROGRAM'
#!/usr/bin/env bash
# `await LINE COUNT`: until it has said that so often.
await() {
  local deadline=$((SECONDS + 30))
  until (($(grep -cF -e "$1" "$said") >= ${2:-1})); do
    ((SECONDS < deadline)) || { touch "$work/late"; exit 70; }
    sleep 0.02
  done
}
PROGRAM
    cat
  } >"$work/tools/$1"
  chmod +x "$work/tools/$1"
}

program sudo <<<'exec "$@"'
program npm <<<'exit 1'
program promtool </dev/null
program dpkg-query <<<'echo installed'
# Like Bazel's: a line with what is done of what, at most every so many seconds; while it builds, ever more rarely unless it
# is told that there is a terminal, for which each line starts by returning to the first column.
program bazel <<'PROGRAM'
[[ "$1" != info ]] || { echo "$work/testlogs" && exit; }
for argument in "$@"; do
  case "$argument" in
    --show_progress) shown=yes ;;
    --curses=yes) start=$'\r' ;;
    --color=no) plain=yes ;;
    --show_progress_rate_limit=*) seconds="${argument#*=}" ;;
  esac
done
[[ "${shown:-}" == yes ]] && ((${seconds:-0} >= 1 && seconds <= 60)) || exit 71
[[ "$1" != build || (-n "${start:-}" && -n "${plain:-}") ]] || exit 72
call="$(($(cat "$work/calls" 2>/dev/null || echo 0) + 1))"
echo "$call" >"$work/calls"
for at in 1 2 3; do
  printf '%s[%s / 3] %s %s\n' "${start:-}" "$at" "$1" "$call" >&2
  await "[$at / 3] $1 $call"
done
# A test that takes long.
[[ "$1" != test || -z "${slow:-}" ]] || await "Testing, for "
[[ "$1" != test ]] || echo "//some:test    PASSED in 0.1s"
PROGRAM

# In the place of the Python tests: two runs of pytest, the first of which takes long.
program run_tests.sh <<'PROGRAM'
[[ -z "${slow:-}" ]] || await "Testing, for " $(($(grep -cF "Testing, for " "$said") + 1))
echo "== 3 passed, 1 skipped in 0.50s =="
echo "== 2 passed in 0.10s =="
PROGRAM
mv "$work/tools/run_tests.sh" "$work/checkout/python/"

# run ARGUMENTS...: ./rubato.sh, which is to succeed.
run() {
  rm -f "$work/calls"
  : >"$said"
  local status=0
  "$work/checkout/rubato.sh" "$@" >>"$said" 2>&1 || status=$?
  [[ ! -e "$work/late" ]] || fail "$*: a line did not arrive while a program ran"
  ((status == 0)) || fail "$*: exit status $status"
}

run build
for at in 1 2 3; do says 1 "[$at / 3] build 1"; done

run test
for at in 1 2 3; do
  says 1 "[$at / 3] build 1"
  says 1 "[$at / 3] build 2"
  says 1 "[$at / 3] test 3"
done
ends_with "7 passed, 0 failed"

# The same with lines sooner and a slow test.
test_slowly() (
  rm -f "$work/calls"
  : >"$said"
  # shellcheck source=rubato.sh
  source "$work/checkout/rubato.sh"
  seconds_between_lines=0.05
  slow=yes run_tests >>"$said" 2>&1
)
test_slowly || fail "test, slowly: exit status $?"
[[ ! -e "$work/late" ]] || fail "test: nothing is said while a test takes long"
ends_with "7 passed, 0 failed"

mkdir -p "$work/checkout/bazel-bin/cli/command"
# shellcheck disable=SC2016  # For the program.
program rubato <<<'echo "rubato $1 $2"'
ln -s "$work/tools/rubato" "$work/checkout/bazel-bin/cli/command/rubato"
run demo
for at in 1 2 3; do says 1 "[$at / 3] build 1"; done
ends_with "rubato compare configs/teacher_mlp.textproto"

# What says nothing itself: packages that are installed.
# shellcheck disable=SC2016  # For the program.
program dpkg-query <<<'[[ -e "$work/installed/${!#}" ]] && echo installed'
program apt-get <<'PROGRAM'
[[ ! -e "$work/no-network" ]] || exit 100
await "Installed 0 of 3 packages, for "
touch "$work/installed/first"
await "Installed 1 of 3 packages, for "
touch "$work/installed/second"
await "Installed 2 of 3 packages, for "
touch "$work/installed/third"
PROGRAM
# set_up: the same function, with its lines sooner and other packages.
set_up() (
  : >"$said"
  # shellcheck source=rubato.sh
  source "$rubato"
  ((seconds_between_lines <= 60)) || fail "its lines are $seconds_between_lines s apart"
  seconds_between_lines=0.05
  packages=(first second third)
  setup >>"$said" 2>&1
)
status=0
set_up || status=$?
[[ ! -e "$work/late" ]] || fail "setup: a line did not arrive while packages were installed"
((status == 0)) || fail "setup: exit status $status"
says 1 "Installing: first second third"

rm "$work/installed/second"
touch "$work/no-network"
if set_up; then fail "setup succeeds although a package cannot be installed"; fi
ends_with "rubato.sh: apt-get could not install: second"
