# shellcheck shell=bash
# Sourced by tests that need what a machine may not have.

# skip REASON: ends the test as one that was skipped.
skip() {
  printf 'SKIPPED: %s\n' "$1"
  printf '<testsuites tests="1"><testsuite name="%s" tests="1" skipped="1"><testcase name="%s"><skipped message="%s"/>%s\n' \
    "$0" "$0" "$0&#x0A;$1" "</testcase></testsuite></testsuites>" >"${XML_OUTPUT_FILE:-/dev/null}"
  exit 0
}
