# SPDX-License-Identifier: Apache-2.0
"""The generator of options refuses tables that break a rule, and docs/options.md is its own."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import generate_options  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def table(**changes):
    entry = {"name": '"flush-interval"', "group": '"Data"', "type": '"duration"',
             "value": '"TIME"', "default": '"1s"', "min": '"5ms"', "max": '"1h"',
             "help": '"how often"', **changes}
    return "[[option]]\n" + "".join(f"{n} = {v}\n" for n, v in entry.items() if v is not None)


def test_a_good_table_is_rendered():
    files = generate_options.render(generate_options.load(table()))
    assert "    ESK_OPTION_FLUSH_INTERVAL,\n" in files["esker/option_table.h"]
    source = files["esker/option_table.c"]
    assert '.environment = "ESKER_FLUSH_INTERVAL",' in source
    assert ".min = UINT64_C(5)," in source and ".max = UINT64_C(3600000)," in source
    row = "| `--flush-interval` | `ESKER_FLUSH_INTERVAL` | `1s` | 5ms to 1h | how often |"
    assert row in files["docs/options.md"]


@pytest.mark.parametrize("text, part", [
    (table(name='"Flush"'), "small letters"),
    (table() + table(), "not a new name"),
    (table(type='"time"'), "unknown type"),
    (table(default='"1x"'), "default is no duration"),
    (table(default='"1ms"'), "out of order"),
    (table(max='"1ms"'), "out of order"),
    (table(min=None), "fields of a duration"),
    (table(automatic='"found"'), "fields of a duration"),
    (table(type='"choice"', choices='["a"]', value=None, min=None, max=None), "of the choices"),
    (table(help="'a \"quote\"'"), "quote"),
    (table(sources='"none"'), "unknown sources"),
    (table() + table(name='"a"', group='"Other"') + table(name='"b"'), "stand together"),
])
def test_a_bad_table_is_refused(text, part):
    with pytest.raises(generate_options.Invalid, match=part):
        generate_options.load(text)


def test_the_page_of_the_documentation_is_the_table_s():
    text = (ROOT / "definitions" / "options.toml").read_text(encoding="utf-8")
    made = generate_options.render(generate_options.load(text))["docs/options.md"]
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == made
