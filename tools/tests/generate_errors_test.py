# SPDX-License-Identifier: Apache-2.0
"""The generator of error codes refuses tables that break a rule."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import generate_errors  # noqa: E402


def table(**changes):
    entry = {"name": '"INTERNAL"', "http": "500", "kafka": "-1", "retriable": "false",
             "meaning": '"a fault of ours"', **changes}
    return "[[error]]\n" + "".join(f"{n} = {v}\n" for n, v in entry.items() if v is not None)


def test_a_good_table_is_rendered():
    files = generate_errors.render(generate_errors.load(table()))
    assert "ESK_ERR_INTERNAL, /* a fault of ours */" in files["base/errors.h"]
    assert "#define ESK_ERR_COUNT 2 " in files["base/errors.h"]
    row = '[ESK_ERR_INTERNAL] = {"INTERNAL", "a fault of ours", 500, -1, false, "internal"},'
    assert row in files["base/errors.c"]
    assert "| `INTERNAL` | 500 | -1 | no | internal | a fault of ours |" in files["docs/errors.md"]


@pytest.mark.parametrize("text, part", [
    (table(name='"internal"'), "capitals"),
    (table(name='"OK"'), "capitals"),
    (table() + table(), "twice"),
    (table(name='"IO"'), "INTERNAL is missing"),
    (table(http="200"), "no error status"),
    (table(http='"500"'), "type int"),
    (table(retriable="1"), "type bool"),
    (table(kafka="0"), "no error code of Kafka"),
    (table(kafka=None), "fields must be"),
    (table(extra="1"), "fields must be"),
    (table(meaning="'a \"quote\"'"), "quote"),
    (table(meaning='""'), "empty"),
    (table(phrase='"In Capitals"'), "lower case"),
    (table() + table(name='"IO"', phrase='"internal"'), "phrase 'internal': given twice"),
])
def test_a_bad_table_is_refused(text, part):
    with pytest.raises(generate_errors.Invalid, match=part):
        generate_errors.load(text)
