# SPDX-License-Identifier: Apache-2.0
"""Quotas: one budget a key over all connections and shards, produce refused before it is written,
consume charged behind the fact."""
import re
import threading
import time

import pytest

RATE = 1_000_000  # bytes a second, of the tests that measure
SECONDS = 3
WRITE = {"action": "write", "topic_prefix": "*"}


@pytest.fixture
def guarded(make_broker):
    return make_broker("--auth", "required", "--shards", "2")


@pytest.fixture
def admin(guarded):
    client = guarded.admin()
    client.create_topic("t", partitions=4)
    return client


def limited(guarded, admin, **quotas):
    answer = admin.post("/admin/keys", {"name": "limited", "acls": [WRITE], **quotas})
    assert answer.status == 201, answer
    return answer.json["key_id"], guarded.client(key=answer.json["secret"])


def produce(client, size, partition=0):
    record = {"value": "x" * size, "partition": partition}
    return client.post("/topics/t/produce", {"records": [record]})


def counter(client, name, key_id):
    text = client.get("/metrics").body.decode()
    return int(re.search(rf'esker_{name}{{key_id="{key_id}"}} (\d+)', text)[1])


def test_a_produce_over_the_budget_is_refused_with_nothing_written(guarded, admin):
    key_id, client = limited(guarded, admin, produce_bytes_per_sec=1000)
    assert produce(client, 900).status == 200
    refused = produce(client, 900)
    assert refused.status == 429 and refused.headers["retry-after"] == "1"
    assert "produce_bytes_per_sec of 1000; try again in 1 s" in refused.error
    too_large = produce(client, 1001)
    assert too_large.status == 413 and "produce_bytes_per_sec, holds 1000" in too_large.error
    assert admin.get("/topics/t").json["partitions"][0]["high_watermark"] == 1
    assert counter(admin, "key_throttled_total", key_id) == 1
    assert counter(admin, "key_produce_bytes_total", key_id) == 900
    # What is wrong with the request is told first, and costs nothing.
    assert produce(client, 900, partition=9).status == 404
    assert client.consume("t")["next_offset"] == 1  # reading is another budget
    assert produce(guarded.client(key=client.key), 900).status == 429  # on any connection


def test_sizes_are_those_of_decoded_records(guarded, admin):
    key_id, client = limited(guarded, admin, produce_bytes_per_sec=1000)
    client.produce("t", {"key": "AAEC", "value": "AAECAw==", "headers": {"h": "AA=="},
                         "partition": 0}, encoding="base64")
    assert counter(admin, "key_produce_bytes_total", key_id) == 3 + 4 + 1 + 1
    page = client.consume("t", encoding="base64")
    assert len(page["records"]) == 1
    assert counter(admin, "key_consume_bytes_total", key_id) == 9


def test_a_read_goes_into_debt_and_the_next_ones_wait(guarded, admin):
    key_id, client = limited(guarded, admin, consume_bytes_per_sec=1000)
    for _ in range(4):
        assert produce(admin, 1000).status == 200
    page = client.consume("t")
    assert len(page["records"]) == 4  # 3000 bytes of debt: the next one may come in 3 s
    refused = client.get("/topics/t/consume?partition=0&offset=0")
    assert refused.status == 429 and refused.headers["retry-after"] in ("3", "4")
    assert "consume_bytes_per_sec" in refused.error
    refused = client.get("/groups/g/consume?topic=t&partition=0")
    assert refused.status == 429
    assert client.get("/topics/t/consume?partition=9&offset=0").status == 404  # comes first
    assert produce(client, 10).status == 200
    assert counter(admin, "key_consume_bytes_total", key_id) == 4000
    assert counter(admin, "key_throttled_total", key_id) == 2


def measure(count, work):
    """What `count` threads got through, and the seconds it took."""
    totals = [0] * count
    start = time.monotonic()

    def run(i):
        while time.monotonic() - start < SECONDS:
            totals[i] += work(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(totals), time.monotonic() - start


@pytest.mark.parametrize("direction", ["produce", "consume"])
def test_the_rate_is_kept_over_all_connections(guarded, admin, direction):
    key_id, first = limited(guarded, admin, **{f"{direction}_bytes_per_sec": RATE})
    clients = [guarded.client(key=first.key) for _ in range(4)]
    size = 20_000
    for partition in range(4):
        produce(admin, size, partition)

    def work(i):
        if direction == "produce":
            return size if produce(clients[i], size, i).status == 200 else 0
        path = f"/topics/t/consume?partition={i}&offset=0&max_records=1"
        return size if clients[i].get(path).status == 200 else 0

    through, seconds = measure(4, work)
    allowed = RATE * (seconds + 1)  # the budget was full
    assert 0.9 * allowed < through < 1.1 * allowed
    assert counter(admin, f"key_{direction}_bytes_total", key_id) == through
