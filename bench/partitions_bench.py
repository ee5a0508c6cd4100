# SPDX-License-Identifier: Apache-2.0
"""The same open load on 1, 16 and 1,000 partitions, in turn: what more partitions cost in p99.

The rate is a third of what one partition takes in a closed loop, the requests one record of 100 B
over 64 connections; each names one partition, in turn. Medians of the pairs' ratios.
"""
import sys

from lib import Run, median

SHAPE = {"connections": 64, "size": 100}
COUNTS = (1, 16, 1000)


def main():
    with Run("p99 over 1, 16 and 1,000 partitions at the same load", rounds=5) as run:
        broker = run.broker("--flush-every-records", "1")
        client = broker.client()
        for count in COUNTS:
            client.create_topic(f"over-{count}", count)
        most = run.load(broker.url, "produce", topic="over-1", **SHAPE)["requests_per_second"]
        rate = max(1, int(most / 3))
        run.measure_disk()
        rounds = []
        for _ in range(run.rounds):
            rounds.append([run.broker_load(broker, "produce", topic=f"over-{count}", rate=rate,
                                           **SHAPE) for count in COUNTS])
        run.measure_disk()
        for at, count in enumerate(COUNTS):
            p50 = median([reports[at]["latency_ms"]["p50"] for reports in rounds])
            p99 = median([reports[at]["latency_ms"]["p99"] for reports in rounds])
            cpu = median([reports[at]["cpu_us_per_record"] for reports in rounds])
            run.note(f"{count} partitions at {rate:,} requests/s: p50 {p50:.2f} ms, p99 "
                     f"{p99:.2f} ms, broker CPU {cpu:.1f} µs a record")
        for at, limit in ((1, 1.2), (2, 2)):
            ratio = median([reports[at]["latency_ms"]["p99"] / reports[0]["latency_ms"]["p99"]
                            for reports in rounds])
            run.goal(f"p99 of {COUNTS[at]} partitions to that of 1", ratio, limit)
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
