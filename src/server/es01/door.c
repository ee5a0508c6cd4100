/* SPDX-License-Identifier: Apache-2.0 */
/* The door on the connection layer: the handshake, then frames until the end.
 *
 * A client's struct is made with its connection and outlives it until the last of its requests is
 * back. What a client that hung up had sent is still done; nobody gets the answers. */
#include "server/es01/es01_private.h"

#include "base/assert.h"
#include "model/limits.h"

#include <stdlib.h>

#define CONNECTIONS_PER_ADDRESS_DEFAULT 256 /* product: --binary-max-connections-per-ip */
#define IDLE_MS_DEFAULT 600000              /* spec, Binary protocol: 10 minutes */
#define HELLO_MS_DEFAULT 10000
#define FRAME_MS_DEFAULT 30000
#define REFUSALS_TOLD_NS 60000000000 /* a minute */

static struct eski_es01_shard *shard_of(const struct esk_connection *connection) {
    struct esk_es01 *es01 = esk_connection_door(connection)->context;
    return &es01->shards[esk_connection_shard(connection)];
}

static const struct esk_es01_options *options_of(const struct eski_es01_client *client) {
    return &client->shard->es01->options;
}

/* --- the client's life --- */

static void free_if_done(struct eski_es01_client *client) {
    if (client->is_closed && client->in_flight == 0) {
        struct esk_connection *connection = client->connection;
        esk_caller_release(&client->caller);
        free(client);
        esk_connection_release(connection);
    }
}

void eski_es01_client_wake(struct eski_es01_client *client) {
    if (!client->is_closed && !client->is_serving) {
        esk_connection_wake(client->connection);
    }
}

void eski_es01_client_done(struct eski_es01_client *client) {
    ESK_ASSERT(client->in_flight > 0);
    client->in_flight--;
    eski_es01_client_wake(client);
    free_if_done(client);
}

/* Once in a while: whoever is refused tries again, perhaps at once. */
static void tell_refusal(struct eski_es01_shard *shard) {
    uint64_t now_ns = esk_loop_now_ns(shard->loop);
    if (shard->refusal_told_ns == 0 || now_ns - shard->refusal_told_ns > REFUSALS_TOLD_NS) {
        shard->refusal_told_ns = now_ns;
        ESK_LOG(shard->es01->options.log, ESK_LOG_WARN, "connection-refused",
                "an address has too many connections, --binary-max-connections-per-ip",
                esk_field_text("door", "binary"),
                esk_field_u64("connections", shard->es01->options.connections_per_address_max));
    }
}

static void on_opened(struct esk_connection *connection) {
    struct eski_es01_shard *shard = shard_of(connection);
    struct eski_es01_client *client = esk_alloc_zeroed(1, sizeof *client);
    client->shard = shard;
    client->connection = connection;
    client->peer = esk_connection_peer(connection);
    esk_list_init(&client->produces);
    esk_list_init(&client->consumes);
    esk_list_init(&client->answers);
    esk_connection_set_data(connection, client);
    esk_connection_hold(connection);
    esk_counter_add(&shard->connections, 1);
    client->is_counted = esk_addresses_enter(shard->es01->addresses, &client->peer);
    if (!client->is_counted) { /* the handshake has no status for this */
        tell_refusal(shard);
        esk_connection_abort(connection);
        return;
    }
    const struct esk_es01_options *options = &shard->es01->options;
    esk_connection_set_deadline(
        connection, options->hello_ms < options->idle_ms ? options->hello_ms : options->idle_ms);
}

static void destroy_all(struct esk_link *list) {
    struct esk_link *link;
    while ((link = esk_list_first(list))) {
        eski_es01_request_destroy(ESK_CONTAINER(link, struct eski_es01_request, link));
    }
}

static void on_closed(struct esk_connection *connection) {
    struct eski_es01_client *client = esk_connection_data(connection);
    struct eski_es01_shard *shard = client->shard;
    client->in_flight++; /* stays until all of this is done */
    client->is_closed = true;
    if (client->is_counted) {
        esk_addresses_leave(shard->es01->addresses, &client->peer);
    }
    esk_counter_set(&shard->connections, esk_counter_get(&shard->connections) - 1);
    if (client->incoming) {
        eski_es01_request_destroy(client->incoming);
        client->incoming = NULL;
    }
    destroy_all(&client->answers);
    destroy_all(&client->consumes);
    eski_es01_client_done(client);
}

/* --- the handshake --- */

static void welcome(struct eski_es01_client *client, enum esk_es01_status status, uint32_t features,
                    const char *text) {
    uint8_t out[ESK_ES01_WELCOME_HEAD_BYTES + ESK_ERROR_TEXT_BYTES];
    const struct esk_es01_welcome answer = {(uint8_t)status, features, esk_slice_text(text)};
    esk_connection_write(client->connection, out, esk_es01_welcome_write(&answer, out));
    client->is_ending |= status != ESK_ES01_STATUS_OK;
    client->is_welcome = status == ESK_ES01_STATUS_OK;
}

