/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the codec against what Kafka's own classes wrote (tests/golden/kafka): every message in
 * every version, smallest and filled. The filled values follow from the fields' names, so a value
 * that lands in the wrong member shows. */
#include "base/hash.h"
#include "wire/kafka/codec.h"
#include "wire/kafka/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VECTORS "tests/golden/kafka/vectors.txt"
#define PATH_BYTES 512
#define BATCH_BYTES 61
#define UNKNOWN_TAG 1000

enum instance { SMALLEST, FILLED, OTHER };

struct fill {
    enum instance instance;
    bool removed; /* the schemas of 3.9 do not tell that a struct may be null, so none is */
    int16_t version;
    struct esk_arena *arena;
};

static void fill_struct(const struct fill *f, const struct esk_kafka_layout *layout,
                        const char *path, uint8_t *out);

static uint32_t path_hash(const char *path) {
    return esk_fnv1a32(path, strlen(path));
}

static void below(char *text, const char *path, const char *snake_name) {
    size_t length = (size_t)snprintf(text, PATH_BYTES, "%s%s", path, path[0] ? "." : "");
    for (; *snake_name != '\0'; snake_name++)
        if (*snake_name != '_')
            text[length++] = *snake_name;
    text[length] = '\0';
}

static struct esk_slice made_slice(const struct fill *f, unsigned kind, uint32_t h) {
    uint8_t *memory = esk_arena_alloc(f->arena, 64);
    size_t size = 0;
    bool small = f->instance == SMALLEST;
    if (kind == ESK_KAFKA_RECORDS || kind == ESK_KAFKA_COMPACT_RECORDS) {
        size = BATCH_BYTES;
        memset(memory, 0, size);
        esk_store_u64(memory, small ? 0 : h);
        esk_store_u32(memory + 8, BATCH_BYTES - 12);
        memory[16] = 2;
        esk_store_u32(memory + 17, esk_crc32c(0, memory + 21, BATCH_BYTES - 21));
    } else if (!small && kind <= ESK_KAFKA_COMPACT_STRING) {
        size = (size_t)snprintf((char *)memory, 64, "s%x", h);
    } else if (!small) {
        esk_store_u32(memory, h);
        size = 4;
    }
    return esk_slice(memory, size);
}

static void fill_scalar(const struct fill *f, unsigned kind, uint32_t h, void *out) {
    bool small = f->instance == SMALLEST;
    uint64_t u = h;
    switch (kind) {
    case ESK_KAFKA_BOOL:
        *(bool *)out = !small;
        break;
    case ESK_KAFKA_INT8:
        *(int8_t *)out = (int8_t)(small ? 0 : u % 100 + 1);
        break;
    case ESK_KAFKA_INT16:
        *(int16_t *)out = (int16_t)(small ? 0 : u % 30000 + 1);
        break;
    case ESK_KAFKA_UINT16:
        *(uint16_t *)out = (uint16_t)(small ? 0 : u % 60000 + 1);
        break;
    case ESK_KAFKA_INT32:
    case ESK_KAFKA_UINT32:
        *(uint32_t *)out = (uint32_t)(small ? 0 : u % 2000000000 + 1);
        break;
    case ESK_KAFKA_INT64:
        *(uint64_t *)out = small ? 0 : ((u * 2654435761U) & INT64_MAX) + 1;
        break;
    case ESK_KAFKA_FLOAT64:
        *(double *)out = small ? 0.0 : (double)u / 7.0;
        break;
    case ESK_KAFKA_UUID:
        memset(out, 0, 16);
        if (!small) {
            esk_store_u64(out, u * 2654435761U);
            esk_store_u64((uint8_t *)out + 8, u + 1);
        }
        break;
    default: {
        struct esk_slice slice = made_slice(f, kind, h);
        memcpy(out, &slice, sizeof(slice));
        break;
    }
    }
}

static void fill_array(const struct fill *f, const struct esk_kafka_op *op, const char *path,
                       uint8_t *out) {
    static const size_t strides[] = {
        [ESK_KAFKA_BOOL] = 1,  [ESK_KAFKA_INT8] = 1,  [ESK_KAFKA_INT16] = 2,
        [ESK_KAFKA_INT32] = 4, [ESK_KAFKA_INT64] = 8, [ESK_KAFKA_UUID] = 16,
    };
    size_t stride = op->element == ESK_KAFKA_STRUCT   ? op->layout->struct_bytes
                    : op->element >= ESK_KAFKA_STRING ? sizeof(struct esk_slice)
                                                      : strides[op->element];
    struct esk_kafka_array array = {NULL, f->instance == SMALLEST ? 1 : 2};
    uint8_t *items = esk_arena_alloc_array(f->arena, (size_t)array.count, stride);
    for (int32_t i = 0; i < array.count; i++) {
        char element[PATH_BYTES];
        snprintf(element, sizeof(element), "%.480s[%d]", path, (int)i);
        if (op->element == ESK_KAFKA_STRUCT)
            fill_struct(f, op->layout, element, items + (size_t)i * stride);
        else
            fill_scalar(f, op->element, path_hash(element), items + (size_t)i * stride);
    }
    array.items = items;
    memcpy(out, &array, sizeof(array));
}

