# SPDX-License-Identifier: Apache-2.0
"""GET /raft, and the list of segments in cold storage."""
import time


def groups_of(client, topic):
    answer = client.get("/raft")
    assert answer.status == 200, answer
    assert answer.json["node"] == 1
    return [g for g in answer.json["partitions"] if g["topic"] == topic]


def test_the_catalogue_is_group_0(client):
    catalogue, = groups_of(client, None)
    index = catalogue["last_index"]
    assert catalogue == {
        "group_id": 0, "topic": None, "partition": None, "role": "leader", "term": 1, "leader": 1,
        "last_index": index, "commit_index": index, "applied_index": index,
        "replicas": [{"node": 1, "voter": True, "match_index": index}]}
    client.create_topic("t")
    assert groups_of(client, None)[0]["applied_index"] > index


def test_each_partition_is_a_group(broker, client):
    client.create_topic("t", 3)
    before = groups_of(client, "t")
    assert [g["partition"] for g in before] == [0, 1, 2]
    assert len({g["group_id"] for g in before}) == 3
    client.produce("t", {"value": "a", "partition": 1})
    after = groups_of(client, "t")
    assert after[1]["commit_index"] == before[1]["commit_index"] + 1
    assert after[0] == before[0]
    assert all(g["role"] == "leader" and g["leader"] == 1 for g in after)
    broker.restart()
    again = groups_of(broker.client(), "t")
    assert all(g["term"] > old["term"] for g, old in zip(again, after))
    assert broker.client().delete("/topics/t").status == 200
    assert groups_of(broker.client(), "t") == []


def test_ten_thousand_groups(broker, client):
    client.create_topic("wide", 10000)
    client.get("/metrics")  # a new longest turn begins with each scrape
    begin = time.monotonic()
    assert [g["partition"] for g in groups_of(client, "wide")] == list(range(10000))
    assert time.monotonic() - begin < 5
    text = client.get("/metrics").body.decode()
    turns = [float(line.split()[1]) for line in text.splitlines()
             if line.startswith("esker_loop_turn_recent_max_seconds{")]
    assert turns and max(turns) < 0.05  # sanitizers too; a millisecond on its own


def test_no_segment_is_in_cold_storage(client):
    client.create_topic("t", 2)
    assert client.get("/admin/tiered/t/1").json == {"topic": "t", "partition": 1, "segments": []}
    for path, status in [("/admin/tiered/t/2", 404), ("/admin/tiered/none/0", 404),
                         ("/admin/tiered/t/x", 400), ("/admin/tiered/t/-1", 400)]:
        assert client.get(path).status == status, path
