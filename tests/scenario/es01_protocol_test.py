# SPDX-License-Identifier: Apache-2.0
"""ES01's handshake and frames, byte by byte: what is answered, and when the connection ends."""
import struct

import pytest

from harness.es01 import (CONSUME, CONSUMED, ERROR, PING, PONG, PRODUCE, PRODUCED, Closed,
                          Encoded, Es01Client, consume_payload, frame, hello, produce_payload,
                          record)

FRAME_MAX = 10 * 1024 * 1024 + 64 * 1024


@pytest.fixture
def broker(make_broker):
    return make_broker("--bind-binary", "127.0.0.1:0")


@pytest.fixture
def client(broker):
    broker.client().create_topic("t", partitions=2)
    with Es01Client(broker.door("binary")) as client:
        yield client


def refused(broker, first_bytes):
    with Es01Client(broker.door("binary"), greet=False) as client:
        client.send(first_bytes)
        welcome = client.read_welcome()
        assert client.is_closed()
        return welcome


def test_the_handshake_s_bytes(broker):
    with Es01Client(broker.door("binary"), greet=False) as client:
        client.send(bytes.fromhex("45533031 00000000 00000000"))
        assert client.read(13) == bytes.fromhex("45533031 00 00000000 00000000")
    with Es01Client(broker.door("binary"), greet=False) as client:
        client.send(bytes.fromhex("45533031 80000003 00000003 616263"))
        # Of the requested bits those that it accepts; with auth off any token is accepted.
        assert client.read(13) == bytes.fromhex("45533031 00 00000001 00000000")


def test_the_handshake_may_come_in_pieces_and_with_frames_behind_it(client, broker):
    with Es01Client(broker.door("binary"), greet=False) as slow:
        for byte in hello(token=b"x" * 1024):
            slow.send(bytes([byte]))
        assert slow.read_welcome() == (0, 0, "")
    with Es01Client(broker.door("binary"), greet=False) as eager:
        produce = frame(8, PRODUCE, produce_payload("t", ["v"]))
        eager.send(hello() + frame(7, PING, b"now") + produce)
        assert eager.read_welcome() == (0, 0, "")
        assert eager.read_frame() == (7, PONG, b"now")
        assert eager.read_frame()[:2] == (8, PRODUCED)


@pytest.mark.parametrize("first_bytes", [
    b"ES02" + bytes(8), b"GET / HTTP/1.1\r\n\r\n", b"X", b"ESX"])
def test_another_magic_is_status_1(broker, first_bytes):
    status, features, message = refused(broker, first_bytes)
    assert (status, features) == (1, 0) and "ES01" in message


def test_a_token_of_more_than_1024_bytes_is_status_2_before_it_comes(broker):
    status, features, message = refused(broker, b"ES01" + struct.pack(">II", 1, 1025))
    assert (status, features) == (2, 0) and "1025" in message and "1024" in message


def test_frames_of_each_opcode(client):
    client.send(frame(0xFFFFFFFF, PING))
    assert client.read(9) == bytes.fromhex("00000005 ffffffff 83")  # the id is echoed
    client.send(frame(1, PRODUCE, produce_payload("t", [record("v", partition=1)])))
    assert client.read(26) == bytes.fromhex("00000016 00000001 81 00000001 00000001") + bytes(9)
    client.send(frame(2, CONSUME, consume_payload("t", 1)))
    request_id, opcode, payload = client.read_frame()
    assert (request_id, opcode) == (2, CONSUMED)
    assert payload[:20] == struct.pack(">QQI", 1, 1, 1)
    assert payload[20:32] == struct.pack(">IQ", 1, 0)
    assert payload[40:] == struct.pack(">iI", -1, 1) + b"v"


