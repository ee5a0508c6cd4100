# SPDX-License-Identifier: Apache-2.0
"""How long a start takes, and what an idle broker holds.

Empty folder: from the start of the process to /readyz 200. Then 10,000 partitions, 10 GB of data
and a journal as full as it gets: kill -9 under load, start again, from process start to /readyz
200. Memory is that of a broker started on the same data after a clean stop.
"""
import http.client
import os
import select
import socket
import subprocess
import sys
import time

from lib import Process, Run, median

IDLE_SECONDS = 3


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def ready(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
        connection.close()
        return status == 200
    except OSError:
        return False


def timed_start(run, folder):
    """(milliseconds to /readyz, the process, its port)."""
    port = free_port()
    began = time.monotonic()
    process = subprocess.Popen(
        [os.environ["ESKER_BINARY"], "--data-dir", str(folder), "--bind", f"127.0.0.1:{port}",
         "--shards", "2", "--log-level", "warn"])
    while not ready(port):
        if process.poll() is not None:
            raise SystemExit(f"esker ended with {process.returncode}")
        select.select([], [], [], 0.0005)
    return (time.monotonic() - began) * 1000, process, port


def end(process):
    process.terminate()
    return process.wait()


def idle_memory(run, process):
    select.select([], [], [], 0.5 if run.quick else IDLE_SECONDS)
    return Process(process.pid).memory_mb()


def empty_starts(run):
    times = []
    for number in range(2 if run.quick else 10):
        milliseconds, process, _ = timed_start(run, run.folder / f"empty-{number}")
        times.append(milliseconds)
        if number == 0:
            resident, anonymous = idle_memory(run, process)
        if end(process) != 0:
            run.fail("a stop was not clean")
    run.goal("empty folder to /readyz, median", median(times), 20, " ms")
    run.goal("idle, 2 shards: resident", resident, 20, " MB")
    run.goal("idle, 2 shards: anonymous", anonymous, 6, " MB")


def folder_gb(folder):
    output = subprocess.run(["du", "-sB1", str(folder)], capture_output=True, text=True,
                            check=True).stdout
    return int(output.split()[0]) / 1e9


def restart(run):
    partitions = 200 if run.quick else 10000
    requests = 1000 if run.quick else 200000  # of 50 records of 1 KiB: 10 GB
    folder = run.folder / "large"
    _, process, port = timed_start(run, folder)
    url = f"http://127.0.0.1:{port}"
    began = time.monotonic()
    run.load(url, "produce", topic="large", partitions=partitions, connections=32, records=50,
             size=1024, requests=requests)
    run.say(f"filled in {time.monotonic() - began:.0f} s")
    load = run.start_load(url, "produce", topic="large", connections=32, records=50, size=1024,
                          seconds=600)
    select.select([], [], [], run.seconds)
    process.kill()
    process.wait()
    load.kill()
    load.communicate()
    size = folder_gb(folder)
    milliseconds, process, port = timed_start(run, folder)
    resident, anonymous = idle_memory(run, process)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/topics/large")
    answer = connection.getresponse().read()
    connection.close()
    run.note(f"{partitions} partitions, {size:.1f} GB on disk, killed under load: "
             f"{milliseconds:.0f} ms to /readyz, resident {resident:.1f} MB after "
             f"{IDLE_SECONDS} s, of it anonymous {anonymous:.1f} MB; a description of "
             f"{len(answer)} bytes")
    run.goal("restart after kill -9 to /readyz", milliseconds, 2000, " ms")
    if end(process) != 0:
        run.fail("the stop was not clean")
    milliseconds, process, _ = timed_start(run, folder)
    resident, anonymous = idle_memory(run, process)
    run.note(f"after a clean stop: {milliseconds:.0f} ms to /readyz, anonymous "
             f"{anonymous:.1f} MB")
    run.goal("idle with those partitions: resident", resident, 80, " MB")
    if end(process) != 0:
        run.fail("the stop was not clean")


def main():
    with Run("starting: an empty folder; 10,000 partitions with 10 GB after kill -9") as run:
        empty_starts(run)
        restart(run)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
