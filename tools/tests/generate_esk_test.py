# SPDX-License-Identifier: Apache-2.0
"""The generator of esk's commands refuses tables that break a rule, and docs/esk.md is its own."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import generate_esk  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def lines(head, fields):
    return f"[[{head}]]\n" + "".join(f"{n} = {v}\n" for n, v in fields.items() if v is not None)


def command(**changes):
    return lines("command", {"name": '"topic create"', "arguments": '"TOPIC"',
                             "summary": '"Make one."', "detail": '""',
                             "examples": '["esk topic create a"]', **changes})


def option(**changes):
    return lines("command.option", {"name": '"batch"', "type": '"size"', "value": '"BYTES"',
                                    "default": '"1KiB"', "min": '"1"', "max": '"1MiB"',
                                    "help": '"how much"', **changes})


GLOBAL = lines("global", {"name": '"help"', "letter": '"h"', "type": '"flag"', "help": '"show"'})


def test_a_good_table_is_rendered():
    table = generate_esk.load(GLOBAL + command() + option(letter='"b"') +
                              command(name='"list"', arguments='"[NAME] [KEY=VALUE]..."'))
    files = generate_esk.render(*table)
    assert "    ESK_TOOL_TOPIC_CREATE,\n" in files["esk/command_table.h"]
    source = files["esk/command_table.c"]
    assert ".max = UINT64_C(1048576)," in source and ".letter = 'b'," in source
    assert ".arguments_min = 1," in source and ".arguments_max = UINT32_C(1)," in source
    assert ".arguments_min = 0," in source and ".arguments_max = UINT32_C(4294967295)," in source
    assert "| `--batch`, `-b` | 1 to 1MiB | 1KiB | how much |" in files["docs/esk.md"]


@pytest.mark.parametrize("text, part", [
    (command() + command(), "not a new name"),
    (command(name='"topic"') + command(), "not a new name"),
    (command(name='"topic create now"'), "one word or two"),
    (command(arguments='"topic"'), "arguments topic"),
    (command(summary=None), "fields of a command"),
    (command(summary="'a\\b'"), "backslash"),
    (command() + option() + option(), "new name in small letters"),
    (command() + option(name='"help"'), "new name in small letters"),
    (command() + option(letter='"h"'), "new letter"),
    (command() + option(default='"1x"'), "default is no size"),
    (command() + option(default='"2MiB"'), "out of order"),
    (command() + option(min=None), "fields of a size"),
    (command() + option(type='"time"'), "unknown type"),
    (command() + option(type='"choice"', choices='["a"]', value=None, min=None, max=None),
     "of the choices"),
])
def test_a_bad_table_is_refused(text, part):
    with pytest.raises(generate_esk.Invalid, match=part):
        generate_esk.load(GLOBAL + text)


def test_the_page_of_the_documentation_is_the_table_s():
    text = (ROOT / "definitions" / "esk.toml").read_text(encoding="utf-8")
    made = generate_esk.render(*generate_esk.load(text))["docs/esk.md"]
    assert (ROOT / "docs" / "esk.md").read_text(encoding="utf-8") == made
