#!/bin/sh
# Runs the lifetime tests of a library that keeps its priming operands: every one of them must
# fail and name the bytes. usage: expect_bytes.sh PROGRAM [ARGUMENT]
set -u
output=$("$@" 2>&1)
status=$?
tests=$(printf '%s\n' "$output" | grep -c '^\[ RUN ')
failed=$(printf '%s\n' "$output" | grep -c 'class session holds [1-9][0-9]* bytes')
if [ "$status" -eq 0 ] || [ "$tests" -eq 0 ] || [ "$failed" -ne "$tests" ]; then
    printf '%s\n' "$output"
    echo "of $tests lifetime tests, $failed name the bytes that are kept (exit status $status)"
    exit 1
fi
printf '%s\n' "$output" | grep 'class session holds' | sed 's/^.*\(class\)/\1/'
