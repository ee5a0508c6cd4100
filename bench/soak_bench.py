# SPDX-License-Identifier: Apache-2.0
"""Mixed load for ten minutes (--seconds): single and batched produces, reads, long polls, commits,
topics made and deleted, connections that come and go; memory and open files must stay flat, and
nothing may fail."""
import sys
import threading
import time

from lib import Process, Run, median, open_files

SAMPLES = 60  # over the whole run
GROWTH_MB = 16  # that resident memory may differ by between the second quarter and the last


class Churn(threading.Thread):
    """Small calls, one after the other, each with an answer that must be right."""

    def __init__(self, broker, end):
        super().__init__(daemon=True)
        self.broker = broker
        self.end = end
        self.rounds = 0
        self.problem = None

    def one_round(self, number):
        client = self.broker.client()
        name = f"churn-{number}"
        client.create_topic(name, 3)
        client.produce(name, {"value": "a", "partition": 1}, {"value": "b", "partition": 1})
        assert client.values(name, 1) == ["a", "b"]
        answer = client.post("/groups/soak/commit",
                             {"topic": name, "partition": 1, "offset": 1})
        assert answer.status == 200, answer
        assert client.consume(name, 0, 0, wait_ms=20)["records"] == []
        assert client.get("/topics/none").status == 404
        assert client.get("/metrics").status == 200
        assert client.delete(f"/topics/{name}").status == 200
        client.close()

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.one_round(self.rounds)
                self.rounds += 1
        except Exception as problem:  # any is told in the report
            self.problem = repr(problem)


def sample(run, broker, seconds):
    """[(resident MB, open files)] over that time."""
    found = []
    event = threading.Event()
    process = Process(broker.pid)
    for _ in range(SAMPLES):
        event.wait(seconds / SAMPLES)
        if not broker.running:
            run.fail("the broker ended\n" + broker.log_text())
            break
        found.append((process.memory_mb()[0], open_files(broker.pid)))
    return found


def main():
    with Run("mixed load", seconds=600, quick_seconds=4) as run:
        broker = run.broker("--flush-every-records", "1", "--retention-interval", "5s")
        client = broker.client()
        for name in ("single", "batch"):
            client.create_topic(name, 8, retention_bytes=4 << 20, segment_bytes=1 << 20)
            client.produce(name, *[{"value": "v", "partition": i} for i in range(8)])
        client.close()
        cpu = Process(broker.pid)
        churn = Churn(broker, time.monotonic() + run.seconds)
        churn.start()
        shape = {"seconds": run.seconds, "warmup_seconds": 0}
        loads = [
            run.start_load(broker.url, "produce", topic="single", rate=2000, connections=64,
                           **shape),
            run.start_load(broker.url, "produce", topic="batch", rate=200, records=100,
                           connections=16, **shape),
            run.start_load(broker.url, "consume", topic="batch", rate=50, connections=8,
                           max_bytes="64KiB", **shape),
        ]
        samples = sample(run, broker, run.seconds * 0.95)
        reports = [run.end_load(load) for load in loads]
        churn.join()
        if churn.problem:
            run.fail(f"round {churn.rounds}: {churn.problem}")
        quarter = max(1, len(samples) // 4)
        early, late = samples[quarter:2 * quarter], samples[-quarter:]
        memory = [median([entry[0] for entry in part]) for part in (early, late)]
        files = [median([entry[1] for entry in part]) for part in (early, late)]
        counts = " + ".join(f"{report['requests']:,}" for report in reports)
        tails = ", ".join(f"{report['latency_ms']['p99']:.1f}" for report in reports)
        run.note(f"{run.seconds} s, {counts} single and batched produces and reads (p99 {tails} "
                 f"ms), {churn.rounds} rounds of other calls, broker CPU "
                 f"{cpu.used_cpu_seconds() / run.seconds:.2f} cores; resident {memory[0]:.1f} MB "
                 f"then {memory[1]:.1f} MB, open files {files[0]:.0f} then {files[1]:.0f}")
        run.goal("growth of resident memory", memory[1] - memory[0], GROWTH_MB, " MB")
        run.goal("growth of open files", files[1] - files[0], 16)
        errors = [line for line in broker.log if line.get("level") == "error"]
        if errors:
            run.fail(f"{len(errors)} errors in the log, first {errors[0]}")
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
