# SPDX-License-Identifier: Apache-2.0
"""Esker beside Kafka and NATS on the same work, in turn; see peers/README.md. The peers are kept in
$ESKER_PEERS, by default build/peers of the tree."""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

from lib import Process, Run, median
from peers.peers import Kafka, Nats

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    connections: int
    in_flight: int
    records: int  # of a request
    size: int
    partitions: int


CASES = (
    Case("64 connections, 1 record of 100 B in flight", 64, 1, 1, 100, 16),
    Case("1 connection, 1 record of 100 B in flight", 1, 1, 1, 100, 1),
    Case("16 connections × 5 requests of 1,300 records of 100 B", 16, 5, 1300, 100, 16),
    Case("8 connections × 8 requests of 64 records of 1,000 B", 8, 8, 64, 1000, 16),
)
MOST_OF_KAFKA = "16 connections × 5"  # what Esker must do more of than Kafka without fsync


class Esker:
    name = "Esker"

    def __init__(self, run):
        self.run = run
        self.broker = run.broker("--bind-binary", "127.0.0.1:0", "--retention-interval", "1s")
        self.pid = self.broker.pid

    def prepare(self, topic, partitions):
        self.broker.client().create_topic(topic, partitions, retention_bytes=64 << 20)

    def produce(self, topic, case, seconds):
        report = self.run.load(
            self.broker.url, "produce", binary=self.broker.door("binary"), topic=topic,
            partitions=case.partitions, connections=case.connections, in_flight=case.in_flight,
            records=case.records, size=case.size, seconds=seconds, warmup_seconds=0)
        return {"records_per_second": report["records_per_second"],
                "p50_ms": report["latency_ms"]["p50"], "p99_ms": report["latency_ms"]["p99"]}

    def stop(self):
        self.run.stop(self.broker)


def gather(run, tools):
    """Those that are to be had, started."""
    peers = [Esker(run)]
    if Kafka.is_there(tools):
        peers += [Kafka(tools, run.folder / "kafka", False),
                  Kafka(tools, run.folder / "kafka-flushing", True)]
    if Nats.is_there(tools):
        peers.append(Nats(tools, run.folder / "nats"))
    for peer in peers[1:]:
        peer.start()
    return peers


def measure(peer, topic, case, seconds):
    used = Process(peer.pid)
    report = peer.produce(topic, case, seconds)
    records = report["records_per_second"] * seconds
    report["cpu_us"] = used.used_cpu_seconds() * 1e6 / max(records, 1)
    return report


def run_case(run, peers, number, case):
    """{name: {figure: median}} of all peers that take part."""
    able = [peer for peer in peers
            if not isinstance(peer, Nats) or case.records == case.in_flight == 1]
    topic = f"case{number}"
    for peer in able:
        peer.prepare(topic, case.partitions)
        measure(peer, topic, case, run.seconds)  # warms it
    reports = {peer.name: [] for peer in able}
    for _ in range(run.rounds):
        for peer in able:
            reports[peer.name].append(measure(peer, topic, case, run.seconds))
    return {name: {figure: median([report[figure] for report in found])
                   for figure in ("records_per_second", "p50_ms", "p99_ms", "cpu_us")}
            for name, found in reports.items()}


def tell(run, case, figures):
    ours = figures["Esker"]
    run.say(f"\n{case.name}\n\n| broker | records/s | Esker is | p50 ms | p99 ms | CPU µs/record |"
            " CPU µs/MB |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, found in figures.items():
        rate = found["records_per_second"]
        ratio = ours["records_per_second"] / max(rate, 1)
        run.say(f"| {name} | {rate:,.0f} | {ratio:.2f}× | {found['p50_ms']:.2f} | "
                f"{found['p99_ms']:.2f} | {found['cpu_us']:.2f} | "
                f"{found['cpu_us'] * 1e6 / case.size:,.0f} |")
    run.results.append(f"{case.name}: " + "; ".join(
        f"{name} {found['records_per_second']:,.0f}/s, p99 {found['p99_ms']:.2f} ms, "
        f"{found['cpu_us']:.2f} µs" for name, found in figures.items()))


def main():
    with Run("Esker beside its peers") as run:
        tools = pathlib.Path(os.environ.get("ESKER_PEERS", ROOT / "build" / "peers"))
        subprocess.run([ROOT / "bench" / "peers" / "get.sh", tools], check=True)
        peers = gather(run, tools)
        try:
            for number, case in enumerate(CASES):
                figures = run_case(run, peers, number, case)
                tell(run, case, figures)
                kafka = figures.get("Kafka, without fsync")
                if kafka and case.name.startswith(MOST_OF_KAFKA):
                    run.goal("Esker's durable rate to Kafka's without fsync",
                             figures["Esker"]["records_per_second"] / kafka["records_per_second"],
                             1, at_least=True)
        finally:
            for peer in peers:
                peer.stop()
            shutil.rmtree(run.folder, ignore_errors=True)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