@pytest.mark.parametrize("size", [0, 1, 3000, 4096, 4097, 70_000, 3_000_000])
def test_a_ping_echoes_its_payload(client, size):
    payload = bytes(i * 7 & 0xFF for i in range(min(size, 1000))) * (size // 1000 + 1)
    assert client.ping(payload[:size]) == payload[:size]


@pytest.mark.parametrize("size", [0, 3, 200_000])
def test_an_unknown_opcode_gets_an_error_and_the_connection_goes_on(client, size):
    payload = bytes(size)
    for opcode in (0, 4, PRODUCED, ERROR):
        text = client.error(opcode, payload)
        assert text == f"invalid request: unknown opcode 0x{opcode:02x}"
    assert client.ping(b"still there") == b"still there"


@pytest.mark.parametrize("length", [0, 4])
def test_a_length_under_5_gets_an_error_then_the_end(client, length):
    client.send(struct.pack(">IIB", length, 9, PING))
    request_id, opcode, text = client.read_frame()
    assert (request_id, opcode) == (0, ERROR)
    assert text.decode() == f"invalid request: length is {length}; it must be at least 5"
    assert client.is_closed()


@pytest.mark.parametrize("length", [FRAME_MAX + 1, 0xFFFFFFFF])
def test_a_length_over_the_limit_gets_an_error_then_the_end(client, length):
    client.send(struct.pack(">IIB", length, 9, PRODUCE))
    request_id, opcode, text = client.read_frame()
    assert (request_id, opcode) == (9, ERROR)
    assert text.decode().startswith(f"too large: length is {length}; a frame may have {FRAME_MAX}")
    assert client.is_closed()


def test_a_frame_of_just_the_limit_is_taken(client):
    payload = bytes(FRAME_MAX - 5)
    assert client.ping(payload) == payload


LIES = {
    "topic beyond the payload": (PRODUCE, b"\xff\xfft"),
    "no payload": (PRODUCE, b""),
    "producer beyond the payload": (PRODUCE, b"\0\1t" + struct.pack(">iI", 1000, 0)),
    "producer's length -2": (PRODUCE, b"\0\1t" + struct.pack(">iI", -2, 0)),
    "count without records": (PRODUCE, produce_payload("t", [], count=1)),
    "count of four billion": (PRODUCE, produce_payload("t", ["v"], count=0xFFFFFFFF)),
    "count too small": (PRODUCE, produce_payload("t", ["v", "w"], count=1)),
    "key beyond the payload": (PRODUCE, produce_payload(
        "t", [Encoded(struct.pack(">iI", 0x7FFFFFFF, 0) + bytes(12))])),
    "key's length -2": (PRODUCE, produce_payload(
        "t", [Encoded(struct.pack(">iI", -2, 0) + bytes(12))])),
    "value beyond the payload": (PRODUCE, produce_payload(
        "t", [Encoded(struct.pack(">iI", -1, 0xFFFFFFFF) + bytes(12))])),
    "bytes behind the last record": (PRODUCE, produce_payload("t", ["v"]) + b"!"),
    "consume without its fields": (CONSUME, b"\0\1t"),
    "consume with too much": (CONSUME, consume_payload("t") + b"!"),
    "large, and cut": (PRODUCE, produce_payload("t", [record("v" * 100)] * 5000)[:-1]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_length_inside_gets_an_error_then_the_end(broker, client, lie):
    before = client.consume("t").high_watermark
    opcode, payload = LIES[lie]
    client.send(frame(3, opcode, payload))
    request_id, answered, text = client.read_frame()
    assert (request_id, answered) == (3, ERROR)
    assert text.decode().startswith("invalid request: ")
    assert client.is_closed()
    with Es01Client(broker.door("binary")) as other:
        assert other.consume("t").high_watermark == before


def test_what_was_asked_before_a_lie_is_answered_too(client):
    for number in range(5):
        client.send(frame(number, PRODUCE, produce_payload("t", ["v"])))
    client.send(frame(5, 0x01, b"\0"))
    answers = {client.read_frame()[:2] for _ in range(6)}
    assert answers == {(n, PRODUCED) for n in range(5)} | {(5, ERROR)}
    assert client.is_closed()


def test_frames_may_be_cut_anywhere(client):
    stream = b"".join(frame(n, PRODUCE, produce_payload("t", [record(f"v{n}", partition=0)]))
                      for n in range(40))
    sizes = [1, 2, 3, 5, 8, 13, 21, 34, 55]
    at = 0
    while at < len(stream):
        size = sizes[at % len(sizes)]
        client.send(stream[at:at + size])
        at += size
    assert {client.read_frame()[:2] for _ in range(40)} == {(n, PRODUCED) for n in range(40)}
    assert client.values("t", 0) == [f"v{n}".encode() for n in range(40)]


def test_many_refused_frames_at_once_are_all_answered(client):
    wrong = [(9, b""), (PRODUCE, produce_payload("nope", ["v"])),
             (CONSUME, consume_payload("nope")), (PING, b"x" * 5000)]
    frames = [frame(n, *wrong[n % len(wrong)]) for n in range(500)]
    client.send(b"".join(frames))
    answers = {client.read_frame()[:2] for _ in frames}
    assert answers == {(n, PONG if n % 4 == 3 else ERROR) for n in range(500)}


def test_a_half_closed_client_gets_its_answers(client):
    for number in range(50):
        client.send(frame(number, PRODUCE, produce_payload("t", ["v"])))
    client.socket.shutdown(1)
    assert {client.read_frame()[:2] for _ in range(50)} == {(n, PRODUCED) for n in range(50)}
    assert client.is_closed()


def test_a_client_that_hangs_up_leaves_its_requests_to_be_done(broker, client):
    watcher = Es01Client(broker.door("binary"))
    for number in range(30):
        client.send(frame(number, PRODUCE, produce_payload("t", [record("v", partition=0)])))
        client.send(frame(number, CONSUME, consume_payload("t")))
        client.send(frame(number, PING))
    client.read_frame()  # the first are there
    client.close()
    assert watcher.produce("t", record("last", partition=1))[0].offset == 0
    assert 0 < watcher.consume("t").high_watermark <= 30


def test_a_half_sent_frame_at_the_end_is_forgotten(broker, client):
    client.send(frame(1, PRODUCE, produce_payload("t", ["v" * 100_000]))[:-1])
    client.socket.shutdown(1)
    with pytest.raises(Closed):
        client.read_frame()
    with Es01Client(broker.door("binary")) as other:
        assert [other.consume("t", p).high_watermark for p in (0, 1)] == [0, 0]

