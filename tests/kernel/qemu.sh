#!/bin/sh
# qemu.sh QEMU CPU PROGRAM [ARGUMENT...]: runs a test program on a CPU that this machine may
# not be. QEMU ends in NOTFOUND where there is none; 77 is CTest's "skipped".
qemu=$1 cpu=$2
shift 2
case $qemu in
*NOTFOUND)
    echo "SKIPPED: qemu-x86_64 is not installed, so nothing ran on a $cpu"
    exit 77
    ;;
esac
exec "$qemu" -cpu "$cpu" "$@"
