# SPDX-License-Identifier: Apache-2.0
"""Makes observe/metric_table.h, .c and docs/metrics.md from definitions/metrics.toml.

usage: generate_metrics.py --out DIR definitions/metrics.toml
"""
import argparse
import pathlib
import re
import tomllib

LABELS_MAX = 3
BUCKETS = 36  # ESK_HISTOGRAM_BUCKETS; observe/exposition.c asserts that they agree

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/metrics.toml; do not edit. */
#ifndef ESK_OBSERVE_METRIC_TABLE_H
#define ESK_OBSERVE_METRIC_TABLE_H

#include <stdint.h>

enum esk_metric {{
{codes}}};

#define ESK_METRIC_COUNT {count}
#define ESK_METRIC_LABELS_MAX {labels_max}
#define ESK_METRIC_BUCKETS {buckets}

enum esk_metric_kind {{ ESK_METRIC_COUNTER, ESK_METRIC_GAUGE, ESK_METRIC_HISTOGRAM }};
enum esk_metric_unit {{ ESK_METRIC_PLAIN, ESK_METRIC_NANOSECONDS }};

struct esk_metric_description {{
    const char *name; /* as shown, with its prefix */
    const char *help;
    enum esk_metric_kind kind;
    enum esk_metric_unit unit;
    uint8_t first_bucket; /* of a histogram: shown ones, powers of two of the unit */
    uint8_t last_bucket;
    uint8_t label_count;
    const char *labels[ESK_METRIC_LABELS_MAX];
}};

/* Indexed by enum esk_metric. */
extern const struct esk_metric_description esk_metric_table[ESK_METRIC_COUNT];

#endif
"""

SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/metrics.toml; do not edit. */
#include "observe/metric_table.h"

const struct esk_metric_description esk_metric_table[ESK_METRIC_COUNT] = {{
{rows}}};
"""

DOCUMENT = """<!-- Made from definitions/metrics.toml by tools/generate_metrics.py; do not edit. -->
# Metrics

`GET /metrics` answers in the Prometheus text format. Durations are in seconds.

| name | kind | labels | meaning |
|---|---|---|---|
{rows}"""


class Invalid(Exception):
    """The table breaks one of its rules."""


def check(entry, seen):
    name = entry.get("name", "?")
    required = {"name", "kind", "labels", "help"}
    if not required <= set(entry) <= required | {"unit", "buckets"}:
        raise Invalid(f"{name}: fields must be name, kind, labels, help and perhaps unit, buckets")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in seen:
        raise Invalid(f"{name}: not a new name in small letters")
    if entry["kind"] not in ("counter", "gauge", "histogram"):
        raise Invalid(f"{name}: unknown kind {entry['kind']}")
    if (entry["kind"] == "counter") != name.endswith("_total"):
        raise Invalid(f"{name}: counters, and nothing else, end in _total")
    if entry.get("unit", "nanoseconds") != "nanoseconds":
        raise Invalid(f"{name}: unknown unit {entry['unit']}")
    if ("unit" in entry) != name.endswith("_seconds"):
        raise Invalid(f"{name}: times, and nothing else, end in _seconds")
    if ("buckets" in entry) != (entry["kind"] == "histogram"):
        raise Invalid(f"{name}: histograms, and nothing else, have buckets")
    first, last = entry.get("buckets", [0, 0])
    if not 0 <= first <= last < BUCKETS:
        raise Invalid(f"{name}: buckets must be within 0 and {BUCKETS - 1}")
    if len(entry["labels"]) > LABELS_MAX:
        raise Invalid(f"{name}: more than {LABELS_MAX} labels")
    if not all(re.fullmatch(r"[a-z][a-z_]*", label) for label in entry["labels"]):
        raise Invalid(f"{name}: a label is not a name in small letters")
    if "shard" in entry["labels"][1:]:
        raise Invalid(f"{name}: shard must be the first label")
    if not re.fullmatch(r'[^"\\\n|]+\.', entry["help"]):
        raise Invalid(f"{name}: the help is no sentence, or has a quote, backslash or bar")
    seen.add(name)


def load(text):
    """Returns the table's list of metrics, or raises Invalid."""
    metrics = tomllib.loads(text).get("metric", [])
    seen = set()
    for entry in metrics:
        check(entry, seen)
    return metrics


def row(entry):
    unit = "ESK_METRIC_NANOSECONDS" if "unit" in entry else "ESK_METRIC_PLAIN"
    first, last = entry.get("buckets", [0, 0])
    labels = ", ".join(f'"{label}"' for label in entry["labels"]) or "NULL"
    labels = labels.replace("NULL", "0")
    return (
        f'    [ESK_METRIC_{entry["name"].upper()}] = {{"esker_{entry["name"]}",\n'
        f'        "{entry["help"]}",\n'
        f'        ESK_METRIC_{entry["kind"].upper()}, {unit}, {first}, {last}, '
        f'{len(entry["labels"])}, {{{labels}}}}},\n'
    )


def render(metrics):
    """Returns {path below the output directory: text}."""
    codes = "".join(f"    ESK_METRIC_{m['name'].upper()},\n" for m in metrics)
    lines = "".join(
        f"| `esker_{m['name']}` | {m['kind']} | {', '.join(m['labels'])} | {m['help']} |\n"
        for m in metrics
    )
    return {
        "observe/metric_table.h": HEADER.format(
            codes=codes, count=len(metrics), labels_max=LABELS_MAX, buckets=BUCKETS
        ),
        "observe/metric_table.c": SOURCE.format(rows="".join(row(m) for m in metrics)),
        "docs/metrics.md": DOCUMENT.format(rows=lines),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        metrics = load(arguments.table.read_text(encoding="utf-8"))
    except (Invalid, tomllib.TOMLDecodeError) as problem:
        raise SystemExit(f"{arguments.table}: {problem}") from None
    for path, text in render(metrics).items():
        target = arguments.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
