# SPDX-License-Identifier: Apache-2.0
"""Idempotent producers over HTTP: the page's table, requests as a whole, kill -9 in between,
owners, listing and forgetting."""
import random
import threading

import pytest

ADMIN = {"action": "admin", "topic_prefix": "*"}
WRITE = {"action": "write", "topic_prefix": "orders"}
FLUSHES = [(), ("--flush-every-records", "1000"), ("--flush-every-records", "0",
                                                   "--flush-interval", "1h")]


@pytest.fixture
def orders(client):
    assert client.post("/topics", {"name": "orders", "partitions": 4}).status == 201
    return client


def record(sequence, partition=0, value=None, **more):
    value = f"{partition}/{sequence}" if value is None else value
    return {"value": value, "partition": partition, "sequence": sequence, **more}


def produce(client, records, producer_id="checkout-svc-1"):
    return client.post("/topics/orders/produce", {"producer_id": producer_id, "records": records})


def results(answer):
    assert answer.status == 200, answer
    return [(r["partition"], r["offset"], r.get("duplicate")) for r in answer.json["results"]]


def values(client, partition):
    answer = client.get(f"/topics/orders/consume?partition={partition}&offset=0&max_records=10000")
    return [r["value"] for r in answer.json["records"]]


# The page's table


def test_the_example_of_the_page(orders):
    body = {"producer_id": "checkout-svc-1",
            "records": [{"key": "abc", "value": "x", "partition": 0, "sequence": 42},
                        {"key": "abc", "value": "y", "partition": 0, "sequence": 43}]}
    first = orders.post("/topics/orders/produce", body)
    assert first.json == {"results": [{"partition": 0, "offset": 0}, {"partition": 0, "offset": 1}]}
    again = orders.post("/topics/orders/produce", body)
    assert again.json == {"results": [{"partition": 0, "offset": 0, "duplicate": True},
                                      {"partition": 0, "offset": 1, "duplicate": True}]}
    assert values(orders, 0) == ["x", "y"]


def test_a_gap_and_what_is_too_low_are_refused_by_name(orders):
    assert produce(orders, [record(i) for i in range(200)]).status == 200
    gap = produce(orders, [record(201)])
    assert gap.status == 400 and gap.error.startswith("sequence gap"), gap
    assert "records[0]" in gap.error and "200" in gap.error
    low = produce(orders, [record(71)])
    assert low.status == 400 and low.error.startswith("sequence too low"), low
    assert results(produce(orders, [record(72)])) == [(0, 72, True)]
    # Older ones count even inside a retried larger request, and nothing of it is written.
    whole = produce(orders, [record(i) for i in range(71, 201)])
    assert whole.status == 400 and whole.error.startswith("sequence too low"), whole
    assert results(produce(orders, [record(199), record(200)])) == [(0, 199, True),
                                                                     (0, 200, None)]


def test_retries_and_new_records_mix_and_one_given_twice_is_its_own_duplicate(orders):
    assert results(produce(orders, [record(5), record(6), record(5)])) == [
        (0, 0, None), (0, 1, None), (0, 0, True)]
    assert results(produce(orders, [record(6), record(7), record(5), record(8), record(7)])) == [
        (0, 1, True), (0, 2, None), (0, 0, True), (0, 3, None), (0, 2, True)]
    assert values(orders, 0) == ["0/5", "0/6", "0/7", "0/8"]


def test_one_bad_record_and_nothing_is_written_in_any_partition(orders):
    assert produce(orders, [record(0, p) for p in range(4)]).status == 200
    for bad in range(4):
        answer = produce(orders, [record(2 if p == bad else 1, p) for p in range(4)])
        assert answer.status == 400 and answer.error.startswith("sequence gap"), answer
        assert f"partition {bad}" in answer.error
    assert [len(values(orders, p)) for p in range(4)] == [1, 1, 1, 1]
    assert results(produce(orders, [record(1, p) for p in (3, 0, 2, 1)])) == [
        (3, 1, None), (0, 1, None), (2, 1, None), (1, 1, None)]


def test_a_key_places_a_record_like_a_partition_does(orders):
    def keyed(sequence):
        return {"key": "abc", "value": "v", "sequence": sequence}
    first = results(produce(orders, [keyed(0), keyed(1)]))
    assert results(produce(orders, [keyed(0), keyed(1)])) == [(p, o, True) for p, o, _ in first]


