# SPDX-License-Identifier: Apache-2.0
"""Keys and grants: who is let in, what each may and sees, and that a revocation counts at once."""
import os
import re
import stat
import threading
import time

import pytest

from harness import HttpClient

READ_ORDERS = {"action": "read", "topic_prefix": "orders"}
WRITE_ORDERS = {"action": "write", "topic_prefix": "orders"}
ADMIN = {"action": "admin", "topic_prefix": "*"}


@pytest.fixture
def guarded(make_broker):
    return make_broker("--auth", "required", "--shards", "2")


@pytest.fixture
def admin(guarded):
    return guarded.admin()


def make_key(admin, *acls, name="a key", **fields):
    answer = admin.post("/admin/keys", {"name": name, "acls": list(acls), **fields})
    assert answer.status == 201, answer
    return answer.json


def metric_lines(client):
    return [line for line in client.get("/metrics").body.decode().splitlines()
            if not line.startswith("#")]


# The first key


def test_the_first_start_leaves_an_admin_key_that_only_the_user_may_read(make_broker):
    broker = make_broker("--auth", "required")
    path = broker.data_dir / "bootstrap.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert re.fullmatch(r"esk_[A-Za-z0-9_-]{43}\n", path.read_text())
    line = broker.wait_for_event("bootstrap-key")
    assert line["file"] == str(path) and broker.bootstrap_key() not in broker.log_text()
    keys = broker.admin().get("/admin/keys").json["keys"]
    assert [(key["name"], key["acls"]) for key in keys] == [("bootstrap", [ADMIN])]

    secret = broker.bootstrap_key()
    broker.restart()
    assert broker.bootstrap_key() == secret and broker.admin().get("/topics").status == 200
    path.unlink()
    broker.restart()
    assert not path.exists()  # there is a key
    assert broker.client(key=secret).get("/topics").status == 200


def test_without_auth_there_is_no_key_and_none_is_asked_for(make_broker):
    broker = make_broker()
    assert not (broker.data_dir / "bootstrap.key").exists()
    client = broker.client(key="whatever")
    client.create_topic("orders")
    assert client.get("/admin/keys").json == {"keys": []}
    # A key made with auth off counts once it is on, and keeps the bootstrap key away.
    secret = make_key(client, ADMIN)["secret"]
    broker.options += ["--auth", "required"]
    broker.restart()
    assert not (broker.data_dir / "bootstrap.key").exists()
    assert broker.client(key=secret).get("/topics").json["topics"] == [
        {"name": "orders", "partitions": 1}]
    assert broker.client().get("/topics").status == 401


def test_keys_survive_a_kill_and_secrets_are_nowhere_on_disk(guarded, admin):
    key = make_key(admin, READ_ORDERS)
    revoked = make_key(admin, READ_ORDERS)
    assert admin.delete(f"/admin/keys/{revoked['key_id']}").json == {}
    bootstrap = guarded.bootstrap_key()
    guarded.kill9()
    guarded.start("--shards", "3")  # every shard's copy is made anew
    assert guarded.client(key=key["secret"]).get("/topics").status == 200
    assert guarded.client(key=revoked["secret"]).get("/topics").status == 401
    (guarded.data_dir / "bootstrap.key").unlink()
    assert guarded.stop() == 0
    for folder, _, names in os.walk(guarded.data_dir):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            for secret in (key["secret"], revoked["secret"], bootstrap):
                assert secret.encode() not in data, name


# Who is let in


def test_either_header_is_taken_and_two_must_agree(guarded):
    secret = guarded.bootstrap_key()
    client = guarded.client()
    bearer = {"authorization": f"Bearer {secret}"}
    own = {"x-es-key": secret}
    for headers, status in [
        ({}, 401), (bearer, 200), (own, 200), ({**bearer, **own}, 200),
        ({"authorization": f"bearer   {secret}"}, 200),
        ({**bearer, "x-es-key": secret + "A"}, 401),
        ({"authorization": "Basic dTpw", **own}, 200), ({"authorization": "Basic dTpw"}, 401),
        ({"x-es-key": secret[:-1]}, 401), ({"x-es-key": "esk_" + "A" * 2000}, 401),
        ({"authorization": secret}, 401),
    ]:
        answer = client.get("/topics", headers=headers)
        assert answer.status == status, headers
        if status == 401:
            assert answer.headers["www-authenticate"] == "Bearer" and answer.error
    assert client.get("/healthz").status == 200
    assert client.get("/readyz", headers={"x-es-key": "wrong"}).status == 200
    # What is no path is told to whoever has a key; pages need none.
    for path in ("/no/such/path", "/admin", "/kafkaesque"):
        assert client.get(path).status == 401
        assert client.post(path, {"a": 1}).status == 401
        assert client.get(path, headers=own).status == 404
    assert client.get("/kafka/no-such-page").status == 404


