#!/usr/bin/env bash
# Packs built programs for other machines: make_package.sh BINARIES OUTPUT, with the build's folder (bazel-bin) and the
# folder that gets rubato-VERSION-linux-MACHINE.tar.gz. The programs must need glibc's libraries alone, which
# --config=portable sees to; with --any-libraries they may need others, that every machine must have then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'make_package.sh: %s\n' "$*" >&2
  exit 1
}

any_libraries=0
if [[ "${1:-}" == --any-libraries ]]; then
  any_libraries=1
  shift
fi
(($# == 2)) || fail "usage: make_package.sh [--any-libraries] BINARIES OUTPUT"
binaries="$1"
output="$2"

version="$(<VERSION)"
machine="$(uname -m)"
name="rubato-$version-linux-$machine"
programs=(cli/command/rubato coordinator/coordinator server/server worker/worker)
# What workers need that are somebody's program; without it, if it was not built.
client=(client/librubato_client.so client/sidecar/rubato-sidecar)
glibc_libraries='^(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[-a-z0-9_]*)\.so\.[0-9]+$'

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
root="$work/$name"
mkdir -p "$root/bin" "$root/configs"
for program in "${programs[@]}"; do
  [[ -x "$binaries/$program" ]] || fail "$binaries/$program: no such program; build it first"
  # Bazel's are not writable.
  install -m 755 "$binaries/$program" "$root/bin/"
done
for file in "${client[@]}"; do
  if [[ -f "$binaries/$file" ]]; then install -m 755 "$binaries/$file" "$root/bin/"; fi
done
cp configs/*.textproto "$root/configs/"
cp README.md CHANGELOG.md VERSION "$root/"
while read -r file; do
  mkdir -p "$root/$(dirname "$file")"
  cp "$file" "$root/$file"
done < <(find -L deploy -type f ! -name BUILD | sort)

# The libraries that the programs name, and the newest version of glibc whose symbols they use.
needed="$(objdump -p "$root"/bin/* | awk '$1 == "NEEDED" { print $2 }' | sort -u)"
others="$(grep -Ev "$glibc_libraries" <<<"$needed" || true)"
if [[ -n "$others" ]] && ((!any_libraries)); then
  fail "the programs need more than glibc, so they do not run everywhere: ${others//$'\n'/, }; build with --config=portable"
fi
# libstdc++'s, which a GPU's libraries would then share with the one that they are linked with.
if ((!any_libraries)) && grep -q ' u .* _ZGVNSt' <<<"$(objdump -T "$root"/bin/*)"; then
  fail "the programs export the C++ runtime's own symbols; link with -Wl,--exclude-libs,ALL, as --config=portable does"
fi
glibc="$(objdump -T "$root"/bin/* | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV | tail -n 1)"
[[ -n "$glibc" ]] || fail "no version of glibc is named in the programs"

{
  printf 'rubato %s\nsystem linux\nmachine %s\nglibc %s\n' "$version" "$machine" "$glibc"
  while read -r library; do
    if [[ -n "$library" ]]; then printf 'library %s\n' "$library"; fi
  done <<<"$others"
  (cd "$root" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum)
} >"$work/manifest"
mv "$work/manifest" "$root/MANIFEST"

mkdir -p "$output"
# The manifest first, so that who reads it need not read on. Files in order, and no dates: the same programs make the
# same package.
(cd "$work" && { printf '%s\0' "$name/MANIFEST" && find "$name" -type f ! -path "$name/MANIFEST" -print0 | sort -z; }) |
  tar -C "$work" --null --files-from=- --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - | gzip -n >"$work/package"
mv "$work/package" "$output/$name.tar.gz"
printf '%s, for %s with glibc %s or later\n' "$output/$name.tar.gz" "$machine" "$glibc"
