#!/usr/bin/env bash
# Prints a job's Secrets, of the folder that `rubato credentials` made. Each role has one, with what its tasks need alone:
#
#   deploy/k8s/make_secrets.sh FOLDER | kubectl apply -f -
set -euo pipefail

fail() {
  printf 'make_secrets.sh: %s\n' "$*" >&2
  exit 1
}

(($# == 1)) || fail "usage: make_secrets.sh FOLDER, as rubato credentials has made it"
folder="$1"
# Of everybody: the job's authority, and the token that metrics are read with.
common=("$folder/ca.crt" "$folder/metrics.token")
for file in "${common[@]}"; do [[ -r "$file" ]] || fail "$file is not there, or cannot be read; rubato credentials makes it"; done
# Kubernetes takes a mebibyte of values, and base64 makes four bytes of three.
most_bytes=1048576

# secret ROLE FILE...
secret() {
  local role="$1" file bytes=0
  shift
  cat <<END
apiVersion: v1
kind: Secret
metadata:
  name: rubato-$role
  labels:
    app.kubernetes.io/name: rubato
    app.kubernetes.io/component: $role
type: Opaque
data:
END
  for file in "$@"; do
    [[ -r "$file" ]] || fail "$file is not there, or cannot be read"
    printf '  %s: %s\n' "$(basename "$file")" "$(base64 --wrap=0 "$file")"
    bytes=$((bytes + $(stat --format=%s "$file")))
  done
  ((bytes <= most_bytes)) || fail "the certificates of role $role have $bytes bytes; allowed: up to $most_bytes in a Secret"
}

separator=""
for role in coordinator server worker evaluator; do
  certificates=("$folder/$role"-*.crt)
  if [[ ! -e "${certificates[0]}" ]]; then
    [[ "$role" == evaluator ]] || fail "$folder has no certificate of role $role"
    continue
  fi
  printf '%s' "$separator"
  separator=$'---\n'
  secret "$role" "${common[@]}" "${certificates[@]}" "${certificates[@]/%.crt/.key}"
done
