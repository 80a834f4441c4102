# shellcheck shell=sh disable=SC2154,SC2015
# Unpacks a package, which comes on the standard input, into packages/<id> at once, or not at all. Given: id.
cd -- "$base" && mkdir -p packages || exit 1
[ ! -e "packages/$id/complete" ] || exit 0
part=packages/part-$id-$$
trap 'rm -rf -- "$part"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -- "$part" && tar -xzf - --strip-components=1 -C "$part" || fail "$base: the package could not be unpacked"
(cd -- "$part" && grep '^[0-9a-f]\{64\}  ' MANIFEST | sha256sum -c --quiet -) || fail "$base: the package is damaged"
: >"$part/complete" || exit 1
# Another job may have been quicker.
mv -T -- "$part" "packages/$id" 2>/dev/null || [ -e "packages/$id/complete" ] || fail "$base/packages/$id: cannot be made"
