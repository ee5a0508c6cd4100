# SPDX-License-Identifier: Apache-2.0
"""esk's commands for keys, groups, schemas, producers, Raft and administration."""
import json
import re
import subprocess

import pytest

from harness.broker import TIMEOUT_S, esk_binary


@pytest.fixture
def secured(make_broker):
    """A broker that asks for keys, and esk with the first of them."""
    broker = make_broker("--auth", "required")

    def esk(*arguments, stdin=None, check=True):
        return broker.esk("--key", broker.bootstrap_key(), *arguments, stdin=stdin, check=check)

    broker.admin_esk = esk
    return broker


def test_a_key_from_creation_to_revocation(secured):
    shown = secured.admin_esk("key", "create", "orders-writer", "--allow", "write:orders",
                              "-a", "read:billing", "--produce-rate", "1MiB").stdout
    key, secret = re.fullmatch(r"key id  (k_\w+)\nsecret  (esk_\S+)\nThe secret is .*\n",
                               shown).groups()
    listed = secured.admin_esk("key", "list").stdout.split("\n")
    assert listed[0].split() == ["KEY", "NAME", "RULES", "PRODUCE", "B/S", "CONSUME", "B/S",
                                 "CREATED"]
    row = next(line.split() for line in listed if line.startswith(key))
    assert row[1:5] == ["orders-writer", "write:orders,read:billing", "1048576", "-"]
    secured.admin_esk("topic", "create", "orders")
    secured.admin_esk("topic", "create", "secret")
    assert secured.esk("--key", secret, "topic", "list").stdout == \
        "TOPIC   PARTITIONS\norders           1\n"
    assert secured.esk("--key", secret, "produce", "orders", stdin="a\n").returncode == 0
    refused = secured.esk("--key", secret, "topic", "delete", "orders", check=False)
    assert refused.returncode == 1 and "the broker answered 403" in refused.stderr
    assert secured.admin_esk("key", "revoke", key).stdout == f"{key} revoked\n"
    refused = secured.esk("--key", secret, "topic", "list", check=False)
    assert refused.returncode == 1 and "the broker answered 401" in refused.stderr
    refused = secured.esk("topic", "list", check=False)
    assert refused.stderr.endswith("; the key comes from --key, ESK_KEY or the profile\n")
    wrong = secured.admin_esk("key", "create", "x", "--allow", "write", check=False)
    assert wrong.returncode == 2 and "ACTION:PREFIX" in wrong.stderr
    assert secured.admin_esk("key", "create", "x", check=False).returncode == 2


def test_groups_are_listed_and_deleted(broker, client):
    client.create_topic("work")
    broker.esk("group", "commit", "team", "work", "0", "0")
    joined = client.post("/groups/team/join", {"topics": ["work"], "member_id": None}).json
    listed = broker.esk("group", "list").stdout.split("\n")
    assert listed[0].split() == ["GROUP", "MEMBERS", "GENERATION", "TOPICS"]
    assert listed[1].split() == ["team", "1", "1", "work"]
    refused = broker.esk("group", "delete", "team", check=False)
    assert refused.returncode == 1 and "the broker answered 409" in refused.stderr
    client.post("/groups/team/leave", {"member_id": joined["member_id"]})
    assert broker.esk("group", "delete", "team").stdout == "team deleted\n"
    assert json.loads(broker.esk("group", "list", "--json").stdout) == {"groups": []}


def test_a_schema_is_registered_checked_and_shown(broker, data_root):
    first = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'
    worse = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id","phone"]}'
    file = data_root / "order.json"
    file.write_text(first, encoding="utf-8")
    assert broker.esk("schema", "register", "orders-value", str(file)).stdout == \
        "orders-value has schema 1\n"
    assert broker.esk("schema", "list").stdout == (
        "ID  SUBJECT       VERSION  TYPE\n"
        " 1  orders-value        1  json_schema\n")
    assert broker.esk("schema", "show", "1").stdout == first + "\n"
    assert broker.esk("schema", "latest", "orders-value").stdout == first + "\n"
    assert broker.esk("schema", "check", "orders-value", "-", stdin=first).stdout == "compatible\n"
    refused = broker.esk("schema", "check", "orders-value", stdin=worse, check=False)
    assert refused.returncode == 1 and refused.stdout.startswith("not compatible")
    refused = broker.esk("schema", "register", "orders-value", stdin=worse, check=False)
    assert refused.returncode == 1 and "adds required field 'phone'" in refused.stderr


