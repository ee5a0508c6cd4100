/* SPDX-License-Identifier: Apache-2.0 */
/* Each part is made by a function of its own and undone in reverse order; a start that fails undoes
 * what was made. The broker recovers before a door listens, so a client that connects is served. */
#include "esker/startup.h"

#include "broker/broker.h"
#include "esker/machine.h"
#include "esker/stop.h"
#include "esker/tls.h"
#include "runtime/faults.h"
#include "runtime/loop.h"
#include "runtime/platform.h"
#include "server/connection/server.h"
#include "server/es01/es01.h"
#include "server/http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_BYTES_MIN (UINT64_C(32) << 20) /* as --memory has it */
#define SHARDS_MAX 256                        /* as --shards has it */

struct startup {
    const struct esk_options *options;
    const struct esk_log *log;
    struct esk_platform *real;
    struct esk_platform *faulty;   /* NULL without injected faults */
    struct esk_platform *platform; /* one of both */
    uint32_t shard_count;
    uint64_t memory_bytes;
    struct esk_loop **loops;
    struct esk_certificates *certificates; /* NULL: no TLS */
    struct esk_broker *broker;
    struct esk_http *http;
    struct esk_es01 *es01;                    /* NULL: off */
    const struct esk_metrics **other_metrics; /* its own, for HTTP to show */
    char *origins_text;                       /* of --cors-origin, */
    const char **origins;                     /* and where in it they begin */
    struct esk_server *server;
};

static uint64_t number(const struct startup *startup, enum esk_option option) {
    return startup->options->values[option].number;
}

/* What --shards and --memory leave to the machine. */
static void settle_resources(struct startup *startup) {
    struct esk_machine machine;
    esk_machine_read("", &machine);
    startup->shard_count = (uint32_t)number(startup, ESK_OPTION_SHARDS);
    if (startup->shard_count == 0) {
        startup->shard_count = machine.cores < SHARDS_MAX ? machine.cores : SHARDS_MAX;
    }
    startup->memory_bytes = number(startup, ESK_OPTION_MEMORY);
    if (startup->memory_bytes == 0) {
        uint64_t quarter = machine.memory_bytes / 4;
        startup->memory_bytes = quarter > MEMORY_BYTES_MIN ? quarter : MEMORY_BYTES_MIN;
    }
}

static enum esk_err make_platform(struct startup *startup, struct esk_error *error) {
    startup->real = esk_runtime_platform_create();
    startup->platform = startup->real;
#ifdef ESK_TEST_HOOKS
    const char *rules = getenv("ESKER_FAULTS");
    if (rules) {
        enum esk_err err = esk_faults_create(startup->real, rules, &startup->faulty, error);
        if (err != ESK_OK) {
            return err;
        }
        startup->platform = startup->faulty;
    }
#else
    (void)error;
#endif
    return ESK_OK;
}

static void start_loops(struct startup *startup) {
    startup->loops = esk_alloc_zeroed(startup->shard_count, sizeof(struct esk_loop *));
    for (uint32_t i = 0; i < startup->shard_count; i++) {
        char name[24];
        snprintf(name, sizeof(name), "shard %u", (unsigned)i);
        startup->loops[i] = esk_loop_create(name);
        esk_loop_start(startup->loops[i]);
    }
}

static void stop_loops(struct startup *startup) {
    for (uint32_t i = 0; startup->loops && i < startup->shard_count; i++) {
        esk_loop_stop(startup->loops[i]);
    }
    for (uint32_t i = 0; startup->loops && i < startup->shard_count; i++) {
        esk_loop_join(startup->loops[i]);
        esk_loop_destroy(startup->loops[i]);
    }
    free(startup->loops);
}

static void on_broker_failed(void *context, const struct esk_error *error) {
    (void)context;
    esk_stop_fail(error);
}

/* What is there must be a folder; what is not there is made. */
static enum esk_err check_data_folder(const struct startup *startup, struct esk_error *error) {
    const char *path = startup->options->values[ESK_OPTION_DATA_DIR].text;
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
        return esk_fail(error, ESK_ERR_INVALID, "--data-dir %.300s: it is not a folder", path);
    }
    return ESK_OK;
}

static bool asks_for_keys(const struct startup *startup) {
    return strcmp(startup->options->values[ESK_OPTION_AUTH].text, "required") == 0;
}

