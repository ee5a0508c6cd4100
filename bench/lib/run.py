# SPDX-License-Identifier: Apache-2.0
"""One run of a benchmark: its options, its folder, what it starts, its goals and its report.

Every benchmark takes
  --quick        a short run that proves the script works; missed goals are shown, not counted
  --record       append a row to bench/RESULTS.md
  --seconds N    how long each measurement is
  --rounds N     how often it is repeated; medians are reported
The folder for data is made below $BENCH_DIR, else below build/bench of the tree, and is removed.
The programs come from $ESKER_BUILD, else build/release. Exit codes: 0 all goals are reached, 1 not.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ESKER_BUILD", ROOT / "build" / "release"))
os.environ.setdefault("ESKER_BINARY", str(BUILD / "esker"))
os.environ.setdefault("ESK_BINARY", str(BUILD / "esk"))
sys.path.insert(0, str(ROOT / "tests"))
from harness.broker import Broker  # noqa: E402

from lib.process import Process  # noqa: E402

WARMUP_SECONDS = 1  # of esk bench, by default
RESULTS = ROOT / "bench" / "RESULTS.md"
DISK_SECONDS = 2


def median(values):
    return statistics.median(values)


def flags(options):
    """--name value for each; true is a bare flag, None is left out."""
    found = []
    for name, value in options.items():
        if value is True:
            found.append("--" + name.replace("_", "-"))
        elif value is not None:
            found += ["--" + name.replace("_", "-"), str(value)]
    return found


class Run:
    """with Run("title", seconds=5, rounds=3) as run: ...; run.code is the exit code."""

    def __init__(self, title, seconds=5, rounds=3, quick_seconds=1):
        parser = argparse.ArgumentParser(description=title)
        parser.add_argument("--quick", action="store_true")
        parser.add_argument("--record", action="store_true")
        parser.add_argument("--seconds", type=int)
        parser.add_argument("--rounds", type=int)
        arguments = parser.parse_args()
        self.title = title
        self.name = pathlib.Path(sys.argv[0]).stem.removesuffix("_bench")
        self.quick = arguments.quick
        self.record = arguments.record
        self.seconds = arguments.seconds or (quick_seconds if self.quick else seconds)
        self.rounds = arguments.rounds or (1 if self.quick else rounds)
        self.code = 0
        self.results = []  # texts for the row
        self.limits = []  # of the disk, as measured
        self.open_limits = []  # likewise, at a rate
        self._stack = contextlib.ExitStack()
        self._folders = 0

    def __enter__(self):
        parent = pathlib.Path(os.environ.get("BENCH_DIR", ROOT / "build" / "bench"))
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=self.name + "-", dir=parent))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.say(f"{self.title}\n{self.machine()}\n")
        return self

    def __exit__(self, kind, problem, trace):
        self._stack.close()
        if kind is not None:
            return
        if self.limits:
            self.note("disk, durable 4 KiB: " + self.disk_text())
        if self.record:
            self.append_row()

    # Texts

    def say(self, text):
        print(text, flush=True)

    def note(self, text):
        self.results.append(text)
        self.say(text)

    def machine(self):
        cpu = "unknown CPU"
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
        load = os.getloadavg()[0]
        return f"{os.cpu_count()} cores ({cpu}), load average {load:.1f} before"

    def goal(self, what, value, limit, unit="", at_least=False):
        """A figure that must be at most, or at least, the limit."""
        reached = value >= limit if at_least else value <= limit
        self.note(f"{'pass' if reached else 'FAIL'}  {what}: {value:,.4g}{unit}, "
                  f"goal {'at least' if at_least else 'at most'} {limit:,.4g}{unit}")
        if not reached and not self.quick:
            self.code = 1

    def fail(self, what):
        """Trouble that no quick run may have either."""
        self.note(f"FAIL  {what}")
        self.code = 1

    def append_row(self):
        """One row of bench/RESULTS.md."""
        commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
                                capture_output=True, text=True, check=False).stdout.strip()
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
        cells = [date, commit or "?", self.name, self.machine(), "<br>".join(self.results)]
        row = " | ".join(cell.replace("|", "/") for cell in cells)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(f"| {row} |\n")

    # The machine

    def measure_disk(self, rate=None):
        """Durable 4 KiB writes with one and two in flight, and with records that fall due at a
        rate; kept for the report."""
        seconds = 0.3 if self.quick else DISK_SECONDS
        output = json.loads(subprocess.run(
            [BUILD / "bench" / "bench_disk_limits", self.folder, str(seconds), "4096",
             str(rate or 0)],
            capture_output=True, text=True, check=True).stdout)
        one, two = output["in_flight"]
        self.limits.append((one, two))
        if rate:
            self.open_limits.append(output["open_loop"])

    def disk_open(self, figure):
        """The median of a figure of the disk in an open loop."""
        return median([limits[figure] for limits in self.open_limits])

    def disk(self, figure, in_flight=1):
        """The median of a figure over all measurements of this run."""
        return median([pair[in_flight - 1][figure] for pair in self.limits])

    def disk_text(self):
        parts = []
        for in_flight in (1, 2):
            rate = self.disk("writes_per_second", in_flight)
            quantiles = "/".join(f"{self.disk(name, in_flight):.2f}"
                                 for name in ("p50_ms", "p99_ms", "p99_9_ms"))
            parts.append(f"{in_flight} in flight {rate:,.0f}/s, p50/p99/p99.9 {quantiles} ms")
        return "; ".join(parts)

    # What is started

    def broker(self, *options, start=True):
        """A broker on an empty folder, on free ports; ended with the run."""
        self._folders += 1
        broker = Broker(self.folder / f"data-{self._folders}", *options)
        self._stack.callback(self._end, broker)
        return broker.start() if start else broker

    @staticmethod
    def _end(broker):
        if broker.running:
            broker.kill9()

    def stop(self, broker):
        """A clean stop, and the disk space back."""
        code = broker.stop()
        if code != 0:
            self.fail(f"the broker stopped with {code}\n{broker.log_text()}")
        shutil.rmtree(broker.data_dir, ignore_errors=True)

    def constant(self):
        """The connection layer that answers everything with the same bytes; its URL."""
        process = subprocess.Popen([BUILD / "bench" / "bench_http_constant", "127.0.0.1:0",
                                    str(os.cpu_count())], stdout=subprocess.PIPE, text=True)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        line = process.stdout.readline()
        return "http://" + line.split()[1]

    def bare(self, mode, threads=2):
        """The program that answers ES01 frames and is no broker: its process and address."""
        self._folders += 1
        folder = self.folder / f"bare-{self._folders}"
        folder.mkdir()
        process = subprocess.Popen(
            [BUILD / "bench" / "bench_es01_bare", mode, "127.0.0.1:0", folder, str(threads)],
            stdout=subprocess.PIPE, text=True)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process, process.stdout.readline().split()[1]

    def end_bare(self, process):
        """Ends it, and gives its disk space back."""
        process.kill()
        process.wait()
        for folder in self.folder.glob("bare-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def echo_p50_ms(self):
        """A round trip over loopback."""
        output = subprocess.run([BUILD / "bench" / "bench_loopback_echo", "1"],
                                capture_output=True, text=True, check=True).stdout
        return json.loads(output)["p50_ms"]

    def start_load(self, url, mode, **options):
        """esk bench in the background."""
        command = [os.environ["ESK_BINARY"], "--server", url, "bench", mode, "--json",
                   *flags(options)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end_load(self, process):
        """Its report; errors fail the run."""
        output, trouble = process.communicate()
        if not output:
            raise SystemExit(f"esk bench: {trouble}")
        report = json.loads(output)
        if report["errors"]:
            self.fail(f"{report['errors']} errors, first {report['first_error']}")
        return report

    def load(self, url, mode, **options):
        """esk bench; by default as long as the run's option says. binary is the address of that
        door, spread says that all records of a request name one partition, in turn."""
        if "binary" in options:
            options |= {"binary": True, "binary_server": options["binary"]}
        if "spread" in options:
            options["spread"] = "request" if options["spread"] else "record"
        if "requests" not in options:
            options.setdefault("seconds", self.seconds)
        return self.end_load(self.start_load(url, mode, **options))

    def bare_load(self, bare, broker, mode, **options):
        """esk bench against the bare program, with cpu_us_per_record of its process; the records of
        the warm-up are estimated from the rate. What it asks over HTTP it asks the broker."""
        process, address = bare
        used = Process(process.pid)
        report = self.load(broker.url, mode, binary=address, **options)
        warmup = options.get("warmup_seconds", WARMUP_SECONDS)
        records = report["records"] * (1 + warmup / report["seconds"])
        report["cpu_us_per_record"] = used.used_cpu_seconds() * 1e6 / max(records, 1)
        return report

    def beside_bare(self, broker, bare_mode, load_mode, **shape):
        """Reports of the broker over the binary protocol and of the bare program, in turn."""
        bare = self.bare(bare_mode)
        ours, theirs = [], []
        self.measure_disk()
        for _ in range(self.rounds):
            theirs.append(self.bare_load(bare, broker, load_mode, **shape))
            ours.append(self.broker_load(broker, load_mode, binary=broker.door("binary"), **shape))
        self.measure_disk()
        self.end_bare(bare[0])
        return ours, theirs

    def broker_load(self, broker, mode, **options):
        """As load, with cpu_us_per_record: what the broker's process used for each record that
        arrived (produce) or was measured (consume)."""
        process = Process(broker.pid)
        before = records_in(broker, options["topic"]) if mode == "produce" else 0
        report = self.load(broker.url, mode, **options)
        records = report["records"]
        if mode == "produce":
            records = records_in(broker, options["topic"]) - before
        report["cpu_us_per_record"] = process.used_cpu_seconds() * 1e6 / max(records, 1)
        return report


def records_in(broker, topic):
    """All that a topic ever had; 0 when it does not exist."""
    client = broker.client()
    answer = client.get(f"/topics/{topic}")
    client.close()
    if answer.status != 200:
        return 0
    return sum(partition["high_watermark"] for partition in answer.json["partitions"])
