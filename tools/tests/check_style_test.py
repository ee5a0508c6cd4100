# SPDX-License-Identifier: Apache-2.0
"""Tidy finds each kind of bad file, and lets good ones pass. Bad samples are built from parts, so
that tidy does not find them here."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import check_style  # noqa: E402

C = "/* SPDX-License-Identifier: Apache-2.0 */\n"
PY = "# SPDX-License-Identifier: Apache-2.0\n"


def problems(path, text, waivers=None):
    return check_style.check_file(path, text, check_style.Sizes(waivers or {}))


def function(name, lines, before="static int "):
    return f"{before}{name}(int a,\n    int b) {{\n" + "    a++;\n" * (lines - 3) + "}\n"


GOOD = C + '''#include "base/bytes.h"

#define MANY(x) \\
    do {        \\
    } while (0)

struct pair {
    int (*call)(void *context);
};

static const struct pair table[] = {
    {0},
};

static int first(const char *text) {
    return text[0] == '{' || text[0] == '"'; /* } */
}

int esk_pair_call(struct pair *pair) {
    if (pair->call) {
        return pair->call("}");
    }
    return first("{");
}
'''


def test_a_good_file_passes_and_its_functions_are_seen():
    assert problems("src/base/pair.c", GOOD) == []
    assert [(f[0], f[1], f[3]) for f in check_style.functions(GOOD)] == [
        ("first", True, 3), ("esk_pair_call", False, 6)]


@pytest.mark.parametrize("path, text, part", [
    ("src/base/a.c", "int x;\n", "SPDX"),
    ("tools/a.py", "x = 1\n", "SPDX"),
    ("do", "#!/bin/sh\nset -e\n", "SPDX"),
    ("src/base/a.c", C + "int x;\n" * 800, "801 lines, more than 800"),
    ("src/base/a.h", C + "int x;\n" * 200, "201 lines, more than 200"),
    ("src/base/a.c", C + function("f", 71), "71 lines, more than 70"),
    ("src/base/a.c", C + function("helper", 5, "int "), "neither static nor named"),
    ("src/base/a.c", C + "/*" + "x" * 99 + "*/\n", "columns"),
    ("src/base/a.c", C + "\tint x;\n", "a tab"),
    ("src/base/a.c", C + "int x; \n", "white space"),
    ("src/base/a.c", C + "int x;", "no newline"),
    ("src/base/a.c", C + "/* TO" + "DO: more */\n", "unfinished"),
    ("docs/a.md", "see /wo" + "rk/main\n", "stands alone"),
    ("docs/a.md", "see ../sha" + "red/spec\n", "stands alone"),
    ("docs/a.md", "see iss" + "ue 3\n", "stands alone"),
    ("src/base/a.c", C + "int x = cmocka_unit_test(f);\n", "ends in _test.c"),
    ("src/base/a_test.c", C + "int x;\n", "has no test"),
    ("tests/scenario/test_a.py", PY + "def test_a():\n    pass\n", "named *_test.py"),
    ("src/base/utils.c", C, "named after what it holds"),
    ("src/base/a_test.c", C + "    usl" + "eep(5);\n", "sleeps"),
    ("tests/scenario/a_test.py", PY + "time.sl" + "eep(5)\n", "sleeps"),
    ("tests/sim/a.c", C + "static int f(void) {\n    sl" + "eep (1);\n}\n", "sleeps"),
    ("tools/install-packages.sh", PY + "curl http://example\n", "no host"),
    ("tools/install-packages.sh", PY + "deb packages.example.org\n", "no host"),
])
def test_bad_files_are_found(path, text, part):
    found = problems(path, text)
    assert any(part in problem for problem in found), found


def test_a_function_of_exactly_the_limit_passes():
    assert problems("src/base/a.c", C + function("f", 70)) == []


@pytest.mark.parametrize("waived, part", [
    (75, None), (74, "more than its waiver's 74"), (76, "may go down to 75")])
def test_a_waiver_fits_exactly(waived, part):
    found = problems("src/base/a.c", C + function("f", 75), {"src/base/a.c:f": waived})
    assert (found == []) if part is None else (part in found[0])


def test_a_waiver_that_is_not_needed_must_go():
    found = problems("src/base/a.c", C + function("f", 20), {"src/base/a.c:f": 75})
    assert "remove it" in found[0]


def test_the_waiver_list_states_its_length():
    assert check_style.read_waivers("# why\nat most 1\nsrc/a.c:f 80\n") == ({"src/a.c:f": 80}, [])
    assert check_style.read_waivers("at most 1\na 1\nb 2\n")[1]
    assert check_style.read_waivers("a 1\n")[1]


def test_a_waiver_without_its_file_is_found_and_skipped_folders_are(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "bad.c").write_text("bad")
    (tmp_path / "tools" / "style_waivers.txt").write_text("at most 1\ngone.c 900\n")
    assert check_style.check(tmp_path) == ["tools/style_waivers.txt: gone.c is not there"]


def test_this_tree_is_tidy():
    assert check_style.check(pathlib.Path(__file__).parents[2]) == []
