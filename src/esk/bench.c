/* SPDX-License-Identifier: Apache-2.0 */
/* esk bench produce, consume: makes the requests, runs the load, reports. */
#include "esk/binary.h"
#include "esk/commands.h"
#include "esk/load.h"
#include "esk/produce_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define VARIANTS_BYTES_MAX (UINT64_C(1) << 30) /* of all requests that are made beforehand */
#define SPREAD_REQUEST 0                       /* --spread's choices */

/* --- the report --- */

static void write_real(struct esk_json_writer *writer, const char *key, double number) {
    char text[64];
    int size = snprintf(text, sizeof(text), "%.3f", number);
    esk_json_write_key(writer, key);
    esk_json_write_raw(writer, esk_slice(text, (size_t)size));
}

static void write_count(struct esk_json_writer *writer, const char *key, uint64_t number) {
    esk_json_write_key(writer, key);
    esk_json_write_uint64(writer, number);
}

static const struct quantile {
    const char *name;
    const char *key;
    double share;
} quantiles[] = {
    {"p50", "p50", 0.5},       {"p90", "p90", 0.9}, {"p99", "p99", 0.99},
    {"p99.9", "p99_9", 0.999}, {"max", "max", 1},
};
#define QUANTILE_COUNT (sizeof(quantiles) / sizeof(*quantiles))

static double seconds_of(const struct esk_load_result *result) {
    return result->elapsed_ns ? (double)result->elapsed_ns / 1e9 : 1e-9;
}

static void report_json(struct esk_session *session, const struct esk_load *load,
                        const struct esk_load_result *result) {
    double seconds = seconds_of(result);
    struct esk_json_writer writer = esk_json_writer(&session->out);
    esk_json_open_object(&writer);
    write_count(&writer, "connections", load->connections);
    write_count(&writer, "in_flight", load->in_flight);
    write_count(&writer, "rate", load->rate);
    write_real(&writer, "seconds", seconds);
    write_count(&writer, "requests", result->requests);
    write_count(&writer, "records", result->records);
    write_count(&writer, "bytes", result->bytes);
    write_count(&writer, "errors", result->errors);
    if (result->first_error[0]) {
        esk_json_write_key(&writer, "first_error");
        esk_json_write_text(&writer, result->first_error);
    }
    write_real(&writer, "requests_per_second", (double)result->requests / seconds);
    write_real(&writer, "records_per_second", (double)result->records / seconds);
    write_real(&writer, "megabytes_per_second", (double)result->bytes / 1e6 / seconds);
    esk_json_write_key(&writer, "latency_ms");
    esk_json_open_object(&writer);
    for (size_t i = 0; i < QUANTILE_COUNT; i++) {
        write_real(&writer, quantiles[i].key,
                   (double)esk_latency_quantile(&result->latency, quantiles[i].share) / 1e6);
    }
    esk_json_close_object(&writer);
    write_real(&writer, "client_cpu_seconds", (double)result->client_cpu_ns / 1e9);
    esk_json_close_object(&writer);
    esk_buffer_append_text(&session->out, "\n");
}

static void report_text(struct esk_session *session, const struct esk_load_result *result) {
    struct esk_buffer *out = &session->out;
    double seconds = seconds_of(result);
    esk_buffer_format(out, "requests  %12" PRIu64 "  %12.0f/s\n", result->requests,
                      (double)result->requests / seconds);
    esk_buffer_format(out, "records   %12" PRIu64 "  %12.0f/s\n", result->records,
                      (double)result->records / seconds);
    esk_buffer_format(out, "megabytes %12.1f  %12.1f/s\n", (double)result->bytes / 1e6,
                      (double)result->bytes / 1e6 / seconds);
    esk_buffer_append_text(out, "latency  ");
    for (size_t i = 0; i < QUANTILE_COUNT; i++) {
        esk_buffer_format(out, " %s %.3f ms%s", quantiles[i].name,
                          (double)esk_latency_quantile(&result->latency, quantiles[i].share) / 1e6,
                          i + 1 < QUANTILE_COUNT ? "," : "\n");
    }
    esk_buffer_format(out, "errors    %12" PRIu64 "%s%s\n", result->errors,
                      result->first_error[0] ? "  " : "", result->first_error);
}

