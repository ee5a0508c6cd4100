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


def java(folder, bodies):
    path = ':'.join(jars(folder) + [folder])
    subprocess.run(['javac', '-cp', path, '-d', folder, os.path.join(HERE, 'KafkaParse.java')],
                   check=True, capture_output=True)
    out = subprocess.run(['java', '-Xmx1g', '-cp', path, 'KafkaParse', bodies], check=True,
                         capture_output=True, text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in out.splitlines()}


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        ROOT, 'build', 'release', 'bench', 'bench_kafka_codec')
    with tempfile.TemporaryDirectory() as folder:
        bodies = os.path.join(folder, 'bodies')
        os.mkdir(bodies)
        out = subprocess.run([program, bodies], check=True, capture_output=True, text=True).stdout
        print(out, end='')
        ours = {}
        for line in out.splitlines():
            words = line.split()
            if words[0] == 'decode':
                ours[words[1]] = float(line[28:].split()[0])
        try:
            theirs = java(folder, bodies)
        except (OSError, subprocess.SubprocessError) as error:
            print(f'skipped the Java client: {error}')
            return
        for name, short in (('ProduceRequest', 'Produce'), ('ApiVersionsResponse', 'ApiVersions'),
                            ('MetadataResponse', 'Metadata')):
            print(f'{short:14} Java {theirs[name]:9.0f} ns, ours {ours[short]:9.0f} ns: '
                  f'{theirs[name] / ours[short]:.1f} times faster')


if __name__ == '__main__':
    main()
