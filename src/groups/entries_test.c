/* SPDX-License-Identifier: Apache-2.0 */
/* The generated codec of map groups' entries against tests/golden/entries-v1.txt: each kind there
 * and back, and every shorter, longer or newer payload refused. */
#include "model/entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAYLOAD_BYTES_MAX 160

static size_t golden(const char *name, uint8_t bytes[PAYLOAD_BYTES_MAX]) {
    char line[512];
    size_t size = 0;
    FILE *file = fopen("tests/golden/entries-v1.txt", "r");
    assert_non_null(file);
    while (size == 0 && fgets(line, sizeof(line), file) != NULL) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) != 0 || line[length] != ' ') {
            continue;
        }
        unsigned byte;
        for (const char *at = line + length + 1; sscanf(at, "%2x", &byte) == 1; at += 2) {
            assert_true(size < PAYLOAD_BYTES_MAX);
            bytes[size++] = (uint8_t)byte;
        }
    }
    fclose(file);
    assert_true(size > 2);
    return size;
}

static void topic_created_has_its_golden_bytes(void **state) {
    (void)state;
    uint8_t bytes[PAYLOAD_BYTES_MAX];
    size_t size = golden("catalogue.topic_created", bytes);
    struct esk_catalogue_change change;
    struct esk_error error;
    assert_int_equal(esk_catalogue_decode(esk_slice(bytes, size), &change, &error), ESK_OK);
    assert_int_equal(change.kind, ESK_CATALOGUE_TOPIC_CREATED);
    const struct esk_catalogue_topic_created *created = &change.topic_created;
    assert_true(created->first_group == 0x1122334455667788);
    assert_int_equal(created->partition_count, 10000);
    assert_true(esk_slice_equal(created->name, esk_slice_text("orders.v1")));
    assert_int_equal(created->retention_ms, 604800000);
    assert_int_equal(created->retention_bytes, -1);
    assert_int_equal(created->cleanup_policy, 3);
    assert_int_equal(created->segment_bytes, 67108864);
    assert_int_equal(created->tombstone_retention_ms, 86400000);
    assert_int_equal(created->partitioner, 1);
}

static void offset_committed_has_its_golden_bytes(void **state) {
    (void)state;
    uint8_t bytes[PAYLOAD_BYTES_MAX];
    size_t size = golden("offsets.offset_committed", bytes);
    struct esk_offsets_change change;
    struct esk_error error;
    assert_int_equal(esk_offsets_decode(esk_slice(bytes, size), &change, &error), ESK_OK);
    assert_int_equal(change.kind, ESK_OFFSETS_OFFSET_COMMITTED);
    assert_int_equal(change.offset_committed.topic, 17);
    assert_int_equal(change.offset_committed.partition, 9999);
    assert_true(change.offset_committed.offset == INT64_MAX);
    assert_true(esk_slice_equal(change.offset_committed.group, esk_slice_text("grüße")));
}

/* Either family's decoder, and what it decoded encoded again. */
static enum esk_err there_and_back(const char *name, struct esk_slice payload,
                                   struct esk_buffer *again) {
    struct esk_error error;
    enum esk_err err;
    again->size = 0;
    if (strncmp(name, "catalogue.", 10) == 0) {
        struct esk_catalogue_change change;
        err = esk_catalogue_decode(payload, &change, &error);
        if (err == ESK_OK) {
            esk_catalogue_encode(again, &change);
        }
    } else {
        struct esk_offsets_change change;
        err = esk_offsets_decode(payload, &change, &error);
        if (err == ESK_OK) {
            esk_offsets_encode(again, &change);
        }
    }
    return err;
}

static void check(const char *name) {
    uint8_t bytes[PAYLOAD_BYTES_MAX + 1];
    size_t size = golden(name, bytes);
    struct esk_buffer again;
    esk_buffer_init(&again);
    assert_int_equal(there_and_back(name, esk_slice(bytes, size), &again), ESK_OK);
    assert_int_equal(again.size, size);
    assert_memory_equal(again.data, bytes, size);
    for (size_t shorter = 0; shorter < size; shorter++) { /* a copy: reading behind it shows */
        struct esk_block *copy = esk_block_copy(esk_slice(bytes, shorter));
        assert_int_equal(there_and_back(name, esk_slice(copy->data, shorter), &again),
                         ESK_ERR_CORRUPT);
        esk_block_release(copy);
    }
    bytes[size] = 0;
    assert_int_equal(there_and_back(name, esk_slice(bytes, size + 1), &again), ESK_ERR_CORRUPT);
    bytes[1]++;
    assert_int_equal(there_and_back(name, esk_slice(bytes, size), &again), ESK_ERR_VERSION);
    bytes[1]--;
    bytes[0] = 99;
    assert_int_equal(there_and_back(name, esk_slice(bytes, size), &again), ESK_ERR_VERSION);
    esk_buffer_fini(&again);
}

static void every_kind_goes_there_and_back_and_nothing_else_passes(void **state) {
    (void)state;
    check("catalogue.topic_created");
    check("catalogue.topic_configured");
    check("catalogue.topic_deleted");
    check("catalogue.topic_gone");
    check("catalogue.next_group");
    check("catalogue.key_created");
    check("catalogue.key_revoked");
    check("catalogue.producer_block");
    check("catalogue.producer_ids");
    check("catalogue.producer_created");
    check("catalogue.producer_owned");
    check("catalogue.producers_used");
    check("catalogue.producers_forgotten");
    check("offsets.offset_committed");
    check("offsets.topic_dropped");
    check("catalogue.group_owned");
    check("catalogue.group_released");
    check("catalogue.schema_registered");
    check("offsets.group_assigned");
    check("offsets.group_deleted");
    check("offsets.commits_reset");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topic_created_has_its_golden_bytes),
        cmocka_unit_test(offset_committed_has_its_golden_bytes),
        cmocka_unit_test(every_kind_goes_there_and_back_and_nothing_else_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
