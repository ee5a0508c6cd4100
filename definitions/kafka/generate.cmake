# SPDX-License-Identifier: Apache-2.0
file(GLOB kafka_definitions RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/definitions/kafka/*/*.json)
set(kafka_generated wire/kafka/messages.h wire/kafka/tables.inc wire/kafka/formats.inc
    wire/kafka/error_table.inc wire/kafka/releases.inc docs/kafka-apis.md)
esk_generate(tools/kafka_generate.py "${kafka_definitions}"
    "${kafka_generated}")
set(kafka_assets src/atlas/web/atlas.css src/atlas/web/atlas.js src/atlas/web/decode.js)
esk_generate(tools/kafka_assets.py "${kafka_assets}" atlas/assets.inc)

# Definitions, error codes and golden vectors against Kafka's own jars, where Maven answers.
add_test(NAME kafka.against_jars COMMAND Python3::Interpreter -B
    ${CMAKE_SOURCE_DIR}/tests/golden/kafka/make_vectors.py check)
set_tests_properties(kafka.against_jars PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900
    LABELS network)
