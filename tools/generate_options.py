# SPDX-License-Identifier: Apache-2.0
"""Makes esker/option_table.h, .c and docs/options.md from definitions/options.toml.

usage: generate_options.py --out DIR definitions/options.toml
"""
import argparse
import pathlib
import re
import tomllib

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/options.toml; do not edit. */
#ifndef ESK_ESKER_OPTION_TABLE_H
#define ESK_ESKER_OPTION_TABLE_H

#include <stdint.h>

enum esk_option {{
{codes}}};

#define ESK_OPTION_COUNT {count}

enum esk_option_type {{
    ESK_OPTION_TYPE_PATH,
    ESK_OPTION_TYPE_ADDRESS,
    ESK_OPTION_TYPE_INTEGER,
    ESK_OPTION_TYPE_SIZE,     /* bytes */
    ESK_OPTION_TYPE_DURATION, /* milliseconds */
    ESK_OPTION_TYPE_CHOICE,   /* the index in choices */
    ESK_OPTION_TYPE_ORIGIN,   /* several, with a space between them */
    ESK_OPTION_TYPE_FLAG,
}};

/* Where an option may be given: each value includes those above it. */
enum esk_option_sources {{
    ESK_OPTION_COMMAND_LINE,
    ESK_OPTION_ENVIRONMENT,
    ESK_OPTION_FILE,
}};

struct esk_option_description {{
    const char *name;
    const char *environment; /* the variable's name */
    const char *group;
    const char *value; /* what stands for it in help; of a choice all of them, of a flag NULL */
    const char *help;
    const char *default_text;    /* NULL: found automatically, or a flag */
    const char *default_meaning; /* what help shows as the default; NULL for a flag */
    const char *min_text;        /* NULL: no range */
    const char *max_text;
    const char *const *choices; /* NULL-terminated; NULL: no choice */
    uint64_t min;
    uint64_t max;
    enum esk_option_type type;
    enum esk_option_sources sources;
}};

/* Indexed by enum esk_option, in the order of help. */
extern const struct esk_option_description esk_option_table[ESK_OPTION_COUNT];

#endif
"""

SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/options.toml; do not edit. */
#include "esker/option_table.h"

#include <stddef.h>

const struct esk_option_description esk_option_table[ESK_OPTION_COUNT] = {{
{rows}}};
"""

DOCUMENT = """<!-- Made from definitions/options.toml by tools/generate_options.py; do not edit. -->
# Options of esker

    esker [--option VALUE | --option=VALUE]...

An option can be given on the command line, as an environment variable, or in the file that
`--config` names; the first of these that has it decides. Given twice on the command line, the later
one does. An empty environment variable counts as not set.

Durations are a number and `ms`, `s`, `m`, `h` or `d`; sizes are a number of bytes, or one with
`kB`, `MB`, `GB` (1000) or `KiB`, `MiB`, `GiB` (1024). The file has one option a line, by its name
without dashes; blank lines and lines that begin with `#` are skipped:

    # /etc/esker.conf
    data-dir = /var/lib/esker
    bind = 0.0.0.0:9000
    memory = 2GiB

A value that is not allowed ends the program with exit code 2 and a line that says which, why, and
what is allowed. Exit codes: 0 after a clean stop, 1 after a failure, 2 for a wrong option.
"""

GROUP = """
## {group}

| option | variable | default | allowed | meaning |
|---|---|---|---|---|
{rows}"""

