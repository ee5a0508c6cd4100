# SPDX-License-Identifier: Apache-2.0
"""Produce and consume over ES01, what they share with HTTP, and the order of a client's frames."""
import base64
import os
import random
import socket
import subprocess

import pytest

from harness.es01 import (CONSUME, GZIP, PRODUCE, Es01Client, Es01Error, consume_payload,
                          produce_payload, record)

BOTH = pytest.mark.parametrize("features", [0, GZIP], ids=["plain", "gzip"])


@pytest.fixture
def broker(make_broker):
    return make_broker("--bind-binary", "127.0.0.1:0")


@pytest.fixture
def http(broker):
    return broker.client()


def connect(broker, features=0):
    return Es01Client(broker.door("binary"), features)


@BOTH
def test_records_go_both_ways_between_the_doors(broker, http, features):
    http.create_topic("t", partitions=1)
    with connect(broker, features) as client:
        assert [r.offset for r in client.produce("t", record("a", key="k"), "b")] == [0, 1]
        http.produce("t", {"key": "k2", "value": "c"}, {"value": "d"})
        fetched = client.consume("t")
    assert [(r.key, r.value) for r in fetched.records] == [
        (b"k", b"a"), (None, b"b"), (b"k2", b"c"), (None, b"d")]
    assert [(r.partition, r.offset) for r in fetched.records] == [(0, n) for n in range(4)]
    assert (fetched.next_offset, fetched.high_watermark) == (4, 4)
    url = f"{broker.url}/topics/t/consume?partition=0&offset=0"
    shown = subprocess.run(["curl", "-s", url], capture_output=True, text=True, timeout=60,
                           check=True).stdout
    assert '"key":"k","value":"a"' in shown and '"key":null,"value":"b"' in shown
    times = [r["timestamp_ms"] for r in http.consume("t")["records"]]
    assert times == [r.timestamp_ms for r in fetched.records]


@BOTH
def test_keys_and_values_travel_as_raw_bytes(broker, http, features):
    http.create_topic("t")
    key, value = bytes(range(256)), os.urandom(3000)
    with connect(broker, features) as client:
        client.produce("t", record(value, key=key), record(b"", key=b""))
        first, second = client.consume("t").records
    assert (first.key, first.value) == (key, value)
    assert (second.key, second.value) == (b"", b"")  # an empty key is a key
    shown = http.consume("t", encoding="base64")["records"][0]
    assert base64.b64decode(shown["value"]) == value
    refused = http.get("/topics/t/consume?partition=0&offset=0")
    assert refused.status == 422 and "encoding=base64" in refused.error


def test_a_null_value_comes_as_length_0(broker, http):
    http.create_topic("t")
    http.produce("t", {"key": "k", "value": None})
    with connect(broker) as client:
        assert client.consume("t").records[0].value == b""


def test_headers_do_not_disturb(broker, http):
    http.create_topic("t")
    http.produce("t", {"key": "k", "value": "v", "headers": {"a": ["1", "2"], "b": None}})
    with connect(broker) as client:
        client.produce("t", "w")
        assert client.consume("t").values == [b"v", b"w"]


@pytest.mark.parametrize("partitioner", ["fnv1a", "murmur2"])
def test_keys_go_where_http_sends_them(broker, http, partitioner):
    http.create_topic("t", partitions=7, partitioner=partitioner)
    keys = [f"user-{n}" for n in range(40)] + [""]
    sent = http.produce("t", *[{"key": k, "value": "v"} for k in keys])
    with connect(broker) as client:
        results = client.produce("t", *[record("v", key=k) for k in keys])
        alone = [client.produce("t", record("v", key=k))[0].partition for k in keys]
    assert [r.partition for r in results] == [r["partition"] for r in sent] == alone


def test_records_without_a_key_go_round_over_all_requests_and_doors(broker, http):
    http.create_topic("t", partitions=3)
    with connect(broker) as client, connect(broker) as other:
        assert [r.partition for r in client.produce("t", "a", "b")] == [0, 1]
        assert http.produce("t", "c")[0]["partition"] == 2
        assert other.produce("t", "d")[0].partition == 0
        assert client.produce("t", "e")[0].partition == 1