CALLS = [  # method, path, body; what it needs: any key, read, write or admin
    ("GET", "/topics", None, "key"),
    ("GET", "/metrics", None, "key"),
    ("GET", "/topics/{topic}", None, "read"),
    ("GET", "/topics/{topic}/config", None, "read"),
    ("GET", "/topics/{topic}/consume?partition=0&offset=0", None, "read"),
    ("GET", "/groups/g/consume?topic={topic}&partition=0", None, "read"),
    ("POST", "/topics/{topic}/produce", {"records": [{"value": "v"}]}, "write"),
    ("PUT", "/topics/{topic}/config", {"retention_ms": None}, "admin"),
    ("GET", "/admin/keys", None, "admin"),
    ("DELETE", "/admin/keys/k_0123456789abcdef", None, "admin"),
    ("POST", "/admin/keys", {"name": "x", "acls": [READ_ORDERS]}, "admin"),
    ("DELETE", "/topics/{topic}", None, "admin"),
    ("POST", "/topics", {"name": "{topic}"}, "admin"),
]


def test_every_call_asks_for_its_grant_and_never_tells_what_exists(guarded, admin):
    admin.create_topic("orders.eu")
    admin.create_topic("payments")
    order = ["key", "read", "write", "admin"]
    keys = {
        "key": make_key(admin, {"action": "read", "topic_prefix": "elsewhere"}),
        "read": make_key(admin, READ_ORDERS),
        "write": make_key(admin, WRITE_ORDERS),
    }
    for level, key in keys.items():
        client = guarded.client(key=key["secret"])
        for method, path, body, needs in CALLS:
            refused = []
            for topic in ("orders.eu", "payments", "nowhere", "orders.none"):
                mine = topic.startswith("orders") and order.index(level) > 0
                text = None if body is None else {
                    k: v.format(topic=topic) if isinstance(v, str) else v for k, v in body.items()}
                answer = client.request(method, path.format(topic=topic), text)
                allowed = needs == "key" or (mine and order.index(level) >= order.index(needs))
                assert (answer.status != 403) == allowed, (level, method, path, topic, answer)
                assert answer.status != 401
                if not allowed:
                    refused.append(answer.body)
            assert len(set(refused)) <= 1  # the same, whether the topic exists or not
        assert guarded.client().request(method, path.format(topic="payments")).status == 401


def test_a_commit_needs_read_on_its_topic(guarded, admin):
    admin.create_topic("orders")
    admin.create_topic("payments")
    client = guarded.client(key=make_key(admin, READ_ORDERS)["secret"])
    commit = {"partition": 0, "offset": 0}
    assert client.post("/groups/mine/commit", {"topic": "orders", **commit}).status == 200
    answers = {client.post("/groups/mine/commit", {"topic": topic, **commit}).body
               for topic in ("payments", "nowhere")}
    assert len(answers) == 1 and b"no grant" in answers.pop()
    assert client.post("/groups/mine/commit", {"topic": "payments"}).status == 400  # comes first


def test_checks_come_in_their_order(make_broker):
    broker = make_broker("--auth", "required", "--max-request-body-bytes", "1KiB")
    admin = broker.admin()
    admin.create_topic("orders")
    large = {"records": [{"value": "x" * 4000}]}
    weak = broker.client(key=make_key(admin, READ_ORDERS)["secret"])
    assert broker.client().post("/topics/orders/produce", large).status == 401
    assert weak.post("/topics/orders/produce", large).status == 413
    assert weak.post("/topics/orders/produce", "no json").status == 403
    strong = broker.client(key=make_key(admin, WRITE_ORDERS)["secret"])
    assert strong.post("/topics/orders.none/produce", "no json").status == 400
    assert strong.post("/topics/orders.none/produce", {"records": [{"value": ""}]}).status == 404
    assert weak.get("/topics/pay%zzments").status == 403
    assert admin.get("/topics/pay%zzments").status == 400


