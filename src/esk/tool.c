/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line, shows help, or runs a command. */
#include "esk/tool.h"

#include "base/command_line.h"
#include "esk/commands.h"
#include "esk/help.h"
#include "esk/kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static esk_command_function *const functions[ESK_TOOL_COMMAND_COUNT] = {
    [ESK_TOOL_TOPIC_CREATE] = esk_topic_create,
    [ESK_TOOL_TOPIC_LIST] = esk_topic_list,
    [ESK_TOOL_TOPIC_DESCRIBE] = esk_topic_describe,
    [ESK_TOOL_TOPIC_CONFIG] = esk_topic_config_command,
    [ESK_TOOL_TOPIC_DELETE] = esk_topic_delete,
    [ESK_TOOL_PRODUCE] = esk_produce,
    [ESK_TOOL_CONSUME] = esk_consume,
    [ESK_TOOL_GROUP_OFFSETS] = esk_group_offsets,
    [ESK_TOOL_GROUP_COMMIT] = esk_group_commit,
    [ESK_TOOL_TOPIC_TAIL] = esk_topic_tail,
    [ESK_TOOL_GROUP_LIST] = esk_group_list,
    [ESK_TOOL_GROUP_DELETE] = esk_group_delete,
    [ESK_TOOL_KEY_CREATE] = esk_key_create,
    [ESK_TOOL_KEY_LIST] = esk_key_list,
    [ESK_TOOL_KEY_REVOKE] = esk_key_revoke,
    [ESK_TOOL_SCHEMA_REGISTER] = esk_schema_register,
    [ESK_TOOL_SCHEMA_CHECK] = esk_schema_check,
    [ESK_TOOL_SCHEMA_LIST] = esk_schema_list,
    [ESK_TOOL_SCHEMA_SHOW] = esk_schema_show,
    [ESK_TOOL_SCHEMA_LATEST] = esk_schema_latest,
    [ESK_TOOL_PRODUCER_LIST] = esk_producer_list,
    [ESK_TOOL_PRODUCER_FORGET] = esk_producer_forget,
    [ESK_TOOL_RAFT_LIST] = esk_raft_list,
    [ESK_TOOL_ADMIN_RUN_RETENTION] = esk_admin_run_retention,
    [ESK_TOOL_ADMIN_RUN_COMPACTION] = esk_admin_run_compaction,
    [ESK_TOOL_ADMIN_RESET_OFFSETS] = esk_admin_reset_offsets,
    [ESK_TOOL_ADMIN_TIERED] = esk_admin_tiered,
    [ESK_TOOL_ADMIN_CATALOGUE] = esk_admin_catalogue,
    [ESK_TOOL_BENCH_PRODUCE] = esk_bench_produce,
    [ESK_TOOL_BENCH_CONSUME] = esk_bench_consume,
};

/* Names what a command's words may be meant for. */
static int unknown_command(const char *const *words, uint32_t count) {
    struct esk_buffer given;
    esk_buffer_init(&given);
    esk_buffer_append_text(&given, words[0]);
    if (count > 1) {
        esk_buffer_append_text(&given, " ");
        esk_buffer_append_text(&given, words[1]);
    }
    const char *nearest = NULL;
    unsigned best = ESK_UNLIKE_MAX + 1;
    for (unsigned i = 0; i < ESK_TOOL_COMMAND_COUNT; i++) {
        const char *name = esk_tool_commands[i].name;
        unsigned whole = esk_unlike(esk_buffer_slice(&given), name);
        /* What follows a command of one word is its argument. */
        unsigned first =
            strchr(name, ' ') ? UINT32_MAX : esk_unlike(esk_slice_text(words[0]), name);
        unsigned unlike = whole < first ? whole : first;
        if (unlike < best) {
            best = unlike;
            nearest = name;
        }
    }
    int code = esk_complain(ESK_EXIT_USAGE, "'%.*s' is no command%s%s%s; esk --help shows them",
                            (int)given.size, (const char *)given.data, nearest ? ", perhaps " : "",
                            nearest ? nearest : "", nearest ? " is meant" : "");
    esk_buffer_fini(&given);
    return code;
}

