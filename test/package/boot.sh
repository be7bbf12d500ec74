#!/bin/sh
# boot.sh FOLDER ROOT: boots the Debian in ROOT, such as this machine's own in /, under systemd, over a layer of its own in FOLDER, in
# namespaces of its own. Runs until systemd is stopped. Nothing outside FOLDER changes. Programs in it see FOLDER/shared as /mnt.
set -eu
folder=$1
lower=$2
if [ -z "${3-}" ]; then
  mkdir -p "$folder/layer" "$folder/root" "$folder/shared"
  exec unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child=SIGKILL sh "$0" "$folder" "$lower" inside
fi
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder/layer"
mkdir "$folder/layer/upper" "$folder/layer/work"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/layer/upper,workdir=$folder/layer/work" "$folder/root"
cd "$folder/root"
mount --bind "$folder/shared" mnt
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys || mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do touch dev/$device && mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
# It has no network to fetch packages from, and apt would read the lists of all packages at each of its commands.
mount -t tmpfs tmpfs var/lib/apt/lists
mkdir -p sys/fs/cgroup 2> /dev/null || true
mount -t cgroup2 cgroup2 sys/fs/cgroup
# Only what a service needs is started: no other service of this machine, so nothing is enabled, and systemd does not take this for a
# first boot, at which it would enable all services again.
rm -rf etc/systemd/system/*.wants
: > etc/machine-id
# Its network has only the loopback interface, so nothing waits for another.
for manager in systemd-networkd NetworkManager; do ln -sf /dev/null etc/systemd/system/$manager-wait-online.service; done
# Not chroot: a process in one may not make user namespaces, which bubblewrap does.
mkdir old
pivot_root . old
umount --lazy /old
rmdir /old
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /usr/lib/systemd/systemd --unit=multi-user.target --log-target=console --show-status=no
