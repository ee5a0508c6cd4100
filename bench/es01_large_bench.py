# SPDX-License-Identifier: Apache-2.0
"""Durable batches of 64 KiB (64 records of 1,000 B), 8 connections with 8 in flight, over one
partition and over 16. First 10 seconds beside the bare program that writes each byte once; then
sustained, with retention deleting all the while, beside the one that writes each byte twice."""
import sys

from lib import Run, median

SHAPE = {"connections": 8, "in_flight": 8, "records": 64, "size": 1000}
BURST_SECONDS = 10
SUSTAINED_SECONDS = 120


def main():
    with Run("ES01, durable batches of 64 KiB, 8 connections × 8",
             seconds=SUSTAINED_SECONDS) as run:
        burst = min(BURST_SECONDS, run.seconds)
        for partitions in (1, 16):
            shape = {**SHAPE, "topic": f"large-{partitions}", "partitions": partitions}
            rates, bare_rates = [], []
            for _ in range(run.rounds):
                broker = run.broker("--bind-binary", "127.0.0.1:0")
                bare = run.bare("direct")
                bare_rates.append(run.bare_load(bare, broker, "produce", seconds=burst,
                                                warmup_seconds=0,
                                                **shape)["megabytes_per_second"])
                run.end_bare(bare[0])
                rates.append(run.broker_load(broker, "produce", binary=broker.door("binary"),
                                             seconds=burst, warmup_seconds=0,
                                             **shape)["megabytes_per_second"])
                run.stop(broker)
            rate, bare_rate = median(rates), median(bare_rates)
            run.note(f"{partitions} partitions, {burst} s: {rate:,.0f} MB/s, bare {bare_rate:,.0f}")
            run.goal("share of the bare program's rate", rate / bare_rate, 0.8, at_least=True)

            broker = run.broker("--bind-binary", "127.0.0.1:0", "--retention-interval", "1s")
            broker.client().create_topic(shape["topic"], partitions,
                                         retention_bytes=(512 << 20) // partitions)
            bare = run.bare("twice")
            bare_report = run.bare_load(bare, broker, "produce", **shape)
            run.end_bare(bare[0])
            report = run.broker_load(broker, "produce", binary=broker.door("binary"), **shape)
            run.stop(broker)
            rate, bare_rate = (r["megabytes_per_second"] for r in (report, bare_report))
            latency = report["latency_ms"]
            run.note(f"{partitions} partitions, {run.seconds} s: {rate:,.0f} MB/s, p50 "
                     f"{latency['p50']:.2f}, p99.9 {latency['p99_9']:.2f} ms, CPU "
                     f"{report['cpu_us_per_record']:.1f} µs a record; bare {bare_rate:,.0f} MB/s")
            run.goal("share of the bare program's sustained rate", rate / bare_rate, 0.7,
                     at_least=True)
            run.goal("p99.9 to the median", latency["p99_9"] / latency["p50"], 10)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