static enum esk_err start_broker(struct startup *startup, struct esk_error *error) {
    struct esk_broker_options options;
    esk_broker_options_init(&options);
    options.platform = startup->platform;
    options.loops = startup->loops;
    options.shard_count = startup->shard_count;
    options.data_folder = startup->options->values[ESK_OPTION_DATA_DIR].text;
    options.log = startup->log;
    options.flush_every_records = (uint32_t)number(startup, ESK_OPTION_FLUSH_EVERY_RECORDS);
    options.flush_interval_ms = (uint32_t)number(startup, ESK_OPTION_FLUSH_INTERVAL);
    options.memory_bytes = startup->memory_bytes;
    options.record_bytes_max = number(startup, ESK_OPTION_MAX_RECORD_BYTES);
    options.fetch_records_max = (uint32_t)number(startup, ESK_OPTION_MAX_FETCH_RECORDS);
    options.fetch_bytes_max = number(startup, ESK_OPTION_MAX_FETCH_BYTES);
    options.retention_interval_ms = number(startup, ESK_OPTION_RETENTION_INTERVAL);
    options.compaction_interval_ms = number(startup, ESK_OPTION_COMPACTION_INTERVAL);
    options.member_timeout_ms = number(startup, ESK_OPTION_COORD_MEMBER_TIMEOUT);
    options.auth_required = asks_for_keys(startup);
    options.failed = on_broker_failed;
    return esk_broker_start(&options, &startup->broker, error);
}

/* --cors-origin, taken apart at its spaces. */
static void read_origins(struct startup *startup, struct esk_http_options *options) {
    const char *text = startup->options->values[ESK_OPTION_CORS_ORIGIN].text;
    if (!text) {
        return;
    }
    startup->origins_text = esk_text_copy(text);
    startup->origins = esk_alloc(strlen(text) * sizeof(char *));
    char *rest = startup->origins_text;
    for (char *origin; (origin = strsep(&rest, " "));) {
        if (*origin) {
            startup->origins[options->cors_origin_count++] = origin;
        }
    }
    options->cors_origins = startup->origins;
}

static void make_http(struct startup *startup) {
    struct esk_http_options options;
    esk_http_options_init(&options);
    options.platform = startup->platform;
    options.broker = startup->broker;
    options.shard_count = startup->shard_count;
    options.log = startup->log;
    options.body_bytes_max = number(startup, ESK_OPTION_MAX_REQUEST_BODY_BYTES);
    read_origins(startup, &options);
#ifdef ESK_TEST_HOOKS
    options.failing_operation = getenv("ESKER_FAIL_OPERATION");
#endif
    options.other_metrics = startup->other_metrics;
    options.other_metrics_count = startup->es01 ? startup->shard_count : 0;
    startup->http = esk_http_create(&options);
}

static void make_es01(struct startup *startup) {
    if (!startup->options->values[ESK_OPTION_BIND_BINARY].text) {
        return;
    }
    struct esk_es01_options options;
    esk_es01_options_init(&options);
    options.platform = startup->platform;
    options.broker = startup->broker;
    options.shard_count = startup->shard_count;
    options.log = startup->log;
    options.body_bytes_max = number(startup, ESK_OPTION_MAX_REQUEST_BODY_BYTES);
    options.connections_per_address_max =
        (uint32_t)number(startup, ESK_OPTION_BINARY_MAX_CONNECTIONS_PER_IP);
    options.idle_ms = (uint32_t)number(startup, ESK_OPTION_BINARY_IDLE_TIMEOUT);
    startup->es01 = esk_es01_create(&options);
    startup->other_metrics = esk_alloc(startup->shard_count * sizeof(struct esk_metrics *));
    for (uint32_t i = 0; i < startup->shard_count; i++) {
        startup->other_metrics[i] = esk_es01_metrics(startup->es01, i);
    }
}

static bool is_loopback(const char *address) {
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0;
}

static enum esk_err open_door(struct startup *startup, struct esk_door *door, const char *name,
                              enum esk_option option, const char *option_name,
                              struct esk_error *error) {
    char address[ESK_SERVER_ADDRESS_BYTES];
    enum esk_err err = esk_server_listen(startup->server, door,
                                         startup->options->values[option].text, address, error);
    if (err != ESK_OK) {
        esk_wrap(error, "%s", option_name);
        return err;
    }
    ESK_LOG(startup->log, ESK_LOG_INFO, "listening", "a door is open", esk_field_text("door", name),
            esk_field_text("address", address));
    bool asks_clients =
        startup->certificates && esk_certificates_ask_clients(startup->certificates);
    if (!is_loopback(address) && !asks_clients && !asks_for_keys(startup)) {
        ESK_LOG(
            startup->log, ESK_LOG_WARN, "unprotected",
            "whoever reaches this address may read, write and delete: nobody is asked for a key",
            esk_field_text("door", name), esk_field_text("address", address));
    }
    return ESK_OK;
}

