/* SPDX-License-Identifier: Apache-2.0 */
/* What the door answers. */
#include "server/http/door_world_testing.h"

static void records_come_back_as_sent(void **state) {
    (void)state;
    start(0);
    expect("POST", "/topics/orders/produce",
           "{\"records\":[{\"key\":\"user-1\",\"value\":\"checkout\"},"
           "{\"key\":\"user-2\",\"value\":\"signup\"}]}",
           200, "{\"results\":[{\"partition\":0,\"offset\":0},{\"partition\":1,\"offset\":0}]}");
    expect("GET", "/topics/orders/consume?partition=0&offset=0", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
           "\"key\":\"user-1\",\"value\":\"checkout\"}],\"next_offset\":1,\"high_watermark\":1}");
    expect("POST", "/topics/orders/produce",
           "{\"records\":[{\"value\":null,\"partition\":0,\"headers\":{\"a\":\"1\",\"b\":[\"1\","
           "\"2\"],\"c\":null}},{\"value\":\"\\u0000\\n\\\"\\\\\\u00e9\",\"key\":null,"
           "\"partition\":0}]}",
           200, "{\"results\":[{\"partition\":0,\"offset\":1},{\"partition\":0,\"offset\":2}]}");
    expect("GET", "/topics/orders/consume?partition=0&offset=1", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":1,\"timestamp_ms\":1763500000000,"
           "\"key\":null,\"value\":null,\"headers\":{\"a\":\"1\",\"b\":[\"1\",\"2\"],\"c\":null}},"
           "{\"partition\":0,\"offset\":2,\"timestamp_ms\":1763500000000,\"key\":null,"
           "\"value\":\"\\u0000\\n\\\"\\\\\xc3\xa9\"}],\"next_offset\":3,\"high_watermark\":3}");
    expect("GET", "/topics/orders/consume?partition=0&offset=0&max_records=1", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
           "\"key\":\"user-1\",\"value\":\"checkout\"}],\"next_offset\":1,\"high_watermark\":3}");
    expect("GET", "/topics/orders/consume?partition=0&offset=9", "", 200,
           "{\"records\":[],\"next_offset\":3,\"high_watermark\":3}");
    expect("POST", "/topics/orders/produce", "{\"records\":[]}", 200, "{\"results\":[]}");
    expect("GET", "/groups/analytics/consume?topic=orders&partition=0&max_bytes=1", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":1,\"timestamp_ms\":1763500000000,"
           "\"key\":null,\"value\":null,\"headers\":{\"a\":\"1\",\"b\":[\"1\",\"2\"],\"c\":null}}],"
           "\"next_offset\":2,\"high_watermark\":3}");
    stop();
}

static void what_is_not_text_needs_base64(void **state) {
    (void)state;
    start(0);
    expect("POST", "/topics/orders/produce",
           "{\"encoding\":\"base64\",\"records\":[{\"value\":\"aGk=\",\"partition\":0},"
           "{\"value\":\"//8=\",\"key\":\"\",\"partition\":0,\"headers\":{\"h\":\"/w==\"}}]}",
           200, "{\"results\":[{\"partition\":0,\"offset\":0},{\"partition\":0,\"offset\":1}]}");
    expect("GET", "/topics/orders/consume?partition=0&offset=0", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
           "\"key\":null,\"value\":\"hi\"}],\"next_offset\":1,\"high_watermark\":2}");
    expect("GET", "/topics/orders/consume?partition=0&offset=1", "", 422,
           "{\"error\":\"the record at offset 1 is not UTF-8; read it with encoding=base64\"}");
    expect("GET", "/topics/orders/consume?partition=0&offset=1&encoding=base64", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":1,\"timestamp_ms\":1763500000000,"
           "\"key\":\"\",\"value\":\"//8=\",\"headers\":{\"h\":\"/w==\"}}],\"next_offset\":2,"
           "\"high_watermark\":2}");
    stop();
}

