/* SPDX-License-Identifier: Apache-2.0 */
/* `esk kafka decode` and `encode`: reads a file or stdin whole and finds out what it is, or answers
 * line by line. */
#include "atlas/capture.h"
#include "atlas/lines.h"
#include "atlas/page.h"
#include "atlas/row.h"
#include "atlas/tree.h"
#include "esk/kafka_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES (1 << 20)

struct decode {
    bool lines;
    bool json;
    size_t value_chars_max;
    const char *type; /* "request", "response", "data"; NULL: requests that say what they are */
    const char *name;
    int version;      /* -1: not given */
    const char *path; /* NULL: stdin */
};

static int parse_decode(int argc, char **argv, struct decode *decode) {
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strcmp(argument, "--lines") == 0) {
            decode->lines = true;
        } else if (strcmp(argument, "--json") == 0) {
            decode->json = true;
        } else if (strcmp(argument, "--full") == 0) {
            decode->value_chars_max = ESK_ATLAS_VALUE_CHARS_FULL;
        } else if (strcmp(argument, "--version") == 0) {
            if (++i == argc || !eski_kafka_number(argv[i], &decode->version))
                return eski_kafka_misuse("decode: --version needs a number");
        } else if (strcmp(argument, "--request") == 0 || strcmp(argument, "--response") == 0 ||
                   strcmp(argument, "--data") == 0) {
            if (++i == argc)
                return eski_kafka_misuse("decode: %s needs a name", argument);
            decode->type = argument + 2;
            decode->name = argv[i];
        } else if ((argument[0] == '-' && argument[1] != '\0') || decode->path != NULL) {
            return eski_kafka_misuse("decode: unknown argument %s", argument);
        } else {
            decode->path = argument;
        }
    }
    if (decode->lines && !decode->json)
        return eski_kafka_misuse("decode: --lines answers in JSON only: add --json");
    if (decode->type != NULL && decode->version < 0)
        return eski_kafka_misuse("decode: --%s needs --version", decode->type);
    return 0;
}

static int each_line(FILE *file, struct esk_json_document *document, struct esk_atlas_sink *sink) {
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    int status = 0;
    while ((size = getline(&line, &room, file)) >= 0) {
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            size--;
        if (room < (size_t)size + ESK_JSON_PADDING) {
            room = (size_t)size + ESK_JSON_PADDING;
            line = esk_realloc(line, room);
        }
        memset(line + size, 0, document != NULL ? ESK_JSON_PADDING : 1);
        bool good = document == NULL ? esk_atlas_decode_line(line, (size_t)size, sink)
                                     : esk_atlas_encode_line(line, (size_t)size, document, sink);
        if (!good)
            status = ESKI_EXIT_DAMAGED;
        esk_atlas_sink_flush(sink);
        fflush(stdout);
    }
    free(line);
    return status;
}

static bool read_all(FILE *file, struct esk_buffer *input) {
    for (;;) {
        uint8_t *room = esk_buffer_grow(input, READ_BYTES);
        size_t size = fread(room, 1, READ_BYTES, file);
        input->size += size;
        if (size == 0)
            return !ferror(file);
    }
}

static bool is_hex(const struct esk_buffer *input) {
    size_t digits = 0;
    for (size_t i = 0; i < input->size; i++) {
        if (isspace(input->data[i]))
            continue;
        if (!isxdigit(input->data[i]))
            return false;
        digits++;
    }
    return digits > 0;
}

/* One message: caption, tree, warnings, and on damage where it is. */
static bool print_message(const struct esk_atlas_input *input, size_t value_chars_max,
                          struct esk_atlas_sink *sink) {
    struct esk_atlas_problem problem;
    if (input->message != NULL) {
        esk_atlas_caption(input->message, input->version, input->bytes.size, sink);
        esk_atlas_text(sink, "\n\n");
    }
    bool good = esk_atlas_tree(input, value_chars_max, sink, &problem);
    esk_atlas_warnings(input, "warning: ", sink);
    if (!good) {
        esk_atlas_format(sink, "error: offset 0x%04zx: ", problem.offset);
        esk_atlas_text(sink, problem.text);
        esk_atlas_text(sink, "\n");
    }
    return good;
}