def test_records_of_one_frame_name_different_partitions(broker, http):
    http.create_topic("t", partitions=3)
    with connect(broker) as client:
        results = client.produce("t", *[record(str(n), partition=n % 3) for n in range(9)])
        assert [(r.partition, r.offset) for r in results] == [(n % 3, n // 3) for n in range(9)]
        assert not any(r.duplicate for r in results)
        assert client.values("t", 1) == [b"1", b"4", b"7"]


def test_an_empty_produce_is_answered(broker, http):
    http.create_topic("t")
    with connect(broker) as client:
        assert client.produce("t") == []
        assert "does not exist" in client.error(PRODUCE, produce_payload("nope", []))


@BOTH
def test_limits_of_a_consume(broker, http, features):
    http.create_topic("t")
    with connect(broker, features) as client:
        client.produce("t", *[bytes([n]) * 100 for n in range(50)])
        assert len(client.consume("t", max_records=7).records) == 7
        page = client.consume("t", offset=10, max_bytes=550)
        assert [r.offset for r in page.records] == [10, 11, 12, 13, 14]
        assert page.next_offset == 15 and page.high_watermark == 50
        assert len(client.consume("t", max_bytes=1).records) == 1  # at least one
        assert len(client.consume("t", max_records=2**32 - 1, max_bytes=2**32 - 1).records) == 50
        end = client.consume("t", offset=50)
        assert (end.records, end.next_offset, end.high_watermark) == ([], 50, 50)
        assert client.consume("t", offset=2**63 - 1).next_offset == 50


@BOTH
def test_nothing_follows_a_record_over_max_bytes_not_even_an_empty_one(broker, http, features):
    http.create_topic("t")
    with connect(broker, features) as client:
        client.produce("t", b"a" * 100, b"", b"b")
        for max_bytes, count in ((99, 1), (100, 2), (101, 3)):
            page = client.consume("t", max_bytes=max_bytes)
            assert (len(page.records), page.next_offset) == (count, count)
            page = http.consume("t", max_bytes=max_bytes)
            assert (len(page["records"]), page["next_offset"]) == (count, count)


def test_asks_are_clamped_as_on_http(make_broker):
    broker = make_broker("--bind-binary", "127.0.0.1:0", "--max-fetch-records", "5",
                         "--max-fetch-bytes", "1000")
    http = broker.client()
    http.create_topic("t", partitions=2)
    with connect(broker) as client:
        client.produce("t", *[record(b"x" * 10, partition=0) for _ in range(20)])
        client.produce("t", *[record(b"x" * 400, partition=1) for _ in range(20)])
        assert len(client.consume("t", 0, max_records=10_000).records) == 5
        assert len(client.consume("t", 1, max_bytes=1 << 30).records) == 2


REFUSED = [
    (PRODUCE, produce_payload("nope", ["v"]), "not found: topic 'nope' does not exist"),
    (PRODUCE, produce_payload("a/b", ["v"]), "invalid request: "),
    (PRODUCE, produce_payload("", ["v"]), "invalid request: "),
    (PRODUCE, produce_payload("n" * 201, ["v"]), "invalid request: "),
    (PRODUCE, produce_payload("t", [record("v", partition=2)]),
     "not found: topic 't' has no partition 2"),
    (PRODUCE, produce_payload("t", ["v", record("v", partition=-2)]),
     "invalid request: records[1].partition must be an integer from 0 to 2147483647, or -1"),
    (CONSUME, consume_payload("nope"), "not found: topic 'nope' does not exist"),
    (CONSUME, consume_payload("t", 2), "not found: topic 't' has no partition 2"),
    (CONSUME, consume_payload("t", 2**32 - 1), "invalid request: partition must be"),
    (CONSUME, consume_payload("t", offset=2**63), "invalid request: offset must be"),
    (CONSUME, consume_payload("t", max_records=0), "invalid request: max_records must be"),
    (CONSUME, consume_payload("t", max_bytes=0), "invalid request: max_bytes must be"),
]


@BOTH
def test_errors_have_the_texts_of_http_behind_their_phrase(broker, http, features):
    http.create_topic("t", partitions=2)
    with connect(broker, features) as client:
        for opcode, payload, text in REFUSED:
            assert client.error(opcode, payload).startswith(text), payload
        same = client.error(CONSUME, consume_payload("t", 2))
        assert same == "not found: " + http.get("/topics/t/consume?partition=2&offset=0").error
        assert client.ping(b"on") == b"on"
        assert [p["high_watermark"] for p in http.get("/topics/t").json["partitions"]] == [0, 0]


def test_a_record_over_its_limit_is_refused_and_nothing_is_written(make_broker):
    broker = make_broker("--bind-binary", "127.0.0.1:0", "--max-record-bytes", "1000")
    http = broker.client()
    http.create_topic("t")
    with connect(broker) as client:
        text = client.error(PRODUCE, produce_payload("t", ["v", record("v" * 1000, key="k")]))
        assert text.startswith("too large: records[1] has 1001 bytes")
        client.produce("t", record("v" * 999, key="k"))
        assert client.consume("t").high_watermark == 1


@BOTH
@pytest.mark.parametrize("size", [60_000, 300_000, 8 * 1024 * 1024])
def test_large_records(broker, http, size, features):
    http.create_topic("t")
    value = os.urandom(1000) * (size // 1000)
    with connect(broker, features) as client:
        client.produce("t", "before", value, "behind")
        assert client.consume("t", max_bytes=2**31).values[:2] == [b"before", value][:2]
        assert client.consume("t", offset=1, max_bytes=1).values == [value]
        assert client.values("t") == [b"before", value, b"behind"]


@BOTH
def test_keys_and_values_of_all_sizes_come_back_in_answers_of_all_sizes(broker, http, features):
    http.create_topic("t")
    rng = random.Random(features)
    sizes = [0, 1, 100, 511, 512, 513, 4000, 30_000, 131_072, 300_000]
    sent = [(rng.choice([None, rng.randbytes(rng.choice(sizes))]),
             rng.randbytes(rng.choice(sizes))) for _ in range(150)]
    sent += [(None, rng.randbytes(rng.choice([100, 600]))) for _ in range(2000)]
    rng.shuffle(sent)
    with connect(broker, features) as client:
        for at in range(0, len(sent), 50):
            client.produce("t", *[record(value, key=key) for key, value in sent[at:at + 50]])
    broker.restart()  # from now on they come from segments
    with connect(broker, features) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        for max_bytes in (3000, 100_000, 1 << 20, 8 << 20):
            offset = 0 if max_bytes > 3000 else len(sent) - 300
            while offset < len(sent):
                page = client.consume("t", offset=offset, max_records=10_000, max_bytes=max_bytes)
                got = [(r.key, r.value) for r in page.records]
                assert got and got == sent[offset:page.next_offset]
                offset = page.next_offset


@BOTH
def test_frames_of_very_many_records(broker, http, features):
    http.create_topic("t", partitions=4)
    with connect(broker, features) as client:
        results = client.produce("t", *[record(b"%d" % n, partition=n % 4) for n in range(50_000)])
        assert [r.offset for r in results] == [n // 4 for n in range(50_000)]
        assert client.values("t", 3) == [b"%d" % n for n in range(3, 50_000, 4)]


@BOTH
def test_produces_to_one_topic_keep_their_order(broker, http, features):
    """Small ones, large ones that are prepared elsewhere, and compressed ones, all in flight."""
    http.create_topic("t")
    http.create_topic("other")
    frames = []
    for n in range(120):
        many = {3: 5000, 7: 300, 11: 20}.get(n % 13, 1)
        big = b"y" * 400_000 if n % 17 == 5 and many == 1 else b"x"
        frames.append([record(b"%d:%d:" % (n, i) + big, partition=0) for i in range(many)])
    with connect(broker, features) as client:
        ids = []
        for n, records in enumerate(frames):
            ids.append(client.start_produce("t", *records))
            ids.append(client.start_produce("other", record(b"%d" % n, partition=0)))
        results = [client.finish_produce(i) for i in ids]
        offsets = [r.offset for answer in results[::2] for r in answer]
        assert offsets == list(range(sum(len(f) for f in frames)))
        heads = [v.split(b":")[:2] for v in client.values("t")]
        assert heads == [[b"%d" % n, b"%d" % i]
                         for n, f in enumerate(frames) for i in range(len(f))]
        assert client.values("other") == [b"%d" % n for n in range(120)]


def test_a_refused_frame_does_not_hold_those_behind_it(broker, http):
    http.create_topic("t")
    with connect(broker) as client:
        big = [record(b"x", partition=0)] * 4500 + [record(b"x", partition=9)]
        ids = [client.start_produce("t", *big), client.start_produce("t", "a"),
               client.start_produce("t", *big[:-1]), client.start_produce("t", "b")]
        with pytest.raises(Es01Error, match="has no partition 9"):
            client.finish_produce(ids[0])
        assert [client.finish_produce(i)[0].offset for i in ids[1:]] == [0, 1, 4501]


def test_records_survive_kill_9(make_broker):
    broker = make_broker("--bind-binary", "127.0.0.1:0")
    broker.client().create_topic("t")
    with connect(broker) as client:
        ids = [client.start_produce("t", b"%d" % n) for n in range(200)]
        for i in ids:
            client.finish_produce(i)
    broker.kill9()
    broker.start()
    with connect(broker) as client:
        assert client.values("t") == [b"%d" % n for n in range(200)]


def test_a_topic_deleted_in_between_fails_for_all(broker, http):
    http.create_topic("t")
    with connect(broker) as client:
        client.produce("t", "v")
        http.delete("/topics/t")
        text = client.error(PRODUCE, produce_payload("t", ["v"]))
        assert text == "not found: topic 't' does not exist"
        http.create_topic("t")
        assert client.produce("t", "v")[0].offset == 0
