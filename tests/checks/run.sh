#!/bin/sh
# Shows every check of tools/checks a clean little repository, which it must accept, and then
# one fault after the other, each of which it must see and name.
# usage: run.sh SOURCE_DIR
set -eu
source=$1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
failed=0
num=0

# A repository that is right.
fresh() {
    rm -rf "$temp/repo"
    mkdir -p "$temp/repo/include/mla" "$temp/repo/src/base" "$temp/repo/src/attention" \
        "$temp/repo/docs"
    cd "$temp/repo"
    git init -q .
    cp -r "$source/tools" .
    cp "$source/.clang-format" .
    cat >include/mla/mla.h <<'END'
/* A header. */
#ifndef MLA_MLA_H
#define MLA_MLA_H
#define MLA_API __attribute__((visibility("default")))

/* How it ended. */
typedef struct mla_error {
    int status; /* 0: well */
} mla_error;

/* Runs it. */
MLA_API int mla_run(const mla_error *error);

#endif
END
    printf '/* Runs. */\n#include "mla/mla.h"\n\nint mla_run(const mla_error *error)\n{\n    return error->status;\n}\n' \
        >src/attention/run.c
    printf '/* Ends. */\nint main(void)\n{\n    return 0;\n}\n' >docs/example.c
    { printf 'Look:\n\n```c\n' && cat docs/example.c && printf '```\n'; } >README.md
    commit 'base: the first stone'
}
commit() {
    git add -A
    git -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m "$1"
}

accepts() {
    num=$((num + 1))
    tools/check "$1" >"$temp/out" 2>&1 && return 0
    echo "$1 refuses a clean repository:"
    cat "$temp/out"
    failed=1
}
refuses() { # check, what its output must have, what the fault is
    num=$((num + 1))
    if tools/check "$1" >"$temp/out" 2>&1; then
        echo "$1 does not see: $3"
        failed=1
    elif ! grep -q -e "$2" "$temp/out"; then
        echo "$1 does not name ($2): $3"
        cat "$temp/out"
        failed=1
    fi
    fresh
}

fresh
for check in format layers text banned documented headers commits readme; do
    accepts "$check"
done

printf 'int  x;\n' >>src/attention/run.c
refuses format 'run.c:8' 'two blanks'

printf '#include "attention/x.h"\n' >src/base/low.c
refuses layers 'base may not include attention' 'an upper room'

printf 'a\tb\n' >docs/note.md
refuses text 'note.md:1: has a tab' 'a tab'
printf 'a \n' >docs/note.md
refuses text 'note.md:1: ends with a blank' 'a trailing blank'
printf 'a' >docs/note.md
refuses text 'note.md:1: has no newline' 'a missing newline'
printf 'a\342\200\213b\n' >docs/note.md
refuses text 'U+200B' 'an invisible character'
printf 'a\302\240b\n' >docs/note.md
refuses text 'U+00A0' 'a blank that is none'
printf '\377\n' >docs/note.md
refuses text 'is not UTF-8' 'bytes that are no text'
printf 'int x;\n' >src/base/low.c
refuses text 'low.c:1: does not open' 'a file that does not say what it is for'
printf '/* TO%s: later */\n' DO >src/base/low.c
refuses text 'low.c:1: has unfinished business' 'a note to do it later'

for word in malloc free strcpy sprintf strtol atoi rand getenv abort exit printf; do
    printf 'void f(void)\n{\n    %s(0);\n}\n' "$word" >src/attention/f.c
    refuses banned "f.c:3: $word" "a call of $word"
done
printf '/* malloc( */ const char *s = "free("; int x = p->free + q.exit;\n' >src/attention/f.c
accepts banned

sed -i '/Runs it/d' include/mla/mla.h
refuses documented 'mla_run has no comment' 'a function without a comment'
sed -i '/How it ended/d' include/mla/mla.h
refuses documented 'mla_error has no comment' 'a type without a comment'

sed -i 's/int mla_run/size_t mla_run/' include/mla/mla.h
refuses headers 'size_t' 'a header that does not stand alone'
sed -i 's/int status;/char c; int status;/' include/mla/mla.h
refuses headers '=padded' 'padding in a public struct'
sed -i 's/int mla_run(/int mla_run(int class, /' include/mla/mla.h
refuses headers 'class' 'a header that is not C++'

commit 'did things'
refuses commits 'did things' 'a subject without an area'
commit 'base: ends so.'
refuses commits 'full stop' 'a full stop'
commit 'base: this subject says so much about what it does that it is 1 too long!'
refuses commits '73 columns' 'a long subject'

sed -i 's/return 0/return 1/' docs/example.c
refuses readme 'example.c' 'a README with another example'

mkdir -p build/release
printf 'int mla_run(int x) { return x; }\nint leak(int x) { return x; }\n' >a.c
cc -shared -fPIC a.c -o build/release/libmla.so
cc -c a.c -o a.o && ar rc build/release/libmla.a a.o
tools/check symbols >"$temp/out" 2>&1 && { echo "symbols does not see a stray name"; failed=1; }
grep -q 'libmla.so exports leak' "$temp/out" || { echo "symbols does not name it"; failed=1; }
grep -q 'libmla.a has the global name leak' "$temp/out" || { echo "nor in the archive"; failed=1; }
sed -i '/leak/d; s/mla_run/mla_other/' a.c
cc -shared -fPIC a.c -o build/release/libmla.so
refuses symbols 'declares mla_run, which libmla.so does not' 'a function that is missing'

# What CI reports: the sum of all runs on the last line, and a status that says the same.
mkdir -p "$temp/ci/.ci"
cp "$source/.ci/run" "$temp/ci/.ci/"
reports() { # the last line, what the three steps print and how they end
    num=$((num + 1))
    printf '#!/bin/sh\ncase "$*" in\ncheck) %s ;;\ntest) %s ;;\n*) %s ;;\nesac\n' "$2" "$3" "$4" \
        >"$temp/ci/dev"
    chmod +x "$temp/ci/dev"
    status=0
    "$temp/ci/.ci/run" >"$temp/out" 2>&1 || status=1
    want=1
    case "$1" in *', 0 failed') want=0 ;; esac
    if [ "$(tail -n 1 "$temp/out")" != "$1" ] || [ "$status" -ne "$want" ]; then
        echo "CI should have said '$1' with status $want, and ended with status $status:"
        cat "$temp/out"
        failed=1
    fi
}
well='echo "check: format ok"'
of() { echo "echo '$1% tests passed, $2 tests failed out of $3'"; }
reports '13 passed, 0 failed' "$well" "$(of 100 0 5)" "$(of 100 0 3); $(of 100 0 4)"
reports '11 passed, 2 failed' "$well" "$(of 100 0 5); exit 0" "$(of 33 2 3); $(of 100 0 4); exit 1"
reports '12 passed, 1 failed' 'echo "check: format FAILED"; exit 1' "$(of 100 0 5)" "$(of 100 0 7)"
reports '6 passed, 1 failed' "$well" "$(of 100 0 5)" 'echo "does not build"; exit 1'

echo "$num trials"
exit "$failed"
