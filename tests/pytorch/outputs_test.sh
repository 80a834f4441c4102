#!/usr/bin/env bash
# Weights go from here to PyTorch (load_state_dict of the equal torch.nn models) and back, and both compute the same
# outputs with them.
set -euo pipefail

# shellcheck source=tests/skip.sh
source tests/skip.sh

python=""
for candidate in /usr/bin/python3 python3; do
  if "$candidate" -c 'import torch' >/dev/null 2>&1; then
    python="$candidate"
    break
  fi
done
[[ -n "$python" ]] || skip "PyTorch is not installed: apt-get install python3-torch"

folder="$(mktemp -d "${TEST_TMPDIR:-/tmp}/pytorch.XXXXXX")"
tests/pytorch/outputs write "$folder"
"$python" -B tests/pytorch/models.py load "$folder"
"$python" -B tests/pytorch/models.py save "$folder"
tests/pytorch/outputs compare "$folder"
"$python" -B tests/pytorch/models.py golden >"$folder/golden"
diff tests/pytorch/state_dicts.golden "$folder/golden" || {
  echo "FAILED: tests/pytorch/state_dicts.golden is not what models.py golden prints" >&2
  exit 1
}