static void fill_op(const struct fill *f, const struct esk_kafka_op *op, const char *path,
                    uint8_t *out) {
    char text[PATH_BYTES];
    below(text, path, op->field->snake_name);
    uint32_t h = path_hash(text);
    bool null = (op->flags & ESK_KAFKA_NULLABLE) && f->instance != SMALLEST &&
                !(f->removed && op->kind == ESK_KAFKA_STRUCT) &&
                ((h >> 3) + (uint32_t)f->version + (f->instance == OTHER)) % 2 != 0;
    if (op->kind == ESK_KAFKA_ARRAY || op->kind == ESK_KAFKA_COMPACT_ARRAY) {
        struct esk_kafka_array nothing = {NULL, -1};
        memcpy(out, &nothing, sizeof(nothing));
        if (!null)
            fill_array(f, op, text, out);
    } else if (op->kind == ESK_KAFKA_STRUCT && (op->flags & ESK_KAFKA_POINTER)) {
        uint8_t *inner = NULL;
        if (!null) {
            inner = esk_arena_alloc(f->arena, op->layout->struct_bytes);
            fill_struct(f, op->layout, text, inner);
        }
        memcpy(out, &inner, sizeof(inner));
    } else if (op->kind == ESK_KAFKA_STRUCT) {
        fill_struct(f, op->layout, text, out);
    } else if (null) {
        memset(out, 0, sizeof(struct esk_slice));
    } else {
        fill_scalar(f, op->kind, h, out);
    }
}

static void fill_struct(const struct fill *f, const struct esk_kafka_layout *layout,
                        const char *path, uint8_t *out) {
    memcpy(out, layout->defaults, layout->struct_bytes);
    unsigned count = layout->plain_count + (f->instance == SMALLEST ? 0U : layout->tagged_count);
    for (unsigned i = 0; i < count; i++)
        fill_op(f, &layout->ops[i], path, out + layout->ops[i].offset);
    if (f->instance == OTHER && layout->flexible) {
        char text[PATH_BYTES];
        snprintf(text, sizeof(text), "%.480s?", path);
        struct esk_kafka_unknown_tag *unknown = esk_arena_alloc(f->arena, sizeof(*unknown));
        uint8_t *bytes = esk_arena_alloc(f->arena, 4);
        esk_store_u32(bytes, path_hash(text));
        *unknown = (struct esk_kafka_unknown_tag){NULL, UNKNOWN_TAG, esk_slice(bytes, 4)};
        memcpy(out + layout->tags_offset, &unknown, sizeof(unknown));
    }
}

struct vector {
    enum instance instance;
    const struct esk_kafka_message *message;
    int16_t version;
    struct esk_slice body; /* without frame, header and prefix */
};

