# shellcheck shell=sh disable=SC2154,SC2034
# Runs first in every script. Given: base, the host's folder; job, the job's id.
LC_ALL=C
export LC_ALL
unset CDPATH
case $base in
  /*) ;;
  *) base=$HOME/$base ;;
esac
folder=$base/jobs/$job
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}
# Ids of this job's processes: those that carry its mark in their environment.
processes() {
  grep -lzxF "RUBATO_JOB=$job" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}