static enum esk_err open_doors(struct startup *startup, struct esk_error *error) {
    struct esk_server_options options;
    esk_server_options_init(&options);
    options.platform = startup->platform;
    options.loops = startup->loops;
    options.shard_count = startup->shard_count;
    options.broker = startup->broker;
    options.log = startup->log;
    options.certificates = startup->certificates;
    enum esk_err err = esk_server_create(&options, &startup->server, error);
    if (err != ESK_OK) {
        return err;
    }
    make_es01(startup);
    make_http(startup);
    if (startup->es01) { /* first: whoever is answered by HTTP finds the other door open */
        err = open_door(startup, esk_es01_door(startup->es01), "binary", ESK_OPTION_BIND_BINARY,
                        "--bind-binary", error);
    }
    return err ? err
               : open_door(startup, esk_http_door(startup->http), "http", ESK_OPTION_BIND, "--bind",
                           error);
}

static enum esk_err start(struct startup *startup, struct esk_error *error) {
    enum esk_err err = make_platform(startup, error);
    if (err != ESK_OK) {
        return err;
    }
    settle_resources(startup);
    ESK_LOG(startup->log, ESK_LOG_INFO, "starting", "esker " ESK_VERSION,
            esk_field_text("data", startup->options->values[ESK_OPTION_DATA_DIR].text),
            esk_field_u64("shards", startup->shard_count),
            esk_field_u64("memory_bytes", startup->memory_bytes));
    uint64_t began_ns = esk_monotonic_ns(startup->platform);
    start_loops(startup);
    err = esk_tls_load(startup->options, startup->log, &startup->certificates, error);
    if (err == ESK_OK) {
        err = check_data_folder(startup, error);
    }
    if (err == ESK_OK) {
        err = start_broker(startup, error);
    }
    if (err == ESK_OK && !esk_stop_asked()) {
        err = open_doors(startup, error);
    }
    if (err == ESK_OK && !esk_stop_asked()) {
        ESK_LOG(startup->log, ESK_LOG_INFO, "ready", "serving",
                esk_field_u64("milliseconds",
                              (esk_monotonic_ns(startup->platform) - began_ns) / 1000000));
    }
    return err;
}

/* Ends the process where it stands. A broker that failed keeps its threads and memory and answers
 * nothing that is in flight, so there is nothing to wait for and nothing that can be undone. */
static _Noreturn void end_at_once(void) {
    _exit(ESK_EXIT_FAILURE);
}

static void on_hangup(void *context) {
    struct startup *startup = context;
    esk_tls_reload(startup->options, startup->log, startup->server);
}

/* Undoes what was made of the start. */
static void end(struct startup *startup) {
    struct esk_error error = {0};
    if (startup->server) {
        esk_server_stop(startup->server);
    }
    if (startup->http) {
        esk_http_destroy(startup->http);
    }
    if (startup->es01) {
        esk_es01_destroy(startup->es01);
    }
    free(startup->other_metrics);
    free(startup->origins);
    free(startup->origins_text);
    if (startup->broker && esk_broker_stop(startup->broker, &error) != ESK_OK) {
        esk_stop_fail(&error);
        end_at_once();
    }
    stop_loops(startup);
    esk_certificates_release(startup->certificates);
#ifdef ESK_TEST_HOOKS
    esk_faults_destroy(startup->faulty);
#endif
    esk_runtime_platform_destroy(startup->real);
}

int esk_startup_run(const struct esk_options *options, const struct esk_log *log) {
    struct startup startup = {.options = options, .log = log};
    struct esk_error error = {0};
    enum esk_err err = start(&startup, &error);
    if (startup.server) {
        esk_stop_on_hangup(on_hangup, &startup);
    }
    if (err != ESK_OK) {
        esk_stop_fail(&error); /* which says so, and bounds the time that the rest may take */
        if (!startup.broker) {
            end_at_once();
        }
    } else if (esk_stop_wait()) {
        end_at_once();
    }
    end(&startup);
    if (esk_stop_wait()) {
        return ESK_EXIT_FAILURE;
    }
    esk_log_line(log, ESK_LOG_INFO, "stopped", "all is written", NULL, 0);
    return ESK_EXIT_CLEAN;
}
