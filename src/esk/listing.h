/* SPDX-License-Identifier: Apache-2.0 */
/* What most commands do with an answer: a list becomes a table, anything else a line; with --json
 * the answer goes out as it came. */
#ifndef ESK_ESK_LISTING_H
#define ESK_ESK_LISTING_H

#include "esk/session.h"

struct esk_column {
    const char *head;  /* as for esk_table_init: '>' in front of numbers */
    const char *field; /* of each element */
    bool is_time;      /* milliseconds since 1970 */
};

/* Appends a value as people read it: null as -, an array's elements with commas between them, an
 * object's values with colons, such as write:orders.,read:billing for a key's rules; the fields of
 * a larger object as name=value with spaces. */
void esk_listing_value(struct esk_buffer *out, const struct esk_json_value *value);

/* Appends the array of that name as a table; columns end with one without a head. */
void esk_listing_table(struct esk_buffer *out, const struct esk_json_value *root, const char *name,
                       const struct esk_column *columns);

/* GET of a path, and its list printed; enum esk_exit. */
int esk_listing_get(struct esk_session *session, const char *path, const char *name,
                    const struct esk_column *columns);

/* A call, and then a line made of the format; enum esk_exit. body data NULL: none. */
int esk_listing_do(struct esk_session *session, const char *method, const char *path,
                   struct esk_slice body, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The answer's fields printed as "name  value" lines, or as it came with --json; enum esk_exit. */
int esk_listing_fields(struct esk_session *session, const struct esk_json_value *root);

#endif
