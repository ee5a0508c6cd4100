# SPDX-License-Identifier: Apache-2.0
"""What each call answers, field by field, and what stays after a restart."""
import subprocess

CONFIG = {
    "retention_ms": 604800000, "retention_bytes": None, "cleanup_policy": "delete",
    "segment_bytes": 67108864, "tombstone_retention_ms": 86400000, "partitioner": "fnv1a",
}


def curl(broker, *arguments, data=None):
    command = ["curl", "-s", *arguments]
    if data is not None:
        command += ["-H", "content-type: application/json", "-d", data]
    command = [part.replace("localhost:9000", broker.address) for part in command]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_first_session_word_for_word(broker):
    curl(broker, "-X", "POST", "localhost:9000/topics", data='{"name":"orders","partitions":2}')
    assert curl(
        broker, "-X", "POST", "localhost:9000/topics/orders/produce",
        data='{"records":[{"key":"user-1","value":"checkout"},{"key":"user-2","value":"signup"}]}',
    ) == '{"results":[{"partition":0,"offset":0},{"partition":1,"offset":0}]}'
    assert '"value":"checkout"' in curl(
        broker, "localhost:9000/topics/orders/consume?partition=0&offset=0")
    assert curl(broker, "-X", "POST", "localhost:9000/groups/analytics/commit",
                data='{"topic":"orders","partition":0,"offset":1}') == "{}"
    assert curl(broker, "localhost:9000/groups/analytics/offsets") == (
        '{"offsets":{"orders":{"0":1}}}')


def test_a_topic_s_life(client):
    assert client.get("/topics").json == {"topics": []}
    made = client.post("/topics", {"name": "b", "partitions": 2, "config": {"retention_ms": None}})
    assert made.status == 201
    assert made.json == {"name": "b", "partitions": 2, "config": {**CONFIG, "retention_ms": None}}
    assert client.create_topic("a") == {"name": "a", "partitions": 1, "config": CONFIG}
    assert client.get("/topics").json == {
        "topics": [{"name": "a", "partitions": 1}, {"name": "b", "partitions": 2}]}
    assert client.get("/healthz").json == {"status": "ok", "topics": 2}
    client.produce("b", {"value": "v", "partition": 1})
    described = client.get("/topics/b").json
    assert described["name"] == "b" and described["config"]["retention_ms"] is None
    empty, full = described["partitions"]
    assert empty == {"partition": 0, "start_offset": 0, "high_watermark": 0, "size_bytes": 0,
                     "segments": empty["segments"]}
    assert (full["partition"], full["high_watermark"]) == (1, 1) and full["size_bytes"] > 61

    assert client.delete("/topics/b").json == {}
    assert client.get("/topics/b").status == 404
    client.create_topic("b", partitions=3)  # begins anew
    assert [p["high_watermark"] for p in client.get("/topics/b").json["partitions"]] == [0, 0, 0]


def test_config_is_changed_field_by_field(client):
    client.create_topic("t", retention_bytes=1000, partitioner="murmur2")
    changes = {"retention_bytes": -1, "cleanup_policy": "delete,compact", "segment_bytes": 4096}
    expected = {**CONFIG, "retention_bytes": None, "cleanup_policy": "compact,delete",
                "segment_bytes": 4096, "partitioner": "murmur2"}
    assert client.put("/topics/t/config", changes).json == expected
    assert client.get("/topics/t/config").json == expected
    assert client.put("/topics/t/config", {}).json == expected
    assert client.put("/topics/t/config", {"partitioner": "murmur2"}).json == expected


def test_records_are_routed(client):
    client.create_topic("t", partitions=4)
    spread = client.produce("t", *["v"] * 8)
    assert [r["partition"] for r in spread] == [0, 1, 2, 3] * 2  # one counter over all requests
    assert client.produce("t", "v")[0]["partition"] == 0
    keyed = client.produce("t", *[{"key": "k", "value": "v"}] * 3)
    assert len({r["partition"] for r in keyed}) == 1
    assert client.produce("t", {"key": "k", "value": "v", "partition": 3})[0]["partition"] == 3
    empty = [client.produce("t", {"key": "", "value": "v"})[0]["partition"] for _ in range(2)]
    assert empty[0] == empty[1]  # an empty key is a key


def test_groups_commit_and_read_on(client):
    client.create_topic("t", partitions=2)
    client.create_topic("u")
    client.produce("t", *[{"value": f"{i}", "partition": 0} for i in range(5)])
    page = client.get("/groups/g/consume?topic=t&partition=0&max_records=2").json
    assert [r["offset"] for r in page["records"]] == [0, 1] and page["next_offset"] == 2
    assert client.get("/groups/g/offsets").json == {"offsets": {}}  # reading commits nothing
    for topic, partition, offset in (("t", 0, 3), ("t", 1, 9), ("u", 0, 0), ("t", 0, 4)):
        commit = {"topic": topic, "partition": partition, "offset": offset}
        assert client.post("/groups/g/commit", commit).json == {}
    assert client.get("/groups/g/offsets").json == {
        "offsets": {"t": {"0": 4, "1": 9}, "u": {"0": 0}}}
    page = client.get("/groups/g/consume?topic=t&partition=0").json
    assert [r["value"] for r in page["records"]] == ["4"]
    assert client.get("/groups/g/consume?topic=t&partition=1").json == {
        "records": [], "next_offset": 0, "high_watermark": 0}
    assert client.post("/groups/g/commit",
                       {"topic": "t", "partition": 0, "offset": 1}).json == {}  # backwards
    page = client.get("/groups/g/consume?topic=t&partition=0").json
    assert [r["value"] for r in page["records"]] == ["1", "2", "3", "4"]


def test_all_of_it_survives_a_kill(broker):
    client = broker.client()
    client.create_topic("t", retention_bytes=10**9)
    client.produce("t", {"key": "k", "value": "v", "headers": {"h": ["1", "2"]}})
    client.post("/groups/g/commit", {"topic": "t", "partition": 0, "offset": 1})
    before = [client.get(path).json for path in
              ("/topics", "/topics/t/config", "/groups/g/offsets",
               "/topics/t/consume?partition=0&offset=0")]
    broker.kill9()
    broker.start()
    client = broker.client()
    assert before == [client.get(path).json for path in
                      ("/topics", "/topics/t/config", "/groups/g/offsets",
                       "/topics/t/consume?partition=0&offset=0")]
    assert client.produce("t", "next") == [{"partition": 0, "offset": 1}]


def test_metrics_tell_what_was_done(client):
    client.create_topic("t")
    client.produce("t", *["v"] * 3)
    client.get("/nothing")
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.body.decode()
    for line in (
        'esker_requests_total{door="http",operation="produce"} 1',
        'esker_request_errors_total{door="http",operation="none"} 1',
        'esker_request_duration_seconds_count{door="http",operation="produce"} 1',
        'esker_connections{door="http"} 1',
        'esker_partition_records_in_total{topic="t",partition="0"} 3',
        "esker_topics 1",
    ):
        assert line + "\n" in text, line
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
