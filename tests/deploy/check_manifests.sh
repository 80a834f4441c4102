#!/usr/bin/env bash
# deploy/k8s without a cluster: every manifest of every overlay is type-checked, and the check rejects broken ones.
#
# check_manifests.sh [--tools DIR] [--binaries DIR]: DIR has what fetch_kubernetes_tools.sh leaves (otherwise
# $RUBATO_KUBERNETES_TOOLS), and the rubato program.
# shellcheck source=tests/deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools="${RUBATO_KUBERNETES_TOOLS:-}"
if [[ "${1:-}" == --tools ]]; then
  tools="${2:?--tools needs a folder}"
  shift 2
fi
[[ -e "$tools/complete" ]] || skip "there is nothing here to check manifests with (./rubato.sh test fetches it)"
command -v node >/dev/null || skip "there is no node here"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
gather_programs "$work/bin" "$@"
mkdir "$work/check"
for file in tsconfig.json package.json typed.mjs node_modules; do ln -s "$tools/$file" "$work/check/$file"; done

# type_check FILE: the errors, if there are any.
type_check() {
  (cd "$work/check" && node typed.mjs <"$1" >manifests.ts && node node_modules/typescript/bin/tsc --project .)
}

# rejects WHAT SED-PROGRAM ERROR
rejects() {
  local errors
  sed -E "$2" "$work/cpu.yaml" >"$work/broken.yaml"
  ! cmp -s "$work/cpu.yaml" "$work/broken.yaml" || fail "$1: nothing is broken"
  if errors="$(type_check "$work/broken.yaml")"; then fail "$1 is accepted"; fi
  grep -qF "$3" <<<"$errors" || fail "$1: $errors"
}

# kubectl follows no links out of a folder.
cp -rL deploy/k8s "$work/k8s"
for overlay in cpu gpu program; do
  "$tools/kubectl" kustomize "$work/k8s/overlays/$overlay" >"$work/$overlay.yaml" || fail "overlay $overlay"
  say "overlay $overlay: $(grep -c '^kind:' "$work/$overlay.yaml") manifests"
  type_check "$work/$overlay.yaml" || fail "overlay $overlay"
done

say "broken manifests are rejected"
rejects "an unknown field" 's/podManagementPolicy/podManagmentPolicy/' '"podManagmentPolicy"'
rejects "an unknown field of a container" 's/readOnlyRootFilesystem/readOnlyRoot/' '"readOnlyRoot"'
rejects "a wrong type" 's/replicas: 2/replicas: two/' "'string' is not assignable to type 'number'"
rejects "a missing field" 's/- name: POD_IP/- value: none/' 'is missing in type'

# A component has no manifests of its own.
printf 'components:\n  - ../../components/data\n' >>"$work/k8s/overlays/cpu/kustomization.yaml"
"$tools/kubectl" kustomize "$work/k8s/overlays/cpu" >"$work/data.yaml"
(($(grep -c 'claimName: rubato-data' "$work/data.yaml") == 2)) || fail "component data does not mount the data"
type_check "$work/data.yaml" || fail "component data"

say "the numbers of tasks in the config and in the manifests agree"
# agree CONFIG OVERLAY FLAGS...
agree() {
  local count config="$1" overlay="$2"
  "$work/bin/rubato" config "$config" "${@:3}" >"$work/job.textproto" || fail "$config"
  for count in "servers replicas" "workers completions" "workers parallelism"; do
    [[ "$(sed -n "s/^  ${count% *}: //p" "$work/job.textproto")" == "$(sed -n "s/^  ${count#* }: //p" "$work/$overlay.yaml")" ]] ||
      fail "cluster.${count% *} of $config is not ${count#* } of the manifests of $overlay"
  done
}
agree deploy/k8s/base/job.textproto cpu
agree deploy/k8s/overlays/program/job.textproto program --client

say "each pod has the Secret of its role, which make_secrets.sh prints"
# secrets_agree CONFIG OVERLAY ROLE...
secrets_agree() {
  local config="$1" overlay="$2" role others folder="$work/credentials-$2"
  shift 2
  "$work/bin/rubato" credentials "$config" --directory="$folder" >/dev/null || fail "$config"
  deploy/k8s/make_secrets.sh "$folder" >"$work/secrets.yaml"
  type_check "$work/secrets.yaml" || fail "the Secrets of $overlay"
  [[ "$(sed -n 's/^  name: //p' "$work/secrets.yaml")" == "$(printf 'rubato-%s\n' "$@")" ]] || fail "the Secrets of $overlay"
  [[ "$(sed -n 's/^ *secretName: //p' "$work/$overlay.yaml" | sort)" == "$(printf 'rubato-%s\n' "$@" | sort)" ]] ||
    fail "the pods of $overlay have other Secrets"
  for role in "$@"; do
    # Of the role's tasks, and no key of another's.
    others="$(sed -n "/^  name: rubato-$role$/,/^---/p" "$work/secrets.yaml" | sed -n "/\.key:/{/^  $role-/!s/:.*//p}")"
    [[ -z "$others" ]] || fail "the Secret of role $role has other keys:$others"
  done
  ! grep -q 'ca\.key\|operator' "$work/secrets.yaml" || fail "the Secrets of $overlay have more than tasks need"
}
secrets_agree deploy/k8s/base/job.textproto cpu coordinator server worker evaluator
secrets_agree deploy/k8s/overlays/program/job.textproto program coordinator server worker
rm "$work/credentials-program/ca.crt"
! deploy/k8s/make_secrets.sh "$work/credentials-program" >/dev/null 2>"$work/errors" || fail "Secrets without an authority"
grep -q 'ca.crt is not there.*rubato credentials makes it' "$work/errors" || fail "$(<"$work/errors")"

say "workers that are a program of somebody's"
! grep -q 'name: rubato-evaluator' "$work/program.yaml" || fail "there is an evaluator"
[[ "$(grep -A1 'name: RUBATO_SIZE' "$work/program.yaml" | sed -n 's/^ *value: "\(.*\)"$/\1/p')" == \
  "$(sed -n 's/^  completions: //p' "$work/program.yaml")" ]] || fail "RUBATO_SIZE is not completions of the worker Job"
say passed
