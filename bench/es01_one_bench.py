# SPDX-License-Identifier: Apache-2.0
"""One record of 100 B at a time on one connection, durable, against the disk's own durable write
plus a round trip over loopback, in turn with both."""
import sys

from lib import Run, median

SHAPE = {"topic": "one", "connections": 1, "in_flight": 1, "records": 1, "size": 100}


def main():
    with Run("ES01, durable, one record of 100 B at a time") as run:
        broker = run.broker("--bind-binary", "127.0.0.1:0")
        reports, echoes = [], []
        for _ in range(run.rounds):
            run.measure_disk()
            echoes.append(run.echo_p50_ms())
            reports.append(run.broker_load(broker, "produce", binary=broker.door("binary"),
                                           **SHAPE))
        p50 = median([report["latency_ms"]["p50"] for report in reports])
        floor = run.disk("p50_ms") + median(echoes)
        cpu = median([report["cpu_us_per_record"] for report in reports])
        run.note(f"p50 {p50 * 1000:.0f} µs, broker CPU {cpu:.1f} µs a record; disk "
                 f"{run.disk('p50_ms') * 1000:.0f} µs + echo {median(echoes) * 1000:.0f} µs")
        run.goal("p50 to disk and echo together", p50 / floor, 1.3)
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