static void greet(struct eski_es01_client *client) {
    struct esk_connection *connection = client->connection;
    struct esk_es01_hello hello;
    struct esk_error error;
    size_t size;
    enum esk_err err =
        esk_es01_hello_parse(esk_connection_input(connection), &hello, &size, &error);
    if (err == ESK_ERR_AGAIN) {
        client->is_ending |= esk_connection_input_ended(connection);
        return;
    }
    if (err != ESK_OK) {
        welcome(client,
                err == ESK_ERR_INVALID ? ESK_ES01_STATUS_BAD_MAGIC : ESK_ES01_STATUS_AUTH_FAILED, 0,
                error.text);
        return;
    }
    if (hello.token.size == 0 && esk_broker_auth_required(client->shard->broker)) {
        welcome(client, ESK_ES01_STATUS_AUTH_REQUIRED, 0,
                "a key is required: send it as the handshake's token");
        return;
    }
    err = esk_broker_authenticate(client->shard->broker, hello.token, &client->caller, &error);
    if (err != ESK_OK) {
        welcome(client, ESK_ES01_STATUS_AUTH_FAILED, 0, error.text);
        return;
    }
    esk_connection_consume(connection, size);
    uint32_t features = hello.features & ESK_ES01_FEATURES;
    client->gzip = (features & ESK_ES01_FEATURE_GZIP) != 0;
    welcome(client, ESK_ES01_STATUS_OK, features, "");
}

enum esk_err eski_es01_authorise(const struct eski_es01_client *client, uint8_t opcode,
                                 struct esk_slice topic, struct esk_error *error) {
    if (esk_caller_is_revoked(&client->caller)) {
        return esk_caller_revoked_error(error);
    }
    if (opcode == ESK_ES01_PING) {
        return ESK_OK;
    }
    return esk_caller_check(&client->caller,
                            opcode == ESK_ES01_PRODUCE ? ESK_ACTION_WRITE : ESK_ACTION_READ, topic,
                            error);
}

/* --- serving --- */

/* Of the frame that is not whole. */
static uint64_t received_bytes(const struct eski_es01_client *client) {
    if (client->incoming) {
        return client->incoming->body.size;
    }
    return client->skip_bytes < client->partial_bytes ? client->partial_bytes - client->skip_bytes
                                                      : 0;
}

static void set_deadline(struct eski_es01_client *client) {
    struct esk_connection *connection = client->connection;
    if (!client->is_welcome) {
        return; /* set when it opened */
    }
    if (client->partial_since_ns) {
        uint64_t passed_ns = esk_loop_now_ns(client->shard->loop) - client->partial_since_ns;
        bool holds = client->incoming && client->incoming->claim.is_granted;
        esk_connection_set_deadline(
            connection, esk_connection_receive_ms(passed_ns, options_of(client)->frame_ms, holds,
                                                  received_bytes(client)));
    } else {
        esk_connection_set_deadline(connection,
                                    client->in_flight ? 0 : options_of(client)->idle_ms);
    }
}

static bool is_at_end(const struct eski_es01_client *client) {
    const struct esk_connection *connection = client->connection;
    if (client->in_flight) {
        return false;
    }
    return client->is_ending || esk_connection_stopping(connection);
}

static void on_serve(struct esk_connection *connection) {
    struct eski_es01_client *client = esk_connection_data(connection);
    client->is_serving = true;
    if (!client->is_welcome && !client->is_ending) {
        greet(client);
    }
    eski_es01_answers_write(client);
    if (client->is_welcome) {
        eski_es01_consume_waiting(client);
        eski_es01_frames_take(client);
        uint32_t in_flight = client->in_flight;
        eski_es01_answers_write(client);
        if (client->in_flight < in_flight) {
            esk_connection_wake(connection); /* room for what waits in the input, or to be read */
        }
        if (!eski_es01_frames_may_take(client)) {
            esk_connection_want_input(connection, false); /* nor is it copied to and fro */
        }
    }
    client->is_serving = false;
    if (is_at_end(client)) {
        esk_connection_finish(connection);
        return;
    }
    set_deadline(client);
}

static void on_expired(struct esk_connection *connection) {
    struct eski_es01_client *client = esk_connection_data(connection);
    if (client->incoming && client->incoming->state == ESKI_ES01_CLAIMING) {
        struct esk_error error;
        eski_es01_out_of_memory(&error);
        eski_es01_frames_refuse(client, error.code, error.text);
        return;
    }
    if (client->in_flight == 0 || client->partial_since_ns) {
        client->is_ending = true;
        eski_es01_frames_take(client); /* none: gives back what the frame held */
        esk_connection_finish(connection);
    }
}

/* There is no memory for what the client sent, and it is lost: nothing can be read behind it. */
static void on_overloaded(struct esk_connection *connection) {
    struct eski_es01_client *client = esk_connection_data(connection);
    struct esk_error error;
    if (client->is_welcome && !client->is_ending) {
        eski_es01_out_of_memory(&error);
        eski_es01_frames_end(client, 0, error.code, error.text);
    }
    client->is_ending = true;
    esk_connection_wake(connection);
}

