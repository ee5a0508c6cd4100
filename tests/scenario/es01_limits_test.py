# SPDX-License-Identifier: Apache-2.0
"""ES01's bounds: requests at once, connections, time, memory, bombs; its metrics, and its end."""
import gzip
import os
import re
import socket
import struct
import subprocess
import threading
import time
import zlib

import pytest

from harness.broker import esker_binary
from harness.es01 import (CONSUME, ERROR, GZIP, PING, PONG, PRODUCE, PRODUCED, Closed, Es01Client,
                          consume_payload, frame, hello, produce_payload, record)

MIB = 1024 * 1024
with open(esker_binary(), "rb") as program:
    SANITIZED = b"__asan_init" in program.read()
BINARY = ("--bind-binary", "127.0.0.1:0")
VERSION = subprocess.run([esker_binary(), "--version"], capture_output=True, text=True, check=True)
with_hooks = pytest.mark.skipif("test hooks" not in VERSION.stdout,
                                reason="this esker is built without ESK_TEST_HOOKS")


def connect(broker, features=0, **more):
    return Es01Client(broker.door("binary"), features, **more)


def memory_bytes(broker):
    with open(f"/proc/{broker.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024


def until(condition, between_s=0.01):
    """Waits for what the broker does by itself; a bound on a failure, not a delay."""
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(between_s)


def metric(http, series):
    text = http.get("/metrics").body.decode()
    return float(re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)[1])


# Requests at once


@with_hooks
def test_the_33rd_request_waits_unread(make_broker, data_root):
    stalled = data_root / "stalled"
    broker = make_broker(*BINARY, environment={"ESKER_FAULTS": f"write:@{stalled}:stall:*journal*"})
    broker.client().create_topic("t")
    with connect(broker) as client:
        stalled.touch()
        for number in range(31):
            client.send(frame(number, PRODUCE, produce_payload("t", [f"v{number}"])))
        assert client.ping(b"the 32nd") == b"the 32nd"
        client.send(frame(31, PRODUCE, produce_payload("t", ["v31"])))
        client.send(frame(77, PING, b"the 33rd"))
        with connect(broker) as other:  # the broker is not what waits
            assert other.ping(b"me") == b"me"
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.read_frame()
        client.socket.settimeout(60)
        stalled.unlink()
        answers = [client.read_frame()[:2] for _ in range(33)]
        assert set(answers) == {(n, PRODUCED) for n in range(32)} | {(77, PONG)}
        assert client.values("t") == [b"v%d" % n for n in range(32)]


@with_hooks
def test_a_stop_answers_what_is_in_flight(make_broker, data_root):
    stalled = data_root / "stalled"
    broker = make_broker(*BINARY, environment={"ESKER_FAULTS": f"write:@{stalled}:stall:*journal*"})
    broker.client().create_topic("t")
    with connect(broker) as client:
        stalled.touch()
        ids = [client.start_produce("t", f"v{n}") for n in range(10)]
        assert client.ping() == b""
        broker.process.terminate()
        broker.wait_for_event("stopping")
        stalled.unlink()
        assert [client.finish_produce(i)[0].offset for i in ids] == list(range(10))
        assert client.is_closed()
    assert broker.wait_exit() == 0


def test_an_idle_connection_ends_with_the_broker(make_broker):
    broker = make_broker(*BINARY)
    with connect(broker) as client, connect(broker, greet=False) as silent:
        assert broker.stop() == 0
        assert client.is_closed() and silent.is_closed()


# Connections and time


def test_connections_of_an_address_are_bounded(make_broker):
    broker = make_broker(*BINARY, "--binary-max-connections-per-ip", "3")
    clients = [connect(broker) for _ in range(3)]
    with pytest.raises((Closed, ConnectionError)):
        connect(broker)
    other = Es01Client.__new__(Es01Client)
    host, _, port = broker.door("binary").rpartition(":")
    other.socket = socket.create_connection((host, int(port)), 60, source_address=("127.0.0.2", 0))
    other.send(hello())
    assert other.read(5) == b"ES01\0"  # another address has its own
    other.close()
    clients.pop().close()

    def has_room():
        try:
            clients.append(connect(broker))
            return True
        except (Closed, ConnectionError):
            return False
    until(has_room)
    assert all(c.ping(b"x") == b"x" for c in clients)
    broker.wait_for_event("connection-refused")
    for client in clients:
        client.close()