static const struct {
    const char *method, *path, *body;
    int status;
    const char *answer;
} wrong_requests[] = {
    {"GET", "/nothing", "", 404, "{\"error\":\"no such path\"}"},
    {"GET", "/topics/a/b/c/d/e", "", 404, NULL},
    {"GET", "/topics/orders/", "", 404, NULL},
    {"PATCH", "/topics", "", 405, "{\"error\":\"method not allowed; allowed: GET, HEAD, POST\"}"},
    {"PUT", "/topics/orders/produce", "", 405, NULL},
    {"GET", "/topics//config", "", 400, NULL},
    {"GET", "/topics/../config", "", 400, NULL},
    {"GET", "/topics/%2e%2e/config", "", 400, NULL},
    {"GET", "/topics/a%2Fb/config", "", 400, NULL},
    {"GET", "/topics/%zz/config", "", 400, "{\"error\":\"bad percent-encoding in the path\"}"},
    {"GET", "/topics/nope/config", "", 404, "{\"error\":\"topic 'nope' does not exist\"}"},
    {"GET", "/groups/%00/offsets", "", 400, NULL},
    {"POST", "/topics", "", 400, NULL},
    {"POST", "/topics", "[]", 400, "{\"error\":\"the body must be an object, not array\"}"},
    {"POST", "/topics", "{\"partitions\":1}", 400, "{\"error\":\"name is required\"}"},
    {"POST", "/topics", "{\"name\":1}", 400, "{\"error\":\"name must be a string, not integer\"}"},
    {"POST", "/topics", "{\"name\":\"a\",\"partitions\":0}", 400,
     "{\"error\":\"partitions must be an integer from 1 to 10000\"}"},
    {"POST", "/topics", "{\"name\":\"a\",\"partitions\":4294967296}", 400, NULL},
    {"POST", "/topics", "{\"name\":\"a\",\"partitions\":1.0}", 400, NULL},
    {"POST", "/topics", "{\"name\":\"a\",\"config\":{\"segment_bytes\":4095}}", 400, NULL},
    {"POST", "/topics", "{\"name\":\"a\",\"config\":{\"cleanup_policy\":\"never\"}}", 400, NULL},
    {"POST", "/topics", "{\"name\":\"orders\"}", 409, NULL},
    {"POST", "/topics/nope/produce", "{\"records\":[{\"value\":\"v\"}]}", 404, NULL},
    {"POST", "/topics/nope/produce", "{\"records\":[]}", 404, NULL},
    {"POST", "/topics/nope/produce", "{\"records\":[{}]}", 400,
     "{\"error\":\"records[0].value is required\"}"},
    {"POST", "/topics/orders/produce", "{\"records\":[{\"value\":1}]}", 400,
     "{\"error\":\"records[0].value must be a string or null, not integer\"}"},
    {"POST", "/topics/orders/produce",
     "{\"records\":[{\"value\":\"\"},{\"value\":\"\","
     "\"partition\":-1}]}",
     400, "{\"error\":\"records[1].partition must be an integer from 0 to 2147483647\"}"},
    {"POST", "/topics/orders/produce", "{\"records\":{}}", 400, NULL},
    {"POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"\",\"headers\":[]}]}", 400,
     NULL},
    {"POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"\",\"headers\":{\"a\":[1]}}]}",
     400, NULL},
    {"POST", "/topics/orders/produce", "{\"encoding\":\"base64\",\"records\":[{\"value\":\"a\"}]}",
     400, "{\"error\":\"records[0].value is not base64\"}"},
    {"POST", "/topics/orders/produce", "{\"encoding\":\"utf16\",\"records\":[]}", 400, NULL},
    {"POST", "/topics/orders/produce", "{\"producer_id\":7,\"records\":[]}", 400,
     "{\"error\":\"producer_id must be a string, not integer\"}"},
    {"POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"\",\"sequence\":-1}]}", 400,
     "{\"error\":\"records[0].sequence must be an integer from 0 to 9223372036854775807\"}"},
    {"GET", "/admin/producers", "", 200, "{\"producers\":[]}"},
    {"DELETE", "/admin/producers/a%zz", "", 400, NULL},
    {"DELETE", "/admin/producers/a", "", 404, "{\"error\":\"producer does not exist\"}"},
    {"GET", "/topics/orders/consume?offset=0", "", 400, "{\"error\":\"partition is required\"}"},
    {"GET", "/topics/orders/consume?partition=0", "", 400, "{\"error\":\"offset is required\"}"},
    {"GET", "/topics/orders/consume?partition=0&offset=-1", "", 400, NULL},
    {"GET", "/topics/orders/consume?partition=0&offset=9223372036854775808", "", 400,
     "{\"error\":\"offset must be an integer from 0 to 9223372036854775807\"}"},
    {"GET", "/topics/orders/consume?partition=0&offset=1e3", "", 400, NULL},
    {"GET", "/topics/orders/consume?partition=0&offset=", "", 400, NULL},
    {"GET", "/topics/orders/consume?partition=0&partition=0&offset=0", "", 400,
     "{\"error\":\"partition is given twice\"}"},
    {"GET", "/topics/orders/consume?partition=-1&offset=0", "", 400, NULL},
    {"GET", "/topics/orders/consume?partition=2&offset=0", "", 404, NULL},
    {"GET", "/topics/orders/consume?partition=0&offset=0&max_records=0", "", 400, NULL},
    {"GET", "/topics/orders/consume?partition=0&offset=0&max_bytes=0", "", 400, NULL},
    {"GET", "/topics/orders/consume?partition=0&offset=0&wait_ms=30001", "", 400, NULL},
    {"GET", "/topics/orders/consume?partition=0&offset=0&encoding=x", "", 400,
     "{\"error\":\"encoding must be utf8 or base64\"}"},
    {"GET", "/groups/g/consume?partition=0", "", 400, "{\"error\":\"topic is required\"}"},
    {"POST", "/groups/g/commit", "{\"topic\":\"orders\",\"partition\":0}", 400,
     "{\"error\":\"offset is required\"}"},
    {"POST", "/groups/g/commit", "{\"topic\":\"nope\",\"partition\":0,\"offset\":0}", 404, NULL},
};

