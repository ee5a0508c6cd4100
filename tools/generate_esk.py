# SPDX-License-Identifier: Apache-2.0
"""Makes esk/command_table.h and .c and docs/esk.md from definitions/esk.toml; generate_shell.py
makes the manual pages and the completion of it.

usage: generate_esk.py --out DIR definitions/esk.toml
"""
import argparse
import pathlib
import re
import tomllib

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/esk.toml; do not edit. */
#ifndef ESK_ESK_COMMAND_TABLE_H
#define ESK_ESK_COMMAND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum esk_tool_type {{
    ESK_TOOL_TEXT,
    ESK_TOOL_INTEGER,
    ESK_TOOL_SIZE,     /* bytes */
    ESK_TOOL_DURATION, /* milliseconds */
    ESK_TOOL_CHOICE,   /* the index in choices */
    ESK_TOOL_FLAG,
}};

struct esk_tool_option {{
    const char *name;
    const char *value; /* what stands for it in help; NULL of a flag */
    const char *help;
    const char *default_text;    /* NULL: none */
    const char *default_meaning; /* what help shows as the default; NULL of a flag */
    const char *min_text;        /* NULL: no range */
    const char *max_text;
    const char *const *choices; /* NULL-terminated; NULL: no choice */
    uint64_t min;
    uint64_t max;
    enum esk_tool_type type;
    char letter; /* 0: none */
    bool repeats;
}};

struct esk_tool_command {{
    const char *name; /* one word or two */
    const char *arguments;
    const char *summary;
    const char *detail;          /* paragraphs with a line feed behind each */
    const char *const *examples; /* NULL-terminated */
    const struct esk_tool_option *options;
    uint32_t option_count;
    uint32_t arguments_min;
    uint32_t arguments_max;
    bool passes_on; /* reads its own options */
}};

enum esk_tool_command_id {{
{codes}    ESK_TOOL_COMMAND_COUNT,
}};

#define ESK_TOOL_GLOBAL_COUNT {globals}
#define ESK_TOOL_OPTIONS_MAX {most} /* of a command, with the global ones */

/* Indexed by enum esk_tool_command_id, in the order of help. */
extern const struct esk_tool_command esk_tool_commands[ESK_TOOL_COMMAND_COUNT];
extern const struct esk_tool_option esk_tool_globals[ESK_TOOL_GLOBAL_COUNT];

#endif
"""

SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/esk.toml; do not edit. */
#include "esk/command_table.h"

#include <stddef.h>

const struct esk_tool_option esk_tool_globals[ESK_TOOL_GLOBAL_COUNT] = {{
{globals}}};

{options}const struct esk_tool_command esk_tool_commands[ESK_TOOL_COMMAND_COUNT] = {{
{commands}}};
"""

DOCUMENT = """<!-- Made from definitions/esk.toml by tools/generate_esk.py; do not edit. -->
# esk, the command-line tool

    esk COMMAND [--option VALUE | --option=VALUE]... [ARGUMENT]...

`esk help COMMAND` shows what is below. Options and arguments may come in any order; behind `--`
nothing is an option. Durations are a number of seconds, or one with `ms`, `s`, `m`, `h`, `d`; in a
topic's settings, named `…_ms`, a number alone is milliseconds. Sizes are a number of bytes, or one
with `kB`, `MB`, `GB` (1000) or `KiB`, `MiB`, `GiB` (1024).

Results go to standard output: tables and lines for people, with `--json` JSON for programs.
Trouble goes to standard error. Progress is shown there only when it is a terminal.

Exit codes: 0 done; 1 the broker could not be reached or answered with an error, or a file could
not be read; 2 the command line is wrong. Ended by a signal it is 128 and the signal's number, as
shells count it: 130 after Ctrl-C (SIGINT), 141 when a reader such as `head` went (SIGPIPE), 143
after SIGTERM.
"""

PROFILES = """
A setting is looked for on the command line, then in its variable (`ESK_SERVER`,
`ESK_BINARY_SERVER`, `ESK_KEY` or `ESK_CA`), then in the profile. A profile is a section of the file
`~/.config/esk/profiles` (`esk/profiles` below `XDG_CONFIG_HOME` where that is set, or the file that
`ESK_PROFILES` names); lines that begin with `#` or `;` are comments. What can be set is `server`,
`binary-server`, `key`, `ca`, `cert`, `cert-key`, `timeout`, and `insecure = true`.

    [default]
    server = http://127.0.0.1:9000

    [production]
    server = https://broker.example:9000
    key = esk_AbCdEf...
    ca = /etc/esker/ca.pem

    esk --profile production topic list
    ESK_KEY=$(cat esker-data/bootstrap.key) esk key list
"""

