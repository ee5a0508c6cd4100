# SPDX-License-Identifier: Apache-2.0
"""Quotas: one budget a key over all connections and shards, produce refused before it is written,
consume charged behind the fact."""
import re
import threading
import time

import pytest

from harness.es01 import Es01Client, Es01Error
from harness.es01 import record as es01_record

RATE = 1_000_000  # bytes a second, of the test that measures
SECONDS = 3
SIZE = 50_000
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


def test_what_is_refused_whole_costs_nothing(guarded, admin):
    key_id, client = limited(guarded, admin, produce_bytes_per_sec=1000)

    def sequenced(client, sequence, size, producer_id="p"):
        # Two partitions, and so two shards: one record fits, the other one does not.
        records = [{"value": "x" * (size // 2), "partition": partition, "sequence": sequence[i]}
                   for i, partition in enumerate((0, 1))]
        return client.post("/topics/t/produce", {"producer_id": producer_id, "records": records})

    assert sequenced(client, (500, 500), 20).status == 200
    assert sequenced(admin, (0, 0), 20, "other's").status == 200
    for _ in range(3):
        gap = sequenced(client, (501, 900), 980)
        assert gap.status == 400 and "sequence gap: records[1]" in gap.error, gap
        too_low = sequenced(client, (1, 501), 980)
        assert too_low.status == 400 and "sequence too low: records[0]" in too_low.error, too_low
        assert sequenced(client, (1, 1), 980, "other's").status == 403
    assert sequenced(client, (501, 501), 980).status == 200
    assert sequenced(client, (501, 501), 980).status == 429  # a duplicate counts, too
    assert counter(admin, "key_produce_bytes_total", key_id) == 1000


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


class Meter:
    """What threads got through within the time, and how much of the budget was left whenever one of
    them was refused: that is exact however slow the machine is."""

    def __init__(self):
        self.lock = threading.Lock()
        self.start = time.monotonic()
        self.through = 0
        self.in_flight = 0
        self.shortfalls = []

    def run(self, attempt):
        while time.monotonic() - self.start < SECONDS:
            with self.lock:
                self.in_flight += SIZE
                asked = time.monotonic()
            taken = attempt()
            with self.lock:
                self.through += SIZE if taken else 0
                if not taken:  # so all that was due by then had gone, but for less than one
                    due = RATE * (1 + asked - self.start)
                    self.shortfalls.append((due - self.through - self.in_flight) / due)
                self.in_flight -= SIZE


@pytest.mark.parametrize("direction", ["produce", "consume"])
def test_the_rate_is_kept_over_all_connections_and_doors(make_broker, direction):
    broker = make_broker("--auth", "required", "--shards", "2", "--bind-binary", "127.0.0.1:0")
    admin = broker.admin()
    admin.create_topic("t", partitions=4)
    for partition in range(4):
        assert produce(admin, SIZE, partition).status == 200
    key_id, first = limited(broker, admin, **{f"{direction}_bytes_per_sec": RATE})

    def over_http(partition):
        client = broker.client(key=first.key)
        path = f"/topics/t/consume?partition={partition}&offset=0&max_records=1"

        def attempt():
            answer = (produce(client, SIZE, partition) if direction == "produce"
                      else client.get(path))
            assert answer.status in (200, 429), answer
            return answer.status == 200
        return attempt

    def over_es01(partition):
        client = Es01Client(broker.door("binary"), token=first.key)

        def attempt():
            try:
                if direction == "produce":
                    client.produce("t", es01_record("x" * SIZE, partition=partition))
                else:
                    client.consume("t", partition, 0, max_records=1)
            except Es01Error as error:
                assert "over the key's quota" in error.text
                return False
            return True
        return attempt

    attempts = [over_http(0), over_http(1), over_es01(2), over_es01(3)]
    meter = Meter()
    threads = [threading.Thread(target=meter.run, args=(attempt,)) for attempt in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - meter.start
    assert meter.through < 1.1 * RATE * (1 + seconds)
    assert meter.shortfalls and min(meter.shortfalls) < 0.05  # and as much was in flight
    assert counter(admin, f"key_{direction}_bytes_total", key_id) == meter.through