/* esk help [COMMAND]; the words of the command. */
static int help(struct esk_session *session, const char *const *words, uint32_t count) {
    const struct esk_tool_command *command =
        count ? esk_command_find(words[0], count > 1 ? words[1] : NULL) : NULL;
    if (command && command->passes_on) {
        char *argv[] = {(char *)(uintptr_t)words[0],
                        (char *)(uintptr_t)(count > 1 ? words[1] : "--help"),
                        (char *)(uintptr_t) "--help", NULL};
        return esk_kafka_command(3, argv);
    }
    if (command) {
        esk_help_command(command, &session->out);
    } else if (count == 0) {
        esk_help_all(&session->out);
    } else if (count > 1 || !esk_help_group(words[0], &session->out)) {
        return unknown_command(words, count);
    }
    return esk_session_flush(session);
}

/* What has no command of the table: help, or something wrong. */
static int run_none(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    const char *const *words = arguments->arguments;
    if (arguments->count && strcmp(words[0], "help") == 0) {
        return help(session, words + 1, arguments->count - 1);
    }
    if (esk_arguments_number(arguments, "help")) {
        return help(session, words, arguments->count);
    }
    if (arguments->count == 0) {
        esk_help_all(&session->out);
        fwrite(session->out.data, 1, session->out.size, stderr);
        return ESK_EXIT_USAGE;
    }
    if (arguments->count > 1 || !esk_help_group(words[0], &session->out)) {
        return unknown_command(words, arguments->count);
    }
    fwrite(session->out.data, 1, session->out.size, stderr);
    return ESK_EXIT_USAGE;
}

/* Sets up how the broker is reached. */
static enum esk_err prepare(struct esk_session *session, struct esk_error *error) {
    const struct esk_settings *settings = &session->settings;
    enum esk_err err = esk_settings_init(&session->settings, session->arguments, error);
    if (err == ESK_OK) {
        err = esk_http_server_parse(&session->server, settings->server, error);
        if (err != ESK_OK) {
            esk_wrap(error, "--server");
            return err;
        }
        session->server.key = settings->key;
    }
    if (err == ESK_OK && session->server.is_secure) {
        err = esk_http_tls_init(&session->tls, settings->ca, settings->cert, settings->cert_key,
                                settings->insecure, error);
        session->server.tls = &session->tls;
    }
    return err;
}

static int run_command(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    struct esk_error error;
    int code;
    if (prepare(session, &error) != ESK_OK) {
        code = esk_complain(ESK_EXIT_USAGE, "%s", error.text);
    } else {
        esk_http_client_init(&session->client, &session->server,
                             (uint32_t)session->settings.timeout_ms);
        session->document = esk_json_document_create();
        code = functions[arguments->command - esk_tool_commands](session);
        esk_json_document_destroy(session->document);
        esk_http_client_fini(&session->client);
    }
    esk_http_tls_fini(&session->tls);
    esk_settings_fini(&session->settings);
    return code;
}

/* Options of every command that were given in front go along behind. */
static int pass_on(const struct esk_arguments *arguments, int argc, char **argv) {
    static char json[] = "--json";
    static char help[] = "--help";
    char **all = esk_alloc_zeroed((size_t)argc + 3, sizeof(*all));
    memcpy(all, argv, (size_t)argc * sizeof(*all));
    if (esk_arguments_number(arguments, "json")) {
        all[argc++] = json;
    }
    if (esk_arguments_number(arguments, "help")) {
        all[argc++] = help;
    }
    int code = esk_kafka_command(argc, all);
    free(all);
    return code;
}

int esk_tool_run(int argc, char **argv) {
    struct esk_arguments arguments;
    struct esk_session session = {.arguments = &arguments};
    struct esk_error error;
    int code;
    esk_buffer_init(&session.out);
    if (esk_arguments_parse(&arguments, argc, argv, &error) != ESK_OK) {
        code = esk_complain(ESK_EXIT_USAGE, "%s", error.text);
    } else if (arguments.passed_on) {
        code = pass_on(&arguments, argc - arguments.passed_on, argv + arguments.passed_on);
    } else if (esk_arguments_number(&arguments, "version")) {
        esk_buffer_append_text(&session.out, "esk " ESK_VERSION "\n");
        code = esk_session_flush(&session);
    } else if (!arguments.command) {
        code = run_none(&session);
    } else if (esk_arguments_number(&arguments, "help")) {
        esk_help_command(arguments.command, &session.out);
        code = esk_session_flush(&session);
    } else {
        session.is_json = esk_arguments_number(&arguments, "json") != 0;
        session.shows_progress = isatty(STDERR_FILENO) != 0;
        code = run_command(&session);
    }
    esk_buffer_fini(&session.out);
    esk_arguments_fini(&arguments);
    return code;
}
