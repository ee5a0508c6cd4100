# SPDX-License-Identifier: Apache-2.0
"""Retention and compaction as clients see them: what goes, what stays, what the passes answer."""
import pathlib
import re
import threading
import time

KEYS = 20


def settle(client, topic):
    """Rolls the open segment: what was written before is sealed."""
    config = client.get(f"/topics/{topic}").json["config"]
    client.produce(topic, {"value": "x" * config["segment_bytes"], "partition": 0})
    client.produce(topic, {"value": "end", "partition": 0})


def read_all(client, topic):
    """offset -> record, by reads that begin at every next_offset."""
    found = {}
    offset = 0
    while True:
        page = client.consume(topic, 0, offset, max_records=50)
        for record in page["records"]:
            found[record["offset"]] = record
        if page["next_offset"] >= page["high_watermark"]:
            return found
        assert page["next_offset"] > offset, page
        offset = page["next_offset"]


def write_keys(client, topic, rounds, size=200):
    """The offset of the newest record of each key."""
    newest = {}
    for number in range(rounds):
        records = [{"key": f"key-{key}", "value": f"{number}-" + "v" * size, "partition": 0,
                    "headers": {"round": str(number)}} for key in range(KEYS)]
        for key, result in enumerate(client.produce(topic, *records)):
            newest[f"key-{key}"] = (result["offset"], number)
    return newest


def segment_files(broker):
    folder = pathlib.Path(broker.data_dir) / "groups"
    return sorted(path.name for path in folder.rglob("*")
                  if path.suffix in (".segment", ".index", ".new"))


def test_compaction_keeps_the_newest_record_of_each_key(broker, client):
    client.create_topic("t", segment_bytes=16384, cleanup_policy="compact")
    client.produce("t", {"value": "no key", "partition": 0})
    newest = write_keys(client, "t", 30)
    settle(client, "t")
    before = client.get("/topics/t").json["partitions"][0]
    answer = client.post("/admin/run-compaction")
    assert answer.status == 200, answer
    assert set(answer.json) == {"segments_compacted", "records_removed", "bytes_freed"}
    assert answer.json["records_removed"] == KEYS * 29
    assert answer.json["segments_compacted"] > 5
    after = client.get("/topics/t").json["partitions"][0]
    assert before["size_bytes"] - after["size_bytes"] == answer.json["bytes_freed"]
    assert after["high_watermark"] == before["high_watermark"]
    assert after["segments"] < before["segments"]

    found = read_all(client, "t")
    keyed = {record["key"]: (offset, int(record["value"].split("-")[0]))
             for offset, record in found.items() if record["key"]}
    assert keyed == newest
    assert all(record["headers"] == {"round": "29"} for record in found.values()
               if record["key"])
    assert found[0]["value"] == "no key"
    first = min(offset for offset, _ in newest.values())
    page = client.consume("t", 0, 2, max_records=1)  # within what is gone
    assert page["records"][0]["offset"] == first
    assert page["next_offset"] == first + 1

    again = client.post("/admin/run-compaction").json
    assert again == {"segments_compacted": 0, "records_removed": 0, "bytes_freed": 0}
    names = segment_files(broker)
    broker.restart()
    assert read_all(broker.client(), "t") == found
    assert segment_files(broker) == names
    text = broker.client().get("/metrics").body.decode()
    assert re.search(r'esker_cleanup_passes_total\{policy="compact"\} \d', text)


def test_metrics_count_what_compaction_removed(client):
    client.create_topic("t", segment_bytes=16384, cleanup_policy="compact")
    write_keys(client, "t", 10)
    settle(client, "t")
    done = client.post("/admin/run-compaction").json
    text = client.get("/metrics").body.decode()
    for name, field in (("records", "records_removed"), ("bytes", "bytes_freed")):
        found = re.search(rf'^esker_cleanup_removed_{name}_total\{{policy="compact"\}} (\d+)$',
                          text, re.MULTILINE)
        assert int(found[1]) == done[field] > 0


def test_tombstones_stay_for_their_time_from_the_first_pass_on(client):
    client.create_topic("t", segment_bytes=4096, cleanup_policy="compact",
                        tombstone_retention_ms=1500)
    client.produce("t", {"key": "a", "value": "1", "partition": 0},
                   {"key": "b", "value": "1", "partition": 0})
    client.produce("t", {"key": "a", "value": None, "partition": 0},
                   {"key": "b", "value": "", "partition": 0},
                   {"key": "c", "value": "1", "partition": 0})
    settle(client, "t")
    before_pass = time.monotonic()
    assert client.post("/admin/run-compaction").json["records_removed"] == 2
    found = read_all(client, "t")
    assert [found[offset]["value"] for offset in (2, 3, 4)] == [None, "", "1"]
    while True:
        removed = client.post("/admin/run-compaction").json["records_removed"]
        waited = time.monotonic() - before_pass
        if removed:
            break
        assert waited < 30
    assert removed == 2 and waited > 1.49
    found = read_all(client, "t")
    assert 2 not in found and 3 not in found and found[4]["value"] == "1"