static void wrong_requests_are_refused(void **state) {
    (void)state;
    start(0);
    for (size_t i = 0; i < sizeof wrong_requests / sizeof *wrong_requests; i++) {
        expect(wrong_requests[i].method, wrong_requests[i].path, wrong_requests[i].body,
               wrong_requests[i].status, wrong_requests[i].answer);
    }
    assert_int_equal(fake.produced, 0);
    stop();
}

static void right_requests_are_answered(void **state) {
    (void)state;
    start(0);
    static const char config[] =
        "{\"retention_ms\":604800000,\"retention_bytes\":null,\"cleanup_policy\":\"delete\","
        "\"segment_bytes\":67108864,\"tombstone_retention_ms\":86400000,\"partitioner\":\"fnv1a\"}";
    char *created = esk_text_format("{\"name\":\"new\",\"partitions\":3,\"config\":%s}", config);
    expect("POST", "/topics", "{\"name\":\"new\",\"partitions\":3}", 201, created);
    free(created);
    expect("GET", "/topics", "", 200, "{\"topics\":[{\"name\":\"orders\",\"partitions\":2}]}");
    expect("GET", "/topics/orders/config", "", 200, config);
    expect("PUT", "/topics/orders/config",
           "{\"retention_ms\":-1,\"retention_bytes\":5,"
           "\"cleanup_policy\":\"delete,compact\"}",
           200,
           "{\"retention_ms\":null,\"retention_bytes\":5,\"cleanup_policy\":\"compact,delete\","
           "\"segment_bytes\":67108864,\"tombstone_retention_ms\":86400000,"
           "\"partitioner\":\"fnv1a\"}");
    expect("DELETE", "/topics/orders", "", 200, "{}");
    expect("POST", "/groups/a%20b/commit", "{\"topic\":\"orders\",\"partition\":0,\"offset\":1}",
           200, "{}");
    expect("GET", "/groups/analytics/offsets", "", 200,
           "{\"offsets\":{\"orders\":{\"0\":1,\"1\":0}}}");
    expect("GET", "/groups/other/offsets", "", 200, "{\"offsets\":{}}");
    expect("GET", "/healthz", "", 200, "{\"status\":\"ok\",\"topics\":1}");
    expect("GET", "/readyz", "", 200, "{\"status\":\"ready\"}");
    char *metrics = ask("GET", "/metrics", "");
    assert_non_null(strstr(metrics, "text/plain; version=0.0.4"));
    assert_non_null(strstr(metrics, "esker_topics 1\n"));
    assert_non_null(
        strstr(metrics, "esker_requests_total{door=\"http\",operation=\"readyz\"} 1\n"));
    free(metrics);
    char *description = ask("GET", "/topics/orders", ""); /* longer than one piece */
    assert_non_null(strstr(description, "Transfer-Encoding: chunked"));
    assert_non_null(strstr(description, "{\"partition\":9999,\"start_offset\":0,"
                                        "\"high_watermark\":0,\"size_bytes\":0,\"segments\":0}],"));
    free(description);
    stop();
}