def test_a_refused_request_with_a_body_keeps_its_connection(guarded):
    with guarded.raw() as connection:
        body = b"x" * 1000
        request = (b"POST /topics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + body)
        connection.send(request + b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.read_answer()[0] == 401
        assert connection.read_answer()[0] == 200
        connection.send(b"POST /topics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        status, headers, _ = connection.read_answer()
        assert status == 401 and headers["connection"] == "close"


# Managing keys


def test_a_key_is_shown_as_it_was_made_but_for_its_secret(guarded, admin):
    made = make_key(admin, {"action": "write", "topic_prefix": "orders."}, name="orders-writer",
                    produce_bytes_per_sec=1048576, consume_bytes_per_sec=None)
    assert re.fullmatch(r"k_[0-9a-f]{16}", made["key_id"])
    assert re.fullmatch(r"esk_[A-Za-z0-9_-]{43}", made.pop("secret"))
    assert made == {
        "key_id": made["key_id"], "name": "orders-writer",
        "acls": [{"action": "write", "topic_prefix": "orders."}],
        "produce_bytes_per_sec": 1048576, "consume_bytes_per_sec": None,
        "created_ms": made["created_ms"]}
    successor = make_key(admin, READ_ORDERS, name="a first one", replaces=made["key_id"])
    assert successor["replaces"] == made["key_id"]
    listed = admin.get("/admin/keys").json["keys"]
    assert [key["name"] for key in listed] == ["a first one", "bootstrap", "orders-writer"]
    assert listed[2] == made
    guarded.restart()
    assert guarded.admin().get("/admin/keys").json["keys"] == listed


@pytest.mark.parametrize("change, text", [
    ({"name": None}, "name must be a string, not null"),
    ({"name": ""}, "name must have 1 to 200 bytes"),
    ({"name": "a\nb"}, "name may not have control characters"),
    ({"acls": None}, "acls must be an array"),
    ({"acls": []}, "acls must have 1 to 100 rules"),
    ({"acls": [READ_ORDERS] * 101}, "acls must have 1 to 100 rules"),
    ({"acls": [READ_ORDERS, 7]}, "acls[1] must be an object"),
    ({"acls": [{"action": "own", "topic_prefix": "a"}]}, "acls[0].action must be read"),
    ({"acls": [{"topic_prefix": "a"}]}, "acls[0].action must be read"),
    ({"acls": [{"action": "read"}]}, "acls[0].topic_prefix must be a string"),
    ({"acls": [{"action": "read", "topic_prefix": ""}]}, "acls[0].topic_prefix must not be empty"),
    ({"acls": [{"action": "admin", "topic_prefix": "a"}]}, "acls[0].topic_prefix must be *"),
    ({"acls": [{"action": "read", "topic_prefix": "a*"}]}, "acls[0].topic_prefix must be *"),
    ({"produce_bytes_per_sec": 0}, "produce_bytes_per_sec must be an integer from 1"),
    ({"consume_bytes_per_sec": "1"}, "consume_bytes_per_sec must be an integer"),
    ({"replaces": "k_1"}, "replaces must be a key_id"),
])
def test_a_wrong_field_is_named(make_broker, change, text):
    client = make_broker().client()
    answer = client.post("/admin/keys", {"name": "x", "acls": [READ_ORDERS], **change})
    assert answer.status == 400 and answer.error.startswith(text), answer
    assert client.get("/admin/keys").json == {"keys": []}


def test_what_cannot_be_revoked_or_replaced(admin):
    bootstrap = admin.get("/admin/keys").json["keys"][0]["key_id"]
    answer = admin.delete(f"/admin/keys/{bootstrap}")
    assert answer.status == 409 and "last admin key" in answer.error
    for unknown in ("k_0123456789abcdef", "nonsense", "k_%zz"):
        assert admin.delete(f"/admin/keys/{unknown}").status == 404
    body = {"name": "x", "acls": [READ_ORDERS], "replaces": "k_0123456789abcdef"}
    assert admin.post("/admin/keys", body).status == 404
    second = make_key(admin, ADMIN)
    assert admin.delete(f"/admin/keys/{bootstrap}").json == {}  # its own: answered all the same
    assert admin.get("/topics").status == 401
    admin.key = second["secret"]
    assert admin.delete(f"/admin/keys/{second['key_id']}").status == 409


def test_a_revocation_counts_at_once_on_open_connections_of_every_shard(guarded, admin):
    admin.create_topic("orders")
    key = make_key(admin, WRITE_ORDERS)
    clients = [guarded.client(key=key["secret"]) for _ in range(6)]
    for client in clients:
        client.produce("orders", "v")
    assert admin.delete(f"/admin/keys/{key['key_id']}").json == {}
    for client in clients:
        assert client.get("/topics/orders").status == 401
        answer = client.post("/topics/orders/produce", {"records": [{"value": "late"}]})
        assert answer.status == 401
    assert admin.values("orders") == ["v"] * 6


def test_a_read_in_flight_ends_with_its_key(guarded, admin):
    admin.create_topic("orders")
    key = make_key(admin, READ_ORDERS)
    answers = []

    def poll():
        client = HttpClient(guarded.address, key=key["secret"])
        answers.append(client.get("/topics/orders/consume?partition=0&offset=0&wait_ms=30000"))

    reader = threading.Thread(target=poll)
    reader.start()
    observer = guarded.client(key=guarded.bootstrap_key())
    assert observer.get("/topics").status == 200
    assert admin.delete(f"/admin/keys/{key['key_id']}").json == {}
    admin.produce("orders", "a secret")  # wakes the read, if it waits already
    reader.join()
    assert answers[0].status == 401 and b"a secret" not in answers[0].body


def test_reads_that_wait_end_with_their_key(guarded, admin):
    """On every shard, for partitions of each."""
    admin.create_topic("orders", 2)
    key = make_key(admin, READ_ORDERS)
    waiting = []
    for number in range(8):
        raw = guarded.raw()
        path = ["/topics/orders/consume?offset=0", "/groups/g/consume?topic=orders"][number // 4]
        raw.send(f"GET {path}&partition={number % 2}&wait_ms=30000 HTTP/1.1\r\nHost: a\r\n"
                 f"X-Es-Key: {key['secret']}\r\n\r\n".encode())
        waiting.append(raw)
    make_key(admin, READ_ORDERS)  # takes a flush; meanwhile all of them wait
    start = time.monotonic()
    assert admin.delete(f"/admin/keys/{key['key_id']}").json == {}
    for raw in waiting:
        assert raw.read_answer()[0] == 401
        raw.close()
    assert time.monotonic() - start < 10


# What a key sees


def test_lists_and_metrics_show_what_the_key_may_read(guarded, admin):
    for topic in ("orders", "orders.eu", "ordersecret", "payments"):
        admin.create_topic(topic)
        admin.produce(topic, "v")
    key = make_key(admin, READ_ORDERS, name="reader")
    other = make_key(admin, WRITE_ORDERS, name="other")
    client = guarded.client(key=key["secret"])
    assert [t["name"] for t in client.get("/topics").json["topics"]] == ["orders", "orders.eu"]
    commit = {"topic": "orders", "partition": 0, "offset": 1}
    assert client.post("/groups/mine/commit", commit).status == 200
    assert guarded.client(key=other["secret"]).post("/groups/theirs/commit", commit).status == 200
    client.consume("orders")

    lines = metric_lines(client)
    assert {line.split("{")[0] for line in lines} >= {
        "esker_partition_high_watermark", "esker_group_committed_offset",
        "esker_key_throttled_total"}
    for line in lines:
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        assert labels.get("topic", "orders") in ("orders", "orders.eu"), line
        assert labels.get("group", "mine") == "mine", line
        assert labels.get("key_id", key["key_id"]) == key["key_id"], line
        assert labels.keys() & {"topic", "group", "key_id"}, line  # nothing broker-wide
    assert f'esker_key_consume_bytes_total{{key_id="{key["key_id"]}"}} 1' in lines

    everything = metric_lines(admin)
    for part in ('topic="payments"', 'group="theirs"', 'group="mine"', other["key_id"],
                 "esker_memory_used_bytes", 'esker_requests_total{door="http"'):
        assert any(part in line for line in everything), part


def test_offsets_are_those_of_topics_that_the_key_may_read(guarded, admin):
    admin.create_topic("orders")
    admin.create_topic("payments")
    both = make_key(admin, READ_ORDERS, {"action": "read", "topic_prefix": "payments"})
    one = make_key(admin, READ_ORDERS, replaces=both["key_id"])  # shares its groups
    client = guarded.client(key=both["secret"])
    for topic in ("orders", "payments"):
        body = {"topic": topic, "partition": 0, "offset": 3}
        assert client.post("/groups/g/commit", body).status == 200
    assert client.get("/groups/g/offsets").json == {
        "offsets": {"orders": {"0": 3}, "payments": {"0": 3}}}
    narrow = guarded.client(key=one["secret"])
    assert narrow.get("/groups/g/offsets").json == {"offsets": {"orders": {"0": 3}}}


# The audit trail


def test_each_administrative_act_leaves_a_line(guarded, admin):
    admin.create_topic("orders")
    admin.put("/topics/orders/config", {"retention_ms": 1000})
    key = make_key(admin, WRITE_ORDERS, name="writer")
    writer = guarded.client(key=key["secret"])
    writer.delete("/topics/orders")
    writer.produce("orders", "v")
    admin.delete(f"/admin/keys/{key['key_id']}")
    admin.delete("/topics/none")
    own = admin.get("/admin/keys").json["keys"][0]["key_id"]
    admin.delete("/topics/orders")
    guarded.wait_for_event("audit", operation="topic_delete", status=200)
    found = [(line["key"], line["name"], line["operation"], line["target"], line["status"])
             for line in guarded.events("audit")]
    assert found == [
        (own, "bootstrap", "topic_create", "orders", 201),
        (own, "bootstrap", "config_put", "/topics/orders/config", 200),
        (own, "bootstrap", "key_create", key["key_id"], 201),
        (key["key_id"], "writer", "topic_delete", "/topics/orders", 403),
        (own, "bootstrap", "key_revoke", key["key_id"], 200),
        (own, "bootstrap", "topic_delete", "/topics/none", 404),
        (own, "bootstrap", "topic_delete", "/topics/orders", 200),
    ]
    assert key["secret"] not in guarded.log_text()
