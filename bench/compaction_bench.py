# SPDX-License-Identifier: Apache-2.0
"""Compaction: MB/s a core of the code alone, 100 million keys in a map of 128 MiB, and the p99 of
durable produces with and without a pass, as the median of interleaved pairs."""
import json
import subprocess
import sys
import threading
import time

from lib import Run, median
from lib.run import BUILD

RATE = 5000  # produces a second beside the pass
SHAPE = {"topic": "load", "connections": 64, "partitions": 16, "size": 100, "rate": RATE}
KEYS = 20000
VALUE_BYTES = 1000


def program(run, *arguments):
    output = subprocess.run([BUILD / "bench" / "bench_compaction", *map(str, arguments)],
                            capture_output=True, text=True, check=False)
    if output.returncode != 0:
        raise SystemExit(f"bench_compaction: {output.stderr}")
    return json.loads(output.stdout)


def alone(run):
    megabytes = 64 if run.quick else 1024
    for name, size, codec in (("100 B", 100, 0), ("1 KiB", 1024, 0), ("200 B, zstd", 200, 4)):
        rates = []
        for _ in range(run.rounds):
            report = program(run, "rewrite", run.folder, megabytes // (8 if codec else 1), size,
                             500000, codec)
            rates.append(report["bytes"] / 1e6 / report["cpu_seconds"])
        if codec:
            run.note(f"records of {name}: {median(rates):,.0f} MB/s of compressed bytes a core")
        else:
            run.goal(f"rewriting records of {name}", median(rates), 200, " MB/s a core",
                     at_least=True)


def many_keys(run):
    keys = 2_000_000 if run.quick else 100_000_000
    report = program(run, "keys", keys, 128 << 20)
    run.note(f"{keys:,} distinct keys: {report['rounds']} rounds, {report['seconds']:,.0f} s, "
             f"{report['put_ns']:.0f} ns to note one, {report['find_ns']:.0f} ns to look one up")
    run.goal("memory with them", report["peak_bytes"] / 2**20, 160, " MiB")


def fill(client, megabytes, seed):
    """Records whose keys come again, in both partitions."""
    count = 2000
    for number in range(max(1, megabytes * 2**20 // (count * VALUE_BYTES))):
        records = [{"key": f"user-{(seed + number * count + i) * 7919 % KEYS}",
                    "value": "v" * VALUE_BYTES, "partition": i % 2} for i in range(count)]
        client.produce("log", *records)


def beside(run):
    broker = run.broker("--flush-every-records", "1", "--compaction-interval", "30d")
    client = broker.client()
    client.create_topic("log", 2, cleanup_policy="compact", segment_bytes=16 << 20)
    megabytes = 64 if run.quick else 64 * (run.seconds + 3)  # at most 32 MB/s a shard, read twice
    pairs = []
    for round_number in range(run.rounds):
        fill(client, megabytes, round_number)
        without = run.broker_load(broker, "produce", **SHAPE)["latency_ms"]["p99"]
        passes = []

        def compact():
            mine = broker.client(timeout=600)
            began = time.monotonic()
            answer = mine.post("/admin/run-compaction").json
            passes.append((time.monotonic() - began, answer))

        thread = threading.Thread(target=compact)
        thread.start()
        beside_it = run.broker_load(broker, "produce", **SHAPE)["latency_ms"]["p99"]
        thread.join()
        took, answer = passes[0]
        if took < run.seconds and not run.quick:
            run.fail(f"the pass was over after {took:.1f} s: {answer}")
        pairs.append((without, beside_it))
        run.say(f"p99 {without:.2f} ms without, {beside_it:.2f} ms beside a pass of {took:.1f} s "
                f"that removed {answer['records_removed']:,} records")
    run.note(f"{RATE:,} produces/s of 100 B: p99 "
             + ", ".join(f"{a:.2f}/{b:.2f}" for a, b in pairs) + " ms without/with a pass")
    run.goal("p99 with a pass against without, median of pairs",
             median([b / a for a, b in pairs]), 1.5)
    run.stop(broker)


def main():
    with Run("compaction", rounds=5) as run:
        alone(run)
        many_keys(run)
        beside(run)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
