# SPDX-License-Identifier: Apache-2.0
"""Clients that are many, slow, greedy, malicious or suddenly gone hurt only themselves."""
import json
import re
import resource
import socket
import struct
import threading
import time

import pytest

MIB = 1024 * 1024


def produce_request(value="v", topic="orders"):
    body = json.dumps({"records": [{"value": value, "partition": 0}]})
    return (f"POST /topics/{topic}/produce HTTP/1.1\r\nHost: a\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}")


def metric(client, name):
    """The sum of a metric's samples."""
    text = client.get("/metrics").body.decode()
    return sum(float(v) for v in re.findall(rf"^esker_{name}(?:{{[^}}]*}})? (\S+)$", text, re.M))


@pytest.fixture
def orders(client):
    client.create_topic("orders", partitions=1)
    return client


def test_pipelined_requests_are_answered_in_order(broker, orders):
    with broker.raw() as raw:
        raw.send("".join(produce_request(f"{i}") for i in range(1000)))
        for i in range(1000):
            status, _, body = raw.read_answer()
            assert (status, json.loads(body)) == (200, {"results": [{"partition": 0, "offset": i}]})
    assert orders.values("orders") == [f"{i}" for i in range(1000)]


def test_a_pipelining_client_that_never_reads_is_held_back(broker, orders):
    """It cannot make the broker queue answers without bound: at some point its bytes are left."""
    orders.produce("orders", "v" * MIB)
    with broker.raw() as raw:
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.socket.setblocking(False)
        request = b"GET /topics/orders/consume?partition=0&offset=0 HTTP/1.1\r\nHost: a\r\n\r\n"
        before = rss_bytes(broker.pid)
        with pytest.raises(BlockingIOError):
            for _ in range(1000000):
                raw.socket.send(request * 100)
        assert orders.get("/healthz").status == 200
        assert rss_bytes(broker.pid) - before < 32 * MIB


def rss_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024


def test_a_head_byte_by_byte_is_served(broker):
    with broker.raw() as raw:
        for byte in "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n":
            raw.send(byte)
        assert raw.read_answer()[0] == 200


def test_slow_heads_end_after_ten_seconds_and_hold_nobody_up(broker, orders):
    """Heads that never end are dropped; others are served meanwhile."""
    slow = [broker.raw() for _ in range(200)]
    for connection in slow:
        connection.send("GET /healthz HTTP/1.1\r\nHost: a\r\nX: ")
    stop = threading.Event()

    def dribble():
        while not stop.wait(0.25):
            for connection in slow:
                try:
                    connection.send("y")
                except OSError:
                    pass

    thread = threading.Thread(target=dribble)
    began = time.monotonic()
    thread.start()
    try:
        for i in range(20):
            assert orders.produce("orders", f"{i}")[0]["offset"] == i
        status, headers, _ = slow[0].read_answer()
        assert (status, headers["connection"]) == (408, "close")
        assert 9 < time.monotonic() - began < 30
    finally:
        stop.set()
        thread.join()
        for connection in slow:
            connection.close()


def test_chunk_bombs_are_refused_or_cost_what_they_carry(broker, orders):
    head = "POST /topics/orders/produce HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = json.dumps({"records": [{"value": "v" * 100000, "partition": 0}]})
    with broker.raw() as raw:  # legal: every byte a chunk
        raw.send(head + "".join(f"1\r\n{c}\r\n" for c in body) + "0\r\n\r\n")
        assert raw.read_answer()[0] == 200
    bombs = ["1;" + "x" * 100000, "0\r\n" + "A: b\r\n" * 20000, "1;" * 50000]
    for bomb in bombs:
        with broker.raw() as raw:
            raw.send(head + bomb)
            assert raw.read_answer()[0] == 400
    assert orders.consume("orders")["high_watermark"] == 1


def test_a_hang_up_leaves_nothing_but_the_record(broker, orders):
    for i in range(50):
        raw = broker.raw()
        raw.send(produce_request(f"{i}"))
        if i % 2:  # a reset instead of an orderly end
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            orders.get("/healthz")  # lets the broker read the request before the reset drops it
        raw.close()
    half = broker.raw()
    half.send(produce_request("half")[:-3])  # not a whole request: not a record
    half.close()
    deadline = time.monotonic() + 30
    while metric(orders, "connections") > 1 and time.monotonic() < deadline:
        orders.get("/healthz")
    assert metric(orders, "connections") == 1
    assert metric(orders, "memory_used_bytes") < 64 * MIB
    values = orders.values("orders")
    assert "half" not in values and len(values) == len(set(values))
    assert {f"{i}" for i in range(0, 50, 2)} <= set(values)


def test_a_client_that_only_stops_sending_is_answered(broker, orders):
    with broker.raw() as raw:
        raw.send(produce_request())
        raw.half_close()
        assert raw.read_answer()[0] == 200
        assert raw.read_to_end() == b""


def test_a_long_poll_ends_with_a_record_its_time_or_its_client(broker, orders):
    poll = "GET /topics/orders/consume?partition=0&offset=0&wait_ms={} HTTP/1.1\r\nHost: a\r\n\r\n"
    with broker.raw() as raw:
        began = time.monotonic()
        raw.send(poll.format(300))
        _, _, body = raw.read_answer()
        assert json.loads(body)["records"] == [] and time.monotonic() - began >= 0.3
    waiting = [broker.raw() for _ in range(100)]
    for raw in waiting:
        raw.send(poll.format(30000))
    for raw in waiting[:50]:
        raw.close()  # noticed, although their requests wait
    deadline = time.monotonic() + 30
    while metric(orders, "connections") > 51 and time.monotonic() < deadline:
        orders.get("/healthz")
    assert metric(orders, "connections") == 51
    orders.produce("orders", "now")
    for raw in waiting[50:]:
        _, _, body = raw.read_answer()
        assert [r["value"] for r in json.loads(body)["records"]] == ["now"]
        raw.close()


