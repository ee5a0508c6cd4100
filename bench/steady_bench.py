# SPDX-License-Identifier: Apache-2.0
"""10,000 records/s of 1 KiB in an open loop, durable, while checkpoints and retention run: small
segments and a small retention_bytes keep both busy throughout. In turn with it, the same load on a
constant answer shows how much of the tail is the machine's."""
import sys

from lib import Run, median

RATE = 10000


def removed_bytes(client):
    text = client.get("/metrics").body.decode("utf-8")
    return sum(float(line.split()[-1]) for line in text.splitlines()
               if line.startswith("esker_cleanup_removed_bytes_total"))


def main():
    with Run("10,000 records/s of 1 KiB, open loop, with retention", seconds=30) as run:
        broker = run.broker("--flush-every-records", "1", "--retention-interval", "1s")
        broker.client().create_topic("steady", 16, retention_bytes=4 << 20, segment_bytes=1 << 20)
        constant = run.constant()
        reports, floors = [], []
        run.measure_disk()
        for _ in range(run.rounds):
            reports.append(run.broker_load(broker, "produce", topic="steady", connections=64,
                                           size=1024, rate=RATE))
            floors.append(run.load(constant, "produce", topic="steady", connections=64, size=1024,
                                   rate=RATE)["latency_ms"])
            run.measure_disk()
        cpu = median([report["cpu_us_per_record"] for report in reports])
        reached = median([report["records_per_second"] for report in reports])
        longest = max(report["latency_ms"]["max"] for report in reports)
        removed = removed_bytes(broker.client())  # the first connection is past its idle time
        run.note(f"{reached:,.0f} records/s, broker CPU {cpu:.1f} µs a record, longest "
                 f"{longest:.1f} ms, retention removed {removed / 1e6:,.0f} MB")
        run.note("a constant answer at that rate: " + ", ".join(
            f"{text} {median([floor[name] for floor in floors]):.2f} ms"
            for name, text in (("p99", "p99"), ("p99_9", "p99.9"))))
        if removed == 0 and not run.quick:
            run.fail("retention removed nothing")
        for name, text, least in (("p99", "p99", 2), ("p99_9", "p99.9", 10)):
            disk = run.disk(f"{name}_ms")
            run.goal(f"{text} (the disk's own {disk:.2f} ms)",
                     median([report["latency_ms"][name] for report in reports]),
                     max(least, 4 * disk), " ms")
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
