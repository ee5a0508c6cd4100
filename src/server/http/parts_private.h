/* SPDX-License-Identifier: Apache-2.0 */
/* What some handlers keep in their request from one step to the next. */
#ifndef ESK_SERVER_HTTP_PARTS_PRIVATE_H
#define ESK_SERVER_HTTP_PARTS_PRIVATE_H

#include "broker/schemas.h"
#include "server/http/consume_encoder_private.h"

struct eski_tail {
    struct esk_consume consume;
    struct eski_consume_encoder encoder;
    struct esk_timer timer;
    uint64_t offset; /* to begin with, unless */
    bool is_at_end;
    bool is_base64;
    bool has_records; /* the encoder has more, or may have */
    bool is_over;
    enum esk_err err; /* with request->error: the last event */
    uint64_t charged_bytes;
};

struct eski_atlas {
    char *bytes; /* hex or base64; in the arena, as the others */
    char *type;  /* NULL: the bytes say what they are */
    char *name;
    int version;
    bool is_hex;
    bool is_found; /* a page */
};

struct eski_schema {
    struct esk_schema_operation operation;
    struct esk_schema_view view; /* to be shown */
    uint32_t number;             /* an id or version; 0: the latest version */
    uint32_t shown;              /* of a list */
    bool has_begun;
};

#endif
