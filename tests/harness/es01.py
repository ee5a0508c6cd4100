# SPDX-License-Identifier: Apache-2.0
"""A small ES01 client for tests: it sends what it is told to, wrong things too. One thread."""
import gzip
import socket
import struct

MAGIC = b"ES01"
GZIP = 1
PRODUCE, CONSUME, PING = 1, 2, 3
PRODUCED, CONSUMED, PONG, ERROR = 0x81, 0x82, 0x83, 0xFF
NO_SEQUENCE = -(2**63)


class Es01Error(AssertionError):
    """The broker answered with an error frame; text is its message."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text


class Closed(Exception):
    """The broker closed the connection."""


def sized(fmt, data):
    return struct.pack(fmt, len(data)) + data


def as_bytes(value):
    return value.encode() if isinstance(value, str) else value


class Encoded(bytes):
    """A record's bytes in a produce payload; other bytes are taken for a value."""


def record(value, key=None, partition=-1, sequence=None):
    """One record of a produce payload."""
    head = struct.pack(">i", -1) if key is None else sized(">i", as_bytes(key))
    tail = struct.pack(">iq", partition, NO_SEQUENCE if sequence is None else sequence)
    return Encoded(head + sized(">I", as_bytes(value)) + tail)


def produce_payload(topic, records, producer_id=None, count=None):
    """records: of record(), or values."""
    records = [r if isinstance(r, Encoded) else record(r) for r in records]
    producer = struct.pack(">i", -1) if producer_id is None else sized(">i", as_bytes(producer_id))
    number = struct.pack(">I", len(records) if count is None else count)
    return sized(">H", as_bytes(topic)) + producer + number + b"".join(records)


def consume_payload(topic, partition=0, offset=0, max_records=100, max_bytes=1 << 20):
    tail = struct.pack(">IQII", partition, offset, max_records, max_bytes)
    return sized(">H", as_bytes(topic)) + tail


def frame(request_id, opcode, payload=b""):
    return struct.pack(">IIB", len(payload) + 5, request_id, opcode) + payload


def hello(features=0, token=b"", magic=MAGIC):
    return magic + struct.pack(">I", features) + sized(">I", as_bytes(token))


class Result:
    def __init__(self, partition, offset, duplicate):
        self.partition, self.offset, self.duplicate = partition, offset, duplicate

    def __repr__(self):
        return f"<{self.partition}:{self.offset}{' duplicate' if self.duplicate else ''}>"


class Record:
    def __init__(self, partition, offset, timestamp_ms, key, value):
        self.partition, self.offset, self.timestamp_ms = partition, offset, timestamp_ms
        self.key, self.value = key, value


class Fetched:
    def __init__(self, payload):
        self.next_offset, self.high_watermark, count = struct.unpack_from(">QQI", payload)
        self.records = []
        at = 20
        for _ in range(count):
            partition, offset, timestamp_ms, key_size = struct.unpack_from(">IQqi", payload, at)
            at += 24
            key = None
            if key_size >= 0:
                key = payload[at:at + key_size]
                at += key_size
            (value_size,) = struct.unpack_from(">I", payload, at)
            at += 4
            value = payload[at:at + value_size]
            at += value_size
            assert len(value) == value_size
            self.records.append(Record(partition, offset, timestamp_ms, key, value))
        assert at == len(payload), "bytes behind the last record"

    @property
    def values(self):
        return [r.value for r in self.records]


class Es01Client:
    """address is "host:port". welcome is (status, features, message) of the handshake."""

    def __init__(self, address, features=0, token=b"", timeout=60.0, greet=True, tls=None):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host.strip("[]"))
        self.socket.settimeout(timeout)
        self.gzip = False
        self.next_id = 1
        self.answers = {}
        if greet:
            self.send(hello(features, token))
            self.read_welcome()

    # Bytes

    def send(self, data):
        self.socket.sendall(data)

    def read(self, size):
        parts = []
        while size:
            try:
                part = self.socket.recv(min(size, 1 << 20))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed(f"{size} bytes short")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def is_closed(self):
        """Waits for the end, dropping what comes before it."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        return True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Handshake and frames

    def read_welcome(self):
        magic = self.read(4)
        assert magic == MAGIC, magic
        status, features, size = struct.unpack(">BII", self.read(9))
        self.welcome = (status, features, self.read(size).decode())
        self.gzip = bool(features & GZIP)
        return self.welcome

    def pack(self, payload):
        return gzip.compress(payload, 1) if self.gzip and payload else payload

    def unpack(self, payload):
        return gzip.decompress(payload) if self.gzip and payload else payload

    def start(self, opcode, payload=b""):
        """Sends a request; its id, for finish()."""
        request_id = self.next_id
        self.next_id += 1
        self.send(frame(request_id, opcode, self.pack(payload)))
        return request_id

    def read_frame(self):
        """(request id, opcode, payload) of the next frame, whatever it answers."""
        length, request_id, opcode = struct.unpack(">IIB", self.read(9))
        return request_id, opcode, self.unpack(self.read(length - 5))

    def finish(self, request_id):
        """(opcode, payload) of that request's answer; others are kept for their turn."""
        while request_id not in self.answers:
            answered, opcode, payload = self.read_frame()
            self.answers[answered] = (opcode, payload)
        return self.answers.pop(request_id)

    def expect(self, request_id, opcode):
        got, payload = self.finish(request_id)
        if got == ERROR:
            raise Es01Error(payload.decode())
        assert got == opcode, hex(got)
        return payload

    # Calls

    def start_produce(self, topic, *records, producer_id=None):
        return self.start(PRODUCE, produce_payload(topic, records, producer_id))

    def finish_produce(self, request_id):
        payload = self.expect(request_id, PRODUCED)
        (count,) = struct.unpack_from(">I", payload)
        assert len(payload) == 4 + 13 * count
        return [Result(p, o, bool(d)) for p, o, d in struct.iter_unpack(">IQB", payload[4:])]

    def produce(self, topic, *records, producer_id=None):
        return self.finish_produce(self.start_produce(topic, *records, producer_id=producer_id))

    def start_consume(self, topic, partition=0, offset=0, **limits):
        return self.start(CONSUME, consume_payload(topic, partition, offset, **limits))

    def consume(self, topic, partition=0, offset=0, **limits):
        request_id = self.start_consume(topic, partition, offset, **limits)
        return Fetched(self.expect(request_id, CONSUMED))

    def ping(self, payload=b""):
        return self.expect(self.start(PING, payload), PONG)

    def error(self, opcode, payload=b""):
        """The text of the error that the request must get."""
        got, answer = self.finish(self.start(opcode, payload))
        assert got == ERROR, (hex(got), answer[:100])
        return answer.decode()

    def values(self, topic, partition=0):
        """All values of a partition from its start, read to the high watermark."""
        found, offset = [], 0
        while True:
            page = self.consume(topic, partition, offset)
            found += page.values
            offset = page.next_offset
            if offset >= page.high_watermark:
                return found
