# SPDX-License-Identifier: Apache-2.0
"""Consume of 1 KiB records in answers of 1 MiB from the page cache, on one connection and on 16,
interleaved with the bare program that sends the same bytes from a file."""
import sys

from lib import Run, median

RECORDS = 400_000
SHAPE = {"max_records": 10000, "max_bytes": 1 << 20}


def main():
    with Run("ES01, consume of 1 KiB records in answers of 1 MiB") as run:
        broker = run.broker("--bind-binary", "127.0.0.1:0")
        bare = run.bare("fetch")
        records = RECORDS // 20 if run.quick else RECORDS
        run.load(broker.url, "produce", binary=broker.door("binary"), topic="consume",
                 partitions=16, connections=16, records=100, size=1024,
                 requests=records // 100)
        for connections, least in ((1, 0.9), (16, 0.65)):
            shape = {**SHAPE, "topic": "consume", "connections": connections}
            ours, theirs = [], []
            for _ in range(run.rounds):
                theirs.append(run.bare_load(bare, broker, "consume", **shape))
                ours.append(run.broker_load(broker, "consume", binary=broker.door("binary"),
                                            **shape))
            rate, bare_rate = (median([report["megabytes_per_second"] for report in reports])
                               for reports in (ours, theirs))
            cpu = median([report["cpu_us_per_record"] for report in ours])
            run.note(f"{connections} connections: {rate:,.0f} MB/s, broker CPU {cpu:.2f} µs a "
                     f"record; bare {bare_rate:,.0f} MB/s")
            run.goal("share of the bare program's rate", rate / bare_rate, least, at_least=True)
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
