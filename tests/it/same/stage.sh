# Started in a mount namespace of its own, as: stage ROOT FSTAB LIMIT LIMIT COMMAND...
# Runs COMMAND as nobody in ROOT, with what FSTAB names mounted in it. For bash, since dash cannot name a
# descriptor above 9. Everything is `exec`: the process that is waited for is the program.
set -eu
root=$1 fstab=$2 fsize=$3 nofile=$4
shift 4
umask 022
mount --all --fstab "$fstab"
# Whatever who started the tests left open is not the program's.
for fd in /proc/$$/fd/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || eval "exec $fd>&-"
done
# A session and limits like a cell's; no core files on the host.
exec setsid prlimit "$fsize" "$nofile" --core=1 --stack=8388608:67108864 \
    chroot --userspec=65534:65534 --groups= "$root" "$@"
