/* SPDX-License-Identifier: Apache-2.0 */
/* A line is built in a fixed buffer on the stack and written at once. Each value is cut to a share
 * of the line, and a field that does not fit any more is left out, so a line is never broken. */
#include "observe/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define VALUE_BYTES 1024 /* longest value after escaping */
#define END_BYTES 8      /* kept free for the closing brace and newline */

struct line {
    char bytes[ESK_LOG_LINE_BYTES];
    size_t size;
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Appends all of it or nothing. */
static bool append(struct line *line, const char *bytes, size_t size) {
    if (size > sizeof(line->bytes) - END_BYTES - line->size) {
        return false;
    }
    memcpy(line->bytes + line->size, bytes, size);
    line->size += size;
    return true;
}

static void append_text(struct line *line, const char *text) {
    append(line, text, strlen(text));
}

/* Length of the UTF-8 sequence at `at`, which has `left` bytes; 0 when it is none. */
static size_t utf8_length(const unsigned char *at, size_t left) {
    unsigned char c = at[0];
    if (c < 0x80) {
        return 1;
    }
    size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || left < length) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (c == 0xe0 && at[1] < 0xa0) || (c == 0xf0 && at[1] < 0x90);
    bool surrogate = c == 0xed && at[1] > 0x9f;
    bool beyond = c == 0xf4 && at[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

/* The escaped form of the character at `at` in `out` (at most 8 bytes); returns its size and sets
 * *taken to the bytes it stands for. */
static size_t escape(const unsigned char *at, size_t left, bool json, char *out, size_t *taken) {
    size_t length = utf8_length(at, left);
    *taken = length ? length : 1;
    unsigned char c = at[0];
    if (length == 0) {
        return (size_t)snprintf(out, 8, json ? "\\ufffd" : "\\x%02x", c);
    }
    if (c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = (char)c;
        return 2;
    }
    if (c < 0x20 || c == 0x7f) {
        return (size_t)snprintf(out, 8, json ? "\\u%04x" : "\\x%02x", c);
    }
    memcpy(out, at, length);
    return length;
}

/* Whether a name and a number fit, or the beginning of a text. */
static bool has_room(const struct line *line, const char *name) {
    return strlen(name) + 32 <= sizeof(line->bytes) - END_BYTES - line->size;
}

/* Appends the value escaped, without quotes. */
static void append_escaped(struct line *line, const char *value, bool json) {
    size_t left = strnlen(value, VALUE_BYTES);
    const unsigned char *at = (const unsigned char *)value;
    size_t written = 0;
    while (left > 0) {
        char out[8];
        size_t taken;
        size_t size = escape(at, left, json, out, &taken);
        if (written + size > VALUE_BYTES - 3 || !append(line, out, size)) {
            append(line, "...", 3);
            return;
        }
        written += size;
        at += taken;
        left -= taken;
    }
    if (*at != '\0') {
        append(line, "...", 3);
    }
}

static bool needs_quotes(const char *value) {
    if (*value == '\0') {
        return true;
    }
    for (const unsigned char *at = (const unsigned char *)value; *at; at++) {
        if (*at <= ' ' || *at >= 0x7f || *at == '"' || *at == '\\' || *at == '=') {
            return true;
        }
    }
    return false;
}

static void append_json_text(struct line *line, const char *name, const char *value) {
    if (!has_room(line, name)) {
        return;
    }
    size_t before = line->size;
    append_text(line, line->size > 1 ? ",\"" : "\"");
    append_text(line, name);
    append_text(line, "\":\"");
    append_escaped(line, value, true);
    if (!append(line, "\"", 1)) {
        line->size = before;
    }
}

static void append_number(struct line *line, const struct esk_field *field) {
    char digits[24];
    if (field->kind == ESK_FIELD_INTEGER) {
        snprintf(digits, sizeof(digits), "%" PRId64, field->integer);
    } else {
        snprintf(digits, sizeof(digits), "%" PRIu64, (uint64_t)field->integer);
    }
    append_text(line, digits);
}

static void append_json_field(struct line *line, const struct esk_field *field) {
    if (field->kind == ESK_FIELD_TEXT) {
        append_json_text(line, field->name, field->text ? field->text : "");
        return;
    }
    if (!has_room(line, field->name)) {
        return;
    }
    append_text(line, ",\"");
    append_text(line, field->name);
    append_text(line, "\":");
    append_number(line, field);
}

static void append_plain_field(struct line *line, const struct esk_field *field) {
    if (!has_room(line, field->name)) {
        return;
    }
    append(line, " ", 1);
    append_text(line, field->name);
    append(line, "=", 1);
    if (field->kind != ESK_FIELD_TEXT) {
        append_number(line, field);
        return;
    }
    const char *value = field->text ? field->text : "";
    bool quotes = needs_quotes(value);
    size_t before = line->size;
    append_text(line, quotes ? "\"" : "");
    append_escaped(line, value, false);
    if (!append(line, "\"", quotes)) {
        line->size = before;
    }
}

static void format_time(int64_t wall_ms, char *out, size_t size) {
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    size_t length = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out + length, size - length, ".%03dZ", (int)(wall_ms % 1000));
}

void esk_log_line(const struct esk_log *log, enum esk_log_level level, const char *event,
                  const char *text, const struct esk_field *fields, size_t count) {
    if (!log || level > log->level) {
        return;
    }
    char time_text[40];
    format_time(log->wall_ms(log->context), time_text, sizeof(time_text));
    struct line line;
    line.size = 0;
    if (log->json) {
        append(&line, "{", 1);
        append_json_text(&line, "time", time_text);
        append_json_text(&line, "level", level_names[level]);
        append_json_text(&line, "event", event);
        append_json_text(&line, "text", text);
    } else {
        append_text(&line, time_text);
        append(&line, " ", 1);
        append_text(&line, level_names[level]);
        append(&line, " ", 1);
        append_text(&line, event);
        append(&line, ": ", 2);
        append_escaped(&line, text, false);
    }
    for (size_t i = 0; i < count; i++) {
        if (log->json) {
            append_json_field(&line, &fields[i]);
        } else {
            append_plain_field(&line, &fields[i]);
        }
    }
    memcpy(line.bytes + line.size, log->json ? "}\n" : "\n", 2);
    line.size += log->json ? 2 : 1;
    log->write(log->context, line.bytes, line.size);
}
