/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking client: writes three records to a topic and reads the topic's first partition.
 *
 *     cc produce_consume.c $(pkg-config --cflags --libs esker) -o produce_consume
 *     ./produce_consume 127.0.0.1:9001 orders
 */
#include <esker/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, const struct esk_client_error *error) {
    fprintf(stderr, "%s: %s (%s)\n", what, error->text, esk_client_code_text(error->code));
    return 1;
}

static struct esk_client_record record(const char *key, const char *value) {
    struct esk_client_record made = {
        .key = key,
        .key_size = strlen(key),
        .value = value,
        .value_size = strlen(value),
        .partition = ESK_CLIENT_PARTITION_ANY, /* by the key */
        .sequence = ESK_CLIENT_SEQUENCE_NONE,
    };
    return made;
}

static int produce(struct esk_client *client, const char *topic) {
    struct esk_client_record records[] = {
        record("user-1", "checkout"),
        record("user-2", "signup"),
        record("user-1", "payment"),
    };
    struct esk_client_written written[3];
    struct esk_client_error error;
    if (esk_client_produce(client, topic, records, 3, written, &error) != ESK_CLIENT_OK) {
        return fail("produce", &error);
    }
    for (size_t i = 0; i < 3; i++) {
        printf("wrote %.*s to partition %" PRIu32 " at offset %" PRIu64 "\n",
               (int)records[i].key_size, (const char *)records[i].key, written[i].partition,
               written[i].offset);
    }
    return 0;
}

static int consume(struct esk_client *client, const char *topic, uint32_t partition) {
    struct esk_client_error error;
    struct esk_client_batch batch;
    uint64_t offset = 0;
    do {
        if (esk_client_consume(client, topic, partition, offset, 1000, 1024 * 1024, &batch,
                               &error) != ESK_CLIENT_OK) {
            return fail("consume", &error);
        }
        for (size_t i = 0; i < batch.count; i++) {
            const struct esk_client_message *message = &batch.messages[i];
            printf("%" PRIu64 " %.*s=%.*s\n", message->offset, (int)message->key_size,
                   message->key ? (const char *)message->key : "", (int)message->value_size,
                   (const char *)message->value);
        }
        offset = batch.next_offset;
    } while (batch.count > 0);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s HOST:PORT TOPIC\n", argv[0]);
        return 2;
    }
    struct esk_client_options options;
    struct esk_client_error error;
    struct esk_client *client;
    esk_client_options_init(&options);
    options.address = argv[1];
    options.key = getenv("ESK_KEY");
    options.tls_ca_file = getenv("ESK_CA");
    options.tls = options.tls_ca_file != NULL;
    if (esk_client_open(&options, &client, &error) != ESK_CLIENT_OK) {
        return fail("open", &error);
    }
    int code = produce(client, argv[2]);
    if (code == 0) {
        code = consume(client, argv[2], 0);
    }
    esk_client_close(client);
    return code;
}
