# SPDX-License-Identifier: Apache-2.0
"""The schema registry: the page's routes, and those that Confluent's clients call."""
import base64
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

ID_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def with_property(schema, name, *, required=False):
    changed = json.loads(json.dumps(schema))
    changed["properties"][name] = {"type": "string"}
    if required:
        changed["required"].append(name)
    return changed


def register(client, schema, subject="orders-value", kind="json_schema"):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return client.post("/schemas", {"subject": subject, "type": kind, "schema": text})


def test_the_pages_example(broker):
    client = broker.client()
    answer = register(client, ID_SCHEMA)
    assert (answer.status, answer.json) == (200, {"id": 1})
    answer = register(client, with_property(ID_SCHEMA, "phone", required=True))
    assert answer.status == 400
    assert answer.json == {
        "error": "backward-incompatible: new schema adds required field 'phone'"}
    assert client.get("/schemas").json == {"schemas": [
        {"id": 1, "subject": "orders-value", "version": 1, "type": "json_schema"}]}


def test_versions_and_ids(broker):
    client = broker.client()
    second = with_property(ID_SCHEMA, "phone")
    assert register(client, ID_SCHEMA).json == {"id": 1}
    assert register(client, second).json == {"id": 2}
    # The newest again, equal as JSON: keys in another order, other white space.
    shuffled = json.dumps(dict(reversed(list(second.items()))), indent=3)
    assert register(client, shuffled).json == {"id": 2}
    # Ids count over all subjects.
    assert register(client, ID_SCHEMA, subject="orders-key").json == {"id": 3}
    # Only the newest is compared with: the first one again lacks a property by now.
    answer = register(client, ID_SCHEMA)
    assert answer.status == 400
    assert answer.error == "backward-incompatible: new schema removes property 'phone'"
    newest = client.get("/subjects/orders-value/versions/latest")
    assert newest.json == {
        "id": 2, "subject": "orders-value", "version": 2, "type": "json_schema",
        "schemaType": "JSON", "schema": json.dumps(second)}
    assert client.get("/schemas/2").json == newest.json
    assert [s["id"] for s in client.get("/schemas").json["schemas"]] == [1, 2, 3]


@pytest.mark.parametrize("body, status, text", [
    ({"type": "json_schema", "schema": "{}"}, 400, "subject is required"),
    ({"subject": "s", "schema": "{}"}, 400, "type is required"),
    ({"subject": "s", "type": "json_schema"}, 400, "schema is required"),
    ({"subject": "s", "type": "json_schema", "schema": {}}, 400,
     "schema must be a string, not object"),
    ({"subject": "s", "type": "xml", "schema": "{}"}, 400,
     "type must be json_schema, avro or protobuf"),
    ({"subject": "a b", "type": "json_schema", "schema": "{}"}, 400,
     "subject may have letters, digits, '.', '-' and '_' only"),
    ({"subject": "s" * 256, "type": "json_schema", "schema": "{}"}, 400,
     "subject must have 1 to 255 characters, not 256"),
    ({"subject": "s", "type": "json_schema", "schema": "{"}, 400,
     "schema: invalid JSON at byte 1"),
    ({"subject": "s", "type": "avro", "schema": "{}"}, 400,
     "schema: an object must have a 'type'"),
    ({"subject": "s", "type": "protobuf", "schema": "message M { int32 a = 0; }"}, 400,
     "schema: not a field's number, at field 'a'"),
])
def test_what_is_refused(broker, body, status, text):
    answer = broker.client().post("/schemas", body)
    assert answer.status == status
    assert answer.error.startswith(text)


def test_unknown_ones(broker):
    client = broker.client()
    assert client.get("/schemas/1").status == 404
    assert client.get("/schemas/x").status == 400
    assert client.get("/schemas/0").status == 400
    answer = client.get("/subjects/none/versions/latest")
    assert answer.status == 404
    assert answer.json["error_code"] == 40401
    assert answer.json["message"] == answer.json["error"] == "subject 'none' does not exist"


def test_they_survive_kill_and_restart(broker):
    client = broker.client()
    large = dict(ID_SCHEMA, description="x" * 3_000_000)
    assert register(client, ID_SCHEMA).json == {"id": 1}
    assert register(client, large).json == {"id": 2}
    broker.kill9()
    broker.start()
    client = broker.client()
    assert json.loads(client.get("/schemas/2").json["schema"]) == large
    assert register(client, large).json == {"id": 2}
    broker.restart("--shards", "3")
    client = broker.client()
    assert [s["version"] for s in client.get("/schemas").json["schemas"]] == [1, 2]
    assert register(client, with_property(ID_SCHEMA, "a"), subject="other").json == {"id": 3}