static void on_handshake_ended(struct esk_connection *connection, bool succeeded) {
    struct eski_es01_shard *shard = shard_of(connection);
    esk_counter_add(succeeded ? &shard->handshakes_done : &shard->handshakes_failed, 1);
}

static const struct esk_door_ops ops = {on_opened, on_serve, on_expired, on_closed};

/* --- life --- */

void esk_es01_options_init(struct esk_es01_options *options) {
    *options = (struct esk_es01_options){
        .body_bytes_max = ESK_BODY_BYTES_MAX_DEFAULT,
        .connections_per_address_max = CONNECTIONS_PER_ADDRESS_DEFAULT,
        .idle_ms = IDLE_MS_DEFAULT,
        .hello_ms = HELLO_MS_DEFAULT,
        .frame_ms = FRAME_MS_DEFAULT,
    };
}

static void register_metrics(struct eski_es01_shard *shard) {
    static const char *const names[ESKI_ES01_OPERATION_COUNT] = {"produce", "consume", "ping",
                                                                 "none"};
    shard->metrics = esk_metrics_create(shard->number);
    for (int i = 0; i < ESKI_ES01_OPERATION_COUNT; i++) {
        const char *labels[] = {"es01", names[i]};
        esk_metrics_add(shard->metrics, ESK_METRIC_REQUESTS_TOTAL, labels, &shard->requests[i]);
        esk_metrics_add(shard->metrics, ESK_METRIC_REQUEST_ERRORS_TOTAL, labels, &shard->errors[i]);
        esk_metrics_add_histogram(shard->metrics, ESK_METRIC_REQUEST_DURATION_SECONDS, labels,
                                  &shard->durations[i]);
    }
    const char *door[] = {"es01"};
    esk_metrics_add(shard->metrics, ESK_METRIC_CONNECTIONS, door, &shard->connections);
    const char *done[] = {"es01", "done"};
    const char *failed[] = {"es01", "failed"};
    esk_metrics_add(shard->metrics, ESK_METRIC_TLS_HANDSHAKES_TOTAL, done, &shard->handshakes_done);
    esk_metrics_add(shard->metrics, ESK_METRIC_TLS_HANDSHAKES_TOTAL, failed,
                    &shard->handshakes_failed);
}

struct esk_es01 *esk_es01_create(const struct esk_es01_options *options) {
    struct esk_es01 *es01 = esk_alloc_zeroed(1, sizeof *es01);
    es01->options = *options;
    es01->door.ops = &ops;
    es01->door.context = es01;
    es01->door.overloaded = on_overloaded;
    es01->door.handshake_ended = on_handshake_ended;
    es01->addresses = esk_addresses_create(options->connections_per_address_max);
    es01->helper = esk_worker_create(options->platform, "es01", 1);
    es01->helper_deflater = esk_es01_deflater_create();
    es01->shards = esk_alloc_zeroed(options->shard_count, sizeof *es01->shards);
    for (uint32_t i = 0; i < options->shard_count; i++) {
        struct eski_es01_shard *shard = &es01->shards[i];
        shard->es01 = es01;
        shard->broker = esk_broker_shard(options->broker, i);
        shard->loop = esk_broker_shard_loop(shard->broker);
        shard->number = i;
        shard->deflater = esk_es01_deflater_create();
        esk_buffer_init(&shard->inflated);
        esk_buffer_init(&shard->encoded);
        esk_buffer_init(&shard->deflated);
        eski_es01_merge_init(shard);
        register_metrics(shard);
    }
    return es01;
}

static void free_pool(struct eski_es01_shard *shard) {
    while (shard->pool) {
        struct eski_es01_request *next = shard->pool->next;
        esk_buffer_fini(&shard->pool->body);
        esk_buffer_fini(&shard->pool->plain);
        esk_buffer_fini(&shard->pool->text);
        free(shard->pool);
        shard->pool = next;
    }
}

void esk_es01_destroy(struct esk_es01 *es01) {
    esk_worker_destroy(es01->options.platform, es01->helper);
    for (uint32_t i = 0; i < es01->options.shard_count; i++) {
        struct eski_es01_shard *shard = &es01->shards[i];
        free_pool(shard);
        eski_es01_merge_fini(shard);
        esk_es01_inflater_destroy(shard->inflater);
        esk_es01_deflater_destroy(shard->deflater);
        esk_buffer_fini(&shard->inflated);
        esk_buffer_fini(&shard->encoded);
        esk_buffer_fini(&shard->deflated);
        esk_metrics_destroy(shard->metrics);
    }
    esk_es01_deflater_destroy(es01->helper_deflater);
    esk_addresses_destroy(es01->addresses);
    free(es01->shards);
    free(es01);
}

struct esk_door *esk_es01_door(struct esk_es01 *es01) {
    return &es01->door;
}

const struct esk_metrics *esk_es01_metrics(const struct esk_es01 *es01, uint32_t shard) {
    return es01->shards[shard].metrics;
}
