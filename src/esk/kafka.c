/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of `esk kafka …` is meant; list and export. */
#include "esk/kafka.h"
#include "atlas/page.h"
#include "atlas/site.h"
#include "esk/kafka_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int eski_kafka_misuse(const char *format, ...) {
    va_list arguments;
    fputs("esk kafka: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\nrun `esk kafka --help` for the commands\n", stderr);
    return ESKI_EXIT_USAGE;
}

bool eski_kafka_number(const char *text, int *number) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 0 || value > INT16_MAX)
        return false;
    *number = (int)value;
    return true;
}

static int list(int argc, char **argv) {
    bool json = false;
    bool removed = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--removed") == 0)
            removed = true;
        else
            return eski_kafka_misuse("list: unknown argument %s", argv[i]);
    }
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, stdout);
    if (json)
        esk_atlas_list_json(removed, &sink);
    else
        esk_atlas_list_text(removed, &sink);
    esk_atlas_sink_fini(&sink);
    return 0;
}

static int export_site(int argc, char **argv) {
    const char *directory = NULL;
    bool removed = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--removed") == 0)
            removed = true;
        else if (argv[i][0] == '-' || directory != NULL)
            return eski_kafka_misuse("export: unknown argument %s", argv[i]);
        else
            directory = argv[i];
    }
    if (directory == NULL)
        return eski_kafka_misuse("export: a directory is needed");
    struct esk_error error;
    if (esk_atlas_export(directory, removed, &error) == ESK_OK)
        return 0;
    fprintf(stderr, "esk kafka: %s\n", error.text);
    return ESKI_EXIT_DAMAGED;
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage;
} commands[] = {
    {"list", list,
     "  list [--json] [--removed]\n"
     "      every API with its key and versions; --removed: also those that Kafka 4.0 removed\n"},
    {"show", eski_kafka_show,
     "  show NAME|KEY [--version N] [--request|--response] [--hex|--json|--schema] [--removed]\n"
     "      facts, byte layout and object tree of the smallest instance\n"},
    {"decode", eski_kafka_decode,
     "  decode [--full] [--request|--response|--data NAME --version N] [FILE]\n"
     "      the tree of what FILE or stdin holds: hex, raw bytes or a pcap\n"
     "  decode --lines --json\n"
     "      a JSON line for each line `request|response|data NAME VERSION HEX`\n"},
    {"encode", eski_kafka_encode,
     "  encode --lines\n"
     "      hex for each line `request|response|data NAME VERSION JSON`; `show NAME --json` "
     "prints\n"
     "      such JSON\n"},
    {"export", export_site,
     "  export DIR [--removed]\n"
     "      the whole reference as a static site\n"},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(*commands))

static bool is_help(const char *text) {
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

static bool asks_for_help(int argc, char **argv) {
    bool asks = false;
    for (int i = 1; i < argc; i++)
        asks = asks || is_help(argv[i]);
    return asks;
}

/* Of one command, or of all. */
static void print_help(const struct command *command) {
    fputs(command ? "Usage: esk kafka\n\n" : "Usage: esk kafka COMMAND\n\n", stdout);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!command || command == &commands[i])
            fputs(commands[i].usage, stdout);
}

int esk_kafka_command(int argc, char **argv) {
    if (argc < 2)
        return eski_kafka_misuse("a command is needed");
    if (is_help(argv[1])) {
        print_help(NULL);
        return 0;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        int status = 0;
        if (asks_for_help(argc, argv))
            print_help(&commands[i]);
        else
            status = commands[i].run(argc - 1, argv + 1);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            perror("esk kafka: write to stdout");
            return ESKI_EXIT_DAMAGED;
        }
        return status;
    }
    return eski_kafka_misuse("unknown command %s", argv[1]);
}
