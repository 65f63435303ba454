#!/bin/sh
# Takes away what the lifetime tests claim: builds with MLA_RETAIN_PRIMING, where a session
# keeps its priming operands, and demands that exactly the tests with `lifetime` in their
# names fail, each naming the bytes; and that they pass in the ordinary build.
# usage: run.sh BUILD_DIR SOURCE_DIR CC
set -eu
build=$1 source=$2 cc=$3
kept=$build/tests/retain
mkdir -p "$kept"

names() { sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p' | sort; }
lifetime=$(ctest --test-dir "$build" -N -R lifetime | names)
[ -n "$lifetime" ] || { echo "there are no lifetime tests"; exit 1; }
ctest --test-dir "$build" -R lifetime --output-on-failure >"$kept/plain.log" 2>&1 ||
    { cat "$kept/plain.log"; echo "the lifetime tests fail in the ordinary build"; exit 1; }

cmake -S "$source" -B "$kept" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Release \
    -DMLA_RETAIN_PRIMING=ON >"$kept/configure.log" 2>&1 ||
    { cat "$kept/configure.log"; exit 1; }
cmake --build "$kept" -- --quiet
log=$kept/Testing/Temporary
# What a server shows of its books, and says at its end, fails as well: those tests are about
# more than a lifetime, and are left out.
ctest --test-dir "$kept" -LE long -E 'e2e\.(page|serve_)' --parallel "$(nproc)" --output-log "$kept/retained.log" \
    >/dev/null 2>&1 || true
failed=$(sed 's/^[0-9]*://' "$log/LastTestsFailed.log" 2>/dev/null | sort)
if [ "$failed" != "$lifetime" ]; then
    printf 'with MLA_RETAIN_PRIMING these must fail:\n%s\nand these do:\n%s\n' "$lifetime" "$failed"
    exit 1
fi
for name in $lifetime; do
    ctest --test-dir "$kept" -R "^$name\$" -V 2>&1 | grep -E '[1-9][0-9]* bytes' >"$kept/bytes.log" ||
        { echo "$name does not name the bytes that are kept"; exit 1; }
    echo "$name: $(head -n 1 "$kept/bytes.log")"
done