struct print {
    struct esk_atlas_sink *sink;
    size_t value_chars_max;
    bool good;
};

static void on_message(void *context, const struct esk_atlas_input *input) {
    struct print *print = context;
    print->good &= print_message(input, print->value_chars_max, print->sink);
    esk_atlas_text(print->sink, "\n");
}

static void on_note(void *context, const char *text, bool problem) {
    struct print *print = context;
    print->good &= !problem;
    esk_atlas_format(print->sink, "%s%s\n\n", problem ? "error: " : "", text);
}

/* Requests, one after the other, that say in their headers what they are. */
static void decode_requests(struct esk_slice bytes, const struct print *print) {
    struct esk_capture_visitor visitor = {(void *)(uintptr_t)print, on_message, on_note};
    esk_capture_requests(bytes, &visitor);
}

static bool decode_named(const struct decode *decode, struct esk_slice bytes,
                         const struct print *print) {
    struct esk_atlas_input input;
    struct esk_atlas_problem problem;
    if (!esk_atlas_input_named(&input, decode->type, decode->name, decode->version, &problem)) {
        eski_kafka_misuse("decode: %s", problem.text);
        return false;
    }
    input.bytes = bytes;
    return print_message(&input, decode->value_chars_max, print->sink);
}

int eski_kafka_decode(int argc, char **argv) {
    struct decode decode = {.version = -1, .value_chars_max = ESK_ATLAS_VALUE_CHARS};
    int status = parse_decode(argc, argv, &decode);
    if (status != 0)
        return status;
    bool standard = decode.path == NULL || strcmp(decode.path, "-") == 0;
    FILE *file = standard ? stdin : fopen(decode.path, "rb");
    if (file == NULL) {
        fprintf(stderr, "esk kafka: open %s: %s\n", decode.path, strerror(errno));
        return ESKI_EXIT_DAMAGED;
    }
    struct esk_atlas_sink sink;
    struct esk_buffer input;
    esk_atlas_sink_init(&sink, stdout);
    esk_buffer_init(&input);
    struct print print = {&sink, decode.value_chars_max, true};
    if (decode.lines) {
        status = each_line(file, NULL, &sink);
    } else if (!read_all(file, &input)) {
        fprintf(stderr, "esk kafka: read %s: %s\n", standard ? "stdin" : decode.path,
                strerror(errno));
        status = ESKI_EXIT_DAMAGED;
    } else {
        struct esk_capture_visitor visitor = {&print, on_message, on_note};
        size_t bad;
        if (is_hex(&input) && !esk_atlas_unhex((char *)input.data, input.size, &input.size, &bad))
            on_note(&print, "an odd number of hex digits", true);
        else if (decode.type != NULL)
            print.good = decode_named(&decode, esk_buffer_slice(&input), &print);
        else if (esk_capture_is(esk_buffer_slice(&input)))
            esk_capture_walk(esk_buffer_slice(&input), &visitor);
        else
            decode_requests(esk_buffer_slice(&input), &print);
        status = print.good ? 0 : ESKI_EXIT_DAMAGED;
    }
    if (!standard)
        fclose(file);
    esk_buffer_fini(&input);
    esk_atlas_sink_fini(&sink);
    return status;
}

int eski_kafka_encode(int argc, char **argv) {
    if (argc != 2 || strcmp(argv[1], "--lines") != 0)
        return eski_kafka_misuse("encode: --lines is the only form");
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, stdout);
    struct esk_json_document *document = esk_json_document_create();
    int status = each_line(stdin, document, &sink);
    esk_json_document_destroy(document);
    esk_atlas_sink_fini(&sink);
    return status;
}