def test_sequences_reach_to_the_top(orders):
    top = 2**63 - 1
    assert results(produce(orders, [record(top - 1), record(top)])) == [(0, 0, None), (0, 1, None)]
    assert results(produce(orders, [record(top)])) == [(0, 1, True)]
    assert produce(orders, [record(0)]).error.startswith("sequence too low")


@pytest.mark.parametrize("body, names", [
    ({"producer_id": "p", "records": [{"value": "v", "partition": 0}]}, "records[0].sequence"),
    ({"producer_id": "p", "records": [record(0), {"value": "v", "key": "k"}]},
     "records[1].sequence"),
    ({"records": [record(0)]}, "records[0].sequence needs a producer_id"),
    ({"producer_id": "p", "records": [{"value": "v", "sequence": 0}]}, "partition or a key"),
    ({"producer_id": "p", "records": [record(-1)]}, "records[0].sequence"),
    ({"producer_id": "p", "records": [record(2**63)]}, "records[0].sequence"),
    ({"producer_id": "p", "records": [record(1.5)]}, "records[0].sequence"),
    ({"producer_id": "p", "records": [record("1")]}, "records[0].sequence"),
    ({"producer_id": 7, "records": []}, "producer_id"),
    ({"producer_id": "", "records": []}, "producer_id"),
    ({"producer_id": "x" * 201, "records": []}, "producer_id"),
    ({"producer_id": "a\nb", "records": []}, "producer_id"),
])
def test_what_is_malformed_is_named(orders, body, names):
    answer = orders.post("/topics/orders/produce", body)
    assert answer.status == 400 and names in answer.error, answer
    assert orders.get("/admin/producers").json == {"producers": []}


def test_a_producer_id_of_200_bytes_of_utf8_goes_all_ways(orders):
    name = "ü/ ?%" * 33 + "ab"
    assert len(name.encode()) == 200
    assert produce(orders, [record(3)], name).status == 200
    assert orders.get("/admin/producers").json["producers"][0]["producer_id"] == name
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    assert orders.request("DELETE", f"/admin/producers/{quoted}").json == {}
    assert orders.get("/admin/producers").json == {"producers": []}


# Through crashes


@pytest.mark.parametrize("flush", FLUSHES)
def test_a_retry_after_kill_9_is_recognised(make_broker, flush):
    broker = make_broker("--shards", "2", *flush)
    client = broker.client()
    client.post("/topics", {"name": "orders", "partitions": 4})
    sent = [[record(i, p, value="x" * 3000) for p in range(4)] for i in range(150)]
    for number, records in enumerate(sent):
        assert [d for _, _, d in results(produce(client, records))] == [None] * 4
        if number in (20, 100):
            broker.kill9()
            broker.start("--shards", "3" if number == 20 else "1")
            client = broker.client()
            assert results(produce(client, records)) == [(p, number, True) for p in range(4)]
    broker.stop()
    broker.start()
    client = broker.client()
    for number in range(150 - 128, 150):
        assert results(produce(client, sent[number])) == [(p, number, True) for p in range(4)]
    assert produce(client, sent[21]).error.startswith("sequence too low")
    assert [len(values(client, p)) for p in range(4)] == [150] * 4


def test_writers_that_retry_through_kills_write_each_record_once(make_broker):
    broker = make_broker("--shards", "2")
    broker.client().post("/topics", {"name": "orders", "partitions": 4})
    wanted = {p: set() for p in range(4)}
    clients = 4
    lock = threading.Lock()
    alive = threading.Event()
    alive.set()

    def write(number):
        choose = random.Random(number)
        sequences = [0] * 4
        client = None
        for _ in range(60):
            partition = choose.randrange(4)
            count = choose.randint(1, 5)
            first = sequences[partition]
            records = [record(first + i, partition, value=f"{number}/{partition}/{first + i}")
                       for i in range(count)]
            while True:
                try:
                    client = client or broker.client()
                    answer = produce(client, records, f"writer-{number}")
                    if answer.status == 200:
                        break
                    assert answer.status == 503, answer
                except (OSError, AssertionError) as error:
                    if isinstance(error, AssertionError) and "answer" in str(error):
                        raise
                client = None
                alive.wait()
            sequences[partition] += count
            with lock:
                wanted[partition].update(r["value"] for r in records)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        threads[0].join(0.15)
        alive.clear()
        broker.kill9()
        broker.start()
        alive.set()
    for thread in threads:
        thread.join()
    client = broker.client()
    for partition in range(4):
        found = values(client, partition)
        assert len(found) == len(set(found))
        assert set(found) == wanted[partition]
        for number in range(clients):
            own = [int(v.split("/")[2]) for v in found if v.startswith(f"{number}/")]
            assert own == sorted(own)