static void internal_errors_show_an_id_only(void **state) {
    (void)state;
    start(0);
    static const enum esk_err internal[] = {ESK_ERR_INTERNAL, ESK_ERR_IO, ESK_ERR_CORRUPT};
    for (size_t i = 0; i < sizeof internal / sizeof *internal; i++) {
        fake.failure = internal[i];
        char *got = ask("POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"v\"}]}");
        assert_non_null(strstr(got, "HTTP/1.1 500 "));
        char *id = strstr(got, "{\"error\":\"internal error (id ");
        assert_non_null(id);
        assert_null(strstr(got, "secret"));
        id += strlen("{\"error\":\"internal error (id ");
        id[8] = '\0';
        assert_non_null(strstr(logged, id));
        assert_non_null(strstr(logged, "write segment 3: secret path"));
        free(got);
    }
    fake.failure = ESK_ERR_NO_SPACE;
    expect("POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"v\"}]}", 507,
           "{\"error\":\"write segment 3: secret path\"}");
    stop();
}

static void large_bodies_and_answers_pass(void **state) {
    (void)state;
    start(0);
    struct esk_buffer body;
    struct esk_buffer value;
    esk_buffer_init(&body);
    esk_buffer_init(&value);
    for (int i = 0; i < 400000; i++) {
        esk_buffer_append_text(&value, i % 2 ? "\\u0001" : "\xc3\xa9");
    }
    esk_buffer_u8(&value, 0);
    esk_buffer_format(&body,
                      "{\"records\":[{\"partition\":0,\"value\":\"%s\"},"
                      "{\"partition\":1,\"value\":\"\"}]}",
                      value.data);
    esk_buffer_u8(&body, 0);
    expect("POST", "/topics/orders/produce", (char *)body.data, 200,
           "{\"results\":[{\"partition\":0,\"offset\":0},{\"partition\":1,\"offset\":0}]}");

    int fd = dial(); /* by HTTP/1.0, so without chunks */
    send_text(fd, "GET /topics/orders/consume?partition=0&offset=0 HTTP/1.0\r\n\r\n");
    char *got = read_all(fd);
    char *found = strstr(got, "\r\n\r\n");
    assert_non_null(found);
    struct esk_buffer expected;
    esk_buffer_init(&expected);
    esk_buffer_format(&expected,
                      "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
                      "\"key\":null,\"value\":\"%s\"}],\"next_offset\":1,\"high_watermark\":1}",
                      value.data);
    assert_int_equal(strlen(found + 4), expected.size);
    assert_memory_equal(found + 4, expected.data, expected.size);
    free(got);
    char *chunked = ask("GET", "/topics/orders/consume?partition=0&offset=0", "");
    assert_non_null(strstr(chunked, "Transfer-Encoding: chunked"));
    assert_true(strlen(chunked) > expected.size);
    free(chunked);

    /* The same with a mistake at its end. */
    memcpy(body.data + body.size - 4, "}}}", 3);
    expect("POST", "/topics/orders/produce", (char *)body.data, 400, NULL);
    esk_buffer_fini(&expected);
    esk_buffer_fini(&value);
    esk_buffer_fini(&body);
    stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_sent),
        cmocka_unit_test(what_is_not_text_needs_base64),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(right_requests_are_answered),
        cmocka_unit_test(internal_errors_show_an_id_only),
        cmocka_unit_test(large_bodies_and_answers_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
