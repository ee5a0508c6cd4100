# SPDX-License-Identifier: Apache-2.0
"""Consume of 1 KiB records in answers of 1 MiB from the page cache, on one connection and on 16,
interleaved with the bare program that sends as many such bytes from a file. The goals are shares of
what it reaches with sendfile; what it reaches when it copies them is shown, too."""
import sys

from lib import Run, median

RECORDS = 400_000
SHAPE = {"max_records": 10000, "max_bytes": 1 << 20}


def main():
    with Run("ES01, consume of 1 KiB records in answers of 1 MiB") as run:
        broker = run.broker("--bind-binary", "127.0.0.1:0")
        bares = {mode: run.bare(mode) for mode in ("fetch", "copy")}
        records = RECORDS // 20 if run.quick else RECORDS
        run.load(broker.url, "produce", binary=broker.door("binary"), topic="consume",
                 partitions=16, connections=16, records=100, size=1024,
                 requests=records // 100)
        for connections, least in ((1, 0.9), (16, 0.65)):
            shape = {**SHAPE, "topic": "consume", "connections": connections}
            reports = {"broker": [], "fetch": [], "copy": []}
            for _ in range(run.rounds):
                for mode, bare in bares.items():
                    reports[mode].append(run.bare_load(bare, broker, "consume", **shape))
                reports["broker"].append(run.broker_load(
                    broker, "consume", binary=broker.door("binary"), **shape))
            rates = {name: median([report["megabytes_per_second"] for report in found])
                     for name, found in reports.items()}
            cpu = median([report["cpu_us_per_record"] for report in reports["broker"]])
            run.note(f"{connections} connections: {rates['broker']:,.0f} MB/s, broker CPU "
                     f"{cpu:.2f} µs a record; bare {rates['fetch']:,.0f} MB/s, and "
                     f"{rates['copy']:,.0f} MB/s when it copies what it sends")
            run.goal("share of the bare program's rate", rates["broker"] / rates["fetch"], least,
                     at_least=True)
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
