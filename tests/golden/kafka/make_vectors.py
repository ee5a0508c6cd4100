# SPDX-License-Identifier: Apache-2.0
"""Golden vectors and facts of Kafka, from the jars of Maven Central.

  make_vectors.py vectors OUT     write the vectors of 4.4.0 and of the removed versions to OUT
  make_vectors.py json            print every vector as Kafka's own JSON converters show it
  make_vectors.py check           compare facts, error codes and vectors with the jars; exit 77 and
                                  "skipped" where Maven or a JDK does not answer
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
DEFINITIONS = os.path.join(ROOT, 'definitions', 'kafka')
NOW, OLD = '4.4.0', '3.9.2'
JARS = [f'org.apache.kafka:kafka-clients:{NOW}', f'org.apache.kafka:kafka-clients:{OLD}',
        f'org.apache.kafka:kafka-group-coordinator:{NOW}',
        f'org.apache.kafka:kafka-transaction-coordinator:{NOW}',
        f'org.apache.kafka:kafka-share-coordinator:{NOW}',
        'org.slf4j:slf4j-api:1.7.36', 'com.fasterxml.jackson.core:jackson-databind:2.19.0',
        'com.fasterxml.jackson.core:jackson-core:2.19.0',
        'com.fasterxml.jackson.core:jackson-annotations:2.19.0']
FACTS = ('name', 'type', 'versions', 'nullableVersions', 'taggedVersions', 'tag',
         'flexibleVersions', 'default', 'ignorable', 'mapKey', 'zeroCopy', 'entityType')
HEAD = ('apiKey', 'type', 'listeners', 'name', 'validVersions', 'flexibleVersions')
PACKAGES = {'group': 'org.apache.kafka.coordinator.group.generated',
            'transaction': 'org.apache.kafka.coordinator.transaction.generated',
            'share': 'org.apache.kafka.coordinator.share.generated'}
ERRORS = '''import org.apache.kafka.common.protocol.Errors;
public class ListErrors { public static void main(String[] a) { for (Errors e : Errors.values())
System.out.println(e.code() + " " + e.name() + " " +
(e.exception() instanceof org.apache.kafka.common.errors.RetriableException)); } }'''


def skip(why):
    print(f'skipped: {why}')
    sys.exit(77)


def jars(folder):
    given = os.environ.get('ESK_KAFKA_JARS')  # a folder that has them, to spare the download
    for name in os.listdir(given) if given else []:
        os.symlink(os.path.join(given, name), os.path.join(folder, name))
    for jar in [] if given else JARS:
        command = ['mvn', '-q', '-B', 'dependency:copy', f'-Dartifact={jar}',
                   f'-DoutputDirectory={folder}', '-Dmdep.useBaseVersion=true']
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            skip(f'Maven does not answer: {error}')
        if done.returncode:
            skip('Maven does not answer')


def objects(path):
    text, at, decoder = open(path, encoding='utf-8').read(), 0, json.JSONDecoder()
    while text[at:].strip():
        while text[at].isspace():
            at += 1
        value, at = decoder.raw_decode(text, at)
        yield value


def definitions():
    """(folder, definition) of every message of ours."""
    for folder in sorted(os.listdir(DEFINITIONS)):
        path = os.path.join(DEFINITIONS, folder)
        if not os.path.isdir(path) or folder in ('error', 'record', 'release'):
            continue
        for name in sorted(os.listdir(path)):
            for value in objects(os.path.join(path, name)):
                yield folder, value


def theirs(folder, jar):
    """Kafka's definitions in a jar, comments removed, by name."""
    found = {}
    with zipfile.ZipFile(os.path.join(folder, jar)) as archive:
        for name in archive.namelist():
            if name.startswith('common/message/') and name.endswith('.json'):
                text = archive.read(name).decode()
                text = re.sub(r'(?m)^\s*//.*$|\s//\s.*$', '', text)
                value = json.loads(text)
                found[value['name']] = value
    return found


def span(text, top):
    if text in (None, 'none'):
        return None
    if text.endswith('+'):
        return int(text[:-1]), top
    first, _, last = text.partition('-')
    return int(first), int(last or first)


def touches(text, low, high):
    part = span(text, 1 << 15)
    return part is not None and part[0] <= high and part[1] >= low


def facts(fields, low, high, cut):
    """What we transcribe of fields; cut: only what versions low to high have."""
    out = []
    for field in fields:
        if cut and not touches(field.get('versions', field.get('taggedVersions')), low, high):
            continue
        row = {k: field[k] for k in FACTS if k in field}
        if cut:
            for key in ('nullableVersions', 'taggedVersions'):
                if key in row and not touches(row[key], low, high):
                    del row[key]
                    if key == 'taggedVersions':
                        row.pop('tag', None)
        if 'fields' in field:
            row['fields'] = facts(field['fields'], low, high, cut)
        out.append(row)
    return out


