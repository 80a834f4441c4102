# shellcheck shell=sh disable=SC2154
# Writes what the job has left here, but for its credentials, as an archive to the standard output. Given: wanted, run or a
# folder in it.
[ -d "$folder/$wanted" ] || exit 0
tar -czf - --exclude=run/credentials -C "$folder" "$wanted" || exit 1
