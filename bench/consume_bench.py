# SPDX-License-Identifier: Apache-2.0
"""Consume of 1 KiB records over one connection, max_bytes 1 MiB: megabytes of JSON a second."""
import sys

from lib import Run, median

RECORDS = 300000


def main():
    with Run("consume, 1 KiB records, max_bytes 1 MiB, one connection") as run:
        broker = run.broker()
        records = 20000 if run.quick else RECORDS
        run.load(broker.url, "produce", topic="read", size=1024, records=100,
                 requests=records // 100)
        reports = [run.broker_load(broker, "consume", topic="read", connections=1,
                                   max_bytes="1MiB", max_records=10000)
                   for _ in range(run.rounds)]
        rate = median([report["megabytes_per_second"] for report in reports])
        cpu = median([report["cpu_us_per_record"] for report in reports])
        p99 = median([report["latency_ms"]["p99"] for report in reports])
        run.note(f"{median([r['records_per_second'] for r in reports]):,.0f} records/s, p99 "
                 f"{p99:.2f} ms an answer, broker CPU {cpu:.2f} µs a record")
        run.goal("MB/s of JSON", rate, 400, at_least=True)
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