def test_one_version_when_many_register_at_once(broker):
    """Each is compared with the one that came just before it, whichever that was."""
    def one(number):
        client = broker.client()
        return register(client, with_property(ID_SCHEMA, f"p{number}")).status
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(one, range(16)))
    # The first is accepted; each other one lacks its property, whatever the order.
    assert sorted(statuses) == [200] + [400] * 15
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: register(broker.client(), ID_SCHEMA, "same").json,
                                range(16)))
    assert answers == [{"id": 2}] * 16


def test_avro(broker):
    client = broker.client()
    first = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
    wider = {"type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"],
                                         "default": None}]}
    assert register(client, first, kind="avro").json == {"id": 1}
    assert register(client, wider, kind="avro").json == {"id": 2}
    answer = register(client, first, kind="avro")
    assert answer.status == 400
    assert answer.error == "backward-incompatible: type of 'id' changes from long to int"
    answer = register(client, ID_SCHEMA)
    assert answer.error == "backward-incompatible: new schema is of type json_schema, not avro"


def test_protobuf(broker):
    client = broker.client()
    text = 'syntax = "proto3"; message Order { int32 id = 1; reserved 2; %s }'
    assert register(client, text % "", kind="protobuf").json == {"id": 1}
    assert register(client, text % "/* note */", kind="protobuf").json == {"id": 1}
    assert register(client, text % "string note = 3;", kind="protobuf").json == {"id": 2}
    answer = register(client, 'syntax = "proto3"; message Order { string id = 1; }',
                      kind="protobuf")
    assert answer.error == "backward-incompatible: type of 'Order.id' changes from int32 to string"


def make_key(client, headers, action, prefix):
    answer = client.post("/admin/keys", {
        "name": "k", "acls": [{"action": action, "topic_prefix": prefix}]}, headers=headers)
    assert answer.status == 201, answer
    return {"Authorization": "Bearer " + answer.json["secret"]}


def test_a_grant_on_a_topic_covers_its_schemas(make_broker):
    broker = make_broker("--auth", "required")
    client = broker.client()
    admin = {"X-Es-Key": (broker.data_dir / "bootstrap.key").read_text().strip()}
    for subject in ["orders-value", "orders.eu-key", "ordersecret-value"]:
        body = {"subject": subject, "type": "json_schema", "schema": "{}"}
        assert client.post("/schemas", body, headers=admin).status == 200
    reader = make_key(client, admin, "read", "orders")
    writer = make_key(client, admin, "write", "orders")
    for headers in [reader, writer]:
        shown = client.get("/schemas", headers=headers).json["schemas"]
        assert [s["subject"] for s in shown] == ["orders-value", "orders.eu-key"]
        assert client.get("/subjects", headers=headers).json == ["orders-value", "orders.eu-key"]
        assert client.get("/subjects/orders-value/versions/latest", headers=headers).status == 200
        assert client.get("/schemas/2", headers=headers).status == 200
        for path in ["/subjects/ordersecret-value/versions/latest", "/subjects/none/versions",
                     "/config/none"]:
            answer = client.get(path, headers=headers)
            assert (answer.status, answer.error) == (
                403, "the key has no grant to read this subject"), path
        for path in ["/schemas/", "/schemas/ids/"]:  # 3 is there, and 4 is not
            for number in (3, 4):
                answer = client.get(f"{path}{number}", headers=headers)
                assert (answer.status, answer.error) == (404, f"schema {number} does not exist")
        body = {"subject": "orders-value", "type": "json_schema", "schema": "{}"}
        assert client.post("/schemas", body, headers=headers).status == 403
        answer = client.post("/subjects/orders-value/versions", {"schema": AVRO}, headers=headers)
        assert (answer.status, answer.json["error_code"]) == (403, 403)
        assert client.post("/subjects/orders-value", {"schema": "{}", "schemaType": "JSON"},
                           headers=headers).status == 200
    answer = client.get("/subjects")
    assert (answer.status, answer.json["error_code"]) == (401, 401)


# --- Confluent's routes ---

AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
AVRO_MORE = json.dumps({"type": "record", "name": "R", "fields": [
    {"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}]})
AVRO_LESS = json.dumps({"type": "record", "name": "R", "fields": [
    {"name": "a", "type": "int"}, {"name": "c", "type": "string"}]})


def test_registry_register_and_look_up(broker):
    client = broker.client()
    assert client.post("/subjects/r-value/versions", {"schema": AVRO}).json == {"id": 1}
    assert client.post("/subjects/r-value/versions",
                       {"schema": AVRO_MORE, "schemaType": "AVRO"}).json == {"id": 2}
    # An older version again is that version: its programs still run.
    assert client.post("/subjects/r-value/versions", {"schema": AVRO}).json == {"id": 1}
    answer = client.post("/subjects/r-value/versions", {"schema": AVRO_LESS})
    assert answer.status == 409
    assert answer.json["error_code"] == 409
    assert answer.json["message"] == answer.error
    assert answer.error == "backward-incompatible: new schema adds field 'c' without a default"

    answer = client.post("/subjects/r-value", {"schema": AVRO})
    assert answer.json == {"id": 1, "subject": "r-value", "version": 1, "type": "avro",
                           "schemaType": "AVRO", "schema": AVRO}
    answer = client.post("/subjects/r-value", {"schema": AVRO_LESS})
    assert (answer.status, answer.json["error_code"]) == (404, 40403)
    answer = client.post("/subjects/other", {"schema": AVRO})
    assert (answer.status, answer.json["error_code"]) == (404, 40401)


def test_registry_reads(broker):
    client = broker.client()
    client.post("/subjects/b/versions", {"schema": AVRO})
    client.post("/subjects/a/versions", {"schema": "{}", "schemaType": "JSON"})
    client.post("/subjects/b/versions", {"schema": AVRO_MORE})
    assert client.get("/subjects").json == ["a", "b"]
    assert client.get("/subjects/b/versions").json == [1, 2]
    assert client.get("/subjects/b/versions/1").json["schema"] == AVRO
    assert client.get("/subjects/b/versions/latest").json["id"] == 3
    assert client.get("/schemas/ids/2").json["schemaType"] == "JSON"
    assert client.get("/config").json == {"compatibilityLevel": "BACKWARD"}
    assert client.get("/config/b").json == {"compatibilityLevel": "BACKWARD"}
    for path, status, code in [("/subjects/b/versions/3", 404, 40402),
                               ("/subjects/c/versions", 404, 40401),
                               ("/schemas/ids/9", 404, 40403),
                               ("/subjects/b/versions/x", 400, 400)]:
        answer = client.get(path)
        assert (answer.status, answer.json["error_code"]) == (status, code), path
        assert answer.json["message"] == answer.json["error"]


def test_registry_compatibility(broker):
    client = broker.client()
    path = "/compatibility/subjects/s/versions/"
    assert client.post(path + "latest", {"schema": AVRO}).json == {"is_compatible": True}
    client.post("/subjects/s/versions", {"schema": AVRO})
    assert client.post(path + "latest", {"schema": AVRO_MORE}).json == {"is_compatible": True}
    answer = client.post(path + "1", {"schema": AVRO_LESS})
    assert answer.json["is_compatible"] is False
    assert "'c' without a default" in answer.json["messages"][0]
    assert client.get("/subjects/s/versions").json == [1]
    answer = client.post(path + "7", {"schema": AVRO})
    assert (answer.status, answer.json["error_code"]) == (404, 40402)


def test_registry_refusals(broker):
    client = broker.client()
    answer = client.post("/subjects/s/versions", {"schema": '"strin"'})
    assert (answer.status, answer.json["error_code"]) == (422, 42201)
    answer = client.post("/subjects/s/versions", {"schema": AVRO, "schemaType": "XML"})
    assert answer.status == 400
    answer = client.post("/subjects/s/versions", {
        "schema": AVRO, "references": [{"name": "x", "subject": "y", "version": 1}]})
    assert answer.error == "references to other subjects are not supported"
    answer = client.post("/subjects/s/versions", "{")
    assert answer.status == 400
    assert answer.json["message"] == answer.json["error"]


def test_a_descriptor_in_base64(broker):
    """As confluent-kafka for Python sends protobuf schemas."""
    field = b"\x0a\x01a\x18\x01\x20\x01\x28\x05"  # int32 a = 1
    message = b"\x0a\x01M\x12" + bytes([len(field)]) + field
    file = b"\x0a\x07m.proto\x22" + bytes([len(message)]) + message + b"\x62\x06proto3"
    text = base64.b64encode(file).decode()
    client = broker.client()
    body = {"schema": text, "schemaType": "PROTOBUF"}
    assert client.post("/subjects/p/versions", body).json == {"id": 1}
    assert client.get("/schemas/ids/1").json["schema"] == text
    answer = client.post("/subjects/p/versions", {
        "schema": 'syntax = "proto3"; message M { string a = 1; }', "schemaType": "PROTOBUF"})
    assert answer.status == 409


@pytest.fixture(scope="session")
def clients():
    """A folder with Confluent's client, from PyPI; skips where PyPI does not answer."""
    target = pathlib.Path(tempfile.gettempdir()) / f"esker-confluent-{os.getuid()}"
    if not (target / "confluent_kafka").is_dir():
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--retries", "0", "--timeout", "20", "--target", str(target),
             "confluent-kafka[avro,json,protobuf,schemaregistry]"],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip("confluent-kafka is not to be had: " + done.stderr[-300:])
    return target


def test_confluents_serializers(broker, clients):
    script = pathlib.Path(__file__).with_name("confluent_serializers.py")
    done = subprocess.run([sys.executable, str(script), broker.url], capture_output=True,
                          text=True, check=False, env={"PYTHONPATH": str(clients)}, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