def test_a_connection_without_requests_ends_after_the_idle_timeout(make_broker):
    broker = make_broker(*BINARY, "--binary-idle-timeout", "2s")
    with connect(broker) as busy, connect(broker) as idle, connect(broker, greet=False) as mute:
        started = time.monotonic()
        assert mute.is_closed()  # no handshake counts too
        assert idle.is_closed()
        assert 1.9 < time.monotonic() - started < 30
        busy.close()
    with connect(broker) as busy:
        for _ in range(10):
            threading.Event().wait(0.25)
            assert busy.ping(b"x") == b"x"


# Memory


def test_a_claim_costs_no_memory_before_its_bytes_come(make_broker):
    broker = make_broker(*BINARY, "--memory", "64MiB")
    broker.client().create_topic("t")
    head = struct.pack(">IIB", 10 * MIB, 1, PRODUCE) + b"\0\1t"
    before = memory_bytes(broker)
    clients = [connect(broker) for _ in range(200)]
    for client in clients:
        client.send(head)
    for client in clients[:5]:
        client.close()
    with connect(broker) as client:
        assert client.produce("t", "v")[0].offset == 0
    assert SANITIZED or memory_bytes(broker) - before < 100 * MIB
    for client in clients:
        client.close()


@pytest.mark.parametrize("features", [0, GZIP], ids=["plain", "gzip"])
def test_large_frames_wait_for_each_other_s_memory(make_broker, features):
    broker = make_broker(*BINARY, "--memory", "64MiB", "--shards", "1")
    http = broker.client()
    http.create_topic("t")
    value = os.urandom(1 * MIB) * 6

    def produce(results):
        with connect(broker, features) as client:
            results.append(client.produce("t", record(value))[0].offset)
    results = []
    threads = [threading.Thread(target=produce, args=(results,)) for _ in range(12)]
    for thread in threads:
        thread.start()
    with connect(broker) as client:  # small ones need not wait
        client.produce("t", "v")
    for thread in threads:
        thread.join()
    assert len(results) == 12
    assert http.consume("t", encoding="base64", max_records=1)["high_watermark"] == 13
    if not SANITIZED:
        assert memory_bytes(broker) < 300 * MIB


def test_a_waiting_frame_is_read_once_another_gives_its_memory_back(make_broker):
    broker = make_broker(*BINARY, "--memory", "32MiB", "--shards", "1")
    broker.client().create_topic("t")
    body = produce_payload("t", [record(b"x" * (7 * MIB))])
    with connect(broker) as first, connect(broker) as second, connect(broker) as third:
        first.send(frame(1, PRODUCE, body)[:-1])
        second.send(frame(2, PRODUCE, body)[:100_000])
        third.send(frame(3, PRODUCE, body)[:100_000])
        third.close()  # out of the line
        with connect(broker) as other:
            assert other.produce("t", "small")[0].offset == 0
        first.send(body[-1:])
        assert first.read_frame()[:2] == (1, PRODUCED)
        second.send(frame(2, PRODUCE, body)[100_000:] + frame(4, PING))
        assert {second.read_frame()[:2] for _ in range(2)} == {(2, PRODUCED), (4, PONG)}


