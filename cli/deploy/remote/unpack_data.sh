# shellcheck shell=sh disable=SC2154,SC2015
# Unpacks data, which comes on the standard input, into the host's folder. Given: id, of this data.
cd -- "$base" && mkdir -p copied && tar -xzf - || fail "$base: the data could not be unpacked"
: >"copied/$id"
