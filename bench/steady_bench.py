# SPDX-License-Identifier: Apache-2.0
"""10,000 records/s of 1 KiB in an open loop, durable, while checkpoints and retention run: small
segments and a small retention_bytes keep both busy throughout. In turn with it, what of the tail is
the machine's: the same load on a constant answer, and, over the binary protocol, on the broker and
on the bare program that answers after one durable write. The disk's own tail is that of an open
loop at the same rate, where a stall counts for all that wait."""
import sys

from lib import Run, median

RATE = 10000
SHAPE = {"topic": "steady", "connections": 64, "size": 1024, "rate": RATE}
TAILS = (("p99", "p99"), ("p99_9", "p99.9"))


def removed_bytes(client):
    text = client.get("/metrics").body.decode("utf-8")
    return sum(float(line.split()[-1]) for line in text.splitlines()
               if line.startswith("esker_cleanup_removed_bytes_total"))


def note_tail(run, what, reports):
    run.note(f"{what}: " + ", ".join(
        f"{text} {median([report['latency_ms'][name] for report in reports]):.2f} ms"
        for name, text in TAILS))


def main():
    with Run("10,000 records/s of 1 KiB, open loop, with retention", seconds=30) as run:
        broker = run.broker("--flush-every-records", "1", "--retention-interval", "1s",
                            "--bind-binary", "127.0.0.1:0")
        broker.client().create_topic("steady", 16, retention_bytes=4 << 20, segment_bytes=1 << 20)
        constant = run.constant()
        bare = run.bare("direct")
        reports, floors, binary, bares = [], [], [], []
        run.measure_disk(RATE)
        for _ in range(run.rounds):
            reports.append(run.broker_load(broker, "produce", **SHAPE))
            floors.append(run.load(constant, "produce", **SHAPE))
            binary.append(run.broker_load(broker, "produce", binary=broker.door("binary"), **SHAPE))
            bares.append(run.bare_load(bare, broker, "produce", partitions=16, **SHAPE))
            run.measure_disk(RATE)
        cpu = median([report["cpu_us_per_record"] for report in reports])
        reached = median([report["records_per_second"] for report in reports])
        longest = max(report["latency_ms"]["max"] for report in reports)
        removed = removed_bytes(broker.client())  # the first connection is past its idle time
        run.note(f"{reached:,.0f} records/s, broker CPU {cpu:.1f} µs a record, longest "
                 f"{longest:.1f} ms, retention removed {removed / 1e6:,.0f} MB")
        note_tail(run, "a constant answer at that rate", floors)
        note_tail(run, "over the binary protocol", binary)
        note_tail(run, "the bare program at that rate", bares)
        if removed == 0 and not run.quick:
            run.fail("retention removed nothing")
        for (name, text), least in zip(TAILS, (2, 10)):
            disk = run.disk_open(f"{name}_ms")
            run.goal(f"{text} (the disk's own at that rate {disk:.2f} ms)",
                     median([report["latency_ms"][name] for report in reports]),
                     max(least, 4 * disk), " ms")
        run.end_bare(bare[0])
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