def test_a_stop_answers_what_is_in_flight(broker, orders):
    raw = broker.raw()
    raw.send("GET /topics/orders/consume?partition=0&offset=0&wait_ms=30000 HTTP/1.1\r\n"
             "Host: a\r\n\r\n")
    while metric(orders, "connections") < 2:
        orders.get("/healthz")
    began = time.monotonic()
    assert broker.stop() == 0
    assert time.monotonic() - began < 10
    status, headers, body = raw.read_answer()
    assert (status, headers["connection"]) == (200, "close")
    assert json.loads(body)["records"] == []
    raw.close()


def test_expect_keep_alive_and_http_1_0(broker, orders):
    with broker.raw() as raw:
        request = produce_request()
        head, _, body = request.partition("\r\n\r\n")
        raw.send(head + "\r\nExpect: 100-continue\r\n\r\n")
        assert raw.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.send(body)
        assert raw.read_answer()[0] == 200
        raw.send("HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        head = raw.read_until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ") and b"Content-Length: " in head
        raw.send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert raw.read_answer()[1]["connection"] == "close"
        assert raw.read_to_end() == b""
    with broker.raw() as raw:
        raw.send("GET /healthz HTTP/1.0\r\n\r\n")
        assert raw.read_answer()[0] == 200
        assert raw.read_to_end() == b""
    with broker.raw() as raw:
        for _ in range(2):
            raw.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert raw.read_answer()[1]["connection"] == "keep-alive"


def many_connections(address, count):
    """Opens them, or skips where this process may not have so many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 1000:
        pytest.skip(f"{hard} descriptors are too few for {count} connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        host, _, port = address.rpartition(":")
        return [socket.create_connection((host, int(port)), 30) for _ in range(count)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 500), hard))


def test_ten_thousand_idle_connections_cost_little(broker, orders):
    before = rss_bytes(broker.pid)
    connections = many_connections(broker.address, 10000)
    try:
        for connection in connections[::10]:  # some have been used
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        for i in range(100):
            orders.produce("orders", f"{i}")
        assert metric(orders, "connections") == 10001
        assert (rss_bytes(broker.pid) - before) / 10000 < 20 * 1024
        assert metric(orders, "loop_turn_max_seconds") > 0
    finally:
        for connection in connections:
            connection.close()


def test_more_clients_than_descriptors_wait_without_a_spin(make_broker):
    broker = make_broker(wrapper=["prlimit", "--nofile=256:256"])
    client = broker.client()
    client.create_topic("orders")
    host, _, port = broker.address.rpartition(":")
    connections = [socket.create_connection((host, int(port)), 30) for _ in range(400)]
    client.produce("orders", "served")
    before = cpu_seconds(broker.pid)
    with pytest.raises(TimeoutError):
        late = connections[-1]
        late.settimeout(1)
        late.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        late.recv(100)
    assert cpu_seconds(broker.pid) - before < 0.5
    for connection in connections[:-1]:
        connection.close()
    late.settimeout(30)
    assert late.recv(100).startswith(b"HTTP/1.1 200")
    late.close()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


OPERATIONS = {
    "produce": ("POST", "/topics/orders/produce", '{"records":[{"value":"v"}]}'),
    "consume": ("GET", "/topics/orders/consume?partition=0&offset=0", None),
    "group_consume": ("GET", "/groups/g/consume?topic=orders&partition=0", None),
    "commit": ("POST", "/groups/g/commit", '{"topic":"orders","partition":0,"offset":0}'),
    "offsets": ("GET", "/groups/g/offsets", None),
    "topic_create": ("POST", "/topics", '{"name":"new"}'),
    "topic_list": ("GET", "/topics", None),
    "topic_describe": ("GET", "/topics/orders", None),
    "topic_delete": ("DELETE", "/topics/orders", None),
    "config_get": ("GET", "/topics/orders/config", None),
    "config_put": ("PUT", "/topics/orders/config", "{}"),
    "healthz": ("GET", "/healthz", None),
    "readyz": ("GET", "/readyz", None),
    "metrics": ("GET", "/metrics", None),
}


def test_a_failure_inside_shows_an_id_that_is_in_the_log(make_broker):
    """Of every route; only a test build (ESK_TEST_HOOKS) can be made to fail."""
    broker = make_broker(start=False, environment={"ESKER_FAIL_OPERATION": "all"})
    broker.start(ready=False)
    broker.wait_for_event("ready")
    client = broker.client()
    if client.get("/healthz").status == 200:
        pytest.skip("not a test build")
    for operation, (method, path, body) in OPERATIONS.items():
        answer = client.request(method, path, body=body)
        assert answer.status == 500
        match = re.fullmatch(r"internal error \(id ([0-9a-f]{8})\)", answer.error)
        assert match, answer
        line = broker.wait_for_event("internal-error", id=match[1])
        assert line["operation"] == operation and "secret detail" in json.dumps(line)
    assert broker.running