UNITS = {
    "integer": {"": 1},
    "size": {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9,
             "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    "duration": {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000},
}
SOURCES = {"all": "FILE", "no file": "ENVIRONMENT", "command line": "COMMAND_LINE"}
KINDS = {"path", "address", "choice", "origin", "flag", *UNITS}


class Invalid(Exception):
    """The table breaks one of its rules."""


def number(entry, field):
    """The value of a bound or default in the unit of its type, or raises Invalid."""
    match = re.fullmatch(r"([0-9]+)([A-Za-z]*)", entry[field])
    units = UNITS[entry["type"]]
    if not match or match[2] not in units:
        raise Invalid(f"{entry['name']}: {field} is no {entry['type']}")
    return int(match[1]) * units[match[2]]


def check_fields(entry):
    name, kind = entry.get("name", "?"), entry.get("type")
    required = {"name", "group", "type", "help"}
    if kind not in KINDS:
        raise Invalid(f"{name}: unknown type {kind}")
    if kind != "flag":
        required.add("automatic" if "automatic" in entry else "default")
    required |= {"choices"} if kind == "choice" else {"value"} if kind != "flag" else set()
    required |= {"min", "max"} if kind in UNITS else set()
    if not required <= set(entry) <= required | {"sources"}:
        raise Invalid(f"{name}: fields of a {kind} must be {', '.join(sorted(required))}")
    texts = [entry["help"], entry["group"], entry.get("default", ""), entry.get("automatic", "")]
    if any(re.search(r'["\\\n|]', text) for text in texts):
        raise Invalid(f"{name}: a quote, backslash or bar in a text")
    if entry.get("sources", "all") not in SOURCES:
        raise Invalid(f"{name}: unknown sources")
    if kind == "flag" and entry.get("sources") != "command line":
        raise Invalid(f"{name}: flags are for the command line")


def check(entry, seen, groups):
    check_fields(entry)
    name = entry["name"]
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name) or name in seen:
        raise Invalid(f"{name}: not a new name in small letters and dashes")
    if entry["group"] in groups[:-1]:
        raise Invalid(f"{name}: its group does not stand together")
    if entry["type"] in UNITS:
        low, high = number(entry, "min"), number(entry, "max")
        default = number(entry, "default") if "default" in entry else low
        if not low <= default <= high < 2**63:
            raise Invalid(f"{name}: default and bounds are out of order")
    if entry["type"] == "choice" and entry["default"] not in entry["choices"]:
        raise Invalid(f"{name}: the default is none of the choices")


def load(text):
    """Returns the table's list of options, or raises Invalid."""
    options = tomllib.loads(text).get("option", [])
    seen, groups = set(), []
    for entry in options:
        if not groups or groups[-1] != entry.get("group"):
            groups.append(entry.get("group"))
        check(entry, seen, groups)
        seen.add(entry["name"])
    return options


def code(entry):
    return "ESK_OPTION_" + entry["name"].upper().replace("-", "_")


def environment(entry):
    return "ESKER_" + entry["name"].upper().replace("-", "_")


def shown_value(entry):
    return "|".join(entry["choices"]) if "choices" in entry else entry.get("value")


def literal(text):
    return "NULL" if text is None else f'"{text}"'


def row(entry):
    fields = {
        "name": literal(entry["name"]),
        "environment": literal(environment(entry)),
        "group": literal(entry["group"]),
        "value": literal(shown_value(entry)),
        "help": literal(entry["help"]),
        "default_text": literal(entry.get("default")),
        "default_meaning": literal(entry.get("default", entry.get("automatic"))),
        "min_text": literal(entry.get("min")),
        "max_text": literal(entry.get("max")),
        "type": "ESK_OPTION_TYPE_" + entry["type"].upper(),
        "sources": "ESK_OPTION_" + SOURCES[entry.get("sources", "all")],
    }
    if "choices" in entry:
        names = ", ".join(literal(choice) for choice in entry["choices"])
        fields["choices"] = f"(const char *const[]){{{names}, NULL}}"
    if "min" in entry:
        fields["min"] = f"UINT64_C({number(entry, 'min')})"
        fields["max"] = f"UINT64_C({number(entry, 'max')})"
    lines = "".join(f"        .{name} = {value},\n" for name, value in fields.items())
    return f"    [{code(entry)}] = {{\n{lines}    }},\n"


def allowed(entry):
    if "min" in entry:
        return f"{entry['min']} to {entry['max']}"
    if "choices" in entry:
        return ", ".join(f"`{choice}`" for choice in entry["choices"])
    return f"`{entry['value']}`" if "value" in entry else ""


def page_row(entry):
    source = entry.get("sources", "all")
    default = entry.get("default", entry.get("automatic", ""))
    variable = "" if source == "command line" else f"`{environment(entry)}`"
    default = f"`{default}`" if "default" in entry else default
    cells = [f"`--{entry['name']}`", variable, default, allowed(entry), entry["help"]]
    return f"| {' | '.join(cells)} |\n"


def page(options):
    text = DOCUMENT
    for group in dict.fromkeys(entry["group"] for entry in options):
        rows = "".join(page_row(entry) for entry in options if entry["group"] == group)
        text += GROUP.format(group=group, rows=rows)
    return text


def render(options):
    """Returns {path below the output directory: text}."""
    codes = "".join(f"    {code(entry)},\n" for entry in options)
    return {
        "esker/option_table.h": HEADER.format(codes=codes, count=len(options)),
        "esker/option_table.c": SOURCE.format(rows="".join(row(entry) for entry in options)),
        "docs/options.md": page(options),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        options = load(arguments.table.read_text(encoding="utf-8"))
    except (Invalid, tomllib.TOMLDecodeError) as problem:
        raise SystemExit(f"{arguments.table}: {problem}") from None
    for path, text in render(options).items():
        target = arguments.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
