#!/usr/bin/env bash
# Runs the Python package's tests: run_tests.sh [PYTEST ARGUMENTS]. Skipped with a reason where Debian's python3-torch is not
# installed. If RUBATO_LIBRARY, RUBATO_SIDECAR and RUBATO_PROGRAM name what was built, against real servers, but for those
# tests that look into fake ones; otherwise all against the fake ones. Each run of pytest ends with its counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Debian's own: its packages are for that one, and another may come first in PATH.
python=/usr/bin/python3
for module in torch numpy pytest; do
  if ! "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)" 2>/dev/null; then
    printf 'Python tests are skipped: %s has no %s (apt-get install python3-torch python3-numpy python3-pytest)\n' \
      "$python" "$module"
    exit 0
  fi
done
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo PYTHONDONTWRITEBYTECODE=1
status=0
if command -v mypy >/dev/null; then
  mypy --python-executable "$python" --cache-dir="${TMPDIR:-/tmp}/rubato-mypy-$(id -u)" -p rubato || status=1
fi
if [[ -n "${RUBATO_LIBRARY:-}" ]]; then
  # Jobs leave their runs where they are started. Tests wait more than they compute, so several runs share them.
  work="$(mktemp -d)"
  # shellcheck disable=SC2046  # One argument per process.
  trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
  tests="$PWD/tests" configuration="$PWD/pyproject.toml" shares=3 runs=()
  for share in $(seq "$shares"); do
    mkdir "$work/$share"
    (cd "$work/$share" && RUBATO_TEST_REAL=1 exec "$python" -m pytest -c "$configuration" --rootdir="$tests" -rs \
      -m "not fake" --share="$share/$shares" "$@" "$tests") >"$work/$share.log" 2>&1 &
    runs+=("$!")
  done
  for share in $(seq "$shares"); do
    # 5: nothing of what was asked for is in this share.
    result=0
    wait "${runs[share - 1]}" || result=$?
    cat "$work/$share.log"
    ((result == 0 || result == 5)) || status=1
  done
  env -u RUBATO_LIBRARY -u RUBATO_SIDECAR -u RUBATO_PROGRAM "$python" -m pytest -rs -m fake "$@" || status=1
else
  "$python" -m pytest -rs "$@" || status=1
fi
exit "$status"
