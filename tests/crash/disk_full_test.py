# SPDX-License-Identifier: Apache-2.0
"""A full disk: produces get 507, reads, health and deletes go on, nothing that was acknowledged is
lost, and service is back when there is room. On a small file system of its own, and by injected
errors for the journal, the segments and the catalogue one by one."""
import http.client
import subprocess
import threading

import pytest

from harness.broker import esker_binary

VERSION = subprocess.run([esker_binary(), "--version"], capture_output=True, text=True, check=True)
needs_hooks = pytest.mark.skipif("test hooks" not in VERSION.stdout,
                                 reason="this esker is built without ESK_TEST_HOOKS")

SIZE = 100_000


class Writer:
    """Produces numbered records to one partition, and knows which were acknowledged."""

    def __init__(self, topic):
        self.topic = topic
        self.next = 0
        self.acknowledged = []
        self.unknown = set()  # the disk became full within the write

    def value(self, number):
        return f"{number}-".ljust(SIZE, "x")

    def produce(self, client):
        number = self.next
        self.next += 1
        records = [{"value": self.value(number), "partition": 0}]
        answer = client.post(f"/topics/{self.topic}/produce", {"records": records})
        if answer.status == 503 and "may be written" in answer.error:
            self.unknown.add(number)
            return answer.status
        assert answer.status in (200, 507), answer
        if answer.status == 200:
            self.acknowledged.append(number)
        else:
            assert "full" in answer.error
        return answer.status

    def until(self, client, status, most=5000):
        """Produces until it is answered so; no pause: each answer is an event."""
        for _ in range(most):
            if self.produce(client) == status:
                return
        raise AssertionError(f"never answered {status}")

    def check(self, client):
        found = []
        offset = 0
        while True:
            page = client.consume(self.topic, 0, offset, max_bytes=4 << 20)
            for record in page["records"]:
                number = int(record["value"].split("-")[0])
                assert record["value"] == self.value(number)
                found.append(number)
            offset = page["next_offset"]
            if offset >= page["high_watermark"]:
                break
        assert [n for n in found if n not in self.unknown] == self.acknowledged
        assert found == sorted(set(found))


def expect_life(client, writer):
    """What goes on while the disk is full."""
    assert client.get("/healthz").status == 200
    assert client.get("/readyz").status == 200
    assert client.get("/metrics").status == 200
    writer.check(client)


@pytest.fixture
def small_disk(data_root):
    folder = data_root / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200m", "esker-test", folder]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_refuses_produces_and_a_deleted_topic_brings_them_back(make_broker,
                                                                         small_disk):
    broker = make_broker("--shards", "1", data_dir=small_disk / "data")
    client = broker.client()
    client.create_topic("large", 1, segment_bytes=4 << 20)
    client.create_topic("kept", 1, segment_bytes=4 << 20)
    large, kept = Writer("large"), Writer("kept")
    for _ in range(20):
        kept.until(client, 200)
    large.until(client, 507)
    expect_life(client, large)
    expect_life(client, kept)
    broker.kill9()
    broker.start()
    client = broker.client()
    large.check(client)
    kept.check(client)
    assert client.delete("/topics/large").status == 200
    kept.until(client, 200)
    kept.check(client)
    assert broker.stop() == 0
    broker.start()
    kept.check(broker.client())
    assert broker.stop() == 0


def test_room_that_somebody_else_took_and_gave_back(make_broker, small_disk):
    broker = make_broker("--shards", "1", data_dir=small_disk / "data")
    client = broker.client()
    client.create_topic("log", 1, segment_bytes=4 << 20)
    writer = Writer("log")
    writer.until(client, 200)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 20)) > 0:
                pass
        except OSError:
            pass
    writer.until(client, 507)
    expect_life(client, writer)
    filler.unlink()
    writer.until(client, 200)
    writer.check(client)
    broker.kill9()
    broker.start()
    writer.check(broker.client())
    assert broker.stop() == 0


