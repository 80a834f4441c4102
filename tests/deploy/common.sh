# shellcheck shell=bash
# Sourced by the deployment tests, which run from anywhere as root: they install what they need, start real daemons on
# this machine, and leave nothing behind. Each takes --binaries DIR; otherwise bazel-bin has the programs.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$root"

# shellcheck source=tests/skip.sh
source tests/skip.sh

say() { printf '[%s] %s\n' "$(date +%T)" "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# need_packages PACKAGE...: Debian packages, installed if they are missing, but not by `bazel test`.
need_packages() {
  local package missing=()
  for package in "$@"; do
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  if [[ -n "${TEST_TMPDIR:-}" ]]; then skip "not installed here: ${missing[*]}"; fi
  say "installing ${missing[*]}"
  local install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}")
  export DEBIAN_FRONTEND=noninteractive
  "${install[@]}" >/dev/null 2>&1 || { apt-get update >/dev/null && "${install[@]}" >/dev/null; } ||
    fail "apt-get could not install ${missing[*]}"
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local deadline=$((SECONDS + $1)) what="$2" seconds="$1"
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "$what: not within $seconds s"
    sleep 0.2
  done
}

# gather_programs DIR ARGUMENTS...: the four programs, from where the arguments say, into DIR.
gather_programs() {
  local to="$1" from=bazel-bin name path
  shift
  while (($# > 0)); do
    case "$1" in
      --binaries) from="${2:?--binaries needs a folder}" && shift ;;
      --binaries=*) from="${1#*=}" ;;
      *) fail "unknown argument $1; allowed: --binaries DIR" ;;
    esac
    shift
  done
  mkdir -p "$to"
  for name in coordinator server worker rubato; do
    for path in "$from/$name" "$from/$name/$name" "$from/cli/command/$name"; do
      if [[ -f "$path" ]]; then cp "$path" "$to/$name"; fi
    done
  done
  # Where they are built.
  for name in librubato_client.so rubato-sidecar linear_regression; do
    for path in "$from/$name" "$from/client/$name" "$from/client/sidecar/$name" "$from/client/examples/$name"; do
      if [[ -f "$path" ]]; then cp "$path" "$to/$name"; fi
    done
  done
  for name in coordinator server worker rubato; do
    [[ -x "$to/$name" ]] || fail "there is no program $name in $from: build it with ./rubato.sh build"
  done
}

# The last value that a run record has for a key.
last_value() { grep -o "\"$2\":[-0-9.e]*" "$1/metrics.jsonl" | tail -n 1 | cut -d: -f2; }

# at_least NUMBER NUMBER
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# speaks_tls ADDRESS FOLDER [NAME]: whether who listens there speaks TLS with somebody who has the certificate NAME of the
# folder, or none. The wait is for a refusal, which comes after the handshake.
speaks_tls() {
  local identity=()
  if [[ -n "${3:-}" ]]; then identity=(-cert "$2/$3.crt" -key "$2/$3.key"); fi
  sleep 2 | timeout 20 openssl s_client -connect "$1" -alpn h2 -CAfile "$2/ca.crt" -verify_return_error -brief \
    "${identity[@]}" >/dev/null 2>&1
}

# needs_a_certificate ADDRESS FOLDER: fails unless who listens there speaks TLS with those who have a certificate, as those
# in the folder, and with nobody else.
needs_a_certificate() {
  speaks_tls "$1" "$2" operator || fail "$1 does not speak TLS with an operator of $2"
  ! speaks_tls "$1" "$2" || fail "$1 speaks with somebody who has no certificate"
}
