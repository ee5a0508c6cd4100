# SPDX-License-Identifier: Apache-2.0
"""Many large bodies at once on little memory: they wait for each other, nobody is cut off."""
import concurrent.futures
import http.client
import json
import threading

import pytest

from harness.broker import TIMEOUT_S, esker_binary

BODY_BYTES = 5 * 1024 * 1024


def high_water_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def is_sanitized():
    with open(esker_binary(), "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def in_chunks(body):
    for at in range(0, len(body), 100000):
        yield body[at:at + 100000]


@pytest.fixture
def small_broker(make_broker):
    broker = make_broker("--memory", "64MiB", "--shards", "2")
    broker.client().post("/topics", {"name": "large", "partitions": 4})
    return broker


def produce(broker, barrier, number, chunked):
    body = json.dumps({"records": [{"partition": number % 4, "value": "v" * BODY_BYTES}]}).encode()
    connection = http.client.HTTPConnection(broker.address, timeout=TIMEOUT_S * 3)
    connection.connect()
    barrier.wait()
    connection.request("POST", "/topics/large/produce", body=in_chunks(body) if chunked else body,
                       encode_chunked=chunked,
                       headers={"Transfer-Encoding": "chunked"} if chunked else {})
    response = connection.getresponse()  # a reset would raise
    answer = response.read()
    connection.close()
    if response.status == 503:
        assert int(response.headers["Retry-After"]) >= 1
    return response.status, answer


@pytest.mark.parametrize("chunked", [False, True])
def test_parallel_large_bodies_are_answered(small_broker, chunked):
    count = 16 if is_sanitized() else 64  # those are slow, and nobody waits longer than 30 s
    barrier = threading.Barrier(count + 1)
    ended = threading.Event()

    def ask_meanwhile():
        client = small_broker.client()
        barrier.wait()
        statuses = set()
        while not ended.is_set():
            statuses.add(client.get("/topics").status)
            statuses.add(client.post("/topics/large/produce",
                                     {"records": [{"partition": 0, "value": "small"}]}).status)
        return statuses

    with concurrent.futures.ThreadPoolExecutor(count + 1) as threads:
        small = threads.submit(ask_meanwhile)
        large = [threads.submit(produce, small_broker, barrier, number, chunked)
                 for number in range(count)]
        try:
            answers = [one.result() for one in large]
        finally:
            ended.set()
    statuses = [status for status, _ in answers]
    assert set(statuses) <= {200, 503}, answers
    assert statuses.count(200) >= count * 3 // 4, statuses
    assert small.result() == {200}  # large bodies keep no small requests out
    if not is_sanitized():
        assert high_water_bytes(small_broker.pid) < 320 * 1024 * 1024
    metrics = small_broker.client().get("/metrics").body.decode()
    offsets = [int(float(line.rpartition(" ")[2])) for line in metrics.splitlines()
               if line.startswith("esker_partition_high_watermark{") and '"large"' in line]
    assert sum(offsets) >= statuses.count(200)