UNITS = {
    "integer": {"": 1},
    "size": {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9,
             "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    "duration": {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000},
}
KINDS = {"text", "choice", "flag", *UNITS}
COMMAND_FIELDS = {"name", "arguments", "summary", "detail", "examples"}


class Invalid(Exception):
    """The table breaks one of its rules."""


def number(entry, field):
    """The value of a bound or default in the unit of its type, or raises Invalid."""
    match = re.fullmatch(r"([0-9]+)([A-Za-z]*)", entry[field])
    units = UNITS[entry["type"]]
    if not match or match[2] not in units:
        raise Invalid(f"{entry['name']}: {field} is no {entry['type']}")
    return int(match[1]) * units[match[2]]


def check_option(entry, names, letters):
    name, kind = entry.get("name", "?"), entry.get("type")
    required = {"name", "type", "help"}
    if kind not in KINDS:
        raise Invalid(f"{name}: unknown type {kind}")
    if kind != "flag":
        required.add("automatic" if "automatic" in entry else "default")
    required |= {"choices"} if kind == "choice" else {"value"} if kind != "flag" else set()
    required |= {"min", "max"} if kind in UNITS else set()
    if not required <= set(entry) <= required | {"letter", "repeats"}:
        raise Invalid(f"{name}: fields of a {kind} must be {', '.join(sorted(required))}")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name) or name in names:
        raise Invalid(f"{name}: not a new name in small letters and dashes")
    letter = entry.get("letter", "")
    if not re.fullmatch(r"[a-z]?", letter) or letter and letter in letters:
        raise Invalid(f"{name}: -{letter} is not a new letter")
    if kind in UNITS:
        low, high = number(entry, "min"), number(entry, "max")
        default = number(entry, "default") if "default" in entry else low
        if not low <= default <= high < 2**63:
            raise Invalid(f"{name}: default and bounds are out of order")
    if kind == "choice" and entry["default"] not in entry["choices"]:
        raise Invalid(f"{name}: the default is none of the choices")
    names.add(name)
    letters.add(letter)


