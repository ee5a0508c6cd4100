# SPDX-License-Identifier: Apache-2.0
"""C structs, codec tables and doc stubs from definitions/kafka.

Reads every definition (JSON objects one after the other, in the notation of Kafka's own message
schemas) and writes below --out: wire/kafka/messages.h (structs), wire/kafka/tables.inc (facts, and
for each version the exact layout on the wire), wire/kafka/error_table.inc and docs/kafka-apis.md.
"""
import argparse
import json
import os
import re
import sys

ANY = 1 << 15
SCALARS = {'bool': ('BOOL', 'bool', 1), 'int8': ('INT8', 'int8_t', 1),
           'int16': ('INT16', 'int16_t', 2), 'uint16': ('UINT16', 'uint16_t', 2),
           'int32': ('INT32', 'int32_t', 4), 'uint32': ('UINT32', 'uint32_t', 4),
           'int64': ('INT64', 'int64_t', 8), 'float64': ('FLOAT64', 'double', 8),
           'uuid': ('UUID', 'struct esk_kafka_uuid', 16)}  # kind, C type, bytes on the wire
TEXTS = {'string': 'STRING', 'bytes': 'BYTES', 'records': 'RECORDS'}


def fail(message):
    sys.exit(f'kafka_generate: {message}')


def read_objects(path):
    """The JSON objects of a file, each with its own text."""
    text = open(path, encoding='utf-8').read()
    decoder, at, objects = json.JSONDecoder(), 0, []
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return objects
        value, end = decoder.raw_decode(text, at)
        objects.append((value, text[at:end]))
        at = end


def version_range(text):
    """(first, last) of "3", "3+", "3-5"; None for "none" and for no text."""
    if text is None or text == 'none':
        return None
    if text.endswith('+'):
        return int(text[:-1]), ANY
    first, _, last = text.partition('-')
    return int(first), int(last or first)


def has(text, version):
    span = version_range(text)
    return span is not None and span[0] <= version <= span[1]


def snake(name):
    name = re.sub(r'([A-Z]+)([A-Z][a-z])', r'\1_\2', name)
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower()


def camel(name):
    return name[0].lower() + name[1:]


def quoted(text):
    return 'NULL' if text is None else json.dumps(text)


