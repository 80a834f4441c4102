#!/usr/bin/env bash
# Runs the Python package's tests: run_tests.sh [PYTEST ARGUMENTS]. Ends with pytest's counts, and is skipped with a reason
# where Debian's python3-torch is not installed. With RUBATO_TEST_REAL=1 against real servers: RUBATO_LIBRARY, RUBATO_SIDECAR
# and RUBATO_PROGRAM name what was built.
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
if command -v mypy >/dev/null; then
  mypy --python-executable "$python" --cache-dir="${TMPDIR:-/tmp}/rubato-mypy-$(id -u)" -p rubato
fi
exec "$python" -m pytest -rs "$@"
