# SPDX-License-Identifier: Apache-2.0
"""/metrics: every series that the docs promise, each family once, quick for many partitions."""
import pathlib
import re
import time
import tomllib

TABLE = pathlib.Path(__file__).resolve().parents[2] / "definitions" / "metrics.toml"
SAMPLE = re.compile(r'([a-z0-9_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')


def scrape(client, **more):
    """{name: {labels as a frozenset of pairs: value}}; families are checked on the way."""
    answer = client.get("/metrics", **more)
    assert answer.status == 200, answer
    found = {}
    family = None
    families = []
    for line in answer.body.decode().splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            families.append(family)
        elif not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert re.fullmatch(family + "(_bucket|_sum|_count)?", name), line
            pairs = frozenset(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels or ""))
            assert pairs not in found.setdefault(name, {}), line
            found[name][pairs] = float(value)
    assert len(families) == len(set(families))
    return found


def test_every_metric_is_there(make_broker):
    broker = make_broker("--auth", "required", "--bind-binary", "127.0.0.1:0")
    secret = (broker.data_dir / "bootstrap.key").read_text().strip()
    headers = {"X-Es-Key": secret}
    client = broker.client()

    def call(method, path, body=None):
        answer = client.request(method, path, body, headers)
        assert answer.status in (200, 201), answer
        return answer.json

    call("POST", "/topics", {"name": "t", "partitions": 2})
    call("POST", "/topics/t/produce", {"records": [{"value": "abc", "partition": 1}] * 3})
    call("GET", "/topics/t/consume?partition=1&offset=0")
    call("POST", "/groups/g/join", {"topics": ["t"]})
    call("POST", "/groups/g/commit", {"topic": "t", "partition": 1, "offset": 1})
    call("POST", "/admin/run-retention")
    found = scrape(client, headers=headers)
    for metric in tomllib.loads(TABLE.read_text())["metric"]:
        name = "esker_" + metric["name"]
        name += "_count" if metric["kind"] == "histogram" else ""
        assert name in found, name
        for pairs in found[name]:
            assert {n for n, _ in pairs} == set(metric["labels"]), name
    one = frozenset({("topic", "t"), ("partition", "1")})
    assert found["esker_partition_records_in_total"][one] == 3
    assert found["esker_partition_records_out_total"][one] == 3
    assert found["esker_partition_high_watermark"][one] == 3
    assert found["esker_raft_role"][one] == 2
    group = one | {("group", "g")}
    assert found["esker_group_committed_offset"][group] == 1
    assert found["esker_group_lag_records"][group] == 2
    assert found["esker_group_rebalances_total"][frozenset({("group", "g")})] == 1
    assert list(found["esker_key_produce_bytes_total"].values()) == [9]
    assert {dict(pairs)["door"] for pairs in found["esker_requests_total"]} >= {"http", "es01"}
    assert found["esker_topics"] == {frozenset(): 1}


def test_ten_thousand_partitions(client):
    client.create_topic("wide", 10000)
    scrape(client)
    begin = time.monotonic()
    assert client.get("/metrics").status == 200
    assert time.monotonic() - begin < 5  # some 30 ms without sanitizers on an idle machine
    found = scrape(client)
    assert len(found["esker_partition_segments"]) == 10000
    assert max(found["esker_loop_turn_recent_max_seconds"].values()) < 0.05
