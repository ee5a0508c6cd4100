# SPDX-License-Identifier: Apache-2.0
"""Frames of 1,300 records of 100 B over 16 connections with 5 in flight, 16 partitions, durable.
That it is more than Kafka without fsync does on the same machine is for `peers` to show."""
import sys

from lib import Run, median

SHAPE = {"topic": "batches", "connections": 16, "in_flight": 5, "records": 1300, "size": 100,
         "partitions": 16}


def main():
    with Run("ES01, durable, frames of 1,300 records of 100 B, 16 connections × 5") as run:
        broker = run.broker("--bind-binary", "127.0.0.1:0", "--retention-interval", "1s")
        broker.client().create_topic(SHAPE["topic"], 16, retention_bytes=64 << 20)
        ours, theirs = run.beside_bare(broker, "direct", "produce", **SHAPE)
        rate, bare_rate = (median([report["records_per_second"] for report in reports])
                           for reports in (ours, theirs))
        p99 = median([report["latency_ms"]["p99"] for report in ours])
        cpu = median([report["cpu_us_per_record"] for report in ours])
        client = median([report["client_cpu_seconds"] for report in ours]) / (run.seconds + 1)
        run.note(f"{rate:,.0f} records/s, p99 {p99:.2f} ms, client {client:.2f} cores; bare "
                 f"{bare_rate:,.0f} records/s")
        run.goal("broker CPU a record", cpu, 0.25, " µs")
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
