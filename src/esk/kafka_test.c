/* SPDX-License-Identifier: Apache-2.0 */
/* `esk kafka …` as a program sees it: exit status, and what comes out. */
#include "base/memory.h"
#include "esk/kafka.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/esk-kafka-test-XXXXXX";

/* Runs the command with this text as its input; its output has to be freed. */
static char *run(const char *input, int status, const char *const *words) {
    char *argv[12];
    int argc = 0;
    for (; words[argc] != NULL; argc++)
        argv[argc] = strdup(words[argc]);
    argv[argc] = NULL;
    char *in = esk_text_format("%s/in", folder);
    char *out = esk_text_format("%s/out", folder);
    FILE *file = fopen(in, "wb");
    assert_non_null(file);
    fputs(input, file);
    fclose(file);
    int old_out = dup(STDOUT_FILENO);
    fflush(stdout);
    assert_non_null(freopen(in, "rb", stdin));
    assert_non_null(freopen(out, "wb", stdout));
    int got = esk_kafka_command(argc, argv);
    fflush(stdout);
    dup2(old_out, STDOUT_FILENO);
    close(old_out);
    assert_int_equal(got, status);
    file = fopen(out, "rb");
    char *text = calloc(1, 1 << 20);
    size_t size = fread(text, 1, (1 << 20) - 1, file);
    text[size] = '\0';
    fclose(file);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    free(in);
    free(out);
    return text;
}

#define RUN(input, status, ...)                                                                    \
    run(input, status, (const char *const[]){"kafka", __VA_ARGS__, NULL})

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void list_has_all_apis_and_removed_ones_when_asked(void **state) {
    (void)state;
    char *text = RUN("", 0, "list", "--json");
    assert_int_equal(count_of(text, "\"api_key\":"), 91);
    assert_non_null(strstr(text, "{\"api_key\":67,\"name\":\"AllocateProducerIds\","
                                 "\"request_versions\":[0,0],\"response_versions\":[0,0],"
                                 "\"flexible_versions\":\"0+\",\"listeners\":[\"controller\"]}"));
    assert_non_null(strstr(text, "\"name\":\"SaslHandshake\",\"request_versions\":[0,1],"
                                 "\"response_versions\":[0,1],\"flexible_versions\":\"none\""));
    free(text);
    text = RUN("", 0, "list", "--json", "--removed");
    assert_int_equal(count_of(text, "\"api_key\":"), 91 + 28);
    assert_non_null(strstr(text, "\"name\":\"LeaderAndIsr\",\"request_versions\":[0,7]"));
    free(text);
}

static void show_prints_the_forms_asked_for(void **state) {
    (void)state;
    char *text = RUN("", 0, "show", "AllocateProducerIds", "--request", "--hex");
    assert_string_equal(text, "00000018004300000000000000000000000000000000000000000000\n");
    free(text);
    text = RUN("", 0, "show", "allocateproducerids");
    assert_non_null(strstr(text, "API key: 67\nEncoded at: v0\nFlexible versions: 0+\n"
                                 "Headers: req v2, resp v1\nRequest versions: 0\n"
                                 "Response versions: 0\nRequest size: 28 bytes\n"
                                 "Response size: 28 bytes\n"));
    assert_non_null(strstr(text, "AllocateProducerIdsRequest v0, request header v2, 28 bytes on "
                                 "the wire\n"));
    free(text);
    text = RUN("", 0, "show", "InitProducerId", "--request", "--json");
    assert_non_null(strstr(text, "\"requestApiVersion\":5")); /* 6 is unstable */
    free(text);
    text = RUN("", 0, "show", "Fetch", "--version", "2", "--request", "--hex"); /* removed */
    free(text);
    text = RUN("", 0, "show", "OffsetCommitValue", "--hex");
    assert_string_equal(text, "0004"
                              "0000000000000000"
                              "00000000"
                              "01"
                              "0000000000000000"
                              "00\n");
    free(text);
    free(RUN("", 2, "show", "NoSuchThing"));
    free(RUN("", 2, "show", "Fetch", "--version", "99"));
    free(RUN("", 2, "show"));
}