static bool parse_vector(char *line, struct vector *vector) {
    char *save = NULL;
    const char *instance = strtok_r(line, " ", &save);
    const char *type = strtok_r(NULL, " ", &save);
    const char *name = strtok_r(NULL, " ", &save);
    const char *version = strtok_r(NULL, " ", &save);
    char *hex = strtok_r(NULL, " \n", &save);
    assert_non_null(version);
    assert_non_null(hex);
    vector->instance = strcmp(instance, "smallest") == 0 ? SMALLEST
                       : strcmp(instance, "filled") == 0 ? FILLED
                                                         : OTHER;
    vector->version = (int16_t)atoi(version);
    char full[128];
    snprintf(full, sizeof(full), "%s%s", name,
             strcmp(type, "request") == 0    ? "Request"
             : strcmp(type, "response") == 0 ? "Response"
                                             : "");
    vector->message = esk_kafka_message_named(full, vector->version);
    assert_non_null(vector->message);
    assert_true(esk_kafka_has_version(vector->message, vector->version));
    uint8_t *bytes = (uint8_t *)hex;
    size_t size = strlen(hex) / 2;
    for (size_t i = 0; i < size; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    vector->body = esk_slice(bytes, size);
    return true;
}

/* Takes frame and header, or the prefix of a stored record, off and checks them. */
static void strip(struct vector *vector, struct esk_arena *arena) {
    size_t skip = 0;
    const struct esk_kafka_message *message = vector->message;
    if (message->type == ESK_KAFKA_REQUEST || message->type == ESK_KAFKA_RESPONSE) {
        assert_int_equal(esk_load_u32(vector->body.data), vector->body.size - 4);
        const struct esk_kafka_layout *header =
            esk_kafka_header_layout(message, vector->version, NULL);
        const void *ignored;
        assert_int_equal(esk_kafka_decode(header,
                                          esk_slice(vector->body.data + 4, vector->body.size - 4),
                                          arena, &ignored, &skip, NULL),
                         ESK_OK);
        skip += 4;
    } else if (message->type == ESK_KAFKA_COORDINATOR_KEY) {
        assert_int_equal(esk_load_u16(vector->body.data), message->api_key);
        skip = 2;
    } else if (message->type == ESK_KAFKA_COORDINATOR_VALUE) {
        assert_int_equal(esk_load_u16(vector->body.data), vector->version);
        skip = 2;
    }
    vector->body = esk_slice(vector->body.data + skip, vector->body.size - skip);
}

static void check_vector(struct vector *vector, struct esk_arena *arena,
                         struct esk_buffer *output) {
    strip(vector, arena);
    const struct esk_kafka_layout *layout = esk_kafka_layout_of(vector->message, vector->version);
    struct fill fill = {vector->instance, vector->message->removed, vector->version, arena};
    uint8_t *made = esk_arena_alloc(arena, layout->struct_bytes);
    fill_struct(&fill, layout, "", made);
    struct esk_error error = {.text = ""};
    output->size = 0;
    assert_int_equal(esk_kafka_encode(layout, made, output, &error), ESK_OK);
    if (!esk_slice_equal(esk_buffer_slice(output), vector->body))
        fail_msg("%s v%d, instance %d differs", vector->message->name, vector->version,
                 vector->instance);
    assert_int_equal(esk_kafka_size(layout, made), output->size);

    const void *body = NULL;
    size_t used = 0;
    assert_int_equal(esk_kafka_decode_message(vector->message, vector->version, vector->body, arena,
                                              &body, &used, &error),
                     ESK_OK);
    assert_int_equal(used, vector->body.size);
    output->size = 0;
    assert_int_equal(esk_kafka_encode(layout, body, output, &error), ESK_OK);
    assert_int_equal(output->size, vector->body.size);
    assert_memory_equal(output->data, vector->body.data, output->size);

    struct esk_kafka_scan scan;
    esk_kafka_scan_init(&scan, vector->body, NULL);
    assert_true(esk_kafka_scan_struct(&scan, layout, NULL));
    assert_ptr_equal(scan.at, scan.end);
    esk_kafka_scan_fini(&scan);
}

static void every_version_agrees_with_kafka(void **state) {
    (void)state;
    FILE *file = fopen(VECTORS, "r");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0;
    unsigned counts[3] = {0};
    struct esk_arena arena;
    struct esk_buffer output;
    esk_arena_init(&arena, 0);
    esk_buffer_init(&output);
    unsigned requests = 0;
    unsigned removed = 0;
    unsigned flexible = 0;
    while (getline(&line, &room, file) > 0) {
        struct vector vector;
        assert_true(parse_vector(line, &vector));
        check_vector(&vector, &arena, &output);
        counts[vector.instance]++;
        if (vector.message->type == ESK_KAFKA_REQUEST && vector.instance == FILLED) {
            requests += !vector.message->removed;
            removed += vector.message->removed;
            flexible += !vector.message->removed &&
                        esk_kafka_layout_of(vector.message, vector.version)->flexible;
        }
        esk_arena_reset(&arena);
    }
    assert_int_equal(requests, 309);
    assert_int_equal(flexible, 184);
    assert_int_equal(removed, 33 + 26);
    assert_int_equal(counts[SMALLEST], counts[FILLED]);
    esk_buffer_fini(&output);
    esk_arena_fini(&arena);
    free(line);
    fclose(file);
}

/* Cut anywhere, a message is refused by decoder and scanner alike, and the error says where. */
static void cut_messages_are_refused_at_their_end(void **state) {
    (void)state;
    FILE *file = fopen(VECTORS, "r");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0;
    struct esk_arena arena;
    esk_arena_init(&arena, 0);
    for (unsigned number = 0; getline(&line, &room, file) > 0; number++) {
        struct vector vector;
        assert_true(parse_vector(line, &vector));
        if (vector.instance != FILLED || number % 3 != 0)
            continue;
        strip(&vector, &arena);
        size_t step = vector.body.size / 40 + 1;
        for (size_t cut = 0; cut < vector.body.size; cut += step) {
            uint8_t *copy = malloc(cut + 1); /* its own block, so that ASan sees overruns */
            memcpy(copy, vector.body.data, cut);
            const void *body;
            size_t used;
            struct esk_error error;
            assert_int_not_equal(esk_kafka_decode_message(vector.message, vector.version,
                                                          esk_slice(copy, cut), &arena, &body,
                                                          &used, &error),
                                 ESK_OK);
            assert_non_null(strstr(error.text, vector.message->name));
            assert_non_null(strstr(error.text, "(offset "));
            assert_null(strstr(error.text, "not such a message"));
            free(copy);
        }
        esk_arena_reset(&arena);
    }
    esk_arena_fini(&arena);
    free(line);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_agrees_with_kafka),
        cmocka_unit_test(cut_messages_are_refused_at_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
