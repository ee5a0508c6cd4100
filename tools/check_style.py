# SPDX-License-Identifier: Apache-2.0
"""Tidy: sizes, licence lines, names and forbidden words of every file of the tree.

usage: check_style.py [ROOT]; prints one line a problem and exits 1 if there is any.

Sizes above the limits need an entry in tools/style_waivers.txt, "PATH LINES" for a file and
"PATH:FUNCTION LINES" for a function. An entry that allows more than there is must be lowered or go,
and the list may not have more entries than its first line says: so it only shrinks.
"""
import pathlib
import re
import sys

C_LINES_MAX = 800
HEADER_LINES_MAX = 200
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

SKIPPED_FOLDERS = {
    ".git", "build", "esker-data", "__pycache__", ".pytest_cache", "corpus", "golden",
}
CODE = {".c", ".h", ".cc", ".inc", ".py", ".sh", ".cmake", ".toml", ".js", ".mjs", ".css"}
CODE_NAMES = {"do", "run", "CMakeLists.txt", ".clang-format", ".clang-tidy"}
PLAIN = {".md", ".txt", ".json", ".ini", ".html"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"

# Written in two parts, so that this file does not find itself.
FORBIDDEN_WORDS = [
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"), "unfinished work is not left in the tree"),
    (re.compile(r"/wo" r"rk/|\.\./sha" r"red\b|/tmp/e" r"sk/"), "the tree stands alone"),
    (re.compile(r"\bissue" r"s? #?\d+\b", re.IGNORECASE), "the tree stands alone"),
    (re.compile("[ \t]+$"), "white space at the end of a line"),
]
SLEEP = re.compile(r"\b(?:u|nano|clock_nano|uv_|thrd_)?sleep\s*\(")
HOST = re.compile(r"\b[a-z][a-z0-9+.-]*://|\b[\w-]+\.(?:org|com|net|io|dev|cloud)\b")
FUNCTION = re.compile(r"^(?:[\w*]|\[\[).*?\b(\w+)\((?:[^;{}]|\n)*?\)[^;{}=]*\{", re.MULTILINE)
PUBLIC_NAME = re.compile(r"(?:esk_|eski_)\w+|main|LLVMFuzzer\w+")
NOT_FUNCTIONS = {"if", "for", "while", "switch", "struct", "enum", "union", "sizeof"}


def without_comments(text):
    """The C text with comments and literals blanked out, every line kept in its place."""
    shape = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return shape.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def functions(text):
    """(name, is static, first line, count of lines) of each function defined in a C text whose
    functions begin at the line's start and end with a brace there."""
    bare = without_comments(text)
    at = 0
    while True:
        match = FUNCTION.search(bare, at)
        if not match:
            return
        at = match.end()
        if match[1] in NOT_FUNCTIONS or match[0].startswith(("#", "typedef")):
            continue
        end = re.compile(r"^\}", re.MULTILINE).search(bare, at)
        if not end:
            return
        first = bare.count("\n", 0, match.start()) + 1
        last = bare.count("\n", 0, end.start()) + 1
        static = bool(re.match(r"(?:__\w+\S*\s+)?static\b", match[0]))
        yield match[1], static, first, last - first + 1
        at = end.end()


class Sizes:
    """Limits with waivers; remembers which waivers were needed."""

    def __init__(self, waivers):
        self.waivers = dict(waivers)
        self.unused = set(waivers)

    def problem(self, what, lines, limit):
        waived = self.waivers.get(what)
        if waived is None:
            return f"{lines} lines, more than {limit}" if lines > limit else None
        self.unused.discard(what)
        if lines <= limit:
            return "its waiver is no longer needed: remove it"
        if lines > waived:
            return f"{lines} lines, more than its waiver's {waived}"
        if lines < waived:
            return f"its waiver may go down to {lines}"
        return None


def read_waivers(text):
    """({what: lines}, [problem]) of a waiver list."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if not lines or not re.fullmatch(r"at most \d+", lines[0]):
        return {}, ["the first entry must be `at most N`"]
    waivers = {}
    for line in lines[1:]:
        what, _, size = line.rpartition(" ")
        waivers[what] = int(size)
    limit = int(lines[0].split()[2])
    if len(waivers) != limit:
        return waivers, [f"{len(waivers)} entries, but `at most {limit}`: keep the two equal"]
    return waivers, []


def check_c(path, text, sizes):
    """Problems of a C or C++ source or header as (line or 0, text)."""
    lines = text.count("\n")
    limit = HEADER_LINES_MAX if path.endswith(".h") else C_LINES_MAX
    found = [(0, sizes.problem(path, lines, limit))]
    test = path.endswith(("_test.c", "_testing.c"))
    library = path.startswith("src/") and path.endswith(".c") and not test
    for name, static, first, length in functions(text):
        found.append((first, sizes.problem(f"{path}:{name}", length, FUNCTION_LINES_MAX)))
        if library and not static and not PUBLIC_NAME.fullmatch(name):
            found.append((first, f"{name} is neither static nor named esk_ or eski_"))
    if path.endswith("_test.c") and "cmocka_unit_test" not in text:
        found.append((0, "a _test.c file has no test"))
    if path.endswith(".c") and not test and "cmocka_unit_test" in text:
        found.append((0, "a test program's name ends in _test.c"))
    return [(line, problem) for line, problem in found if problem]


def check_file(path, text, sizes):
    """All problems of one file as texts; path is relative to the root, with slashes."""
    name = path.rpartition("/")[2]
    suffix = pathlib.PurePosixPath(path).suffix
    code = suffix in CODE or name in CODE_NAMES
    found = []
    lines = text.split("\n")
    if text and lines[-1]:
        found.append((len(lines), "no newline at the end"))
    if code and not any(LICENCE in line for line in lines[:2]):
        found.append((1, f"no `{LICENCE}` in the first two lines"))
    if suffix in (".c", ".h", ".cc", ".inc"):
        found += check_c(path, text, sizes)
    elif suffix == ".py":
        found += [(0, sizes.problem(path, len(lines) - 1, C_LINES_MAX))]
        if re.search(r"^def test_", text, re.MULTILINE) and not name.endswith("_test.py"):
            found.append((0, "a file with tests is named *_test.py"))
    if name in ("utils.c", "utils.h", "util.c", "util.h", "utils.py", "util.py", "misc.c"):
        found.append((0, "a file is named after what it holds"))
    test = path.startswith("tests/") or name.endswith(("_test.c", "_testing.c", "_test.py"))
    for number, line in enumerate(lines, 1):
        if code and suffix != ".toml" and len(line) > COLUMNS_MAX:
            found.append((number, f"{len(line)} columns, more than {COLUMNS_MAX}"))
        if suffix in (".c", ".h", ".cc", ".inc", ".py") and "\t" in line:
            found.append((number, "a tab"))
        if test and SLEEP.search(line):
            found.append((number, "a test sleeps; wait for an event or use virtual time"))
        if "install-packages" in name and HOST.search(line):
            found.append((number, "a package script names no host"))
        for shape, why in FORBIDDEN_WORDS:
            if shape.search(line) and not (suffix == ".md" and why.startswith("white")):
                found.append((number, why))
    return [f"{path}:{line}: {problem}" if line else f"{path}: {problem}"
            for line, problem in found if problem]


def files_of(root):
    for file in sorted(root.rglob("*")):
        parts = file.relative_to(root).parts
        if file.is_file() and not SKIPPED_FOLDERS.intersection(parts):
            if file.suffix in CODE | PLAIN or file.name in CODE_NAMES:
                yield file


def check(root):
    waiver_file = root / "tools" / "style_waivers.txt"
    waivers, problems = read_waivers(waiver_file.read_text(encoding="utf-8"))
    problems = [f"tools/style_waivers.txt: {problem}" for problem in problems]
    sizes = Sizes(waivers)
    count = 0
    for file in files_of(root):
        path = file.relative_to(root).as_posix()
        if path == "LICENSE":
            continue
        count += 1
        problems += check_file(path, file.read_text(encoding="utf-8"), sizes)
    problems += [f"tools/style_waivers.txt: {what} is not there" for what in sorted(sizes.unused)]
    if count == 0:
        problems.append(f"{root}: no file found")
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    problems = check(root.resolve())
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
