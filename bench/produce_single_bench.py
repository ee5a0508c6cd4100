# SPDX-License-Identifier: Apache-2.0
"""Durable produce of one record of 100 B a request over 64 connections.

Closed loop, interleaved with the same connection layer answering a constant; then an open loop at
half the broker's maximum, interleaved with the disk's durable 4 KiB writes and with the constant
answer at the same rate, which shows how much of the tail is the machine's.
"""
import sys

from lib import Run, median

SHAPE = {"topic": "single", "connections": 64, "partitions": 16, "size": 100}


def main():
    with Run("durable produce, 1 record of 100 B a request, 64 connections") as run:
        constant = run.constant()
        broker = run.broker("--flush-every-records", "1")
        ceilings, reports = [], []
        for _ in range(run.rounds):
            ceilings.append(run.load(constant, "produce", **SHAPE)["requests_per_second"])
            reports.append(run.broker_load(broker, "produce", **SHAPE))
        ceiling = median(ceilings)
        rate = median([report["requests_per_second"] for report in reports])
        cpu = median([report["cpu_us_per_record"] for report in reports])
        p99 = median([report["latency_ms"]["p99"] for report in reports])
        run.note(f"closed loop: {rate:,.0f} requests/s, p99 {p99:.2f} ms, broker CPU {cpu:.1f} µs "
                 f"a record; a constant answer {ceiling:,.0f} requests/s")
        run.goal("share of the constant answer's rate", rate / ceiling, 0.5, at_least=True)

        tails, constant_tails = [], []
        half = max(1, int(rate / 2))
        run.measure_disk()
        for _ in range(run.rounds):
            report = run.broker_load(broker, "produce", rate=half, **SHAPE)
            tails.append(report["latency_ms"]["p99"])
            report = run.load(constant, "produce", rate=half, **SHAPE)
            constant_tails.append(report["latency_ms"]["p99"])
            run.measure_disk()
        run.note(f"p99 of the constant answer at that rate: {median(constant_tails):.2f} ms")
        disk = run.disk("p99_ms")
        run.goal(f"p99 at {half:,} requests/s, open loop, against 4 × the disk's {disk:.2f} ms",
                 median(tails), 4 * disk, " ms")
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