def compare(wrong, ours, kafka, removed):
    name = ours['name']
    if kafka is None:
        wrong.append(f'{name}: not in the jar')
        return
    low, high = span(ours['validVersions'], 0)
    for key in HEAD:
        if removed and key in ('validVersions', 'flexibleVersions'):
            continue
        if ours.get(key) != kafka.get(key):
            wrong.append(f'{name}.{key}: {ours.get(key)}, the jar has {kafka.get(key)}')
    if bool(ours.get('latestVersionUnstable')) != bool(kafka.get('latestVersionUnstable')) \
            and not removed:
        wrong.append(f'{name}: latestVersionUnstable')
    if facts(ours['fields'], low, high, removed) != facts(kafka['fields'], low, high, removed):
        wrong.append(f'{name}: the fields differ from the jar')
    structs = {s['name']: facts(s['fields'], low, high, removed)
               for s in kafka.get('commonStructs', [])}
    for struct in ours.get('commonStructs', []):
        if structs.get(struct['name']) != facts(struct['fields'], low, high, removed):
            wrong.append(f'{name}: struct {struct["name"]} differs from the jar')


def check_facts(folder):
    wrong, now = [], {}
    for jar in ('clients', 'group-coordinator', 'transaction-coordinator', 'share-coordinator'):
        now.update(theirs(folder, f'kafka-{jar}-{NOW}.jar'))
    old = theirs(folder, f'kafka-clients-{OLD}.jar')
    seen = set()
    removed = {}
    for part, ours in definitions():
        is_removed = part == 'removed'
        if is_removed and ours['type'] == 'request':
            low, high = span(ours['validVersions'], 0)
            removed[ours['apiKey']] = set(range(low, high + 1))
        if not is_removed:
            seen.add(ours['name'])
        source = old if is_removed else now
        compare(wrong, ours, source.get(ours['name']), is_removed)
    missing = {n for n, d in now.items() if d['validVersions'] != 'none'} - seen
    wrong += [f'{name}: in the jar, not here' for name in sorted(missing)]
    by_key = {d['apiKey']: d for d in now.values() if d['type'] == 'request'}
    for kafka in old.values():
        if kafka['type'] != 'request':
            continue
        low, high = span(kafka['validVersions'], 0)
        current = span(by_key[kafka['apiKey']]['validVersions'], 0)
        gone = {v for v in range(low, high + 1)
                if current is None or not current[0] <= v <= current[1]}
        if gone != removed.get(kafka['apiKey'], set()):
            wrong.append(f'{kafka["name"]}: removed versions are {sorted(gone)}')
    return wrong


def java(folder, version, source, arguments):
    """Compiles and runs a program against the jars of one Kafka version."""
    path = ':'.join([os.path.join(folder, f) for f in sorted(os.listdir(folder))
                     if f.endswith('.jar') and (not f.startswith('kafka-') or version in f)]
                    + [folder])
    try:
        subprocess.run(['javac', '-nowarn', '-cp', path, '-d', folder, source], check=True)
        main = os.path.basename(source)[:-5]
        run = subprocess.run(['java', '-Xshare:auto', '-cp', path, main] + arguments, check=True,
                             capture_output=True, text=True)
    except OSError as error:
        skip(f'no JDK: {error}')
    return run.stdout


def vectors(folder, mode):
    lists = {NOW: [], OLD: []}
    for part, d in definitions():
        low, high = span(d['validVersions'], 0)
        kind = {'coordinator-key': 'key', 'coordinator-value': 'value'}.get(d['type'], d['type'])
        if kind == 'header':
            continue
        name = d['name']
        if kind in ('request', 'response'):
            name = re.sub('(Request|Response)$', '', name)
        suffix = 'Data' if kind in ('request', 'response') else ''
        package = PACKAGES.get(part, 'org.apache.kafka.common.message')
        lists[OLD if part == 'removed' else NOW].append(
            f'{kind}:{name}={package}.{d["name"]}{suffix},{low},{high}')
    source = os.path.join(HERE, 'Golden.java')
    return ''.join(java(folder, v, source, [mode] + lists[v]) for v in (NOW, OLD))


def check_errors(folder):
    source = os.path.join(folder, 'ListErrors.java')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(ERRORS)
    rows = [line.split() for line in java(folder, NOW, source, []).splitlines()]
    ours = next(objects(os.path.join(DEFINITIONS, 'error', 'errors.json')))
    mine = [[str(e['code']), e['name'], str(e['retriable']).lower()] for e in ours]
    return [] if mine == rows else ['error codes differ from the jar']


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else 'check'
    with tempfile.TemporaryDirectory() as folder:
        jars(folder)
        if mode == 'vectors':
            with open(sys.argv[2], 'w', encoding='utf-8') as file:
                file.write(vectors(folder, 'hex'))
            return
        if mode == 'json':
            sys.stdout.write(vectors(folder, 'json'))
            return
        wrong = check_facts(folder) + check_errors(folder)
        committed = open(os.path.join(HERE, 'vectors.txt'), encoding='utf-8').read()
        if vectors(folder, 'hex') != committed:
            wrong.append('vectors.txt is not what the jars write')
    for line in wrong:
        print(line)
    if wrong:
        sys.exit(1)
    print('facts, errors and vectors agree with the jars')


if __name__ == '__main__':
    main()
