# SPDX-License-Identifier: Apache-2.0
"""Bad input over HTTP is refused with a clear 4xx and nothing written; odd but legal input is taken
and given back as sent."""
import base64
import json

import pytest

MIB = 1024 * 1024


@pytest.fixture
def orders(client):
    client.create_topic("orders", partitions=2)
    return client


def is_untouched(client):
    """Nothing was written: both partitions are empty, and no other topic exists."""
    assert client.get("/topics").json == {"topics": [{"name": "orders", "partitions": 2}]}
    marks = [p["high_watermark"] for p in client.get("/topics/orders").json["partitions"]]
    return marks == [0, 0]


def refused(answer, status=400):
    assert answer.status == status, answer
    assert list(answer.json) == ["error"] and answer.error
    assert answer.headers["content-type"] == "application/json"
    return answer.error


DEEP = '{"records":[{"value":"v","x":' + "[" * 70 + "]" * 70 + "}]}"


@pytest.mark.parametrize("body", [
    b"", b"{", b"nonsense", b'{"records":[{"value":"v"}]', b'{"records":[{"value":"v"}]}}',
    b'{"records":[{"value":"v"},]}', b'[]', b'"text"', b"null", b"1",
    b'{"records":[{"value":01}]}', b"{'records':[]}", b'\xef\xbb\xbf{"records":[]}',
    b'{"records":[{"value":"v"}],"records":[]}', b'{"records":[{"value":"v","value":"w"}]}',
    b'{"records":[{"value":"v","headers":{"a":"1","a":"2"}}]}',
    DEEP.encode(),
    b'{"records":[{"value":"\xff"}]}', b'{"records":[{"value":"\xc0\x80"}]}',
    b'{"records":[{"value":"\xed\xa0\x80"}]}', b'{"records":[{"value":"a\nb"}]}',
    b'{"records":[{"value":"\\ud800"}]}', b'{"records":[{"value":"\\udc00\\ud800"}]}',
    b'{"records":[{"value":"\\x"}]}', b'{}', b'{"records":null}', b'{"records":{}}',
    b'{"records":[1]}', b'{"records":[{}]}', b'{"records":[{"value":1}]}',
    b'{"records":[{"value":true}]}', b'{"records":[{"value":["v"]}]}',
    b'{"records":[{"value":"v","key":1}]}', b'{"records":[{"value":"v","partition":"0"}]}',
    b'{"records":[{"value":"v","partition":-1}]}', b'{"records":[{"value":"v","partition":0.5}]}',
    b'{"records":[{"value":"v","partition":4294967296}]}',
    b'{"records":[{"value":"v","partition":99999999999999999999}]}',
    b'{"records":[{"value":"v","headers":[]}]}', b'{"records":[{"value":"v","headers":{"a":1}}]}',
    b'{"records":[{"value":"good"},{"value":"v","partition":-1}]}',
    b'{"producer_id":"p","records":[{"value":"v","partition":0}]}',
    b'{"encoding":"base64","records":[{"value":"dg"}]}',
    b'{"encoding":"latin1","records":[{"value":"v"}]}',
])
def test_a_broken_produce_writes_nothing(orders, body):
    refused(orders.post("/topics/orders/produce", body))
    assert is_untouched(orders)


def test_broken_json_is_located(orders):
    error = refused(orders.post("/topics/orders/produce", b'{"records":[{"value" "v"}]}'))
    assert "byte 21" in error


def test_sizes_over_the_limits_are_413(orders):
    refused(orders.post("/topics/orders/produce", b" " * (10 * MIB + 1)), 413)
    refused(orders.post("/topics", b" " * (10 * MIB + 1)), 413)
    record = {"key": "k", "value": "v" * (8 * MIB)}  # one byte more than a record may have
    error = refused(orders.post("/topics/orders/produce", {"records": [record]}), 413)
    assert "records[0]" in error
    assert is_untouched(orders)
    assert orders.get("/healthz").status == 200