# Owners


@pytest.fixture
def guarded(make_broker):
    broker = make_broker("--auth", "required")
    admin = broker.admin()
    assert admin.post("/topics", {"name": "orders", "partitions": 4}).status == 201
    return broker


def make_key(broker, *acls, **fields):
    answer = broker.admin().post("/admin/keys", {"name": "k", "acls": list(acls), **fields})
    assert answer.status == 201, answer
    return answer.json["key_id"], broker.client(key=answer.json["secret"])


def test_an_id_belongs_to_the_key_that_used_it_first(guarded):
    key_id, first = make_key(guarded, WRITE)
    _, second = make_key(guarded, WRITE)
    assert produce(first, [record(0)], "svc").status == 200
    for other in (second, guarded.admin()):
        answer = produce(other, [record(1)], "svc")
        assert answer.status == 403 and "another key" in answer.error, answer
    listed = guarded.admin().get("/admin/producers").json["producers"]
    assert [(p["producer_id"], p["key_id"]) for p in listed] == [("svc", key_id)]
    _, third = make_key(guarded, WRITE, replaces=key_id)
    assert guarded.admin().request("DELETE", f"/admin/keys/{key_id}").status == 200
    assert results(produce(third, [record(0)], "svc")) == [(0, 0, True)]
    assert produce(second, [record(1)], "svc").status == 403


def test_what_was_anonymous_passes_to_the_first_key(make_broker):
    broker = make_broker()
    client = broker.client()
    client.post("/topics", {"name": "orders", "partitions": 4})
    assert produce(client, [record(0)], "svc").status == 200
    assert client.get("/admin/producers").json["producers"][0]["key_id"] is None
    broker.stop()
    broker.start("--auth", "required")
    key_id, first = make_key(broker, WRITE)
    assert results(produce(first, [record(0), record(1)], "svc")) == [(0, 0, True), (0, 1, None)]
    _, second = make_key(broker, WRITE)
    assert produce(second, [record(2)], "svc").status == 403
    assert broker.admin().get("/admin/producers").json["producers"][0]["key_id"] == key_id


def test_producers_are_for_admins_alone(guarded):
    _, writer = make_key(guarded, WRITE)
    assert writer.get("/admin/producers").status == 403
    assert writer.request("DELETE", "/admin/producers/svc").status == 403
    assert guarded.client().get("/admin/producers").status == 401


# Administration


def test_producers_are_listed_and_forgotten(orders):
    assert orders.get("/admin/producers").json == {"producers": []}
    produce(orders, [record(41, 2), record(42, 2), record(7, 0)], "svc-b")
    produce(orders, [record(0, 1)], "svc-a")
    listed = orders.get("/admin/producers").json["producers"]
    assert [p["producer_id"] for p in listed] == ["svc-a", "svc-b"]
    assert listed[1]["partitions"] == [
        {"topic": "orders", "partition": 0, "last_sequence": 7},
        {"topic": "orders", "partition": 2, "last_sequence": 42}]
    assert listed[0]["numeric_id"] != listed[1]["numeric_id"]
    assert all(p["key_id"] is None and p["last_used_ms"] > 1.6e12 for p in listed)
    assert set(listed[0]) == {"producer_id", "numeric_id", "key_id", "last_used_ms", "partitions"}
    assert orders.request("DELETE", "/admin/producers/nobody").status == 404
    assert orders.request("DELETE", "/admin/producers/svc-b").json == {}
    assert orders.request("DELETE", "/admin/producers/svc-b").status == 404
    assert results(produce(orders, [record(7, 0)], "svc-b")) == [(0, 1, None)]
    orders.request("DELETE", "/topics/orders")
    assert [p["partitions"] for p in orders.get("/admin/producers").json["producers"]] == [[], []]


def test_a_long_list_comes_whole(make_broker):
    broker = make_broker("--shards", "2")
    client = broker.client()
    client.post("/topics", {"name": "orders", "partitions": 1000})
    assert produce(client, [record(3, p) for p in range(1000)], "wide").status == 200
    for number in range(300):
        assert produce(client, [record(0, number)], f"svc-{number:03}").status == 200
    listed = client.get("/admin/producers").json["producers"]
    assert [p["producer_id"] for p in listed] == [f"svc-{n:03}" for n in range(300)] + ["wide"]
    assert [p["partition"] for p in listed[300]["partitions"]] == list(range(1000))
    assert len({p["numeric_id"] for p in listed}) == 301
