/* SPDX-License-Identifier: Apache-2.0 */
/* Structured log lines: an event name, a text for people, and fields. Text or JSON, one write per
 * line. Any thread. Clock and output are function pointers, so that a simulated run logs too.
 *
 *   2026-11-30T06:44:00.123Z info listening: HTTP door open door=http address=127.0.0.1:9000
 *   {"time":"2026-11-30T06:44:00.123Z","level":"info","event":"listening","text":"HTTP door open",
 *    "door":"http","address":"127.0.0.1:9000"}
 *
 * Values may hold any bytes: a line is always one line, and in JSON always valid JSON and UTF-8
 * (bytes that are not UTF-8 become U+FFFD there, \xNN in text). */
#ifndef ESK_OBSERVE_LOG_H
#define ESK_OBSERVE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum esk_log_level { ESK_LOG_ERROR, ESK_LOG_WARN, ESK_LOG_INFO, ESK_LOG_DEBUG };

struct esk_log {
    enum esk_log_level level; /* lines above it are dropped */
    bool json;
    int64_t (*wall_ms)(void *context);
    void (*write)(void *context, const char *line, size_t size); /* with its newline; any thread */
    void *context;
};

/* A field of a line. Made by the functions below; borrowed during the call. */
struct esk_field {
    const char *name;
    enum { ESK_FIELD_TEXT, ESK_FIELD_INTEGER, ESK_FIELD_UNSIGNED } kind;
    const char *text;
    int64_t integer;
};
static inline struct esk_field esk_field_text(const char *name, const char *text) {
    return (struct esk_field){name, ESK_FIELD_TEXT, text, 0};
}
static inline struct esk_field esk_field_i64(const char *name, int64_t value) {
    return (struct esk_field){name, ESK_FIELD_INTEGER, NULL, value};
}
static inline struct esk_field esk_field_u64(const char *name, uint64_t value) {
    return (struct esk_field){name, ESK_FIELD_UNSIGNED, NULL, (int64_t)value};
}

/* event: a short stable name such as "listening"; text: what a person reads. log may be NULL. */
void esk_log_line(const struct esk_log *log, enum esk_log_level level, const char *event,
                  const char *text, const struct esk_field *fields, size_t count);

#define ESK_LOG_LINE_BYTES                                                                         \
    4096 /* longest line; values are cut, marked by "...", to stay below it */

#define ESK_LOG(log, level, event, text, ...)                                                      \
    esk_log_line((log), (level), (event), (text), (struct esk_field[]){__VA_ARGS__},               \
                 sizeof((struct esk_field[]){__VA_ARGS__}) / sizeof(struct esk_field))

#endif