static void lines_are_answered_one_by_one(void **state) {
    (void)state;
    char *text = RUN("request AllocateProducerIds 0 "
                     "00000018004300000000000000000000000000000000000000000000\n"
                     "request AllocateProducerIds 0 00\n",
                     1, "decode", "--lines", "--json");
    assert_non_null(strstr(text, "{\"ok\":true,\"header\":{"));
    assert_non_null(strstr(text, "\"body\":{\"brokerId\":0,\"brokerEpoch\":0},\"warnings\":[]}\n"
                                 "{\"ok\":false,\"error\":\"AllocateProducerIds request v0: "));
    free(text);
    text = RUN("request AllocateProducerIds 0 {\"body\":{\"brokerId\":7,\"brokerEpoch\":-1}}\n"
               "request AllocateProducerIds 0 {\"body\":{\"brokerId\":1e3}}\n",
               1, "encode", "--lines");
    assert_non_null(strstr(text, "00000018004300000000000000000000000007ffffffffffffffff00\n"
                                 "error: AllocateProducerIds request v0: brokerId: expected an "
                                 "int32\n"));
    free(text);
    text = RUN("request ApiVersions 0 {\"header\":{\"requestApiKey\":19,\"requestApiVersion\":0},"
               "\"body\":{}}\n"
               "request ApiVersions 0 {\"header\":{\"requestApiKey\":18,\"requestApiVersion\":3},"
               "\"body\":{}}\n",
               1, "encode", "--lines");
    assert_string_equal(text,
                        "error: ApiVersions request v0: RequestApiKey: expected 18, found 19\n"
                        "error: ApiVersions request v0: RequestApiVersion: expected 0, found 3\n");
    free(text);
    /* Floats and uuids keep their value. */
    text = RUN("response DescribeClientQuotas 1 {\"header\":{\"correlationId\":0},\"body\":{"
               "\"throttleTimeMs\":0,\"errorCode\":0,\"errorMessage\":null,\"entries\":[{\"entity\""
               ":[],\"values\":[{\"key\":\"a\",\"value\":-0.0},{\"key\":\"b\",\"value\":\"NaN\"},"
               "{\"key\":\"c\",\"value\":0.1}]}]}}\n",
               0, "encode", "--lines");
    assert_non_null(strstr(text, "02618000000000000000"));
    assert_non_null(strstr(text, "02627ff8000000000000"));
    assert_non_null(strstr(text, "02633fb999999999999a"));
    free(text);
}

static void decode_takes_hex_and_says_where_damage_is(void **state) {
    (void)state;
    char *text =
        RUN("00000018 0043 0000 00000000 0000 00 00000007 0000000000000001 00\n", 0, "decode");
    assert_non_null(strstr(text, "+-- BrokerId                int32            = 7"));
    free(text);
    text = RUN("00000016 0043 0000 00000000 0000 00 00000007 00000000000000\n", 1, "decode");
    assert_non_null(strstr(text, "error: offset 0x0013: AllocateProducerIds request v0: "
                                 "BrokerEpoch: expected 8 bytes, 7 are left\n"));
    free(text);
    free(RUN("", 2, "decode", "--lines"));
    free(RUN("", 2, "decode", "--response", "Fetch"));
}

static void export_writes_a_page_for_each_api(void **state) {
    (void)state;
    char *site = esk_text_format("%s/site", folder);
    char *path = esk_text_format("%s/AllocateProducerIds.html", site);
    struct stat status;
    free(RUN("", 0, "export", site));
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size > 5000);
    free(path);
    path = esk_text_format("%s/LeaderAndIsr-removed.html", site);
    assert_int_not_equal(stat(path, &status), 0);
    free(RUN("", 0, "export", site, "--removed"));
    assert_int_equal(stat(path, &status), 0);
    free(path);
    free(site);
    free(RUN("", 1, "export", "/proc/nowhere"));
    free(RUN("", 2, "export"));
    free(RUN("", 2, "nothing"));
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int drop_folder(void **state) {
    (void)state;
    char *command = esk_text_format("rm -rf %s", folder);
    int status = system(command);
    free(command);
    return status;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_has_all_apis_and_removed_ones_when_asked),
        cmocka_unit_test(show_prints_the_forms_asked_for),
        cmocka_unit_test(lines_are_answered_one_by_one),
        cmocka_unit_test(decode_takes_hex_and_says_where_damage_is),
        cmocka_unit_test(export_writes_a_page_for_each_api),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
