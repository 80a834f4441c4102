# shellcheck shell=sh disable=SC2154
# Takes the credentials of this host's tasks, an archive on the standard input, into the job's run directory, where nobody
# else may read them.
cd -- "$base" || exit 1
umask 077
mkdir -p "jobs/$job/run/credentials" || exit 1
tar -xf - -C "jobs/$job/run/credentials" || exit 1
