# SPDX-License-Identifier: Apache-2.0
"""The generator of metrics refuses tables that break a rule, and docs/metrics.md is its own."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import generate_metrics  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def table(**changes):
    entry = {"name": '"turn_seconds"', "kind": '"histogram"', "unit": '"nanoseconds"',
             "buckets": "[3, 30]", "labels": '["shard"]', "help": '"How long."', **changes}
    return "[[metric]]\n" + "".join(f"{n} = {v}\n" for n, v in entry.items() if v is not None)


def test_a_good_table_is_rendered():
    files = generate_metrics.render(generate_metrics.load(table()))
    assert "ESK_METRIC_TURN_SECONDS,\n" in files["observe/metric_table.h"]
    assert '"esker_turn_seconds",' in files["observe/metric_table.c"]
    assert "NANOSECONDS, 3, 30, 1, {\"shard\"}}," in files["observe/metric_table.c"]
    assert "| `esker_turn_seconds` | histogram | shard | How long. |" in files["docs/metrics.md"]


@pytest.mark.parametrize("text, part", [
    (table(name='"Turn_seconds"'), "small letters"),
    (table() + table(), "not a new name"),
    (table(name='"turn"'), "end in _seconds"),
    (table(unit=None), "end in _seconds"),
    (table(kind='"counter"'), "end in _total"),
    (table(kind='"timer"'), "unknown kind"),
    (table(buckets=None), "have buckets"),
    (table(buckets="[0, 36]"), "within 0 and 35"),
    (table(labels='["topic", "shard"]'), "first label"),
    (table(labels='["a", "b", "c", "d"]'), "more than 3"),
    (table(help='"no stop"'), "no sentence"),
    (table(extra="1"), "fields must be"),
])
def test_a_bad_table_is_refused(text, part):
    with pytest.raises(generate_metrics.Invalid, match=part):
        generate_metrics.load(text)


def test_the_table_of_the_documentation_is_the_tree_s():
    text = (ROOT / "definitions" / "metrics.toml").read_text(encoding="utf-8")
    made = generate_metrics.render(generate_metrics.load(text))["docs/metrics.md"]
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == made