def test_a_client_that_stops_reading_holds_little_and_others_go_on(make_broker):
    broker = make_broker(*BINARY, "--memory", "128MiB")
    broker.client().create_topic("t")
    with connect(broker) as client:
        for _ in range(16):
            client.produce("t", *[b"x" * MIB] * 8)
        before = memory_bytes(broker)
        deaf = [connect(broker) for _ in range(5)]
        for other in deaf:
            for number in range(32):
                other.send(frame(number, CONSUME,
                                 consume_payload("t", 0, 8 * number % 128, max_bytes=8 * MIB)))
        assert client.ping(b"me") == b"me"
        assert len(client.consume("t", max_bytes=MIB).records) == 1
        assert SANITIZED or memory_bytes(broker) - before < 300 * MIB
        # Whoever reads on gets all of it.
        seen = set()
        for _ in range(32):
            request_id, opcode, payload = deaf[0].read_frame()
            assert opcode == ERROR or len(payload) > 8 * MIB
            seen.add(request_id)
        assert seen == set(range(32))
        for other in deaf:
            other.close()


def test_a_client_that_reads_nothing_is_dropped(make_broker):
    broker = make_broker(*BINARY)
    http = broker.client()
    http.create_topic("t")
    with connect(broker) as client, connect(broker) as deaf:
        for _ in range(4):
            client.produce("t", *[os.urandom(MIB)] * 8)
        for number in range(20):
            deaf.send(frame(number, CONSUME, consume_payload("t", max_bytes=8 * MIB)))
        series = 'esker_connections{door="es01"}'
        assert metric(http, series) == 2
        until(lambda: metric(http, series) == 1, between_s=0.5)  # 30 s after its last progress
        assert client.ping(b"x") == b"x"


def test_a_frame_that_stalls_does_not_hold_memory_that_others_wait_for(make_broker):
    broker = make_broker(*BINARY, "--memory", "64MiB", "--shards", "1")
    broker.client().create_topic("t")
    with connect(broker) as stalled, connect(broker) as client:
        stalled.send(frame(1, PRODUCE, produce_payload("t", [record(b"x" * MIB)] * 9))[:100])
        assert client.produce("t", record(b"y" * 100000))[0].offset == 0
        assert stalled.is_closed()


# Bombs


