# SPDX-License-Identifier: Apache-2.0
"""Durable produce over the binary protocol, one record of 100 B in flight on each of 64
connections, in turn with the bare program that only reads the same frames, writes them and
answers."""
import sys

from lib import Run, median

SHAPE = {"topic": "single", "connections": 64, "in_flight": 1, "records": 1, "size": 100,
         "partitions": 16}


def main():
    with Run("ES01, durable, 64 connections with one record of 100 B in flight") as run:
        broker = run.broker("--bind-binary", "127.0.0.1:0")
        ours, theirs = run.beside_bare(broker, "direct", "produce", **SHAPE)
        rate, bare_rate = (median([report["requests_per_second"] for report in reports])
                           for reports in (ours, theirs))
        p99, bare_p99 = (median([report["latency_ms"]["p99"] for report in reports])
                         for reports in (ours, theirs))
        cpu, bare_cpu = (median([report["cpu_us_per_record"] for report in reports])
                         for reports in (ours, theirs))
        run.note(f"{rate:,.0f} requests/s, p99 {p99:.2f} ms, broker CPU {cpu:.1f} µs; bare "
                 f"{bare_rate:,.0f} requests/s, p99 {bare_p99:.2f} ms, CPU {bare_cpu:.1f} µs")
        run.goal("share of the bare program's rate", rate / bare_rate, 0.65, at_least=True)
        run.goal("p99 to the bare program's", p99 / bare_p99, 2)
        run.goal("broker CPU a request", cpu, 13, " µs")
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
