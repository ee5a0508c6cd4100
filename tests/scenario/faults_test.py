# SPDX-License-Identifier: Apache-2.0
"""The broker over a disk that fails at chosen calls (src/runtime/faults.h): what was acknowledged
is kept, once and in order, whatever call fails. Only builds with test hooks can do this."""
import concurrent.futures
import http.client
import subprocess
import time

import pytest

from harness.broker import BrokerFailed, esker_binary
from harness.es01 import (PRODUCE, PRODUCED, Es01Client, Es01Error, frame, produce_payload,
                          record)

VERSION = subprocess.run([esker_binary(), "--version"], capture_output=True, text=True, check=True)
pytestmark = pytest.mark.skipif("test hooks" not in VERSION.stdout,
                                reason="this esker is built without ESK_TEST_HOOKS")

GONE = (OSError, http.client.HTTPException, BrokerFailed)
RECORDS = 8


def session(broker):
    """Creates a topic and produces, one by one, until the broker fails; (acknowledged, sent)."""
    acknowledged, sent = [], 0
    try:
        client = broker.client()
        if client.post("/topics", {"name": "t", "partitions": 1}).status != 201:
            return acknowledged, sent
        for number in range(RECORDS):
            sent += 1
            answer = client.post("/topics/t/produce", {"records": [{"value": str(number)}]})
            if answer.status == 200:
                acknowledged.append(str(number))
    except GONE:
        pass
    return acknowledged, sent


def check(broker, acknowledged, sent):
    """Everything acknowledged is there, nothing twice, in order, and nothing that was not sent."""
    answer = broker.client().get("/topics/t/consume?partition=0&offset=0")
    if answer.status == 404:
        assert acknowledged == []
        return
    values = [record["value"] for record in answer.json["records"]]
    assert values == sorted(set(values), key=int)
    assert set(acknowledged) <= set(values) <= {str(number) for number in range(sent)}


@pytest.mark.parametrize("operation, what", [
    ("write", "EIO"), ("write", "lost"), ("sync", "EIO"), ("open", "EIO"), ("rename", "EIO"),
    ("folder", "EIO")])
def test_any_failing_call_loses_nothing_acknowledged(make_broker, operation, what):
    broker = make_broker(start=False)
    ended = 0
    for call in range(1, 60):
        broker.data_dir = broker.data_dir.with_name(f"data-{operation}-{what}-{call}")
        broker.environment = {"ESKER_FAULTS": f"{operation}:{call}:{what}"}
        broker.start("--shards", "1", ready=False)
        acknowledged, sent = session(broker)
        code = broker.stop()
        assert code == (1 if broker.events("failed") else 0), broker.log_text()
        ended += code
        broker.environment = {}
        broker.start("--shards", "1")
        check(broker, acknowledged, sent)
        assert broker.stop() == 0
        if code == 0 and call > 25:
            break  # there are no more such calls
    assert ended > 0


def test_short_writes_are_made_whole(make_broker):
    broker = make_broker(environment={"ESKER_FAULTS": "write:%2:short"})
    acknowledged, sent = session(broker)
    assert len(acknowledged) == RECORDS
    broker.restart()
    check(broker, acknowledged, sent)


def until_refused(pool, produce, values):
    """Produces one after the other until one is refused; the answers that wait, by value. One that
    finds the disk full is in the journal's hands and waits for room; later ones are refused."""
    waiting = {}
    for value in values:
        answer = pool.submit(produce, value)
        if concurrent.futures.wait([answer], timeout=2).done:
            assert answer.result().status == 507
            return waiting
        waiting[value] = answer
    raise AssertionError("nothing is refused")


def test_a_full_disk_refuses_produces_until_there_is_room(make_broker, data_root):
    full = data_root / "full"
    broker = make_broker("--shards", "1", environment={
        "ESKER_FAULTS": f"write:@{full}:ENOSPC;allocate:@{full}:ENOSPC"})
    acknowledged, sent = session(broker)
    assert len(acknowledged) == RECORDS

    def produce(value):
        return broker.client().post("/topics/t/produce", {"records": [{"value": str(value)}]})

    # Everything else goes on.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        full.touch()
        waiting = until_refused(pool, produce, range(sent, sent + 4))
        assert broker.client().get("/healthz").status == 200
        check(broker, acknowledged, sent)
        full.unlink()
        kept = [str(value) for value, answer in waiting.items() if answer.result().status == 200]
    deadline = time.monotonic() + 30
    answer = produce(sent + 4)
    while answer.status == 507 and time.monotonic() < deadline:
        answer = produce(sent + 4)  # it looks for room by itself, a few times a second
    assert answer.status == 200
    acknowledged += [*kept, str(sent + 4)]
    check(broker, acknowledged, sent + 5)
    broker.kill9()
    broker.start()
    check(broker, acknowledged, sent + 5)


