# SPDX-License-Identifier: Apache-2.0
"""Round trips through the serializers of confluent-kafka: confluent_serializers.py URL"""
import json
import sys

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

url = sys.argv[1]
registry = SchemaRegistryClient({"url": url})

# Avro
AVRO = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}]})
context = SerializationContext("orders", MessageField.VALUE)
data = AvroSerializer(registry, AVRO)({"id": 7, "note": "x"}, context)
assert data[0] == 0
assert AvroDeserializer(SchemaRegistryClient({"url": url}))(data, context) == \
    {"id": 7, "note": "x"}
assert registry.get_latest_version("orders-value").version == 1
assert "orders-value" in registry.get_subjects()
assert registry.lookup_schema("orders-value", Schema(AVRO, "AVRO")).version == 1
assert registry.test_compatibility("orders-value", Schema(AVRO, "AVRO"))
narrow = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "int"}]})
assert not registry.test_compatibility("orders-value", Schema(narrow, "AVRO"))
try:
    registry.register_schema("orders-value", Schema(narrow, "AVRO"))
    raise SystemExit("an incompatible schema was taken")
except SchemaRegistryError as error:
    assert error.http_status_code == 409, error
    assert "backward-incompatible" in error.error_message, error

# JSON Schema
JSON = json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}},
                   "required": ["id"]})
context = SerializationContext("bills", MessageField.VALUE)
data = JSONSerializer(JSON, registry)({"id": 7}, context)
assert JSONDeserializer(None, schema_registry_client=SchemaRegistryClient({"url": url}))(
    data, context) == {"id": 7}

# Protobuf: a file of our own, with a map and a nested message.
file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
order = file.message_type.add(name="Order")
order.field.add(name="id", number=1, type=3, label=1)
order.field.add(name="lines", number=2, type=11, label=3, type_name=".shop.Order.Line")
order.nested_type.add(name="Line").field.add(name="text", number=1, type=9, label=1)
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
message = Order(id=7, lines=[Order.Line(text="x")])
context = SerializationContext("shop", MessageField.VALUE)
data = ProtobufSerializer(Order, registry)(message, context)
assert ProtobufDeserializer(Order, {"use.deprecated.format": False},
                            SchemaRegistryClient({"url": url}))(data, context) == message
print("all round")
