/* SPDX-License-Identifier: Apache-2.0 */
/* The schema registry's part of the catalogue: subjects with their versions, made by the entry
 * schema_registered. Nothing is ever removed or changed, so a schema's address and what it holds
 * stay while the catalogue lives, and may be read by any thread once its loop has shown it.
 * The rest belongs to the catalogue's owner. */
#ifndef ESK_CLUSTER_SCHEMAS_H
#define ESK_CLUSTER_SCHEMAS_H

#include "base/map.h"
#include "base/memory.h"
#include "model/entries.h"
#include "schema/schema.h"

/* All texts together: they are kept in memory, and in one snapshot with the rest. */
#define ESK_SCHEMAS_BYTES_MAX (64u << 20)
#define ESK_SCHEMA_BYTES_MAX (15u << 20) /* one text: an entry has at most 16 MiB */

struct esk_schema {
    uint32_t id;      /* from 1, over all subjects */
    uint32_t version; /* from 1, of the subject */
    enum esk_schema_type type;
    uint64_t fingerprint; /* of the canonical form */
    const struct esk_subject *subject;
    size_t text_size;
    char text[];
};

struct esk_subject {
    struct esk_schema **versions; /* version v is versions[v - 1] */
    uint32_t count;
    uint32_t capacity;
    size_t name_size;
    char name[];
};

struct esk_schemas {
    struct esk_map subjects;
    struct esk_schema **by_id; /* id i is by_id[i - 1] */
    uint32_t count;
    uint32_t capacity;
    uint64_t bytes; /* of all texts */
};

void esk_schemas_init(struct esk_schemas *schemas);
void esk_schemas_fini(struct esk_schemas *schemas);

/* NULL: there is none. */
const struct esk_schema *esk_schemas_find(const struct esk_schemas *schemas, uint32_t id);
const struct esk_subject *esk_schemas_subject(const struct esk_schemas *schemas,
                                              struct esk_slice name);
/* The newest version; NULL: an unknown subject. */
const struct esk_schema *esk_schemas_newest(const struct esk_schemas *schemas,
                                            struct esk_slice subject);
/* All subjects, sorted by name; owned, free(). */
const struct esk_subject **esk_schemas_sorted(const struct esk_schemas *schemas, size_t *count);

/* ESK_ERR_CORRUPT: the entry does not fit the state, or is none that the broker makes. */
enum esk_err esk_schemas_apply(struct esk_schemas *schemas,
                               const struct esk_catalogue_schema_registered *registered,
                               struct esk_error *error);
/* Emits the payloads that make the same state anew, in order of ids. */
void esk_schemas_snapshot(const struct esk_schemas *schemas,
                          void (*emit)(void *context, struct esk_slice payload), void *context);

#endif
