# SPDX-License-Identifier: Apache-2.0
"""The generator of routes refuses tables that break a rule, and docs/http-routes.md is its own."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import generate_routes  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def table(**changes):
    entry = {"method": '"GET"', "path": '"/a/:b"', "operation": '"look"', "body": "false",
             "summary": '"Look at it."', **changes}
    return "[[route]]\n" + "".join(f"{n} = {v}\n" for n, v in entry.items() if v is not None)


def test_a_good_table_is_rendered():
    files = generate_routes.render(generate_routes.load(table()))
    assert "void eski_look_run(struct eski_request *request);" in files[
        "server/http/route_table.h"]
    assert 'false, ESKI_ACCESS_ADMIN,\n     2, {"a", NULL}' in files["server/http/route_table.c"]
    assert "| GET | `/a/:b` | `look` | admin | Look at it. |" in files["docs/http-routes.md"]


@pytest.mark.parametrize("text, part", [
    ("", "no routes"),
    (table(method='"PATCH"'), "method must be one of"),
    (table(path='"a"'), "not a path"),
    (table(path='"/a/"'), "not a path"),
    (table(operation='"Look"'), "not an operation"),
    (table(operation='"none"'), "not an operation"),
    (table() + table(operation='"other"', path='"/a/:c"'), "given twice"),
    (table() + table(path='"/b"'), "given twice"),
    (table(summary='""'), "summary"),
    (table(body='"no"'), "body must be of type bool"),
    (table(body=None), "fields must be"),
    (table(extra="1"), "fields must be"),
    (table(access='"root"'), "access must be one of"),
    (table(access='"read"', path='"/a"'), "without a topic"),
])
def test_a_bad_table_is_refused(text, part):
    with pytest.raises(generate_routes.Invalid, match=part):
        generate_routes.load(text)


def test_the_table_of_the_documentation_is_the_tree_s():
    text = (ROOT / "definitions" / "routes.toml").read_text(encoding="utf-8")
    made = generate_routes.render(generate_routes.load(text))["docs/http-routes.md"]
    assert (ROOT / "docs" / "http-routes.md").read_text(encoding="utf-8") == made
