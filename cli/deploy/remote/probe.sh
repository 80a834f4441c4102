# shellcheck shell=sh disable=SC2154
# Says what a host is like, a line "<what> <value>" each. Given: ports, that should be free; stored, names of what may be
# there already, under the host's folder.
for tool in awk cut df grep gzip setsid sha256sum tail tar; do
  command -v "$tool" >/dev/null 2>&1 || echo "missing $tool"
done
echo "system $(uname -s)"
echo "machine $(uname -m)"
echo "glibc $(getconf GNU_LIBC_VERSION 2>/dev/null | awk '{ print $2 }')"
echo "seconds $(date +%s)"
gpus=0
for device in /dev/nvidia[0-9]*; do
  if [ -e "$device" ]; then gpus=$((gpus + 1)); fi
done
echo "gpus $gpus"
if error=$(mkdir -p -- "$base" 2>&1) && [ -w "$base" ]; then
  echo "free_kib $(df -Pk -- "$base" | awk 'END { print $4 }')"
else
  echo "unwritable ${error:-$base: not writable}"
fi
for port in $ports; do
  # A listening socket, on any of the host's addresses.
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port=":$(printf '%04X' "$port")" '
    $4 == "0A" && substr($2, length($2) - 4) == port { found = 1 }
    END { exit !found }' && echo "taken $port"
done
for name in $stored; do
  if [ -e "$base/$name" ]; then echo "has $name"; fi
done
exit 0
