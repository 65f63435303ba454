#!/bin/sh
# Installs the build tree into a fresh prefix and builds the README's example against it, as
# a user would: with pkg-config, and with find_package, shared and static. Then moves the
# prefix, because an installed tree may be moved, and runs what pkg-config built there.
# usage: run.sh BUILD_DIR SOURCE_DIR CC
set -eu
build=$1 source=$2 cc=$3
here=$build/tests/install
example=$source/docs/example.c
want='output 2.0000, lse 1.0986'
rm -rf "$here"
mkdir -p "$here"
cmake --install "$build" --prefix "$here/first" >"$here/install.log"
mv "$here/first" "$here/prefix"
prefix=$here/prefix

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name mla.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir mla)

expect() { # how it was built, program
    got=$(LD_LIBRARY_PATH=$libdir "$2") || { echo "$1: the example failed"; exit 1; }
    [ "$got" = "$want" ] || { echo "$1: the example printed '$got', not '$want'"; exit 1; }
    echo "$1: $got"
}

# shellcheck disable=SC2046 # flags are words
"$cc" -std=c11 "$example" -o "$here/with_pkg_config" $(pkg-config --cflags --libs mla)
expect pkg-config "$here/with_pkg_config"

cmake -S "$source/tests/install" -B "$here/consumer" -G Ninja -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$example" >"$here/consumer.log" 2>&1 ||
    { cat "$here/consumer.log"; exit 1; }
cmake --build "$here/consumer" -- --quiet
expect find_package "$here/consumer/with_shared"
expect 'find_package, static' "$here/consumer/with_static"

soname=$(objdump -p "$libdir/libmla.so" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = libmla.so.0 ] || { echo "SONAME is '$soname', not libmla.so.0"; exit 1; }
needed=$(objdump -p "$libdir/libmla.so" | awk '$1 == "NEEDED" { print $2 }' | sort | tr '\n' ' ')
case "$needed" in
'libc.so.6 libm.so.6 ' | 'ld-linux-x86-64.so.2 libc.so.6 libm.so.6 ' | 'libc.so.6 ') ;;
*) echo "libmla.so needs more than libc, libm and threads: $needed"; exit 1 ;;
esac
"$prefix/bin/mla" help >/dev/null || { echo "the installed program does not start"; exit 1; }
[ -f "$prefix/share/doc/mla/LICENSE" ] || { echo "the licence is not installed"; exit 1; }