@needs_hooks
@pytest.mark.parametrize("operation, pattern", [
    ("write", "*.segment"),
    ("open", "*.segment"),
    ("write", "*.index*"),
    ("write", "*.snapshot*"),
    ("allocate", "*ballast"),
    ("rename", "*"),
])
def test_no_room_for_one_kind_of_file_loses_nothing(make_broker, data_root, operation, pattern):
    full = data_root / "full"
    faults = f"{operation}:@{full}:ENOSPC:{pattern}"
    broker = make_broker("--shards", "1", environment={"ESKER_FAULTS": faults})
    client = broker.client()
    client.create_topic("log", 1, segment_bytes=1 << 20)
    client.create_topic("other", 1)
    writer = Writer("log")
    for _ in range(10):
        writer.until(client, 200)
    full.touch()
    beside = threading.Thread(target=produce_beside, args=(broker, full, 60))
    beside.start()
    for _ in range(60):
        writer.produce(client)
    beside.join()
    expect_life(client, writer)
    full.unlink()
    writer.until(client, 200)
    writer.check(client)
    full.touch()
    for _ in range(10):
        writer.produce(client)
    broker.kill9()
    full.unlink()
    broker.start()
    writer.check(broker.client())
    full.touch()
    assert broker.stop() == 0, "a stop does not wait for room"
    full.unlink()
    broker.start()
    writer.check(broker.client())
    assert broker.client().get("/topics/other").status == 200


def produce_beside(broker, full, count):
    """Small requests beside, so that writes overlap."""
    client = broker.client()
    for number in range(count):
        answer = client.post("/topics/other/produce", {"records": [{"value": str(number)}]})
        assert answer.status in (200, 503, 507), answer


class Stalled:
    """A broker whose journal finds no room in the middle of a write. That one can't be refused any
    more: whoever waits for it waits for room; all that come later are refused."""

    def __init__(self, make_broker, full, pattern):
        faults = f"write:@{full}:ENOSPC:{pattern}"
        self.full = full
        self.broker = make_broker("--shards", "1", environment={"ESKER_FAULTS": faults})
        self.client = self.broker.client()
        for number in range(3):
            self.client.create_topic(f"topic-{number}", 2)
        self.writer = Writer("topic-0")
        for _ in range(10):
            self.writer.until(self.client, 200)
        full.touch()
        self.waiting = threading.Thread(target=self._wait)
        self.waiting.start()
        self.broker.wait_for_event("journal_no_space")

    def _wait(self):
        client = self.broker.client()
        try:
            while self.full.exists():
                self.writer.produce(client)
        except (OSError, http.client.HTTPException):
            self.writer.unknown.add(self.writer.next - 1)  # never answered

    def expect_refusals(self):
        records = {"records": [{"value": "late"}]}
        assert self.client.post("/topics/topic-1/produce", records).status == 507
        assert self.client.post("/topics", {"name": "late", "partitions": 1}).status == 507
        body = {"topic": "topic-1", "partition": 0, "offset": 1}
        assert self.client.post("/groups/late/commit", body).status == 507
        assert self.client.get("/topics/topic-1").status == 200
        assert self.client.get("/healthz").status == 200
        assert self.client.consume("topic-0", 0, 0)["next_offset"] >= 10


@needs_hooks
@pytest.mark.parametrize("pattern", ["*/journal/*", "*"])
def test_a_journal_without_room_refuses_and_goes_on_where_it_was(make_broker, data_root, pattern):
    stalled = Stalled(make_broker, data_root / "full", pattern)
    stalled.expect_refusals()
    stalled.full.unlink()
    stalled.waiting.join()
    client = stalled.client
    while client.post("/topics", {"name": "back", "partitions": 2}).status != 201:
        pass
    stalled.writer.until(client, 200)
    stalled.writer.check(client)
    broker = stalled.broker
    broker.kill9()
    broker.start()
    stalled.writer.check(broker.client())
    names = [topic["name"] for topic in broker.client().get("/topics").json["topics"]]
    assert names == ["back", "topic-0", "topic-1", "topic-2"]


@needs_hooks
def test_a_stop_does_not_wait_for_room(make_broker, data_root):
    stalled = Stalled(make_broker, data_root / "full", "*/journal/*")
    broker = stalled.broker
    assert broker.stop() in (0, 1)
    stalled.full.unlink()
    stalled.waiting.join()
    broker.start()
    found = broker.client().consume("topic-0", 0, 0, max_bytes=4 << 20)
    numbers = [int(record["value"].split("-")[0]) for record in found["records"]]
    assert numbers[:len(stalled.writer.acknowledged)] == stalled.writer.acknowledged
    assert len(numbers) - len(stalled.writer.acknowledged) in (0, 1), "the one in the stalled write"