/* Fills in what both kinds have in common, runs, reports. */
static int run(struct esk_session *session, struct esk_load *load) {
    const struct esk_arguments *arguments = session->arguments;
    struct esk_error error;
    load->server = &session->server;
    load->timeout_ms = session->client.timeout_ms;
    load->connections = (uint32_t)esk_arguments_number(arguments, "connections");
    load->threads = (uint32_t)esk_arguments_number(arguments, "threads");
    load->rate = esk_arguments_number(arguments, "rate");
    load->measured_s = (esk_arguments_number(arguments, "seconds") + 999) / 1000;
    load->warmup_s = (esk_arguments_number(arguments, "warmup-seconds") + 999) / 1000;
    load->shows_progress = session->shows_progress;
    load->in_flight = (uint32_t)esk_arguments_number(arguments, "in-flight");
    struct esk_binary binary = {0};
    if (esk_binary_check(arguments) != ESK_EXIT_DONE) {
        return ESK_EXIT_USAGE;
    }
    if (esk_arguments_number(arguments, "binary")) {
        esk_binary_init(&binary, session);
        binary.options.in_flight_max = load->in_flight;
        load->binary = &binary.options;
    } else if (load->in_flight != 1) {
        return esk_complain(ESK_EXIT_USAGE, "--in-flight: HTTP has one request of a connection in "
                                            "flight; --binary has more");
    }
    struct esk_load_result *result = esk_alloc(sizeof(*result));
    int code = ESK_EXIT_DONE;
    if (esk_load_run(load, result, &error) != ESK_OK) {
        code = esk_complain(ESK_EXIT_FAILED, "%s", error.text);
    } else {
        if (session->is_json) {
            report_json(session, load, result);
        } else {
            report_text(session, result);
        }
        code = esk_session_flush(session);
        if (code == ESK_EXIT_DONE && result->errors) {
            code = ESK_EXIT_FAILED;
        }
    }
    free(result);
    esk_binary_fini(&binary);
    return code;
}

/* --- produce --- */

/* Whether nobody answers at --server, so that --binary goes on without knowing the topic. */
static bool is_without_http(struct esk_session *session) {
    if (!esk_arguments_number(session->arguments, "binary")) {
        return false;
    }
    enum esk_err err =
        esk_http_client_send(&session->client, "GET", "/healthz", esk_slice(NULL, 0), NULL);
    if (err == ESK_OK) {
        err = esk_http_client_receive(&session->client, 0, NULL);
    }
    return err == ESK_ERR_UNAVAILABLE;
}

static int count_partitions(struct esk_session *session, const char *topic, uint32_t *count) {
    char *path = esk_path("/topics/", topic, "");
    struct esk_json_value root;
    struct esk_json_value partitions;
    int code = esk_session_get(session, path, &root);
    free(path);
    if (code == ESK_EXIT_DONE &&
        (!esk_json_find(&root, "partitions", &partitions) || !esk_json_count(&partitions))) {
        code = esk_complain(ESK_EXIT_FAILED, "the broker's answer has no partitions");
    }
    *count = code == ESK_EXIT_DONE ? (uint32_t)esk_json_count(&partitions) : 0;
    return code;
}

/* Makes the topic unless it is there; says how many partitions it has. */
static int ensure_topic(struct esk_session *session, const char *topic, uint32_t *count) {
    struct esk_error error;
    struct esk_buffer body;
    esk_buffer_init(&body);
    struct esk_json_writer writer = esk_json_writer(&body);
    *count = (uint32_t)esk_arguments_number(session->arguments, "partitions");
    if (is_without_http(session)) {
        return ESK_EXIT_DONE;
    }
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "name");
    esk_json_write_text(&writer, topic);
    write_count(&writer, "partitions", *count);
    esk_json_close_object(&writer);
    enum esk_err err =
        esk_http_client_send(&session->client, "POST", "/topics", esk_buffer_slice(&body), &error);
    if (err == ESK_OK) {
        err = esk_http_client_receive(&session->client, 0, &error);
    }
    esk_buffer_fini(&body);
    if (err != ESK_OK) {
        return esk_complain(ESK_EXIT_FAILED, "%s", error.text);
    }
    if (session->client.answer.status == 409) {
        return count_partitions(session, topic, count);
    }
    struct esk_json_value root;
    return esk_session_read(session, &session->client.answer, &root);
}

/* A value of letters and digits that looks different in each record. */
static void fill_value(uint8_t *value, uint64_t size, uint64_t *seed) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    for (uint64_t i = 0; i < size; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        value[i] = (uint8_t)letters[*seed >> 58];
    }
}

