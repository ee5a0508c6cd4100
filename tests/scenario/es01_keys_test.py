# SPDX-License-Identifier: Apache-2.0
"""Keys, grants, quotas and idempotent producers over ES01, the same as over HTTP."""
import os
import struct

import pytest

from harness.es01 import (CONSUME, ERROR, GZIP, PING, PRODUCE, PRODUCED, Es01Client, Es01Error,
                          consume_payload, frame, produce_payload, record)

BINARY = ("--bind-binary", "127.0.0.1:0")
BOTH = pytest.mark.parametrize("features", [0, GZIP], ids=["plain", "gzip"])


@pytest.fixture
def broker(make_broker):
    return make_broker(*BINARY, "--auth", "required")


class Admin:
    """HTTP calls with the bootstrap key."""

    def __init__(self, broker):
        self.token = (broker.data_dir / "bootstrap.key").read_text(encoding="ascii").strip()
        self.http = broker.client()
        self.headers = {"authorization": f"Bearer {self.token}"}

    def call(self, method, path, body=None, status=200):
        answer = self.http.request(method, path, body, headers=self.headers)
        assert answer.status == status, answer
        return answer.json

    def topic(self, name, partitions=1):
        self.call("POST", "/topics", {"name": name, "partitions": partitions}, 201)

    def key(self, *grants, **fields):
        """(id, secret) of a new key with grants ("read", "orders")."""
        acls = [{"action": action, "topic_prefix": prefix} for action, prefix in grants]
        made = self.call("POST", "/admin/keys", {"name": "k", "acls": acls, **fields}, 201)
        return made["key_id"], made["secret"]

    def revoke(self, key_id):
        self.call("DELETE", f"/admin/keys/{key_id}")


@pytest.fixture
def admin(broker):
    return Admin(broker)


def connect(broker, token, features=0):
    return Es01Client(broker.door("binary"), features, token)


def refused(broker, token):
    with connect(broker, token) as client:
        assert client.is_closed()
        return client.welcome


def test_a_handshake_needs_a_key(broker, admin):
    status, features, text = refused(broker, "")
    assert (status, features) == (3, 0) and "key is required" in text
    for token in ("esk_wrong", "x" * 1024, b"\xff\0"):
        status, features, text = refused(broker, token)
        assert (status, features) == (2, 0) and text
    with connect(broker, admin.token) as client:
        assert client.welcome == (0, 0, "")


@BOTH
def test_grants_are_checked_against_the_topic(broker, admin, features):
    admin.topic("orders")
    admin.topic("orders.eu")
    admin.topic("ordersecret")
    _, writer = admin.key(("write", "orders"))
    _, reader = admin.key(("read", "orders."))
    with connect(broker, writer, features) as client:
        client.produce("orders", "a")
        client.produce("orders.eu", "b")
        assert client.consume("orders").values == [b"a"]
        for topic in ("ordersecret", "nothing-there"):
            text = client.error(PRODUCE, produce_payload(topic, ["v"]))
            assert text.startswith("forbidden: ")
            assert client.error(CONSUME, consume_payload(topic)).startswith("forbidden: ")
        assert "does not exist" in client.error(PRODUCE, produce_payload("orders.no", ["v"]))
    with connect(broker, reader, features) as client:
        assert client.consume("orders.eu").values == [b"b"]
        assert client.error(CONSUME, consume_payload("orders")).startswith("forbidden: ")
        text = client.error(PRODUCE, produce_payload("orders.eu", ["v"]))
        same = admin.http.post("/topics/orders.eu/produce", {"records": [{"value": "v"}]},
                               headers={"x-es-key": reader}).error
        assert text == "forbidden: " + same


@pytest.mark.parametrize("size", [100, 300_000, 5_000_000])
@BOTH
def test_a_frame_is_refused_by_its_topic_alone(broker, admin, size, features):
    admin.topic("mine")
    admin.topic("theirs")
    _, token = admin.key(("write", "mine"))
    with connect(broker, token, features) as client:
        payload = client.pack(produce_payload("theirs", [os.urandom(size)]))
        data = frame(1, PRODUCE, payload)
        if size > 100_000:  # the answer comes before the rest of the frame
            client.send(data[:70_000])
            assert client.read_frame()[:2] == (1, ERROR)
            client.send(data[70_000:])
        else:
            client.send(data)
            assert client.read_frame()[:2] == (1, ERROR)
        # What is behind a topic that is not granted is not even looked at.
        broken = struct.pack(">H", 6) + b"theirs" + b"\xff" * 50
        assert client.error(PRODUCE, broken).startswith("forbidden: ")
        assert client.produce("mine", "v")[0].offset == 0


@BOTH
def test_a_revoked_key_stops_on_open_connections(broker, admin, features):
    admin.topic("t")
    key_id, token = admin.key(("write", "*"))
    with connect(broker, token, features) as client, connect(broker, token, features) as half:
        client.produce("t", "v")
        payload = half.pack(produce_payload("t", [os.urandom(200_000)]))
        half.send(frame(1, PRODUCE, payload)[:-1])  # authorised at its beginning
        half.send(b"")
        client.ping()
        admin.revoke(key_id)
        half.send(payload[-1:])
        request_id, opcode, text = half.read_frame()
        assert (request_id, opcode) == (1, ERROR) and text.startswith(b"unauthenticated: ")
        for opcode, payload in ((PRODUCE, produce_payload("t", ["v"])),
                                (CONSUME, consume_payload("t")), (PING, b"x")):
            assert client.error(opcode, payload).startswith("unauthenticated: ")
    assert refused(broker, token)[0] == 2
    with connect(broker, admin.token) as client:
        assert client.consume("t").values == [b"v"]