class Generator:
    def __init__(self):
        self.structs, self.defaults, self.fields = [], [], []
        self.layouts, self.layout_index = [], {}
        self.messages = []

    def message(self, definition, text, removed):
        self.definition = definition
        self.prefix = 'esk_kafka_' + ('removed_' if removed else '') + snake(definition['name'])
        self.common = {s['name']: s for s in definition.get('commonStructs', [])}
        self.declared = {}
        self.field_index = {}
        root = {'name': definition['name'], 'fields': definition['fields'], 'root': True}
        struct = self.struct(root)
        first, last = version_range(definition['validVersions'])
        versions = [self.layout(root, v) for v in range(first, last + 1)]
        self.messages.append((definition, text, removed, first, last, versions, struct))

    def inner(self, field):
        """The struct that a field's (element) type names, or None."""
        kind = field['type'].removeprefix('[]')
        if kind in SCALARS or kind in TEXTS:
            return None
        if 'fields' in field:
            return {'name': kind, 'fields': field['fields']}
        if kind in self.common:
            return self.common[kind]
        for name, spec in self.declared.items():
            if name == kind:
                return spec
        fail(f'{self.definition["name"]}.{field["name"]}: unknown type {kind}')

    def c_name(self, spec):
        return self.prefix if spec.get('root') else f'{self.prefix}_{snake(spec["name"])}'

    def nullable_struct(self, field):
        return 'nullableVersions' in field and self.inner(field) is not None

    def struct(self, spec):
        """Declares the C struct and its defaults, inner ones first; returns its C name."""
        name = self.c_name(spec)
        if spec['name'] in self.declared and not spec.get('root'):
            return name
        if not spec.get('root'):
            self.declared[spec['name']] = spec
        lines, values = [], []
        for field in spec['fields']:
            self.facts(spec, field)
            inner = self.inner(field)
            inner_name = self.struct(inner) if inner else None
            member = snake(field['name'])
            default = field.get('default')
            if field['type'].startswith('[]'):
                element = field['type'][2:]
                c_type = (f'struct {inner_name}' if inner else
                          'struct esk_slice' if element in TEXTS else SCALARS[element][1])
                lines.append(f'    struct {{\n        const {c_type} *items;\n'
                             f'        int32_t count; /* -1: null */\n    }} {member};')
                values.append(f'.{member} = {{NULL, {-1 if default == "null" else 0}}}')
            elif inner and self.nullable_struct(field):
                lines.append(f'    const struct {inner_name} *{member}; /* NULL: null */')
                if default != 'null':
                    values.append(f'.{member} = &{inner_name}_default')
            elif inner:
                lines.append(f'    struct {inner_name} {member};')
                values.append(f'.{member} = {self.initializer(inner)}')
            elif field['type'] in TEXTS:
                lines.append(f'    struct esk_slice {member};')
                if default != 'null':
                    text = default if isinstance(default, str) else ''
                    values.append(f'.{member} = {{(const uint8_t *){quoted(text)}, {len(text)}}}')
            else:
                lines.append(f'    {SCALARS[field["type"]][1]} {member};')
                values.append(self.scalar_default(field, member))
        if self.definition['flexibleVersions'] != 'none':
            lines.append('    const struct esk_kafka_unknown_tag *unknown_tags; /* by tag */')
        values = [v for v in values if v]
        self.structs.append(f'struct {name} {{\n' + '\n'.join(lines) + '\n};\n')
        spec['initializer'] = '{' + ', '.join(values) + '}' if values else '{0}'
        self.defaults.append(f'static const struct {name} {name}_default =\n    '
                             f'{spec["initializer"]};\n')
        return name

    def initializer(self, spec):
        known = self.declared.get(spec['name'], spec)
        return known['initializer']

    def scalar_default(self, field, member):
        default = field.get('default')
        zeros = ('', '0', 'False', 'false')
        if default is None or field['type'] == 'uuid' or str(default) in zeros:
            return None
        if field['type'] == 'bool':
            return f'.{member} = true'
        number = int(str(default), 0)
        if number == -(1 << 31):
            return f'.{member} = INT32_MIN'
        return f'.{member} = {number}' + ('LL' if abs(number) > 2 ** 31 else '')

    def facts(self, spec, field):
        """One row of facts for each field of each struct of the message."""
        default = field.get('default')
        text = None if default is None else str(default).lower() if isinstance(default, bool) \
            else str(default)
        self.field_index[spec['name'], field['name']] = len(self.fields)
        self.fields.append(f'    {{{quoted(field["name"])}, {quoted(camel(field["name"]))}, '
                           f'{quoted(snake(field["name"]))},\n     {quoted(field["about"])}, '
                           f'{quoted(text)}, {quoted(field.get("entityType"))}}},\n')

    def value_kind(self, kind, flexible):
        if kind in SCALARS:
            return SCALARS[kind][0]
        if kind in TEXTS:
            return ('COMPACT_' if flexible else '') + TEXTS[kind]
        return 'STRUCT'

    def op(self, spec, field, version, flexible, tagged):
        kind, element, layout = field['type'], 'BOOL', None
        if field.get('flexibleVersions') == 'none':
            flexible = False
        inner = self.inner(field)
        if inner:
            layout = self.layout(inner, version)
        if kind.startswith('[]'):
            element = self.value_kind(kind[2:], flexible)
            kind = 'COMPACT_ARRAY' if flexible else 'ARRAY'
        else:
            kind = self.value_kind(kind, flexible)
        flags = ['ESK_KAFKA_TAGGED'] if tagged else []
        if has(field.get('nullableVersions'), version):
            flags.append('ESK_KAFKA_NULLABLE')
        if inner and not field['type'].startswith('[]') and self.nullable_struct(field):
            flags.append('ESK_KAFKA_POINTER')
        layout_text = f'&layouts[{layout}]' if layout is not None else 'NULL'
        member = f'((struct {self.c_name(spec)} *)0)->{snake(field["name"])}'
        stride = f'sizeof(*{member}.items)' if field['type'].startswith('[]') else '0'
        return (f'{{ESK_KAFKA_{kind}, ESK_KAFKA_{element}, {" | ".join(flags) or 0}, '
                f'{field.get("tag", 0) if tagged else 0}, '
                f'offsetof(struct {self.c_name(spec)}, {snake(field["name"])}), '
                f'sizeof({member}), {stride}, '
                f'&fields[{self.field_index[spec["name"], field["name"]]}], {layout_text}}}')

    def layout(self, spec, version):
        """The index of the layout of a struct in a version; equal ones are shared."""
        spec = spec if spec.get('root') else self.declared[spec['name']]
        flexible = has(self.definition['flexibleVersions'], version)
        plain, tagged, untouched, other_tags = [], [], False, 0
        tagged_names = []  # in the order of the struct's members
        for field in spec['fields']:
            is_tagged = has(field.get('taggedVersions'), version)
            present = has(field.get('versions', field.get('taggedVersions')), version)
            if not present:
                untouched = True
                if 'tag' in field:
                    other_tags |= 1 << field['tag']
            elif is_tagged:
                tagged_names.append(snake(field['name']))
                tagged.append((field['tag'], self.op(spec, field, version, flexible, True)))
            else:
                plain.append(self.op(spec, field, version, flexible, False))
        tagged = [op for _, op in sorted(tagged)]
        name = self.c_name(spec)
        key = (name, tuple(plain), tuple(tagged), flexible, other_tags)
        if key not in self.layout_index:
            self.layout_index[key] = len(self.layouts)
            self.layouts.append((name, spec['name'], plain, tagged, tagged_names, flexible,
                                 other_tags,
                                 untouched or bool(tagged) or
                                 (not flexible and self.definition['flexibleVersions'] != 'none')))
        return self.layout_index[key]

    def write_tables(self, path):
        out = ['/* Generated by tools/kafka_generate.py from definitions/kafka. */\n']
        out += self.defaults
        out.append('\nstatic const struct esk_kafka_field fields[] = {\n')
        out += self.fields
        out.append('};\n\nstatic const struct esk_kafka_layout layouts[];\n'
                   'static const struct esk_kafka_op no_ops[] = {{.field = NULL}};\n\n')
        rows = []
        for index, layout in enumerate(self.layouts):
            name, title, plain, tagged, tagged_names, flexible, other, partial = layout
            if plain or tagged:
                out.append(f'static const struct esk_kafka_op ops_{index}[] = {{\n    '
                           + ',\n    '.join(plain + tagged) + '};\n')
            ops = f'ops_{index}' if plain or tagged else 'no_ops'
            tags = f'offsetof(struct {name}, unknown_tags)' if flexible else '0'
            first, last = (tagged_names[0], tagged_names[-1]) if tagged_names else (None, None)
            span = (f'offsetof(struct {name}, {first}), offsetof(struct {name}, {last}) + '
                    f'sizeof(((struct {name} *)0)->{last})' if first else '0, 0')
            rows.append(f'    {{{ops}, {len(plain)}, {len(tagged)}, {str(flexible).lower()}, '
                        f'{str(partial).lower()}, {other}, {tags}, {span}, sizeof(struct {name}), '
                        f'&{name}_default, "{title}"}},\n')
        out.append('\nstatic const struct esk_kafka_layout layouts[] = {\n' + ''.join(rows)
                   + '};\n\n')
        table = []
        for index, (d, text, removed, first, last, versions, name) in enumerate(self.messages):
            out.append(f'static const struct esk_kafka_layout *const versions_{index}[] = {{'
                       + ', '.join(f'&layouts[{v}]' for v in versions) + '};\n')
            flexible = version_range(d['flexibleVersions'])
            listeners = '", "'.join(d.get('listeners', []))
            stable = last - (1 if d.get('latestVersionUnstable') else 0)
            kind = d['type'].replace('-', '_').upper()
            api_name = re.sub('(Request|Response)$', '', d['name']) \
                if d['type'] in ('request', 'response') else d['name']
            table.append(
                f'    {{"{d["name"]}", "{api_name}", ESK_KAFKA_{kind}, {str(removed).lower()}, '
                f'{d.get("apiKey", -1)}, {first}, {last}, {stable}, '
                f'{min(flexible[0], 32767) if flexible else -1}, '
                f'{quoted(d["flexibleVersions"])}, {quoted(d["validVersions"])},\n     '
                + ('{"' + listeners + '"}' if listeners else '{NULL}')
                + f', versions_{index},\n     ' + '\n     '.join(
                    quoted(line + '\n') for line in text.split('\n')) + '},\n')
        out.append('\nstatic const struct esk_kafka_message messages[] = {\n' + ''.join(table)
                   + '};\n')
        out += self.indices()
        write(path, ''.join(out))

    def indices(self):
        """Where headers and the messages of an API key stand in the table, by type."""
        keys = 1 + max(d.get('apiKey', 0) for d, *_ in self.messages)
        tables = {}
        for index, (d, _, removed, first, _, _, _) in enumerate(self.messages):
            if d['type'] == 'header':
                name = snake(d['name']) + ('_removed' if removed else '')
                tables[name] = f'static const uint16_t {name}_index = {index};\n'
            elif d['type'] in ('request', 'response'):
                name = d['type'] + ('_removed' if removed else '')
                tables.setdefault(name, [-1] * keys)[d['apiKey']] = index
        return [t if isinstance(t, str) else
                f'static const int16_t {n}_by_key[] = {{' + ', '.join(map(str, t)) + '};\n'
                for n, t in tables.items()]

    def write_structs(self, path):
        write(path, '/* Generated by tools/kafka_generate.py from definitions/kafka. Strings, bytes'
              ' and records\n * borrow; data NULL is null. Arrays with count -1 are null. */\n'
              '#ifndef ESK_WIRE_KAFKA_MESSAGES_H\n#define ESK_WIRE_KAFKA_MESSAGES_H\n\n'
              '#include "wire/kafka/types.h"\n\n' + '\n'.join(self.structs) + '\n#endif\n')

    def write_docs(self, path):
        out = ['# Kafka APIs\n\nGenerated from `definitions/kafka`; `esk kafka export` writes the '
               'full reference.\n']
        for d, _, removed, first, last, _, _ in self.messages:
            if d['type'] != 'request' or removed:
                continue
            out.append(f'\n## {d["name"][:-7]}\n\nKey {d["apiKey"]}, versions {first} to {last}, '
                       f'flexible: {d["flexibleVersions"]}; listeners: '
                       f'{", ".join(d.get("listeners", [])) or "none"}.\n\n')
            for field in d['fields']:
                out.append(f'- `{field["name"]}` ({field["type"]}): {field["about"]}\n')
        write(path, ''.join(out))


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def write_errors(path, errors):
    rows = [f'    {{{e["code"]}, "{e["name"]}", {str(e["retriable"]).lower()},\n     '
            f'{quoted(e["about"])}}},\n' for e in errors]
    write(path, '/* Generated by tools/kafka_generate.py from definitions/kafka. */\n'
          'static const struct esk_kafka_error errors[] = {\n' + ''.join(rows) + '};\n')


