#!/usr/bin/env bash
# What `rubato compare` says of made-up runs, computed anew with SciPy and NumPy.
set -euo pipefail

# shellcheck source=tests/skip.sh
source tests/skip.sh

# Debian's own: its packages are for that one, and another may come first in PATH.
python=/usr/bin/python3
"$python" -c 'import numpy, scipy.stats' 2>/dev/null || skip "SciPy is not installed: apt-get install python3-scipy"

folder="$(mktemp -d "${TEST_TMPDIR:-/tmp}/statistics.XXXXXX")"
tests/statistics/write_comparisons "$folder"
"$python" -B tests/statistics/check_statistics.py "$folder"/*