def bomb(plain_start, size, filler=b"\0"):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(plain_start)]
    block = filler * MIB
    for _ in range(size // MIB):
        parts.append(packer.compress(block))
    return b"".join(parts) + packer.flush()


def test_a_bomb_stops_at_the_limit_of_bodies(make_broker):
    broker = make_broker(*BINARY)
    broker.client().create_topic("t")
    start = b"\0\1t" + struct.pack(">iI", -1, 1) + struct.pack(">iI", -1, 2**31)
    packed = bomb(start, 64 * MIB)  # from 64 KiB
    before = memory_bytes(broker)
    with connect(broker, GZIP) as client:
        client.send(frame(1, PRODUCE, packed))
        request_id, opcode, text = client.read_frame()
        assert (request_id, opcode) == (1, ERROR)
        limit = 10 * MIB
        assert text.decode() == (
            f"too large: the body is over {limit} bytes, --max-request-body-bytes")
        client.send(frame(2, PING, packed))
        assert client.read_frame() == (2, ERROR, text)
        assert client.produce("t", "v")[0].offset == 0  # the connection goes on
    assert SANITIZED or memory_bytes(broker) - before < 100 * MIB


def test_a_bomb_for_an_unknown_topic_or_in_the_topic_itself(make_broker):
    broker = make_broker(*BINARY)
    broker.client().create_topic("t")
    with connect(broker, GZIP) as client:
        client.send(frame(1, PRODUCE, bomb(b"\xff\xff", MIB, b"a")))
        assert client.read_frame()[2].startswith(b"invalid request: ")
        client.send(frame(2, CONSUME, bomb(consume_payload("t"), MIB)))
        assert client.read_frame()[2].startswith(b"invalid request: ")
        assert client.is_closed()


@pytest.mark.parametrize("damage", [
    lambda p: p[:-1], lambda p: p[:10], lambda p: p[:1], lambda p: b"x" + p[1:],
    lambda p: p[:-5] + bytes([p[-5] ^ 1]) + p[-4:], lambda p: p + b"!", lambda p: p + p,
    lambda p: produce_payload("t", ["plain"]),
], ids=["cut", "head", "byte", "magic", "checksum", "behind", "twice", "plain"])
@pytest.mark.parametrize("size", [10, 200_000])
def test_what_is_no_gzip_gets_an_error_then_the_end(make_broker, damage, size):
    broker = make_broker(*BINARY)
    http = broker.client()
    http.create_topic("t")
    payload = damage(gzip.compress(produce_payload("t", [os.urandom(size)])))
    for operation in (PRODUCE, PING):
        with connect(broker, GZIP) as client:
            client.send(frame(1, operation, payload))
            request_id, opcode, text = client.read_frame()
            assert (request_id, opcode) == (1, ERROR) and text.startswith(b"invalid request: ")
            assert client.is_closed()
    assert http.consume("t")["high_watermark"] == 0


def test_with_gzip_every_payload_is_compressed_and_an_empty_one_may_stay_empty(make_broker):
    broker = make_broker(*BINARY)
    broker.client().create_topic("t")
    with connect(broker, GZIP) as client:
        def raw(opcode, payload):
            client.send(frame(1, opcode, payload))
            length, _, answered = struct.unpack(">IIB", client.read(9))
            return answered, client.read(length - 5)
        assert raw(PING, b"") == (PONG, b"")
        assert gzip.decompress(raw(PING, gzip.compress(b""))[1]) == b""
        for plain in (b"hello", b"a" * 200_000, os.urandom(200_000)):
            assert gzip.decompress(raw(PING, gzip.compress(plain))[1]) == plain
        assert gzip.decompress(raw(9, b"")[1]) == b"invalid request: unknown opcode 0x09"
        plain = produce_payload("t", [b"a" * 100_000])
        opcode, answer = raw(PRODUCE, gzip.compress(plain))
        assert opcode == PRODUCED and len(gzip.decompress(answer)) == 17
        opcode, answer = raw(CONSUME, gzip.compress(consume_payload("t")))
        assert len(answer) < 2000 and len(gzip.decompress(answer)) == 100_048


def test_gzip_is_used_only_when_it_was_asked_for(make_broker):
    broker = make_broker(*BINARY)
    broker.client().create_topic("t")
    with connect(broker) as client:
        assert client.welcome[1] == 0
        client.send(frame(1, PRODUCE, gzip.compress(produce_payload("t", ["v"]))))
        assert client.read_frame()[2].startswith(b"invalid request: ")


# Metrics, internal errors


def test_requests_and_connections_are_counted(make_broker):
    broker = make_broker(*BINARY)
    http = broker.client()
    http.create_topic("t")
    with connect(broker) as client, connect(broker):
        client.produce("t", "v")
        client.error(PRODUCE, produce_payload("nope", ["v"]))
        client.consume("t")
        client.ping()
        client.error(9)
        labels = 'door="es01",operation='
        for name, count, errors in (("produce", 2, 1), ("consume", 1, 0), ("ping", 1, 0),
                                    ("none", 1, 1)):
            series = f'{{{labels}"{name}"}}'
            assert metric(http, "esker_requests_total" + series) == count
            assert metric(http, "esker_request_errors_total" + series) == errors
            assert metric(http, "esker_request_duration_seconds_count" + series) == count
        assert metric(http, 'esker_connections{door="es01"}') == 2
        assert metric(http, 'esker_connections{door="http"}') == 1
    until(lambda: metric(http, 'esker_connections{door="es01"}') == 0)


@with_hooks
def test_a_full_disk_is_told(make_broker, data_root):
    full = data_root / "full"
    broker = make_broker(*BINARY, environment={
        "ESKER_FAULTS": f"write:@{full}:ENOSPC;allocate:@{full}:ENOSPC"})
    broker.client().create_topic("t")
    with connect(broker) as client:
        client.produce("t", "v")
        full.touch()
        texts = set()
        until(lambda: texts.add(client.error(PRODUCE, produce_payload("t", ["v"])))
              or any(t.startswith("disk full: ") for t in texts))
        assert client.consume("t").values[0] == b"v"
        full.unlink()

        def written():
            opcode, _ = client.finish(client.start_produce("t", "w"))
            return opcode == PRODUCED
        until(written)
