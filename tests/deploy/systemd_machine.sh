#!/usr/bin/env bash
# A machine for systemd_test.sh: a systemd of its own with the units of deploy/systemd, in namespaces and a cgroup of its
# own. Its root is a new file system with this machine's /usr under a layer, and FOLDER/etc and FOLDER/var; the real root
# is unmounted before systemd starts, so that nothing of this machine can be changed, and systemd finds no units but those
# of FOLDER/etc/systemd/system.
#
#   systemd_machine.sh FOLDER CGROUP PROGRAMS    CGROUP: an empty one of version 2; PROGRAMS: become /usr/lib/rubato/bin
set -euo pipefail

if [[ "${1:-}" != --inside ]]; then
  echo "$BASHPID" >"$2/cgroup.procs"
  exec unshare --cgroup --mount --propagation private --pid --fork --kill-child --uts --ipc --net "$0" --inside "$@"
fi
folder="$2" programs="$4"

root="$folder/root"
mkdir -p "$root"
mount -t tmpfs -o mode=0755 tmpfs "$root"
mkdir -p "$root"/{usr,etc,var,run,tmp,root,dev,proc,sys,old,layer/upper,layer/work,no-generators}
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$root/layer/upper,workdir=$root/layer/work" "$root/usr"
for name in bin sbin lib lib32 lib64 libx32; do
  if [[ -L "/$name" ]]; then ln -s "$(readlink "/$name")" "$root/$name"; fi
done
mkdir -p "$root/usr/lib/rubato"
cp -r "$programs" "$root/usr/lib/rubato/bin"
for name in etc var; do mount --bind "$folder/$name" "$root/$name"; done
chmod 1777 "$root/tmp"

mount -t proc proc "$root/proc"
# The kernel's settings are the real machine's.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
for device in null:3 zero:5 full:7 random:8 urandom:9; do
  mknod -m 0666 "$root/dev/${device%:*}" c 1 "${device#*:}"
done
mknod -m 0666 "$root/dev/tty" c 5 0
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
ip link set lo up
hostname rubato-test

cd "$root"
pivot_root . old
cd /
umount --lazy /old
# Only if it is empty. A systemd that begins on the real root clears its /tmp and changes more.
rmdir /old
if [[ -e "$folder" ]]; then
  echo "systemd_machine.sh: $folder is still to be seen, so this is the real root" >&2
  exit 1
fi
# systemd leaves that to who starts a container: units would not see the credentials that it mounts for them.
mount --make-rshared /
exec env -i container=rubato-test PATH=/usr/sbin:/usr/bin SYSTEMD_UNIT_PATH=/etc/systemd/system \
  SYSTEMD_GENERATOR_PATH=/no-generators /lib/systemd/systemd --system --unit=multi-user.target --log-target=console
