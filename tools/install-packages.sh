#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the distribution packages that Esker needs: install-packages.sh GROUP...
#   build   the compilers and libraries of `./do run` and `./do build`
#   test    what `./do test` needs besides
#   check   what `./do check`, `./do format` and `./do fuzz` need besides
# Quiet, and at once done when all is there. Debian 12, Debian 13 and Ubuntu 24.04, as root or with
# sudo. On another system, or with ESKER_SKIP_PACKAGES=1, it installs nothing.
set -eu

[ "${ESKER_SKIP_PACKAGES:-0}" = 1 ] && exit 0

system=unknown
if [ -r /etc/os-release ]; then
    system=$(. /etc/os-release && echo "${ID:-unknown}-${VERSION_ID:-}")
fi
case $system in
debian-12)
    llhttp=node-llhttp # ships llhttp's C sources; there is no package of the library
    fuzzer=libclang-rt-14-dev
    ;;
debian-13)
    llhttp=libllhttp-dev
    fuzzer=libclang-rt-19-dev
    ;;
ubuntu-24.04)
    llhttp=libllhttp-dev
    fuzzer=libclang-rt-18-dev
    ;;
*)
    echo "$0: no package names known for $system; install what is missing by hand" >&2
    exit 0
    ;;
esac

wanted=
for group in "$@"; do
    case $group in
    build)
        wanted="$wanted gcc g++ libc6-dev cmake ninja-build pkg-config python3 $llhttp libuv1-dev
            libgnutls28-dev libsimdjson-dev libisal-dev libxxhash-dev liblz4-dev libzstd-dev
            libsnappy-dev zlib1g-dev libck-dev"
        ;;
    test)
        wanted="$wanted libcmocka-dev python3-pytest python3-requests curl procps util-linux
            gnutls-bin"
        ;;
    check)
        wanted="$wanted clang clang-format clang-tidy llvm ccache $fuzzer"
        ;;
    *)
        echo "usage: $0 build|test|check..." >&2
        exit 2
        ;;
    esac
done

# The names that are not installed.
missing=
for name in $wanted; do
    case $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || :) in
    installed) ;;
    *) missing="$missing $name" ;;
    esac
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "$0: run this as root, or install sudo:" >&2
    echo "  apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

echo "installing packages:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >>"$log" 2>&1
}
# The package lists may be absent or old; a first failure is tried again with new ones.
if ! apt install --no-install-recommends $missing; then
    if ! { apt update && apt install --no-install-recommends $missing; }; then
        cat "$log" >&2
        echo "$0: the packages could not be installed" >&2
        exit 1
    fi
fi