def check_texts(value):
    """Texts go into C literals and tables as they are."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            check_texts(part)
    elif isinstance(value, str) and "\\" in value:
        raise Invalid(f"{value}: a backslash in a text")


def load(text):
    """Returns (global options, commands), or raises Invalid."""
    table = tomllib.loads(text)
    check_texts(table)
    global_options, commands = table.get("global", []), table.get("command", [])
    names, letters, seen = set(), set(), set()
    for entry in global_options:
        check_option(entry, names, letters)
    for command in commands:
        name = command.get("name", "?")
        if not COMMAND_FIELDS <= set(command) <= COMMAND_FIELDS | {"option", "passes_on"}:
            raise Invalid(f"{name}: fields of a command must be {', '.join(COMMAND_FIELDS)}")
        words = re.fullmatch(r"([a-z]+)( [a-z-]+)?", name)
        if not words or name in seen or words[1] in seen:
            raise Invalid(f"{name}: not a new name of one word or two")
        seen.add(name)
        own_names, own_letters = set(names), set(letters)
        for entry in command.get("option", []):
            check_option(entry, own_names, own_letters)
        arguments_range(command)
    return global_options, commands


def arguments_range(command):
    """(fewest, most) of the arguments that a command takes."""
    low, high = 0, 0
    for part in command["arguments"].split():
        if not re.fullmatch(r"[A-Z]+(\.\.\.)?|\[[A-Z=]+\](\.\.\.)?", part):
            raise Invalid(f"{command['name']}: arguments {part}")
        low += part[0] != "["
        high = 2**32 - 1 if part.endswith("...") else min(high + 1, 2**32 - 1)
    return low, high


def symbol(command):
    return re.sub("[ -]", "_", command["name"])


def code(command):
    return "ESK_TOOL_" + symbol(command).upper()


def shown_value(entry):
    return "|".join(entry["choices"]) if "choices" in entry else entry.get("value")


def literal(text):
    if text is None:
        return "NULL"
    escaped = text.replace('"', '\\"')
    return "\n        ".join(f'"{line}"' for line in escaped.replace("\n", "\\n\n").split("\n"))


def literals(texts):
    return f"(const char *const[]){{{', '.join([literal(text) for text in texts] + ['NULL'])}}}"


def struct(fields):
    lines = "".join(f"        .{name} = {value},\n" for name, value in fields.items())
    return f"{{\n{lines}    }},\n"


def option_row(entry):
    fields = {
        "name": literal(entry["name"]),
        "value": literal(shown_value(entry)),
        "help": literal(entry["help"]),
        "default_text": literal(entry.get("default")),
        "default_meaning": literal(entry.get("default", entry.get("automatic"))),
        "min_text": literal(entry.get("min")),
        "max_text": literal(entry.get("max")),
        "type": "ESK_TOOL_" + entry["type"].upper(),
        "letter": f"'{entry['letter']}'" if "letter" in entry else "0",
        "repeats": "true" if entry.get("repeats") else "false",
    }
    if "choices" in entry:
        fields["choices"] = literals(entry["choices"])
    if "min" in entry:
        fields["min"] = f"UINT64_C({number(entry, 'min')})"
        fields["max"] = f"UINT64_C({number(entry, 'max')})"
    return "    " + struct(fields)


def array_name(command):
    return symbol(command) + "_options"


def command_row(command):
    low, high = arguments_range(command)
    options = command.get("option", [])
    return f"    [{code(command)}] = " + struct({
        "name": literal(command["name"]),
        "arguments": literal(command["arguments"]),
        "summary": literal(command["summary"]),
        "detail": literal(command["detail"]),
        "examples": literals(command["examples"]),
        "options": array_name(command) if options else "NULL",
        "option_count": str(len(options)),
        "arguments_min": str(low),
        "arguments_max": f"UINT32_C({high})",
        "passes_on": "true" if command.get("passes_on") else "false",
    })


def cell(text):
    return text.replace("|", "\\|")


def page_row(entry):
    name = f"`--{entry['name']}`"
    if "letter" in entry:
        name += f", `-{entry['letter']}`"
    allowed = f"{entry['min']} to {entry['max']}" if "min" in entry else shown_value(entry) or ""
    default = entry.get("default", entry.get("automatic", ""))
    again = "; may be repeated" if entry.get("repeats") else ""
    cells = [name, cell(allowed), cell(default), cell(entry["help"] + again)]
    return f"| {' | '.join(cells)} |\n"


def page_options(options):
    rows = "".join(page_row(entry) for entry in options)
    return f"| option | allowed | default | meaning |\n|---|---|---|---|\n{rows}"


def page(global_options, commands):
    text = DOCUMENT + "\n## Options of every command\n\n" + page_options(global_options)
    text += PROFILES
    for command in commands:
        usage = f"esk {command['name']} {command['arguments']}".strip()
        text += f"\n## esk {command['name']}\n\n    {usage}\n\n{command['summary']}\n"
        for paragraph in command["detail"].split("\n"):
            linked = re.sub(r"docs/([\w-]+\.md)", r"[docs/\1](\1)", paragraph)
            text += f"\n{linked}\n" if paragraph else ""
        if command.get("option"):
            text += "\n" + page_options(command["option"])
        text += "\n" + "".join(f"    {example}\n" for example in command["examples"])
    return text


def render(global_options, commands):
    """Returns {path below the output directory: text}."""
    arrays = ""
    for command in commands:
        if command.get("option"):
            rows = "".join(option_row(entry) for entry in command["option"])
            arrays += (f"static const struct esk_tool_option {array_name(command)}[] = {{\n"
                       f"{rows}}};\n\n")
    most = len(global_options) + max(len(c.get("option", [])) for c in commands)
    return {
        "esk/command_table.h": HEADER.format(
            codes="".join(f"    {code(command)},\n" for command in commands),
            globals=len(global_options), most=most),
        "esk/command_table.c": SOURCE.format(
            globals="".join(option_row(entry) for entry in global_options), options=arrays,
            commands="".join(command_row(command) for command in commands)),
        "docs/esk.md": page(global_options, commands),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        table = load(arguments.table.read_text(encoding="utf-8"))
    except (Invalid, tomllib.TOMLDecodeError) as problem:
        raise SystemExit(f"{arguments.table}: {problem}") from None
    for path, text in render(*table).items():
        target = arguments.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