def test_a_chunked_body_over_the_limit_is_413(broker, orders):
    with broker.raw() as raw:
        raw.send("POST /topics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        raw.send(b"100000\r\n" + b" " * MIB + b"\r\n")
        raw.send("A00000\r\n")
        status, headers, _ = raw.read_answer()
        assert (status, headers["connection"]) == (413, "close")
    assert is_untouched(orders)


@pytest.mark.parametrize("body", [
    {}, {"name": ""}, {"name": "x" * 201}, {"name": "."}, {"name": ".."}, {"name": "a/b"},
    {"name": "../x"}, {"name": "a\0"}, {"name": "é"}, {"name": "a b"}, {"name": None}, {"name": 1},
    {"name": "t", "partitions": 0}, {"name": "t", "partitions": -1},
    {"name": "t", "partitions": 10001}, {"name": "t", "partitions": 2**32},
    {"name": "t", "partitions": 2**64}, {"name": "t", "partitions": "1"},
    {"name": "t", "partitions": 1.5}, {"name": "t", "partitions": None},
    {"name": "t", "config": []}, {"name": "t", "config": {"retention_ms": -2}},
    {"name": "t", "config": {"retention_bytes": "1"}},
    {"name": "t", "config": {"segment_bytes": 1}},
    {"name": "t", "config": {"segment_bytes": 2**30 + 1}},
    {"name": "t", "config": {"cleanup_policy": "keep"}},
    {"name": "t", "config": {"tombstone_retention_ms": -1}},
    {"name": "t", "config": {"partitioner": "random"}},
])
def test_a_wrong_topic_is_not_made(orders, body):
    refused(orders.post("/topics", body))
    assert is_untouched(orders)


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/topics/nope", 404), ("DELETE", "/topics/nope", 404),
    ("GET", "/topics/nope/config", 404), ("GET", "/topics/nope/consume?partition=0&offset=0", 404),
    ("GET", "/topics//config", 400), ("GET", "/topics/%2e%2e/config", 400),
    ("GET", "/topics/..%2f..%2fetc/config", 400), ("GET", "/topics/" + "x" * 201, 400),
    ("GET", "/topics/a%00b", 400), ("GET", "/topics/%e9", 400), ("GET", "/topics/%", 400),
    ("GET", "/groups/%0a/offsets", 400), ("GET", "/groups/%ff/offsets", 400),
    ("GET", "/groups/" + "g" * 201 + "/offsets", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=-1", 400),
    ("GET", f"/topics/orders/consume?partition=0&offset={2**63}", 400),
    ("GET", f"/topics/orders/consume?partition=0&offset={2**64}", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=+1", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=%30x", 400),
    ("GET", "/topics/orders/consume?partition=-1&offset=0", 400),
    ("GET", "/topics/orders/consume?partition=2&offset=0", 404),
    ("GET", f"/topics/orders/consume?partition={2**32}&offset=0", 400),
    ("GET", "/topics/orders/consume?offset=0", 400),
    ("GET", "/topics/orders/consume?partition=0", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=0&offset=1", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=0&max_records=0", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=0&max_bytes=0", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=0&wait_ms=30001", 400),
    ("GET", "/topics/orders/consume?partition=0&offset=0&encoding=hex", 400),
    ("GET", "/groups/g/consume?partition=0", 400),
    ("GET", "/groups/g/consume?partition=0&topic=nope", 404),
    ("GET", "/groups/g/consume?partition=7&topic=orders", 404),
    ("GET", "/", 404), ("GET", "/nothing", 404), ("GET", "/topics/orders/nothing", 404),
    ("GET", "/topics/orders/config/more", 404),
])
def test_wrong_paths_and_parameters(orders, method, path, status):
    refused(orders.request(method, path), status)


def test_an_unknown_topic_or_partition_is_404_after_the_fields(orders):
    refused(orders.post("/topics/nope/produce", {"records": [{"value": "v"}]}), 404)
    refused(orders.post("/topics/nope/produce", {"records": [{"value": 1}]}), 400)
    refused(orders.post("/topics/orders/produce",
                        {"records": [{"value": "v"}, {"value": "v", "partition": 2}]}), 404)
    refused(orders.post("/groups/g/commit", {"topic": "nope", "partition": 0, "offset": 0}), 404)
    refused(orders.post("/groups/g/commit", {"topic": "orders", "partition": 2, "offset": 0}), 404)
    for offset in (-1, 2**63, "1", None, 1.0):
        refused(orders.post("/groups/g/commit",
                            {"topic": "orders", "partition": 0, "offset": offset}))
    refused(orders.post("/topics", {"name": "orders"}), 409)
    refused(orders.put("/topics/orders/config", {"partitioner": "murmur2"}))
    refused(orders.put("/topics/nope/config", {"retention_ms": 1}), 404)
    assert is_untouched(orders)
    assert orders.get("/groups/g/offsets").json == {"offsets": {}}


