/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of `esk kafka …` is meant; list and export. */
#include "esk/kafka.h"
#include "atlas/page.h"
#include "atlas/site.h"
#include "esk/kafka_private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: esk kafka COMMAND\n"
    "\n"
    "  list [--json] [--removed]\n"
    "      every API with its key and versions; --removed: also those that Kafka 4.0 removed\n"
    "  show NAME [--version N] [--request|--response] [--hex|--json|--schema] [--removed]\n"
    "      facts, byte layout and object tree of the smallest instance\n"
    "  decode [--full] [--request NAME|--response NAME|--data NAME] [--version N] [FILE]\n"
    "      the tree of what FILE or stdin holds: hex, raw bytes or a pcap\n"
    "  decode --lines --json\n"
    "      a JSON line for each line `request|response|data NAME VERSION HEX`\n"
    "  encode --lines\n"
    "      hex for each line `request|response|data NAME VERSION JSON`\n"
    "  export DIR [--removed]\n"
    "      the whole reference as a static site\n";

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

int esk_kafka_command(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"list", list},
                    {"show", eski_kafka_show},
                    {"decode", eski_kafka_decode},
                    {"encode", eski_kafka_encode},
                    {"export", export_site}};
    if (argc < 2)
        return eski_kafka_misuse("a command is needed");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        int status = commands[i].run(argc - 1, argv + 1);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            perror("esk kafka: write to stdout");
            return ESKI_EXIT_DAMAGED;
        }
        return status;
    }
    return eski_kafka_misuse("unknown command %s", argv[1]);
}