/* One request a partition, or one for all; in a buffer that is returned owned. */
static void make_variants(const struct esk_session *session, const char *topic,
                          struct esk_load *load, struct esk_slice *variants,
                          struct esk_buffer *out) {
    uint64_t size = esk_arguments_number(session->arguments, "size");
    bool names = esk_arguments_number(session->arguments, "spread") == SPREAD_REQUEST;
    uint8_t *value = esk_alloc(size + 1);
    size_t *ends = esk_alloc_zeroed(load->variant_count, sizeof(*ends));
    char *path = esk_path("/topics/", topic, "/produce");
    uint64_t seed = 1;
    for (uint32_t i = 0; i < load->variant_count; i++) {
        struct esk_produce_request request;
        esk_produce_request_init(&request, NULL, 0, names ? (int64_t)i : -1);
        for (uint64_t k = 0; k < load->records_per_request; k++) {
            fill_value(value, size, &seed);
            esk_produce_request_add(&request, esk_slice(NULL, 0), esk_slice(value, size));
        }
        esk_http_request(out, &session->server, "POST", path, esk_produce_request_body(&request));
        ends[i] = out->size;
        esk_produce_request_fini(&request);
    }
    for (uint32_t i = 0; i < load->variant_count; i++) {
        size_t begin = i ? ends[i - 1] : 0;
        variants[i] = esk_slice(out->data + begin, ends[i] - begin);
    }
    free(path);
    free(ends);
    free(value);
}

/* The records of one request a partition, or of one for all; their values are in `out`, which the
 * caller frees with them. */
static struct esk_client_record *make_records(const struct esk_session *session,
                                              const struct esk_load *load, struct esk_buffer *out) {
    uint64_t size = esk_arguments_number(session->arguments, "size");
    bool names = esk_arguments_number(session->arguments, "spread") == SPREAD_REQUEST;
    uint64_t count = load->records_per_request;
    struct esk_client_record *records =
        esk_alloc_zeroed(load->variant_count * count, sizeof(*records));
    uint64_t seed = 1;
    uint8_t *values = esk_buffer_grow(out, size * count + 1);
    fill_value(values, size * count, &seed);
    for (uint64_t i = 0; i < load->variant_count * count; i++) {
        records[i] = (struct esk_client_record){
            .value = values + i % count * size,
            .value_size = size,
            .partition = names ? (int32_t)(i / count) : ESK_CLIENT_PARTITION_ANY,
            .sequence = ESK_CLIENT_SEQUENCE_NONE,
        };
    }
    return records;
}

int esk_bench_produce(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    const char *topic = esk_arguments_text(arguments, "topic");
    uint32_t partitions;
    int code = ensure_topic(session, topic, &partitions);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    uint64_t records = esk_arguments_number(arguments, "records");
    uint64_t size = esk_arguments_number(arguments, "size");
    bool names = esk_arguments_number(arguments, "spread") == SPREAD_REQUEST;
    struct esk_load load = {
        .variant_count = names ? partitions : 1,
        .records_per_request = records,
        .bytes_per_request = records * size,
        .requests = esk_arguments_number(arguments, "requests"),
    };
    if ((size + 64) * records > VARIANTS_BYTES_MAX / load.variant_count) {
        return esk_complain(ESK_EXIT_USAGE, "requests of that size are too large");
    }
    struct esk_slice *variants = esk_alloc_zeroed(load.variant_count, sizeof(*variants));
    struct esk_buffer out;
    esk_buffer_init(&out);
    struct esk_client_record *made = NULL;
    if (esk_arguments_number(arguments, "binary")) {
        load.topic = topic;
        load.records = made = make_records(session, &load, &out);
    } else {
        make_variants(session, topic, &load, variants, &out);
        load.variants = variants;
    }
    code = run(session, &load);
    esk_buffer_fini(&out);
    free(made);
    free(variants);
    return code;
}

/* --- consume --- */

int esk_bench_consume(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    const char *topic = esk_arguments_text(arguments, "topic");
    uint32_t partitions = 1;
    int code = ESK_EXIT_DONE;
    if (!is_without_http(session)) {
        code = count_partitions(session, topic, &partitions);
    }
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    char more[96];
    snprintf(more, sizeof(more), "&max_records=%" PRIu64 "&max_bytes=%" PRIu64,
             esk_arguments_number(arguments, "max-records"),
             esk_arguments_number(arguments, "max-bytes"));
    char *path = esk_path("/topics/", topic, "/consume?partition=");
    struct esk_load load = {
        .consume_path = path,
        .consume_more = more,
        .partitions = partitions,
        .topic = topic,
        .max_records = (uint32_t)esk_arguments_number(arguments, "max-records"),
        .max_bytes = (uint32_t)esk_arguments_number(arguments, "max-bytes"),
    };
    code = run(session, &load);
    free(path);
    return code;
}