def test_quotas_are_one_budget_over_both_doors(broker, admin):
    admin.topic("t")
    _, token = admin.key(("write", "*"), produce_bytes_per_sec=10_000, consume_bytes_per_sec=5_000)
    headers = {"x-es-key": token}
    with connect(broker, token) as client:
        text = client.error(PRODUCE, produce_payload("t", [b"x" * 10_001]))
        assert text.startswith("too large: ") and "produce_bytes_per_sec" in text
        client.produce("t", b"x" * 9_000)
        text = client.error(PRODUCE, produce_payload("t", [b"x" * 9_000]))
        assert text.startswith("throttled: ") and "try again in 1 s" in text
        over = admin.http.post("/topics/t/produce", {"records": [{"value": "x" * 9_000}]},
                               headers=headers)
        assert over.status == 429
        # A small one is not refused for a large one's sake: each frame is judged by itself.
        ids = [client.start_produce("t", b"x" * 9_999), client.start_produce("t", b"x")]
        with pytest.raises(Es01Error, match="^throttled: "):
            client.finish_produce(ids[0])
        assert client.finish_produce(ids[1])[0].offset == 1
        assert len(client.consume("t").values[0]) == 9_000  # into debt
        assert client.error(CONSUME, consume_payload("t")).startswith("throttled: ")
        assert admin.http.get("/topics/t/consume?partition=0&offset=0",
                              headers=headers).status == 429


# Idempotent producers


@pytest.fixture
def open_broker(make_broker):
    broker = make_broker(*BINARY)
    broker.client().create_topic("t", partitions=2)
    return broker


def sequenced(sequence, value="v", partition=0):
    return record(value, partition=partition, sequence=sequence)


@BOTH
def test_a_retry_is_answered_with_the_original_offset(open_broker, features):
    with connect(open_broker, "", features) as client:
        first = client.produce("t", sequenced(0, "a"), sequenced(1, "b"), producer_id="p")
        assert [(r.offset, r.duplicate) for r in first] == [(0, False), (1, False)]
        again = client.produce("t", sequenced(1, "b"), sequenced(2, "c"), producer_id="p")
        assert [(r.offset, r.duplicate) for r in again] == [(1, True), (2, False)]
        assert client.values("t") == [b"a", b"b", b"c"]
        # The same over HTTP.
        answer = open_broker.client().post("/topics/t/produce", {
            "producer_id": "p", "records": [{"value": "c", "partition": 0, "sequence": 2}]})
        assert answer.json["results"] == [{"partition": 0, "offset": 2, "duplicate": True}]


def test_wrong_sequences_are_refused(open_broker):
    with connect(open_broker, "") as client:
        client.produce("t", *[sequenced(n) for n in range(300)], producer_id="p")

        def error(*records, producer_id="p"):
            return client.error(PRODUCE, produce_payload("t", records, producer_id))
        assert error(sequenced(301)).startswith("sequence gap")
        assert error(sequenced(3)).startswith("sequence too low")
        assert "sequence" in error(record("v", partition=0))  # a producer_id without one
        assert "producer_id" in error(sequenced(1), producer_id=None)
        assert "sequence must be an integer from 0" in error(sequenced(-1))
        assert "sequence must be an integer from 0" in error(sequenced(-(2**63) + 1))
        assert "partition or a key" in error(record("v", sequence=300))
        assert "producer_id" in error(sequenced(0), producer_id="")
        assert "producer_id" in error(sequenced(0), producer_id="x" * 201)
        assert client.consume("t").high_watermark == 300


def test_pipelined_sequences_keep_their_order_from_the_first_use_on(open_broker):
    with connect(open_broker, "") as client:
        ids = [client.start_produce("t", sequenced(n, str(n)), producer_id="new")
               for n in range(100)]
        assert [client.finish_produce(i)[0].offset for i in ids] == list(range(100))
        mixed = []
        for n in range(100, 130):
            mixed.append(client.start_produce("t", sequenced(n, str(n)), producer_id="new"))
            mixed.append(client.start_produce("t", record(f"plain {n}", partition=0)))
        offsets = [client.finish_produce(i)[0].offset for i in mixed]
        assert offsets == list(range(100, 160))


def test_a_producer_id_belongs_to_its_key(broker, admin):
    admin.topic("t")
    _, one = admin.key(("write", "*"))
    _, two = admin.key(("write", "*"))
    with connect(broker, one) as first, connect(broker, two) as second:
        first.produce("t", sequenced(0), producer_id="p")
        text = second.error(PRODUCE, produce_payload("t", [sequenced(1)], "p"))
        assert text.startswith("forbidden: ")
        opcode, _ = first.finish(first.start(PRODUCE, produce_payload("t", [sequenced(1)], "p")))
        assert opcode == PRODUCED
