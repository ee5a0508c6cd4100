/* SPDX-License-Identifier: Apache-2.0 */
/* The reference against what Kafka's own classes wrote (tests/golden/kafka) and against the
 * published page of AllocateProducerIds. */
#include "atlas/json_out.h"
#include "atlas/lines.h"
#include "atlas/page.h"
#include "atlas/row.h"
#include "atlas/smallest.h"
#include "atlas/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VECTORS "tests/golden/kafka/vectors.txt"

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = malloc(1 << 20);
    size_t size = fread(text, 1, (1 << 20) - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

static void expect_tree(enum esk_kafka_message_type type, const char *path) {
    const struct esk_kafka_message *message =
        esk_kafka_api_find("AllocateProducerIds", type, false);
    struct esk_buffer bytes;
    struct esk_atlas_sink sink;
    struct esk_atlas_problem problem;
    esk_buffer_init(&bytes);
    esk_atlas_sink_init(&sink, NULL);
    esk_atlas_smallest(message, 0, &bytes);
    struct esk_atlas_input input = {message, 0, esk_buffer_slice(&bytes)};
    assert_true(esk_atlas_tree(&input, ESK_ATLAS_VALUE_CHARS, &sink, &problem));
    esk_buffer_u8(&sink.buffer, '\0');
    char *expected = read_file(path);
    assert_string_equal((const char *)sink.buffer.data, expected);
    free(expected);
    esk_atlas_sink_fini(&sink);
    esk_buffer_fini(&bytes);
}

static void trees_of_allocate_producer_ids_are_as_published(void **state) {
    (void)state;
    expect_tree(ESK_KAFKA_REQUEST, "tests/golden/kafka/allocate_producer_ids_request.txt");
    expect_tree(ESK_KAFKA_RESPONSE, "tests/golden/kafka/allocate_producer_ids_response.txt");
}

/* Checks that the children of each node lie in it one behind the other without a gap. */
struct tiling {
    size_t ends[32]; /* of the open nodes: where their next child has to begin */
    unsigned depth;
};

static void tile_value(void *context, const struct esk_kafka_node *node) {
    struct tiling *t = context;
    assert_int_equal(node->position, t->ends[t->depth]);
    t->ends[t->depth] += node->size;
}

static void tile_open(void *context, const struct esk_kafka_node *node) {
    struct tiling *t = context;
    assert_int_equal(node->position, t->ends[t->depth]);
    t->ends[++t->depth] = node->position;
}

static void tile_close(void *context, const struct esk_kafka_node *node) {
    struct tiling *t = context;
    assert_int_equal(t->ends[t->depth], node->position + node->size);
    t->ends[--t->depth] = node->position + node->size;
}

static void check_vector(const char *line, struct esk_json_document *document,
                         struct esk_buffer *scratch) {
    static char words[4][128];
    struct esk_atlas_input input;
    struct esk_atlas_problem problem;
    struct esk_atlas_sink json;
    struct esk_atlas_sink hex;
    int skip = 0;
    assert_int_equal(
        sscanf(line, "%127s %127s %127s %127s %n", words[0], words[1], words[2], words[3], &skip),
        4);
    const char *digits = line + skip;
    size_t count = strcspn(digits, "\n");
    assert_true(esk_atlas_input_named(&input, words[1], words[2], atoi(words[3]), &problem));

    scratch->size = 0;
    esk_buffer_append(scratch, digits, count);
    size_t bytes;
    size_t bad;
    assert_true(esk_atlas_unhex((char *)scratch->data, count, &bytes, &bad));
    input.bytes = esk_slice(scratch->data, bytes);
    if (strcmp(words[0], "smallest") == 0) {
        struct esk_buffer made;
        esk_buffer_init(&made);
        esk_atlas_smallest(input.message, input.version, &made);
        assert_true(esk_slice_equal(esk_buffer_slice(&made), input.bytes));
        esk_buffer_fini(&made);
    }
    struct tiling tiling = {.depth = 0};
    struct esk_kafka_visitor visitor = {.context = &tiling,
                                        .measure = true,
                                        .open = tile_open,
                                        .close = tile_close,
                                        .value = tile_value};
    assert_true(esk_atlas_walk(&input, &visitor, &problem));
    assert_int_equal(tiling.ends[0], bytes);

    esk_atlas_sink_init(&json, NULL);
    esk_atlas_sink_init(&hex, NULL);
    assert_true(esk_atlas_json_line(&input, &json));
    if (input.message->type <= ESK_KAFKA_RESPONSE) {
        esk_buffer_u8(&json.buffer, '\0');
        assert_non_null(strstr((const char *)json.buffer.data, "\"warnings\":[]}\n"));
        json.buffer.size -= 1;
    }
    scratch->size = 0;
    esk_buffer_format(scratch, "%s %s %s ", words[1], words[2], words[3]);
    esk_buffer_append(scratch, json.buffer.data, json.buffer.size - 1);
    size_t size = scratch->size;
    memset(esk_buffer_grow(scratch, ESK_JSON_PADDING), 0, ESK_JSON_PADDING);
    assert_true(esk_atlas_encode_line((char *)scratch->data, size, document, &hex));
    assert_int_equal(hex.buffer.size, count + 1);
    assert_memory_equal(hex.buffer.data, digits, count);
    esk_atlas_sink_fini(&json);
    esk_atlas_sink_fini(&hex);
}

static void every_vector_tiles_and_comes_back_from_json(void **state) {
    (void)state;
    FILE *file = fopen(VECTORS, "r");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0;
    unsigned count = 0;
    struct esk_buffer scratch;
    struct esk_json_document *document = esk_json_document_create();
    esk_buffer_init(&scratch);
    for (; getline(&line, &room, file) > 0; count++)
        check_vector(line, document, &scratch);
    assert_int_equal(count, 1925);
    esk_buffer_fini(&scratch);
    esk_json_document_destroy(document);
    free(line);
    fclose(file);
}

struct totals {
    unsigned apis;
    unsigned requests;
    unsigned responses;
    unsigned flexible;
    int last_key;
};

static enum esk_err add_api(void *context, const struct esk_kafka_message *request,
                            const struct esk_kafka_message *response, struct esk_error *error) {
    struct totals *t = context;
    (void)error;
    assert_non_null(response);
    assert_true(request->api_key >= t->last_key);
    t->last_key = request->api_key;
    t->apis++;
    t->requests += (unsigned)(request->version_max - request->version_min + 1);
    t->responses += (unsigned)(response->version_max - response->version_min + 1);
    for (int v = request->version_min; v <= request->version_max; v++)
        t->flexible += esk_kafka_layout_of(request, (int16_t)v)->flexible;
    return ESK_OK;
}

static void the_list_has_every_api_and_version(void **state) {
    (void)state;
    struct totals now = {.last_key = -1};
    struct totals all = {.last_key = -1};
    esk_atlas_each_api(false, add_api, &now, NULL);
    esk_atlas_each_api(true, add_api, &all, NULL);
    assert_int_equal(now.apis, 91);
    assert_int_equal(now.requests, 309);
    assert_int_equal(now.responses, 309);
    assert_int_equal(now.flexible, 184);
    assert_int_equal(all.apis - now.apis, 28);
    assert_int_equal(all.requests - now.requests, 33 + 26);
    const struct esk_kafka_message *unstable =
        esk_kafka_api_find("InitProducerId", ESK_KAFKA_REQUEST, false);
    assert_int_equal(unstable->version_max, 6);
    assert_int_equal(unstable->version_stable, 5);
    size_t errors;
    esk_kafka_errors(&errors);
    assert_int_equal(errors, 138);
    assert_int_equal(esk_kafka_error_of(136)->code, 136);
    assert_null(esk_kafka_error_of(137));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_of_allocate_producer_ids_are_as_published),
        cmocka_unit_test(every_vector_tiles_and_comes_back_from_json),
        cmocka_unit_test(the_list_has_every_api_and_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
