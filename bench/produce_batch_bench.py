# SPDX-License-Identifier: Apache-2.0
"""Durable produce of 100 records of 100 B a request over 32 connections, broker and load on the
same cores. Each request names one partition of 16, in turn; to compare, also all to one."""
import sys

from lib import Run, median

SHAPE = {"connections": 32, "records": 100, "size": 100}


def main():
    with Run("durable produce, 100 records of 100 B a request, 32 connections") as run:
        broker = run.broker("--flush-every-records", "1", "--retention-interval", "1s")
        client = broker.client()
        for partitions in (16, 1):
            client.create_topic(f"batch-{partitions}", partitions, retention_bytes=64 << 20)
        run.measure_disk()
        reports = {16: [], 1: []}
        for _ in range(run.rounds):
            for partitions, found in reports.items():
                found.append(run.broker_load(broker, "produce", topic=f"batch-{partitions}",
                                             **SHAPE))
        run.measure_disk()
        rates = {}
        for partitions, found in reports.items():
            rates[partitions] = median([report["records_per_second"] for report in found])
            p99 = median([report["latency_ms"]["p99"] for report in found])
            cpu = median([report["cpu_us_per_record"] for report in found])
            client_cpu = median([report["client_cpu_seconds"] for report in found])
            run.note(f"{partitions} partitions: {rates[partitions]:,.0f} records/s, p99 "
                     f"{p99:.2f} ms, broker CPU {cpu:.2f} µs a record, client CPU "
                     f"{client_cpu / (run.seconds + 1):.2f} cores")
        run.goal("records/s", rates[16], 1e6, at_least=True)
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