def test_producers_are_listed_and_forgotten(broker, client):
    client.create_topic("orders", partitions=1)
    client.post("/topics/orders/produce", {"producer_id": "svc-1", "records": [
        {"value": "a", "partition": 0, "sequence": 41}]})
    listed = broker.esk("producer", "list").stdout.split("\n")
    assert listed[0].split() == ["PRODUCER", "NUMBER", "KEY", "LAST", "USED", "PARTITIONS"]
    assert listed[1].split()[0] == "svc-1" and listed[1].split()[-1] == "orders:0:41"
    assert broker.esk("producer", "forget", "svc-1").stdout == "svc-1 forgotten\n"
    assert json.loads(broker.esk("producer", "list", "--json").stdout) == {"producers": []}


def test_raft_groups_and_administration(broker, client):
    client.create_topic("orders", partitions=2)
    client.produce("orders", "a", "b")
    rows = [line.split() for line in broker.esk("raft", "list").stdout.split("\n")]
    assert rows[0] == ["GROUP", "TOPIC", "PARTITION", "ROLE", "TERM", "LEADER", "LAST", "COMMIT",
                       "APPLIED", "REPLICAS"]
    assert [row[3] for row in rows if row and row[1] == "orders"] == ["leader"] * 2
    for path, field in [("run-retention", "segments_deleted"),
                        ("run-compaction", "segments_compacted")]:
        shown = broker.esk("admin", path).stdout
        assert re.search(rf"^{field} +0$", shown, re.MULTILINE), shown
    broker.esk("group", "commit", "g", "orders", "0", "1")
    assert re.search(r"^groups +1$", broker.esk("admin", "reset-offsets", "orders").stdout,
                     re.MULTILINE)
    assert json.loads(broker.esk("group", "offsets", "g", "--json").stdout) == {
        "offsets": {"orders": {"0": 0}}}
    assert broker.esk("admin", "tiered", "orders", "0").stdout == \
        "START  END  BYTES  OBJECT  UPLOADED\n"


def test_the_catalogue_is_printed(secured):
    secured.admin_esk("topic", "create", "orders", "--partitions", "2")
    secured.admin_esk("key", "create", "reader", "--allow", "read:orders")
    secured.admin_esk("schema", "register", "orders-value", stdin='{"type":"object"}')
    catalogue = json.loads(secured.admin_esk("admin", "catalogue", "--json").stdout)
    assert [(topic["name"], len(topic["partitions"])) for topic in catalogue["topics"]] == [
        ("orders", 2)]
    assert sorted(key["name"] for key in catalogue["keys"]) == ["bootstrap", "reader"]
    assert [schema["subject"] for schema in catalogue["schemas"]] == ["orders-value"]
    assert catalogue["producers"] == [] and catalogue["groups"] == []
    shown = secured.admin_esk("admin", "catalogue").stdout
    assert "retention_ms=604800000" in shown and "read:orders" in shown


def test_tail_prints_what_is_pushed(broker, client):
    client.create_topic("live", partitions=2)
    client.produce("live", {"key": "k", "value": "old", "partition": 1})
    assert broker.esk("topic", "tail", "live", "-p1", "-o", "start", "-n1", "-k=").stdout == \
        "k=old\n"
    process = subprocess.Popen([esk_binary(), "--server", broker.url, "topic", "tail", "live",
                                "-p1", "--offset", "1", "-n3"], stdout=subprocess.PIPE)
    for value in ("a", "b", "c"):
        client.produce("live", {"value": value, "partition": 1})
        assert process.stdout.readline() == f"{value}\n".encode()
    assert process.wait(TIMEOUT_S) == 0
    process.stdout.close()
    refused = broker.esk("topic", "tail", "none", check=False)
    assert refused.returncode == 1 and "the broker answered 404" in refused.stderr
