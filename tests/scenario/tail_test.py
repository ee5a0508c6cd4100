# SPDX-License-Identifier: Apache-2.0
"""GET /topics/:topic/tail: records as server-sent events."""
import http.client
import json
import socket
import time

import pytest


class Events:
    """An open tail; iterating gives events as dicts of their fields, comments as {"": text}."""

    def __init__(self, broker, path, **headers):
        self.connection = http.client.HTTPConnection(broker.address, timeout=60)
        self.connection.request("GET", path, headers={
            name.replace("_", "-"): value for name, value in headers.items()})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def next(self):
        event = {}
        while True:
            line = self.answer.readline().decode()
            if line == "":
                raise EOFError
            line = line.rstrip("\n")
            if line == "":
                return event
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")

    def record(self):
        """The next event that is no comment: (id, the record)."""
        while True:
            event = self.next()
            if "" not in event:
                assert event.get("event") is None, event
                return int(event["id"]), json.loads(event["data"])

    def error(self):
        while True:
            event = self.next()
            if event.get("event") == "error":
                with pytest.raises(EOFError):
                    self.next()
                return json.loads(event["data"])["error"]

    def close(self):
        self.connection.sock.close()


def test_records_as_they_come(client, broker):
    client.create_topic("orders", 2)
    client.produce("orders", {"value": "before", "partition": 1})
    events = Events(broker, "/topics/orders/tail?partition=1")
    assert events.status == 200
    assert events.answer.headers["content-type"] == "text/event-stream"
    assert events.answer.headers["cache-control"] == "no-store"
    assert events.next() == {"": "tail"}
    client.produce("orders", {"key": "k", "value": "a\nb", "partition": 1, "headers": {"h": "1"}})
    number, record = events.record()
    assert number == 2
    assert record == client.consume("orders", 1, 1)["records"][0]
    client.produce("orders", {"value": "other", "partition": 0}, {"value": None, "partition": 1})
    number, record = events.record()
    assert (number, record["value"], record["partition"]) == (3, None, 1)
    events.close()


def test_where_it_begins(client, broker):
    client.create_topic("t")
    client.produce("t", *[str(n) for n in range(5)])
    events = Events(broker, "/topics/t/tail?partition=0&offset=3")
    assert [events.record()[1]["value"] for _ in range(2)] == ["3", "4"]
    events.close()
    # A browser that comes back sends the id of the last event, which wins.
    events = Events(broker, "/topics/t/tail?partition=0&offset=0", last_event_id="2")
    assert [events.record()[0] for _ in range(3)] == [3, 4, 5]
    events.close()
    # Beyond the end is the end.
    events = Events(broker, "/topics/t/tail?partition=0&offset=99")
    events.next()
    client.produce("t", "new")
    assert events.record() == (6, client.consume("t", 0, 5)["records"][0])
    events.close()


def test_many_and_large_records_come_whole_and_in_order(client, broker):
    client.create_topic("t")
    client.produce("t", *[{"value": "x" * 50_000 + str(n)} for n in range(100)])
    client.produce("t", {"value": "y" * 3_000_000})
    client.produce("t", *[str(n) for n in range(3000)])
    events = Events(broker, "/topics/t/tail?partition=0&offset=0")
    for number in range(3101):
        assert events.record()[0] == number + 1
    events.close()


@pytest.mark.parametrize("path, status, text", [
    ("/topics/none/tail?partition=0", 404, "topic 'none' does not exist"),
    ("/topics/t/tail?partition=7", 404, "topic 't' has no partition 7"),
    ("/topics/t/tail", 400, "partition is required"),
    ("/topics/t/tail?partition=0&offset=-1", 400,
     "offset must be an integer from 0 to 9223372036854775807"),
    ("/topics/t/tail?partition=0&encoding=hex", 400, "encoding must be utf8 or base64"),
])
def test_refused_before_it_begins(client, path, status, text):
    client.create_topic("t")
    answer = client.get(path)
    assert (answer.status, answer.error) == (status, text)


def test_a_bad_last_event_id(client):
    client.create_topic("t")
    answer = client.get("/topics/t/tail?partition=0", headers={"Last-Event-ID": "x1"})
    assert (answer.status, answer.error) == (400, "Last-Event-ID must be an offset")


def test_what_is_no_text(client, broker):
    client.create_topic("t")
    client.produce("t", {"value": "YQ=="}, {"value": "/w=="}, encoding="base64")
    events = Events(broker, "/topics/t/tail?partition=0&offset=0")
    assert events.record()[1]["value"] == "a"
    assert events.error() == (
        "the record at offset 1 is not UTF-8; read it with encoding=base64")
    events = Events(broker, "/topics/t/tail?partition=0&offset=0&encoding=base64")
    assert [events.record()[1]["value"] for _ in range(2)] == ["YQ==", "/w=="]
    events.close()


