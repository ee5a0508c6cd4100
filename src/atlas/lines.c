/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/lines.h"
#include "atlas/json_in.h"
#include "atlas/json_out.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_DIGITS_MAX 5

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool esk_atlas_unhex(char *text, size_t size, size_t *bytes, size_t *bad) {
    size_t count = 0;
    int high = -1;
    for (size_t i = 0; i < size; i++) {
        if (isspace((unsigned char)text[i]))
            continue;
        int value = digit(text[i]);
        if (value < 0) {
            *bad = count;
            return false;
        }
        if (high < 0) {
            high = value;
            continue;
        }
        text[count++] = (char)(high << 4 | value);
        high = -1;
    }
    *bytes = *bad = count;
    return high < 0;
}

static bool refuse(struct esk_atlas_problem *problem, size_t offset, const char *text) {
    problem->offset = offset;
    snprintf(problem->text, sizeof(problem->text), "%s", text);
    return false;
}

/* Splits three words off the line; *rest is what follows them. */
static bool parse_line(char *line, size_t size, struct esk_atlas_input *input, size_t *rest,
                       struct esk_atlas_problem *problem) {
    char *words[3];
    size_t at = 0;
    for (unsigned i = 0; i < 3; i++) {
        while (at < size && line[at] == ' ')
            at++;
        words[i] = line + at;
        while (at < size && !isspace((unsigned char)line[at]))
            at++;
        if (words[i] == line + at)
            return refuse(problem, 0, "expected `request|response|data NAME VERSION …`");
        if (at < size)
            line[at++] = '\0';
    }
    char *end;
    long version = strlen(words[2]) <= VERSION_DIGITS_MAX ? strtol(words[2], &end, 10) : -1;
    if (version < 0 || *end != '\0')
        return refuse(problem, 0, "expected a version number");
    *rest = at;
    return esk_atlas_input_named(input, words[0], words[1], (int)version, problem);
}

bool esk_atlas_decode_line(char *line, size_t size, struct esk_atlas_sink *sink) {
    struct esk_atlas_input input;
    struct esk_atlas_problem problem;
    size_t rest;
    size_t bytes;
    size_t bad;
    if (!parse_line(line, size, &input, &rest, &problem)) {
        esk_atlas_json_problem(&problem, sink);
        return false;
    }
    if (!esk_atlas_unhex(line + rest, size - rest, &bytes, &bad)) {
        refuse(&problem, bad, "expected two hex digits for each byte");
        esk_atlas_json_problem(&problem, sink);
        return false;
    }
    input.bytes = esk_slice(line + rest, bytes);
    return esk_atlas_json_line(&input, sink);
}

bool esk_atlas_encode_line(char *line, size_t size, struct esk_json_document *document,
                           struct esk_atlas_sink *sink) {
    struct esk_atlas_input input;
    struct esk_atlas_problem problem;
    struct esk_json_value root;
    struct esk_error error;
    struct esk_buffer output;
    size_t rest;
    if (!parse_line(line, size, &input, &rest, &problem)) {
        esk_atlas_text(sink, "error: ");
        esk_atlas_text(sink, problem.text);
        esk_atlas_text(sink, "\n");
        return false;
    }
    esk_buffer_init(&output);
    enum esk_err err =
        esk_json_document_parse(document, esk_slice(line + rest, size - rest), &root, &error);
    if (err == ESK_OK)
        err = esk_atlas_from_json(&input, &root, &output, &error);
    if (err == ESK_OK) {
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < output.size; i++) {
            char pair[2] = {digits[output.data[i] >> 4], digits[output.data[i] & 15]};
            esk_atlas_put(sink, pair, 2);
        }
    } else {
        esk_atlas_text(sink, "error: ");
        esk_atlas_text(sink, error.text);
    }
    esk_atlas_text(sink, "\n");
    esk_buffer_fini(&output);
    return err == ESK_OK;
}
