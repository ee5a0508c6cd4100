#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The one front of everything: see usage below. Needs sh; installs the packages it lacks.
set -eu

usage() {
    cat <<'TEXT'
usage: ./do COMMAND

  run [-- OPTIONS]   build and start a broker; OPTIONS go to it (-- --help lists them)
  build              build/release/esker (the broker) and build/release/esk (the tool)
  test [NAME]        build everything and run all tests, or those whose name has NAME in it
  check              what CI runs: tests, format, layers, tidy, sanitizers, short fuzzing
  bench NAME         run one benchmark of bench/
  fuzz TARGET [ARGS] fuzz one target of tests/fuzz until it fails or is stopped
  sim [SEED]         simulate: one seed, or 2,000 fresh ones
  format             format all C sources
  install [PREFIX]   install programs, manuals, completion, libesker; below /usr/local by default
TEXT
}

root=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

packages() {
    sh "$root/tools/install-packages.sh" "$@"
}

# compile PRESET TARGET...: configures build/PRESET once, then builds. Shows ninja's progress to a
# terminal, else nothing unless it fails.
compile() {
    preset=$1
    shift
    directory=$root/build/$preset
    if [ -f "$directory/CMakeCache.txt" ] &&
        ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$directory/CMakeCache.txt"; then
        rm -rf "$directory" # the tree was moved
    fi
    if [ ! -f "$directory/build.ninja" ]; then
        mkdir -p "$directory"
        (cd "$root" && cmake --preset "$preset") >"$directory/configure.log" 2>&1 || {
            cat "$directory/configure.log" >&2
            exit 1
        }
    fi
    if [ -t 1 ]; then
        ninja -C "$directory" "$@"
    else
        ninja -C "$directory" "$@" >"$directory/build.log" 2>&1 || {
            grep -v '^\[' "$directory/build.log" >&2
            exit 1
        }
    fi
}

# run_tests PRESET CTEST-ARGUMENT...
run_tests() {
    directory=$root/build/$1
    shift
    ctest --test-dir "$directory" -j "$jobs" --output-on-failure --no-tests=error "$@"
}

step() {
    echo "== $*"
}

# The major version of clang-format or clang-tidy.
version() {
    "$1" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p'
}

c_sources() {
    find "$root/src" "$root/tests" "$root/bench" "$root/include" "$root/examples" \
        \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.inc' \) 2>/dev/null
}

fuzz_targets() {
    for source in "$root"/tests/fuzz/*_fuzz.c; do
        [ -e "$source" ] && basename "$source" _fuzz.c
    done
}

# fuzz TARGET LIBFUZZER-ARGUMENT...: new inputs go to build/fuzz/corpus, findings to build/fuzz.
fuzz() {
    target=$1
    shift
    mkdir -p "$root/build/fuzz/corpus/$target" "$root/tests/fuzz/corpus/$target"
    "$root/build/fuzz/tests/fuzz/${target}_fuzz" -timeout=10 -rss_limit_mb=4096 \
        -artifact_prefix="$root/build/fuzz/$target-" "$@" \
        "$root/build/fuzz/corpus/$target" "$root/tests/fuzz/corpus/$target"
}

check() {
    packages build test check
    step "layers, tidy"
    python3 -B "$root/tools/check_layers.py"
    python3 -B "$root/tools/check_style.py"
    if [ "$(version clang-format)" = 14 ]; then
        step "format"
        c_sources | xargs clang-format --dry-run -Werror
    else
        step "format: skipped, the sources follow clang-format 14"
    fi
    step "build, tests"
    compile release
    run_tests release
    step "build with clang, for fuzzing"
    compile fuzz
    if [ "$(version clang-tidy)" = 14 ]; then
        step "clang-tidy"
        find "$root/src" -name '*.c' ! -name '*_test.c' |
            xargs -P "$jobs" -n 8 clang-tidy -p "$root/build/fuzz" --quiet 2>/dev/null
    else
        step "clang-tidy: skipped, its checks follow version 14"
    fi
    step "fuzz each target briefly"
    fuzz_targets | while read -r target; do
        echo "-- $target"
        fuzz "$target" -max_total_time="${ESKER_FUZZ_SECONDS:-10}" -print_final_stats=0 \
            -verbosity=0 </dev/null
    done
    step "tests under the address and undefined behaviour sanitizers"
    compile asan
    run_tests asan -L 'unit|scenario'
    step "tests under the thread sanitizer"
    compile tsan
    run_tests tsan -R '^(runtime|server|broker|scenario)' -E '^scenario.faults'
}

[ $# -gt 0 ] || {
    usage >&2
    exit 2
}
command=$1
shift
case $command in
run)
    [ "${1:-}" != -- ] || shift
    packages build
    compile release esker esk
    exec "$root/build/release/esker" "$@"
    ;;
build)
    packages build
    compile release esker esk
    ;;
test)
    packages build test
    compile release
    run_tests release ${1:+-R "$1"}
    ;;
check)
    check
    ;;
bench)
    [ $# -gt 0 ] || {
        echo "usage: ./do bench NAME, where NAME is one of:" >&2
        for file in "$root"/bench/*.sh "$root"/bench/*_bench.py; do
            [ -e "$file" ] && echo "  $(basename "$file" | sed 's/_bench\.py$//; s/\.sh$//')" >&2
        done
        exit 2
    }
    packages build test
    compile release
    name=$1
    shift
    if [ -f "$root/bench/$name.sh" ]; then
        exec sh "$root/bench/$name.sh" "$@"
    elif [ -f "$root/bench/${name}_bench.py" ]; then
        exec python3 -B "$root/bench/${name}_bench.py" "$@"
    fi
    exec python3 -B "$root/bench/$name.py" "$@"
    ;;
fuzz)
    [ $# -gt 0 ] || {
        echo "usage: ./do fuzz TARGET, where TARGET is one of:" >&2
        fuzz_targets | sed 's/^/  /' >&2
        exit 2
    }
    packages build check
    compile fuzz "$1_fuzz"
    fuzz "$@"
    ;;
sim)
    packages build test
    compile release esk_sim
    if [ $# -gt 0 ]; then
        exec "$root/build/release/sim/esk_sim" --seed "$@"
    fi
    exec "$root/build/release/sim/esk_sim" --seeds 2000
    ;;
format)
    packages check
    if [ "$(version clang-format)" != 14 ]; then
        echo "the sources follow clang-format 14, Debian 12's; this is another" >&2
        exit 1
    fi
    c_sources | xargs clang-format -i
    ;;
install)
    case ${1:-} in
    -*)
        echo "usage: ./do install [PREFIX]   below /usr/local by default: the programs, their"
        echo "manual pages, completion for bash, zsh and fish, and libesker with its headers"
        exit 0
        ;;
    esac
    packages build
    compile release esker esk libesker libesker_static
    cmake --install "$root/build/release" --prefix "${1:-/usr/local}"
    ;;
help | --help | -h)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