def test_the_topic_goes(client, broker):
    client.create_topic("t")
    events = Events(broker, "/topics/t/tail?partition=0")
    events.next()
    assert client.delete("/topics/t").status == 200
    assert "delete" in events.error() or "exist" in events.error()


def test_the_key_goes(make_broker):
    broker = make_broker("--auth", "required")
    client = broker.client()
    admin = {"X-Es-Key": (broker.data_dir / "bootstrap.key").read_text().strip()}
    client.post("/topics", {"name": "t"}, headers=admin)
    assert client.get("/topics/t/tail?partition=0").status == 401
    made = client.post("/admin/keys", {
        "name": "k", "acls": [{"action": "read", "topic_prefix": "t"}]}, headers=admin).json
    events = Events(broker, "/topics/t/tail?partition=0", x_es_key=made["secret"])
    events.next()
    start = time.monotonic()
    assert client.delete("/admin/keys/" + made["key_id"], headers=admin).status == 200
    client.post("/topics/t/produce", {"records": [{"value": "not for it"}]}, headers=admin)
    assert events.next() == {
        "event": "error", "data": '{"error":"the key is unknown or was revoked"}'}
    with pytest.raises(EOFError):  # a proper end
        events.next()
    assert time.monotonic() - start < 10  # and not when the next comment is due


def test_over_the_quota_it_goes_on_later(make_broker):
    broker = make_broker("--auth", "required")
    client = broker.client()
    admin = {"X-Es-Key": (broker.data_dir / "bootstrap.key").read_text().strip()}
    client.post("/topics", {"name": "t"}, headers=admin)
    made = client.post("/admin/keys", {
        "name": "k", "acls": [{"action": "read", "topic_prefix": "t"}],
        "consume_bytes_per_sec": 1000}, headers=admin).json
    records = {"records": [{"value": "x" * 700}] * 2}
    client.post("/topics/t/produce", records, headers=admin)
    events = Events(broker, "/topics/t/tail?partition=0&offset=0", x_es_key=made["secret"])
    assert [events.record()[0] for _ in range(2)] == [1, 2]  # now it is in debt
    client.post("/topics/t/produce", records, headers=admin)
    assert [events.record()[0] for _ in range(2)] == [3, 4]
    events.close()
    throttled = client.get("/metrics", headers=admin).body.decode()
    assert f'esker_key_throttled_total{{key_id="{made["key_id"]}"}} 0' not in throttled


def test_a_stop_ends_it(client, broker):
    client.create_topic("t")
    events = Events(broker, "/topics/t/tail?partition=0")
    events.next()
    assert broker.stop() == 0
    with pytest.raises(EOFError):
        while True:
            assert "" in events.next()


def test_http_1_0_reads_until_the_end(client, broker):
    client.create_topic("t")
    client.produce("t", "a")
    with broker.raw() as raw:
        raw.send("GET /topics/t/tail?partition=0&offset=0 HTTP/1.0\r\nHost: x\r\n\r\n")
        head = raw.read_until(b"\r\n\r\n")
        assert b"chunked" not in head.lower()
        assert b'"value":"a"}\n\n' in raw.read_until(b"}\n\n")


def test_clients_that_go_leave_nothing_behind(client, broker):
    client.create_topic("t")
    for _ in range(20):
        events = Events(broker, "/topics/t/tail?partition=0")
        events.next()
        events.close()
    client.produce("t", "a")
    metrics = client.get("/metrics").body.decode()
    assert 'esker_requests_total{door="http",operation="tail"} 20' in metrics


def test_who_does_not_read_holds_bounded_memory(client, broker):
    """The broker stops reading ahead when nobody takes what it has."""
    client.create_topic("t")
    for _ in range(20):
        client.produce("t", *["z" * 100_000] * 20)
    host, port = broker.address.split(":")
    idle = []
    for _ in range(8):
        connection = socket.create_connection((host, int(port)))
        connection.sendall(b"GET /topics/t/tail?partition=0&offset=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.recv(100)
        idle.append(connection)
    client.produce("t", "still goes")
    used = [line for line in client.get("/metrics").body.decode().splitlines()
            if line.startswith("esker_memory_used_bytes")]
    assert int(used[0].split()[1]) < 100_000_000
    for connection in idle:
        connection.close()