def result_of(client, request_id):
    """The offsets of a produce's records, or its error."""
    try:
        return [result.offset for result in client.finish_produce(request_id)]
    except Es01Error as error:
        return error.text


def test_frames_of_a_turn_fail_for_their_own_partitions_only(make_broker, data_root):
    full = data_root / "full"
    broker = make_broker("--shards", "2", "--bind-binary", "127.0.0.1:0", environment={
        "ESKER_FAULTS": f"write:@{full}:ENOSPC:*journal/*-1/*;"
                        f"allocate:@{full}:ENOSPC:*journal/*-1/*"})
    broker.client().create_topic("t", partitions=2)
    with Es01Client(broker.door("binary")) as client:

        def put(*requests):
            """Sends a frame for each, all in one piece; each record's partition is given."""
            frames = [frame(number, PRODUCE, produce_payload("t", [record("x", partition=p)
                                                                   for p in partitions]))
                      for number, partitions in enumerate(requests, 1)]
            client.send(b"".join(frames))
            return [result_of(client, number) for number in range(1, len(requests) + 1)]

        full.touch()
        alive = next(p for p, result in enumerate(put([0], [1])) if result == [0])
        dead = 1 - alive
        first, refused, both, part, last = put([alive], [dead], [alive, alive], [dead, alive],
                                               [alive])
        assert (first, both, last) == ([1], [2, 3], [5])
        assert "the disk is full: nothing was written" in refused
        assert "the disk is full: some of the records were written, some not" in part
        full.unlink()
    read = broker.client().get(f"/topics/t/consume?partition={alive}&offset=0")
    assert len(read.json["records"]) == 6


def test_what_a_full_disk_refuses_costs_no_quota(make_broker, data_root):
    full = data_root / "full"
    broker = make_broker("--auth", "required", "--shards", "1", environment={
        "ESKER_FAULTS": f"write:@{full}:ENOSPC;allocate:@{full}:ENOSPC"})
    admin = broker.admin()
    admin.create_topic("t")
    limited = admin.post("/admin/keys", {
        "name": "limited", "acls": [{"action": "write", "topic_prefix": "*"}],
        "produce_bytes_per_sec": 1000}).json["secret"]

    def produce(value, key=admin.key):
        record = {"value": str(value)}
        return broker.client(key=key).post("/topics/t/produce", {"records": [record]})

    for number in range(RECORDS):
        assert produce(number).status == 200
    with concurrent.futures.ThreadPoolExecutor() as pool:
        full.touch()
        until_refused(pool, produce, range(4))
        assert [produce("x" * 900, limited).status for _ in range(4)] == [507] * 4
        full.unlink()


def test_a_slow_journal_holds_up_only_the_frames_with_records_in_it(make_broker, data_root):
    slow = data_root / "slow"
    broker = make_broker("--bind-binary", "127.0.0.1:0", "--shards", "2", environment={
        "ESKER_FAULTS": f"write:@{slow}:stall:*/journal/*-1/*"})
    broker.client().create_topic("t", partitions=2)
    frames = b"".join(
        frame(request_id, PRODUCE, produce_payload("t", [record("v", partition=partition)
                                                         for partition in partitions]))
        for request_id, partitions in [(10, (0,)), (11, (1,)), (12, (0, 1))])
    with Es01Client(broker.door("binary")) as client, Es01Client(broker.door("binary")) as gone:
        slow.touch()
        for sender in (client, gone):
            sender.send(frames)  # at once: they are merged
            first, opcode, payload = sender.read_frame()
            assert (first, opcode) in [(10, PRODUCED), (11, PRODUCED)] and len(payload) == 4 + 13
            assert sender.ping(b"x") == b"x"
            assert not sender.answers, "only one journal is written"
        gone.close()
        slow.unlink()
        for request_id, count in [(21 - first, 1), (12, 2)]:
            assert len(client.finish_produce(request_id)) == count
        client.produce("t", record("last", partition=0), record("last", partition=1))
        for partition in (0, 1):
            assert client.values("t", partition) == [b"v"] * 4 + [b"last"]
    assert broker.stop() == 0
