# SPDX-License-Identifier: Apache-2.0
"""Makes the HTTP door's route table and its page from definitions/routes.toml.

    generate_routes.py --out DIR definitions/routes.toml
"""
import argparse
import pathlib
import re
import tomllib

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/routes.toml; do not edit. */
#ifndef ESK_SERVER_HTTP_ROUTE_TABLE_H
#define ESK_SERVER_HTTP_ROUTE_TABLE_H

#include "base/error.h"
#include "wire/http/head.h"
#include "wire/json/document.h"

struct eski_request;

/* Labels of the metrics. */
enum eski_operation {{
{operations}    ESKI_OPERATION_NONE, /* no route was found */
    ESKI_OPERATION_COUNT
}};
extern const char *const eski_operation_names[ESKI_OPERATION_COUNT];

/* What a caller needs. Of a topic: the path's first parameter, a topic or a schema's subject. */
enum eski_access {{
    ESKI_ACCESS_NONE,  /* no key */
    ESKI_ACCESS_KEY,   /* any key; the handler shows what it may see */
    ESKI_ACCESS_READ,  /* of the topic */
    ESKI_ACCESS_WRITE, /* likewise */
    ESKI_ACCESS_ADMIN, /* admin on everything */
}};

#define ESKI_ROUTE_SEGMENTS_MAX {segments_max}
#define ESKI_ROUTE_PARAMETERS_MAX {parameters_max}

struct eski_route {{
    enum esk_http_method method;
    enum eski_operation operation;
    bool has_body;
    enum eski_access access;
    unsigned segment_count;
    const char *segments[ESKI_ROUTE_SEGMENTS_MAX]; /* NULL: a parameter */
    enum esk_err (*read)(struct eski_request *request, const struct esk_json_value *body,
                         struct esk_error *error);
    void (*run)(struct eski_request *request);
}};
#define ESKI_ROUTE_COUNT {count}
extern const struct eski_route eski_routes[ESKI_ROUTE_COUNT];

{handlers}
#endif
"""

SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from definitions/routes.toml; do not edit. */
#include "server/http/route_table.h"

const char *const eski_operation_names[ESKI_OPERATION_COUNT] = {{
{names}    [ESKI_OPERATION_NONE] = "none",
}};

const struct eski_route eski_routes[ESKI_ROUTE_COUNT] = {{
{rows}}};
"""

HANDLER = """\
enum esk_err eski_{0}_read(struct eski_request *request, const struct esk_json_value *body,
                           struct esk_error *error);
void eski_{0}_run(struct eski_request *request);
"""

DOCUMENT = """\
<!-- Made from definitions/routes.toml by tools/generate_routes.py; do not edit. -->
# Routes of the HTTP door

The operation is the label that the metrics use. HEAD works wherever GET does.

With `--auth required`, `key` is any key, `read` and `write` are grants on the topic (or subject) of
the path, `admin` is admin on `*`; `none` asks for no key.

| method | path | operation | needs | |
|---|---|---|---|---|
{rows}"""

FIELDS = {"method": str, "path": str, "operation": str, "access": str, "body": bool,
          "summary": str}
ACCESS = ("none", "key", "read", "write", "admin")
METHODS = ("GET", "POST", "PUT", "DELETE")


class Invalid(Exception):
    """The table breaks one of its rules."""


def load(text):
    """Returns the table's list of routes, or raises Invalid."""
    routes = tomllib.loads(text).get("route", [])
    seen = set()
    for route in routes:
        what = f"{route.get('method', '?')} {route.get('path', '?')}"
        route.setdefault("access", "admin")
        if set(route) != set(FIELDS):
            raise Invalid(f"{what}: fields must be {', '.join(FIELDS)}")
        for field, kind in FIELDS.items():
            if type(route[field]) is not kind:
                raise Invalid(f"{what}: {field} must be of type {kind.__name__}")
        if route["method"] not in METHODS:
            raise Invalid(f"{what}: the method must be one of {', '.join(METHODS)}")
        if route["access"] not in ACCESS:
            raise Invalid(f"{what}: access must be one of {', '.join(ACCESS)}")
        if route["access"] in ("read", "write") and ":" not in route["path"]:
            raise Invalid(f"{what}: access by topic without a topic in the path")
        if not re.fullmatch(r"(/(:?[a-z_-]+))+|/", route["path"]):
            raise Invalid(f"{what}: not a path")
        if not re.fullmatch(r"[a-z][a-z_]*", route["operation"]) or route["operation"] == "none":
            raise Invalid(f"{what}: not an operation's name")
        if re.search(r'["\\\n|]', route["summary"]) or not route["summary"]:
            raise Invalid(f"{what}: the summary is empty or has a quote, backslash or bar")
        shape = (route["method"], re.sub(r":[a-z_-]+", ":", route["path"]))
        for key in (shape, route["operation"]):
            if key in seen:
                raise Invalid(f"{what}: given twice")
            seen.add(key)
    if not routes:
        raise Invalid("no routes")
    return routes


def segments(route):
    return route["path"][1:].split("/")


def render(routes):
    """Returns {path below the output directory: text}."""
    rows = ""
    for route in routes:
        operation = route["operation"]
        names = ", ".join("NULL" if s.startswith(":") else f'"{s}"' for s in segments(route))
        rows += (
            f"    {{ESK_HTTP_{route['method']}, ESKI_OPERATION_{operation.upper()}, "
            f"{str(route['body']).lower()}, ESKI_ACCESS_{route['access'].upper()},\n"
            f"     {len(segments(route))}, {{{names}}},\n"
            f"     eski_{operation}_read, eski_{operation}_run}},\n"
        )
    operations = [route["operation"] for route in routes]
    return {
        "server/http/route_table.h": HEADER.format(
            operations="".join(f"    ESKI_OPERATION_{o.upper()},\n" for o in operations),
            segments_max=max(len(segments(r)) for r in routes),
            parameters_max=max(r["path"].count(":") for r in routes),
            count=len(routes),
            handlers="\n".join(HANDLER.format(o) for o in operations),
        ),
        "server/http/route_table.c": SOURCE.format(
            names="".join(f'    [ESKI_OPERATION_{o.upper()}] = "{o}",\n' for o in operations),
            rows=rows,
        ),
        "docs/http-routes.md": DOCUMENT.format(
            rows="".join(
                f"| {r['method']} | `{r['path']}` | `{r['operation']}` | {r['access']} "
                f"| {r['summary']} |\n"
                for r in routes
            )
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        routes = load(arguments.table.read_text(encoding="utf-8"))
    except (Invalid, tomllib.TOMLDecodeError) as problem:
        raise SystemExit(f"{arguments.table}: {problem}") from None
    for path, text in render(routes).items():
        target = arguments.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