@pytest.mark.parametrize("method, path, allow", [
    ("PUT", "/topics", "GET, HEAD, POST"), ("POST", "/topics/orders", "GET, HEAD, DELETE"),
    ("GET", "/topics/orders/produce", "POST"),
    ("DELETE", "/topics/orders/config", "GET, HEAD, PUT"),
    ("POST", "/healthz", "GET, HEAD"), ("OPTIONS", "/metrics", "GET, HEAD"),
    ("PATCH", "/groups/g/commit", "POST"),
])
def test_a_wrong_method_is_405_with_allow(orders, method, path, allow):
    answer = orders.request(method, path)
    refused(answer, 405)
    assert answer.headers["allow"] == allow


SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("head", [
    "Content-Length: 0\r\nContent-Length: 0\r\n",
    "Content-Length: 5\r\nContent-Length: 0\r\n",
    "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding : chunked\r\n", "Transfer-Encoding:\x0bchunked\r\n",
    "X: y\r\n Transfer-Encoding: chunked\r\n", "X: y\rTransfer-Encoding: chunked\r\n",
    "X: y\nTransfer-Encoding: chunked\r\n", "X: y\0z\r\n", "Host: b\r\n",
    "Content-Length: -1\r\n", "Content-Length: +0\r\n", "Content-Length: 0x0\r\n",
    "Content-Length: 0 0\r\n", "Content-Length: 18446744073709551616\r\n",
    "Content-Length:\r\n",
])
def test_smuggling_ends_the_connection(broker, orders, head):
    with broker.raw() as raw:
        raw.send(f"POST /topics HTTP/1.1\r\nHost: a\r\n{head}\r\n0\r\n\r\n{SMUGGLED}")
        status, headers, body = raw.read_answer()
        assert (status, headers["connection"]) == (400, "close")
        assert json.loads(body)["error"].startswith("malformed request: ")
        assert raw.read_to_end() == b""  # what followed was not taken for a request


