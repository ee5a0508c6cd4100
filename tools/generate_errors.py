# SPDX-License-Identifier: Apache-2.0
"""Makes base/errors.h, base/errors.c and errors.md from definitions/errors.toml.

usage: generate_errors.py --out DIR definitions/errors.toml
"""
import argparse
import pathlib
import re
import tomllib

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/errors.toml; do not edit. */
#ifndef ESK_BASE_ERRORS_H
#define ESK_BASE_ERRORS_H

#include <stdbool.h>

enum esk_err {{
    ESK_OK = 0,
{codes}}};

#define ESK_ERR_COUNT {count} /* ESK_OK and all errors: codes are 0 to ESK_ERR_COUNT - 1 */

/* All of these may be called by any thread. A number that is no code reads as ESK_ERR_INTERNAL. */

/* "OK", "INVALID", ...: the name as logs and metrics show it. Static. */
const char *esk_err_name(enum esk_err code);

/* One sentence part in lower case, without a full stop. Static. */
const char *esk_err_meaning(enum esk_err code);

/* What the text of an ES01 error frame begins with; each code has its own. Static. */
const char *esk_err_phrase(enum esk_err code);

/* The status that the HTTP door answers with; 200 for ESK_OK. */
int esk_err_http_status(enum esk_err code);

/* The error code of the Kafka protocol; 0 for ESK_OK, -1 is UNKNOWN_SERVER_ERROR. */
int esk_err_kafka_code(enum esk_err code);

/* Whether the same request may succeed later. */
bool esk_err_retriable(enum esk_err code);

#endif
"""

SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/errors.toml; do not edit. */
#include "base/errors.h"

struct description {{
    const char *name;
    const char *meaning;
    int http_status;
    int kafka_code;
    bool retriable;
    const char *phrase;
}};

static const struct description descriptions[ESK_ERR_COUNT] = {{
    [ESK_OK] = {{"OK", "success", 200, 0, false, "ok"}},
{rows}}};

static const struct description *describe(enum esk_err code)
{{
    unsigned number = (unsigned)code;
    return &descriptions[number < ESK_ERR_COUNT ? number : ESK_ERR_INTERNAL];
}}

const char *esk_err_name(enum esk_err code)
{{
    return describe(code)->name;
}}

const char *esk_err_meaning(enum esk_err code)
{{
    return describe(code)->meaning;
}}

const char *esk_err_phrase(enum esk_err code)
{{
    return describe(code)->phrase;
}}

int esk_err_http_status(enum esk_err code)
{{
    return describe(code)->http_status;
}}

int esk_err_kafka_code(enum esk_err code)
{{
    return describe(code)->kafka_code;
}}

bool esk_err_retriable(enum esk_err code)
{{
    return describe(code)->retriable;
}}
"""

DOCUMENT = """<!-- Made from definitions/errors.toml by tools/generate_errors.py; do not edit. -->
# Error codes

Every failure inside Esker carries one of these codes. HTTP answers have the status; *retry* says
whether the same request may succeed later. The Kafka codes are what a door for Kafka's protocol
would answer; there is none in this version. `UNAUTHENTICATED`, `FORBIDDEN` for want of a grant, and
`THROTTLED` occur with `--auth required` only.

The text of an ES01 error frame begins with the *phrase*; what HTTP would answer follows.

| code | HTTP | Kafka | retry | ES01 phrase | meaning |
|---|---|---|---|---|---|
{rows}"""

FIELDS = {"name": str, "http": int, "kafka": int, "retriable": bool, "meaning": str}
OPTIONAL = {"phrase": str}  # else the name in lower case


class Invalid(Exception):
    """The table breaks one of its rules."""


def load(text):
    """Returns the table's list of errors, or raises Invalid."""
    errors = tomllib.loads(text).get("error", [])
    seen = set()
    for entry in errors:
        name = entry.get("name", "?")
        if set(entry) - set(OPTIONAL) != set(FIELDS):
            raise Invalid(f"{name}: fields must be {', '.join(FIELDS)}")
        entry.setdefault("phrase", str(name).lower().replace("_", " "))
        for field, kind in (FIELDS | OPTIONAL).items():
            if type(entry[field]) is not kind:
                raise Invalid(f"{name}: {field} must be of type {kind.__name__}")
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or name == "OK":
            raise Invalid(f"{name}: not a name in capitals")
        if name in seen:
            raise Invalid(f"{name}: given twice")
        if not 400 <= entry["http"] <= 599:
            raise Invalid(f"{name}: {entry['http']} is no error status")
        if not -1 <= entry["kafka"] <= 32767 or entry["kafka"] == 0:
            raise Invalid(f"{name}: {entry['kafka']} is no error code of Kafka")
        if not re.fullmatch(r'[^"\\\n|]+', entry["meaning"]):
            raise Invalid(f"{name}: meaning is empty or has a quote, backslash or bar")
        if not re.fullmatch(r"[a-z]+( [a-z]+)*", entry["phrase"]):
            raise Invalid(f"{name}: phrase must be words in lower case")
        seen.add(name)
    phrases = [entry["phrase"] for entry in errors]
    for phrase in phrases:
        if phrases.count(phrase) > 1:
            raise Invalid(f"phrase '{phrase}': given twice")
    if "INTERNAL" not in seen:
        raise Invalid("INTERNAL is missing; unknown codes read as it")
    return errors


def render(errors):
    """Returns {path below the output directory: text}."""
    codes = "".join(f"    ESK_ERR_{e['name']}, /* {e['meaning']} */\n" for e in errors)
    rows = "".join(
        f'    [ESK_ERR_{e["name"]}] = {{"{e["name"]}", "{e["meaning"]}", {e["http"]}, '
        f'{e["kafka"]}, {str(e["retriable"]).lower()}, "{e["phrase"]}"}},\n'
        for e in errors
    )
    lines = "".join(
        f"| `{e['name']}` | {e['http']} | {e['kafka']} | {'yes' if e['retriable'] else 'no'} "
        f"| {e['phrase']} | {e['meaning']} |\n"
        for e in errors
    )
    return {
        "base/errors.h": HEADER.format(codes=codes, count=len(errors) + 1),
        "base/errors.c": SOURCE.format(rows=rows),
        "docs/errors.md": DOCUMENT.format(rows=lines),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        errors = load(arguments.table.read_text(encoding="utf-8"))
    except (Invalid, tomllib.TOMLDecodeError) as problem:
        raise SystemExit(f"{arguments.table}: {problem}") from None
    for path, text in render(errors).items():
        target = arguments.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")  # else nothing needs to be built anew


if __name__ == "__main__":
    main()
