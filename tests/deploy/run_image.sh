#!/usr/bin/env bash
# Runs a command in an unpacked image as a container runtime would: as a user, without capabilities, with a read-only
# root file system and the mounts that are named.
#
#   run_image.sh --root DIR --user UID:GID [--mount FROM:TO[:ro]]... [--tmpfs TO]... [--host NAME=ADDRESS] -- COMMAND...
set -euo pipefail

if [[ "${1:-}" != --inside ]]; then exec unshare --mount --propagation private "$0" --inside "$@"; fi
shift

root="" user="" hosts="127.0.0.1 localhost"
mounts=() scratch=()
while [[ "$1" != -- ]]; do
  case "$1" in
    --root) root="$2" ;;
    --user) user="$2" ;;
    --mount) mounts+=("$2") ;;
    --tmpfs) scratch+=("$2") ;;
    --host) hosts+=$'\n'"${2#*=} ${2%%=*}" ;;
    *)
      echo "run_image.sh: $1 is not known" >&2
      exit 2
      ;;
  esac
  shift 2
done
shift

# The image itself stays as it is: places to mount on are made in a layer above.
layer="$(mktemp -d --tmpdir="$(dirname "$root")")"
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/merged"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$layer/upper,workdir=$layer/work" "$layer/merged"
merged="$layer/merged"
echo "$hosts" >"$merged/etc/hosts"
for mount in "${mounts[@]}"; do
  IFS=: read -r from to mode <<<"$mount"
  if [[ -d "$from" ]]; then mkdir -p "$merged$to"; else touch "$merged$to"; fi
  mount --bind "$from" "$merged$to"
  if [[ "$mode" == ro ]]; then mount -o remount,bind,ro "$merged$to"; fi
done
for place in "${scratch[@]}"; do
  mkdir -p "$merged$place"
  mount -t tmpfs -o mode=1777 tmpfs "$merged$place"
done
mount -t proc proc "$merged/proc"
mount --rbind /dev "$merged/dev"
mount -o remount,ro "$merged"
cd "$merged"
exec env -i PATH="$(sed -n 's/.*"PATH": "\([^"]*\)".*/\1/p' "$root.json")" "$(command -v chroot)" "$merged" \
  setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
