# SPDX-License-Identifier: Apache-2.0
"""Makes model/entries.h, model/entries.c and docs/format-entries.md from definitions/entries.toml.

usage: generate_entries.py --out DIR definitions/entries.toml
"""
import argparse
import pathlib
import tomllib

TYPES = {  # type -> (C type, reader, buffer appender, size in the documentation)
    "u8": ("uint8_t", "esk_read_u8", "esk_buffer_u8", "1 byte"),
    "u32": ("uint32_t", "esk_read_u32", "esk_buffer_u32", "4 bytes"),
    "u64": ("uint64_t", "esk_read_u64", "esk_buffer_u64", "8 bytes"),
    "i64": ("int64_t", "esk_read_i64", "esk_buffer_u64", "8 bytes, two's complement"),
    "text": ("struct esk_slice", None, None, "u16 length, then bytes"),
    "bytes": ("struct esk_slice", None, None, "u32 length, then bytes"),
}
LENGTHS = {"text": "16", "bytes": "32"}  # bits of the length of what has one
NOTE = "/* SPDX-License-Identifier: Apache-2.0 */\n" \
       "/* Generated from definitions/entries.toml; do not edit. */\n"


def structs(family, kind):
    name = f"esk_{family['name']}_{kind['name']}"
    lines = [f"/* {kind['about']} */", f"struct {name} {{"]
    lines += [f"    {TYPES[type_][0]} {field};" for field, type_ in kind["fields"]]
    lines += ["};", ""]
    return lines


def header(families):
    out = [NOTE + "#ifndef ESK_MODEL_ENTRIES_H", "#define ESK_MODEL_ENTRIES_H", "",
           '#include "base/error.h"', '#include "base/memory.h"', ""]
    for family in families:
        prefix = f"esk_{family['name']}"
        upper = f"ESK_{family['name'].upper()}"
        out += [f"enum {prefix}_kind {{"]
        out += [f"    {upper}_{k['name'].upper()} = {k['kind']}," for k in family["entry_kind"]]
        out += ["};", ""]
        for kind in family["entry_kind"]:
            out += structs(family, kind)
        out += ["/* A decoded payload; texts and bytes borrow from it. */",
                f"struct {prefix}_change {{", f"    enum {prefix}_kind kind;", "    union {"]
        out += [f"        struct {prefix}_{k['name']} {k['name']};" for k in family["entry_kind"]]
        out += ["    };", "};", "",
                "/* Appends the payload. Texts are at most 65535 bytes, bytes at most 4 GiB. */",
                f"void {prefix}_encode(struct esk_buffer *out,",
                f"                     const struct {prefix}_change *change);",
                "/* ESK_ERR_VERSION: a kind or version of a newer program. ESK_ERR_CORRUPT:",
                " * the bytes do not match the kind. */",
                f"enum esk_err {prefix}_decode(struct esk_slice payload, "
                f"struct {prefix}_change *change,\n    struct esk_error *error);", ""]
    return "\n".join(out + ["#endif", ""])


def encode_case(family, kind):
    upper = f"ESK_{family['name'].upper()}_{kind['name'].upper()}"
    lines = [f"    case {upper}:", f"        esk_buffer_u8(out, {kind['version']});"]
    for field, type_ in kind["fields"]:
        value = f"change->{kind['name']}.{field}"
        if type_ in LENGTHS:
            bits = LENGTHS[type_]
            lines += [f"        esk_buffer_u{bits}(out, (uint{bits}_t){value}.size);",
                      f"        esk_buffer_append(out, {value}.data, {value}.size);"]
        else:
            cast = "(uint64_t)" if type_ == "i64" else ""
            lines += [f"        {TYPES[type_][2]}(out, {cast}{value});"]
    return lines + ["        break;"]


def decode_case(family, kind):
    upper = f"ESK_{family['name'].upper()}_{kind['name'].upper()}"
    lines = [f"    case {upper}:", f"        known = version == {kind['version']};"]
    for field, type_ in kind["fields"]:
        value = f"change->{kind['name']}.{field}"
        if type_ in LENGTHS:
            read = f"esk_read_u{LENGTHS[type_]}(&reader)"
            lines += [f"        {value} = esk_read_bytes(&reader, {read});"]
        else:
            lines += [f"        {value} = {TYPES[type_][1]}(&reader);"]
    return lines + ["        break;"]


def source(families):
    out = [NOTE + '#include "model/entries.h"', ""]
    for family in families:
        prefix = f"esk_{family['name']}"
        out += [f"void {prefix}_encode(struct esk_buffer *out,",
                f"                     const struct {prefix}_change *change) {{",
                "    esk_buffer_u8(out, (uint8_t)change->kind);", "    switch (change->kind) {"]
        for kind in family["entry_kind"]:
            out += encode_case(family, kind)
        out += ["    }", "}", "",
                f"enum esk_err {prefix}_decode(struct esk_slice payload,",
                f"    struct {prefix}_change *change, struct esk_error *error) {{",
                "    struct esk_reader reader = esk_reader(payload);",
                "    uint8_t kind = esk_read_u8(&reader);",
                "    uint8_t version = esk_read_u8(&reader);",
                "    bool known = false;",
                f"    change->kind = (enum {prefix}_kind)kind;",
                "    switch (kind) {"]
        for kind in family["entry_kind"]:
            out += decode_case(family, kind)
        out += ["    default:", "        break;", "    }", "    if (payload.size >= 2 && !known) {",
                "        return esk_fail(error, ESK_ERR_VERSION,",
                f'            "{family["name"]} entry of unknown kind %u, version %u",',
                "            kind, version);", "    }",
                "    if (reader.failed || esk_reader_left(&reader) != 0) {",
                "        return esk_fail(error, ESK_ERR_CORRUPT,",
                f'            "{family["name"]} entry of kind %u has %zu bytes",',
                "            kind, payload.size);",
                "    }", "    return ESK_OK;", "}", ""]
    return "\n".join(out)


def document(families):
    out = ["# Entries of map groups", "",
           "Generated from `definitions/entries.toml`. A payload is `u8` kind, `u8` version, then",
           "the fields in order, big-endian. A snapshot is a list of such payloads, each behind",
           "its `u32` length, that makes the state anew.", ""]
    for family in families:
        out += [f"## {family['name']} (`{family['entry']}`)", ""]
        for kind in family["entry_kind"]:
            out += [f"### {kind['kind']}: {kind['name']}, version {kind['version']}", "",
                    kind["about"], "", "| field | type | on disk |", "|---|---|---|"]
            out += [f"| {field} | {type_} | {TYPES[type_][3]} |"
                    for field, type_ in kind["fields"]]
            out += [""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("definitions", type=pathlib.Path)
    arguments = parser.parse_args()
    families = tomllib.loads(arguments.definitions.read_text())["family"]
    for path, text in (("model/entries.h", header(families)), ("model/entries.c", source(families)),
                       ("docs/format-entries.md", document(families))):
        target = arguments.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


main()
