/* SPDX-License-Identifier: Apache-2.0 */
/* The pipelined client: writes numbered records to one partition, idempotently, with many requests
 * in flight, from a loop of poll that could have other work too.
 *
 *     cc pipeline.c $(pkg-config --cflags --libs esker) -o pipeline
 *     ./pipeline 127.0.0.1:9001 orders 100000
 */
#include <esker/client.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

struct progress {
    uint64_t written;
    uint64_t duplicates; /* retries that the broker recognised */
    uint64_t failed;
};

static void answered(void *context, const struct esk_pipeline_answer *answer) {
    struct progress *progress = context;
    if (answer->code != ESK_CLIENT_OK) {
        progress->failed++;
        fprintf(stderr, "not written: %s\n", answer->text);
        return;
    }
    progress->written++;
    progress->duplicates += answer->written[0].duplicate;
}

/* Submits until the pipeline is full or all is submitted. */
static int submit(struct esk_pipeline *pipeline, const char *topic, uint64_t *next, uint64_t count,
                  struct progress *progress) {
    while (*next < count) {
        char value[32];
        int size = snprintf(value, sizeof(value), "%" PRIu64, *next);
        struct esk_client_record record = {
            .value = value,
            .value_size = (size_t)size,
            .partition = 0,
            .sequence = ESK_CLIENT_SEQUENCE_NONE, /* the library numbers them */
        };
        struct esk_client_error error;
        enum esk_client_code code =
            esk_pipeline_produce(pipeline, topic, &record, 1, answered, progress, &error);
        if (code == ESK_CLIENT_FULL) {
            return 0;
        }
        if (code != ESK_CLIENT_OK) {
            fprintf(stderr, "submit: %s\n", error.text);
            return 1;
        }
        ++*next;
    }
    return 0;
}

static int run(struct esk_pipeline *pipeline, const char *topic, uint64_t count) {
    struct progress progress = {0, 0, 0};
    uint64_t next = 0;
    while (next < count || esk_pipeline_in_flight(pipeline) > 0) {
        if (submit(pipeline, topic, &next, count, &progress) != 0) {
            return 1;
        }
        if (esk_pipeline_process(pipeline) == 0) {
            struct pollfd descriptor = {.fd = esk_pipeline_fd(pipeline), .events = POLLIN};
            (void)poll(&descriptor, 1, -1);
        }
    }
    printf("%" PRIu64 " written, %" PRIu64 " of them recognised as retries, %" PRIu64 " failed\n",
           progress.written, progress.duplicates, progress.failed);
    return progress.failed ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s HOST:PORT TOPIC COUNT\n", argv[0]);
        return 2;
    }
    struct esk_client_options options;
    struct esk_client_error error;
    struct esk_pipeline *pipeline;
    esk_client_options_init(&options);
    options.address = argv[1];
    options.key = getenv("ESK_KEY");
    options.tls_ca_file = getenv("ESK_CA");
    options.tls = options.tls_ca_file != NULL;
    options.idempotent = true;
    if (esk_pipeline_open(&options, &pipeline, &error) != ESK_CLIENT_OK) {
        fprintf(stderr, "open: %s\n", error.text);
        return 1;
    }
    int code = run(pipeline, argv[2], strtoull(argv[3], NULL, 10));
    esk_pipeline_close(pipeline);
    return code;
}