def write_releases(path, releases):
    out = ['/* Generated by tools/kafka_generate.py from definitions/kafka. */\n']
    rows = []
    for index, release in enumerate(releases):
        spans = []
        for key, text in release['requests'].items():
            first, last = version_range(text)
            spans.append(f'{{{key}, {first}, {last}}}')
        out.append(f'static const struct esk_kafka_span spans_{index}[] = {{\n    '
                   + ',\n    '.join(spans) + '};\n')
        rows.append(f'    {{"{release["release"]}", spans_{index}, {len(spans)}}},\n')
    out.append('static const struct esk_kafka_release releases[] = {\n' + ''.join(rows) + '};\n')
    write(path, ''.join(out))


def write_formats(path, formats):
    """The fields of record formats: names and texts only, their layout is in code."""
    out = ['/* Generated by tools/kafka_generate.py from definitions/kafka. */\n']
    for definition in formats:
        rows = []

        def walk(fields):
            for field in fields:
                rows.append(f'    {{{quoted(field["name"])}, {quoted(camel(field["name"]))}, '
                            f'{quoted(snake(field["name"]))},\n     {quoted(field["about"])}, '
                            'NULL, NULL},\n')
                walk(field.get('fields', []))
        walk(definition['fields'])
        out.append(f'static const struct esk_kafka_field {snake(definition["name"])}_fields[] = '
                   '{\n' + ''.join(rows) + '};\n')
    write(path, ''.join(out))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', required=True)
    parser.add_argument('inputs', nargs='+')
    arguments = parser.parse_args()
    generator, formats = Generator(), []
    for path in sorted(arguments.inputs):
        folder = os.path.basename(os.path.dirname(path))
        for definition, text in read_objects(path):
            if folder == 'error':
                write_errors(f'{arguments.out}/wire/kafka/error_table.inc', definition)
            elif folder == 'release':
                write_releases(f'{arguments.out}/wire/kafka/releases.inc', definition)
            elif folder == 'record':
                formats.append(definition)
            else:
                generator.message(definition, text, folder == 'removed')
    generator.messages.sort(key=lambda m: m[2])
    write_formats(f'{arguments.out}/wire/kafka/formats.inc', formats)
    generator.write_structs(f'{arguments.out}/wire/kafka/messages.h')
    generator.write_tables(f'{arguments.out}/wire/kafka/tables.inc')
    generator.write_docs(f'{arguments.out}/docs/kafka-apis.md')


if __name__ == '__main__':
    main()