def test_compact_and_delete_does_both(client):
    client.create_topic("t", segment_bytes=4096, cleanup_policy="compact,delete",
                        retention_bytes=30000)
    write_keys(client, "t", 10)
    settle(client, "t")
    assert client.post("/admin/run-compaction").json["records_removed"] > 0
    client.put("/topics/t/config", {"retention_bytes": 1})
    deleted = client.post("/admin/run-retention").json
    assert deleted["segments_deleted"] > 0 and deleted["bytes_freed"] > 0
    described = client.get("/topics/t").json["partitions"][0]
    assert described["start_offset"] > 0 and described["segments"] == 1


def test_the_open_segment_and_other_policies_stay_as_they_are(client):
    client.create_topic("open", cleanup_policy="compact")
    client.create_topic("kept", segment_bytes=4096)
    write_keys(client, "open", 5)
    write_keys(client, "kept", 5)
    settle(client, "kept")
    assert client.post("/admin/run-compaction").json["segments_compacted"] == 0
    assert len(read_all(client, "open")) == KEYS * 5
    assert client.post("/admin/run-retention").json == {"segments_deleted": 0, "bytes_freed": 0}


def test_ten_thousand_segments_go_within_a_second(broker):
    """The log start moves in under a second; the files follow."""
    segments = 10000
    client = broker.client()
    client.create_topic("t", segment_bytes=4096)
    value = "v" * 4096
    for _ in range(segments // 500 + 1):
        threads = [threading.Thread(target=write_segments, args=(client.address, value, 125))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert client.get("/topics/t").json["partitions"][0]["segments"] > segments
    broker.restart()  # which moves all of them out of memory
    client = broker.client()
    client.put("/topics/t/config", {"retention_bytes": 1})
    answers = []
    began = time.monotonic()
    asking = threading.Thread(target=lambda: answers.append(ask_retention(client.address)))
    asking.start()
    while True:
        described = client.get("/topics/t").json["partitions"][0]
        if described["start_offset"] > segments - 1000:
            break
        assert time.monotonic() - began < 60
    took = time.monotonic() - began
    asking.join()
    assert took < 1.0
    assert answers[0]["segments_deleted"] > segments - 1000


def ask_retention(address):
    from harness.http import HttpClient
    client = HttpClient(address, 120)
    answer = client.post("/admin/run-retention").json
    client.close()
    return answer


def write_segments(address, value, count):
    from harness.http import HttpClient
    client = HttpClient(address, 60)
    for _ in range(count):
        client.produce("t", {"value": value, "partition": 0})
    client.close()


def test_the_background_compacts_by_itself(make_broker):
    broker = make_broker("--compaction-interval", "50ms")
    client = broker.client()
    client.create_topic("t", segment_bytes=4096, cleanup_policy="compact")
    newest = write_keys(client, "t", 20)
    settle(client, "t")
    deadline = time.monotonic() + 30
    while True:
        found = {record["key"]: offset for offset, record in read_all(client, "t").items()
                 if record["key"]}
        if len(read_all(client, "t")) == len(newest) + 2:
            break
        assert time.monotonic() < deadline
    assert found == {key: offset for key, (offset, _) in newest.items()}


def test_produce_goes_on_while_passes_run(client):
    client.create_topic("t", segment_bytes=65536, cleanup_policy="compact")
    stop = threading.Event()
    passes = []

    def compact(address):
        from harness.http import HttpClient
        mine = HttpClient(address, 60)
        while not stop.is_set():
            passes.append(mine.post("/admin/run-compaction").json)
        mine.close()

    cleaner = threading.Thread(target=compact, args=(client.address,))
    cleaner.start()
    newest = write_keys(client, "t", 200)
    stop.set()
    cleaner.join()
    settle(client, "t")
    passes.append(client.post("/admin/run-compaction").json)
    assert sum(done["records_removed"] for done in passes) == KEYS * 199
    found = {record["key"]: offset for offset, record in read_all(client, "t").items()
             if record["key"]}
    assert found == {key: offset for key, (offset, _) in newest.items()}
