#!/bin/sh
# The set-up of ./dev, on machines made up of stubs: one that has nothing and a root, one with
# sudo, one whose user may not install, one without apt-get, one whose apt-get fails.
# usage: run.sh SOURCE_DIR
set -eu
source=$1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
# The last words of the table to_build.
packages=$(sed -n "/^to_build=/,/'\$/s/^has_[a-z]* *[^ ]* *\([^ ']*\).*/\1/p" "$source/dev" | tr '\n' ' ')
case "$packages" in
'gcc g++ libc6-dev cmake ninja-build '*' libjansson-dev '*) ;;
*) echo "the packages of ./dev cannot be read: $packages"; exit 1 ;;
esac

stub() { # name, its script
    printf '#!/bin/sh\n%s\n' "$2" >"$temp/bin/$1"
    chmod +x "$temp/bin/$1"
}

# A machine with a shell, its small tools and an apt-get that brings what it is asked for.
bare() { # the user's number
    rm -rf "${temp:?}/bin" "$temp/repo"
    mkdir -p "$temp/bin" "$temp/repo"
    : >"$temp/log"
    cp "$source/dev" "$temp/repo/"
    for tool in sh cat chmod dirname env mkdir mktemp rm sed sleep true; do
        for folder in /usr/bin /bin; do
            [ ! -x "$folder/$tool" ] || ln -sf "$folder/$tool" "$temp/bin/$tool"
        done
    done
    stub id "echo $1"
    stub apt-get "echo \"\$*\" >>'$temp/log'
[ \"\$1\" = install ] || exit 0
for tool in cc c++ cmake ninja pkg-config; do
    echo '#!/bin/sh' >'$temp/bin/'\$tool
    chmod +x '$temp/bin/'\$tool
done"
}

dev() { # verb; what it says is in out, how it ends in status
    status=0
    PATH=$temp/bin "$temp/repo/dev" "$@" >"$temp/out" 2>&1 || status=$?
}

fail() {
    echo "$1: status $status, and it says:"
    cat "$temp/out"
    echo "apt-get was asked for:"
    cat "$temp/log"
    exit 1
}
says() { grep -qxF -e "$1" "$temp/out"; }
asked="update
install -y --no-install-recommends ${packages% }"

bare 0
dev build
[ "$status" -eq 0 ] && says "dev: installing $packages" && [ "$(cat "$temp/log")" = "$asked" ] ||
    fail 'root, nothing installed'
: >"$temp/log"
dev build
[ "$status" -eq 0 ] && [ ! -s "$temp/log" ] || fail 'root, everything installed'

mkdir -p "$temp/repo/build/release/src"
mla=$temp/repo/build/release/src/mla
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$temp/log" >"$mla"
chmod +x "$mla"
dev run --port 9000
[ "$status" -eq 0 ] && [ "$(cat "$temp/log")" = 'serve models/demo --port 9000' ] || fail 'run'
: >"$temp/log"
dev demo
[ "$status" -ne 0 ] && says 'dev: mla serve has ended' || fail 'a server that ends at once'
: >"$temp/log"
# The stub of a server says an address and waits for the signal.
printf 'case "$1" in serve) echo "listening on http://stub"; trap "exit 0" TERM; while :; do sleep 0.1; done ;; esac\n' >>"$mla"
stub curl "echo \"curl \$*\" >>'$temp/log'"
dev demo
[ "$status" -eq 0 ] && [ "$(grep -c -- . "$temp/log")" -eq 4 ] &&
    grep -qx 'memory models/demo' "$temp/log" &&
    [ "$(grep -o -e '--prompt ' "$temp/log" | grep -c .)" -ge 2 ] &&
    grep -q '^generate models/demo ' "$temp/log" &&
    grep -q '^serve models/demo --port 0' "$temp/log" &&
    grep -q '^curl -sS http://stub/v1/chat/completions -d {' "$temp/log" || fail 'demo'
: >"$temp/log"
dev bench
[ "$status" -eq 0 ] && [ "$(cat "$temp/log")" = "bench attention
bench model
qualify serving models/demo" ] || fail 'bench'

bare 1000
stub sudo '[ "$1" = -n ] && shift && exec "$@"'
dev build
[ "$status" -eq 0 ] && says "dev: installing $packages" && [ "$(cat "$temp/log")" = "$asked" ] ||
    fail 'sudo without a password'

bare 1000
stub sudo 'exit 1'
dev build
[ "$status" -ne 0 ] && [ ! -s "$temp/log" ] &&
    says "sudo apt-get update && sudo apt-get install --no-install-recommends ${packages% }" ||
    fail 'a user who may not install'

bare 1000
rm "$temp/bin/apt-get"
dev build
[ "$status" -ne 0 ] && says "dev: this machine lacks (by their Debian names): $packages" ||
    fail 'no apt-get'

bare 0
stub apt-get 'echo "no network here"; exit 100'
dev build
[ "$status" -ne 0 ] && says 'no network here' && says "dev: apt-get could not install: $packages" ||
    fail 'an apt-get that fails'

bare 0
stub apt-get 'exit 0'
dev build
[ "$status" -ne 0 ] && says "dev: still missing after the installation: $packages" ||
    fail 'an apt-get that brings nothing'

dev frobnicate
[ "$status" -ne 0 ] && says "dev: there is no verb 'frobnicate'" || fail 'no such verb'
dev help
[ "$status" -eq 0 ] && [ ! -s "$temp/log" ] || fail 'help installs nothing'
dev test --some
[ "$status" -ne 0 ] && says "dev: test takes nothing or --all, not '--some'" || fail 'test --some'
dev bench fast
[ "$status" -ne 0 ] && says "dev: bench takes no argument, and got 'fast'" || fail 'bench fast'
