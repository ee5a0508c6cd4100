# SPDX-License-Identifier: Apache-2.0
"""Records of 100 B, one a frame, 64 connections with 32 in flight, durable; in turn with the bare
program that appends the same frames to a pre-written file and answers after fdatasync."""
import sys

from lib import Run, median

SHAPE = {"topic": "pipelined", "connections": 64, "in_flight": 32, "records": 1, "size": 100,
         "partitions": 16}


def main():
    with Run("ES01, durable, 64 connections × 32 records of 100 B in flight", rounds=7) as run:
        broker = run.broker("--bind-binary", "127.0.0.1:0", "--retention-interval", "1s")
        broker.client().create_topic(SHAPE["topic"], 16, retention_bytes=64 << 20)
        ours, theirs = run.beside_bare(broker, "sync", "produce", **SHAPE)
        rate, bare_rate = (median([report["records_per_second"] for report in reports])
                           for reports in (ours, theirs))
        p99 = median([report["latency_ms"]["p99"] for report in ours])
        cpu = median([report["cpu_us_per_record"] for report in ours])
        client = median([report["client_cpu_seconds"] for report in ours]) / (run.seconds + 1)
        run.note(f"{rate:,.0f} records/s, p99 {p99:.2f} ms, broker CPU {cpu:.2f} µs a record, "
                 f"client {client:.2f} cores; bare {bare_rate:,.0f} records/s")
        run.goal("records/s", rate, 600000, at_least=True)
        run.goal("share of the bare program's rate", rate / bare_rate, 0.7, at_least=True)
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