@pytest.mark.parametrize("body", [
    "x\r\n", "-1\r\n", "0x2\r\n{}\r\n0\r\n\r\n", "2\r\n{}}\r\n0\r\n\r\n", "3\r\n{}\r\n0\r\n\r\n",
    "2\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n", "\r\n",
])
def test_bad_chunks_end_the_connection(broker, orders, body):
    with broker.raw() as raw:
        raw.send("POST /topics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        raw.send(body)
        raw.half_close()
        status, headers, _ = raw.read_answer()
        assert (status, headers["connection"]) == (400, "close")
    assert is_untouched(orders)


def test_large_heads_are_431(broker):
    for head in ("X: " + "y" * 16384, "\r\n".join(f"X{i}: y" for i in range(100))):
        with broker.raw() as raw:
            raw.send(f"GET /healthz HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n")
            assert raw.read_answer()[0] == 431


# What is legal


def test_odd_text_comes_back_as_sent(orders):
    values = ["", "\0", "a\0b", "\"\\/\b\f\n\r\t\x1f\x7f", "é€𝄞", "\u2028\ufeff\uffff",
              "null"]
    orders.produce("orders", *[{"key": v, "value": v, "partition": 0} for v in values])
    records = orders.consume("orders", 0, 0)["records"]
    assert [(r["key"], r["value"]) for r in records] == [(v, v) for v in values]
    headers = {"a": "1", "b": ["1", "2"], "c": None, "\0": ["", None], "é": "\0"}
    orders.produce("orders", {"value": None, "key": None, "partition": 1, "headers": headers})
    record = orders.consume("orders", 1, 0)["records"][0]
    assert (record["value"], record["key"], record["headers"]) == (None, None, headers)


def test_optional_fields_of_a_produce_may_be_null(orders):
    nothing = {"key": None, "partition": None, "headers": None, "sequence": None}
    body = {"producer_id": None, "encoding": None, "records": [{"value": "v", **nothing}] * 2}
    answer = orders.post("/topics/orders/produce", body)
    assert answer.status == 200, answer
    partitions = [result["partition"] for result in answer.json["results"]]
    assert partitions[0] != partitions[1]  # round-robin
    record = orders.consume("orders", partitions[0], 0)["records"][0]
    assert record["key"] is None and "headers" not in record
    # Absent is not enough where a field is needed.
    answer = orders.post("/topics/orders/produce", {**body, "producer_id": "p"})
    assert "records[0].sequence is required" in refused(answer)


def test_many_headers_of_one_name_come_back(orders):
    headers = {"n": [str(i) for i in range(1000)], **{f"h{i}": str(i) for i in range(100)}}
    orders.produce("orders", {"value": "v", "partition": 0, "headers": headers})
    assert orders.consume("orders", 0, 0)["records"][0]["headers"] == headers


def test_bytes_that_are_no_text(orders):
    raw = bytes(range(256)) * 3
    text = base64.b64encode(raw).decode()
    orders.produce("orders", {"value": "aGk=", "partition": 0},
                   {"key": text, "value": text, "partition": 0, "headers": {"h": text}},
                   encoding="base64")
    first = orders.consume("orders", 0, 0)
    assert [r["value"] for r in first["records"]] == ["hi"] and first["next_offset"] == 1
    error = refused(orders.get("/topics/orders/consume?partition=0&offset=1"), 422)
    assert "offset 1" in error and "encoding=base64" in error
    record = orders.consume("orders", 0, 1, encoding="base64")["records"][0]
    assert (record["key"], record["value"], record["headers"]) == (text, text, {"h": text})


def test_longest_names(client):
    name = "n" * 200
    client.create_topic(name)
    client.produce(name, "v")
    assert client.values(name) == ["v"]
    group = "g%C3%A9" + "g" * 197
    commit = {"topic": name, "partition": 0, "offset": 2**63 - 1}
    assert client.post(f"/groups/{group}/commit", commit).json == {}
    assert client.get(f"/groups/{group}/offsets").json == {"offsets": {name: {"0": 2**63 - 1}}}


def test_ten_thousand_partitions(client):
    client.create_topic("many", partitions=10000)
    client.produce("many", {"value": "v", "partition": 9999})
    partitions = client.get("/topics/many").json["partitions"]
    assert [p["partition"] for p in partitions] == list(range(10000))
    assert sum(p["high_watermark"] for p in partitions) == partitions[9999]["high_watermark"] == 1


def test_a_record_of_exactly_the_limit(orders):
    value = "v" * (8 * MIB - 1)
    orders.produce("orders", {"key": "k", "value": value, "partition": 0})
    record = orders.consume("orders", 0, 0)["records"][0]  # above max_bytes, yet one is given
    assert record["key"] == "k" and record["value"] == value


def test_a_value_six_times_larger_as_json(orders):
    value = "\x01" * MIB
    orders.produce("orders", {"value": value, "partition": 0})
    answer = orders.get("/topics/orders/consume?partition=0&offset=0")
    assert len(answer.body) > 6 * MIB and answer.json["records"][0]["value"] == value


def test_limits_of_a_read(orders):
    orders.produce("orders", *[{"value": f"{i:010}", "partition": 0} for i in range(300)])
    assert len(orders.consume("orders", 0, 0)["records"]) == 100
    assert len(orders.consume("orders", 0, 0, max_records=10**12)["records"]) == 300
    page = orders.consume("orders", 0, 5, max_bytes=35)
    assert [r["offset"] for r in page["records"]] == [5, 6, 7]
    assert (page["next_offset"], page["high_watermark"]) == (8, 300)
    assert [r["offset"] for r in orders.consume("orders", 0, 7, max_bytes=1)["records"]] == [7]
    for offset in (300, 301, 2**63 - 1):
        assert orders.consume("orders", 0, offset) == {
            "records": [], "next_offset": 300, "high_watermark": 300}


def test_limits_are_flags(make_broker):
    broker = make_broker("--max-request-body-bytes", "4KiB", "--max-record-bytes", "1KiB",
                         "--max-fetch-records", "2", "--max-fetch-bytes", "1KiB")
    client = broker.client()
    client.create_topic("t")
    client.produce("t", "v" * 1024, "a", "b", "c" * 600, "d" * 600)
    refused(client.post("/topics/t/produce", {"records": [{"value": "v" * 1025}]}), 413)
    refused(client.post("/topics/t/produce", b" " * 4097), 413)
    client = broker.client()
    assert len(client.consume("t", 0, 1, max_records=5)["records"]) == 2
    assert len(client.consume("t", 0, 3, max_bytes=1000000)["records"]) == 1


def test_unknown_fields_and_parameters_are_passed_over(orders):
    body = {"records": [{"value": "v", "partition": 0, "colour": {"a": [1]}}], "extra": None}
    assert orders.post("/topics/orders/produce", body).status == 200
    answer = orders.get("/topics/orders/consume?partition=0&offset=0&colour=blue&&x")
    assert answer.json["next_offset"] == 1


def test_a_content_type_is_not_looked_at(orders):
    answer = orders.post("/topics/orders/produce", b'{"records":[{"value":"v"}]}',
                         headers={"content-type": "text/plain"})
    assert answer.status == 200
