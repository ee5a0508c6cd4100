# SPDX-License-Identifier: Apache-2.0
"""The codec's speed, and beside it the Java client's own parser on the same bytes.

usage: kafka_codec_bench.py [BENCH_KAFKA_CODEC]; kafka-clients comes from Maven, or from the folder
$ESK_KAFKA_JARS. Without Maven or a JDK only our own figures are printed.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
ROUNDS = 3  # of both in turn; the best of each counts, since a shared machine has slow spells
PARTITIONS = 100  # of the Fetch answer that bench_kafka_codec encodes
JARS = ['org.apache.kafka:kafka-clients:4.4.0', 'org.slf4j:slf4j-api:1.7.36']


def jars(folder):
    given = os.environ.get('ESK_KAFKA_JARS')
    if given:
        return [os.path.join(given, n) for n in os.listdir(given)
                if 'clients-4' in n or 'slf4j' in n]
    for jar in JARS:
        subprocess.run(['mvn', '-q', '-B', 'dependency:copy', f'-Dartifact={jar}',
                        f'-DoutputDirectory={folder}'], cwd=folder, check=True,
                       capture_output=True, timeout=300)
    return [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith('.jar')]


def compile_java(folder):
    """The class path of the compiled program; None without Maven or a JDK."""
    try:
        path = ':'.join(jars(folder) + [folder])
        subprocess.run(['javac', '-cp', path, '-d', folder, os.path.join(HERE, 'KafkaParse.java')],
                       check=True, capture_output=True)
        return path
    except (OSError, subprocess.SubprocessError) as error:
        print(f'skipped the Java client: {error}')
        return None


def run_java(path, bodies):
    out = subprocess.run(['java', '-Xmx1g', '-cp', path, 'KafkaParse', bodies], check=True,
                         capture_output=True, text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in out.splitlines()}


def run_ours(program, bodies):
    """Nanoseconds a message by case, and what the program printed."""
    out = subprocess.run([program, bodies], check=True, capture_output=True, text=True).stdout
    return {line[:28].strip(): float(line[28:].split()[0]) for line in out.splitlines()}, out


def keep_best(best, found):
    for name, value in found.items():
        best[name] = min(value, best.get(name, value))


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        ROOT, 'build', 'release', 'bench', 'bench_kafka_codec')
    with tempfile.TemporaryDirectory() as folder:
        bodies = os.path.join(folder, 'bodies')
        os.mkdir(bodies)
        ours, theirs = {}, {}
        path = compile_java(folder)
        for _ in range(ROUNDS if path else 1):
            found, out = run_ours(program, bodies)
            keep_best(ours, found)
            if path:
                keep_best(theirs, run_java(path, bodies))
        print(out, end='')
        fetch = ours['encode Fetch v12, pieces'] / PARTITIONS
        print(f'encode Fetch v12, best of all rounds: {fetch:.1f} ns per partition')
        if not path:
            return
        for name, case in (('ProduceRequest', 'decode Produce v9'),
                           ('ApiVersionsResponse', 'decode ApiVersions v3'),
                           ('MetadataResponse', 'decode Metadata v12')):
            print(f'{case:22} Java {theirs[name]:9.0f} ns, ours {ours[case]:9.0f} ns: '
                  f'{theirs[name] / ours[case]:.1f} times faster')


if __name__ == '__main__':
    main()
