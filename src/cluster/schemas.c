/* SPDX-License-Identifier: Apache-2.0 */
/* Ids and versions are counted by the broker and must come in order, which apply checks: a gap
 * would mean that an entry is missing. */
#include "cluster/schemas.h"

#include "model/names.h"

#include <stdlib.h>
#include <string.h>

void esk_schemas_init(struct esk_schemas *schemas) {
    *schemas = (struct esk_schemas){0};
    esk_map_init(&schemas->subjects);
}

void esk_schemas_fini(struct esk_schemas *schemas) {
    size_t position = 0;
    void *value;
    while (esk_map_next(&schemas->subjects, &position, NULL, &value)) {
        struct esk_subject *subject = value;
        free(subject->versions);
        free(subject);
    }
    for (uint32_t i = 0; i < schemas->count; i++) {
        free(schemas->by_id[i]);
    }
    free(schemas->by_id);
    esk_map_fini(&schemas->subjects);
}

const struct esk_schema *esk_schemas_find(const struct esk_schemas *schemas, uint32_t id) {
    return id >= 1 && id <= schemas->count ? schemas->by_id[id - 1] : NULL;
}

const struct esk_subject *esk_schemas_subject(const struct esk_schemas *schemas,
                                              struct esk_slice name) {
    return esk_map_get(&schemas->subjects, name);
}

const struct esk_schema *esk_schemas_newest(const struct esk_schemas *schemas,
                                            struct esk_slice name) {
    const struct esk_subject *subject = esk_schemas_subject(schemas, name);
    return subject != NULL ? subject->versions[subject->count - 1] : NULL;
}

static int compare_names(const void *a, const void *b) {
    const struct esk_subject *const *left = a;
    const struct esk_subject *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

const struct esk_subject **esk_schemas_sorted(const struct esk_schemas *schemas, size_t *count) {
    const struct esk_subject **subjects =
        esk_alloc((schemas->subjects.count + 1) * sizeof(struct esk_subject *));
    size_t position = 0;
    void *subject;
    *count = 0;
    while (esk_map_next(&schemas->subjects, &position, NULL, &subject)) {
        subjects[(*count)++] = subject;
    }
    qsort(subjects, *count, sizeof(subjects[0]), compare_names);
    return subjects;
}

/* Room for one more pointer. */
static struct esk_schema **more(struct esk_schema **list, uint32_t count, uint32_t *capacity) {
    if (count < *capacity) {
        return list;
    }
    *capacity = *capacity == 0 ? 4 : 2 * *capacity;
    return esk_realloc(list, *capacity * sizeof(struct esk_schema *));
}

static enum esk_err misfit(struct esk_error *error, const char *what, uint32_t id) {
    return esk_fail(error, ESK_ERR_CORRUPT, "the catalogue's entry does not fit: %s (schema id %u)",
                    what, id);
}

enum esk_err esk_schemas_apply(struct esk_schemas *schemas,
                               const struct esk_catalogue_schema_registered *registered,
                               struct esk_error *error) {
    struct esk_subject *subject = esk_map_get(&schemas->subjects, registered->subject);
    if (registered->id != schemas->count + 1) {
        return misfit(error, "its id is not the next one", registered->id);
    }
    if (registered->version != (subject != NULL ? subject->count : 0) + 1) {
        return misfit(error, "its version is not the next one", registered->id);
    }
    if (esk_schema_type_name((enum esk_schema_type)registered->type) == NULL) {
        return esk_fail(error, ESK_ERR_VERSION, "schema id %u is of the unknown kind %u",
                        registered->id, registered->type);
    }
    if (esk_subject_check(registered->subject, NULL) != ESK_OK ||
        registered->text.size > ESK_SCHEMA_BYTES_MAX ||
        registered->text.size > ESK_SCHEMAS_BYTES_MAX - schemas->bytes) {
        return misfit(error, "not a subject's name, or too large", registered->id);
    }
    if (subject == NULL) {
        subject = esk_alloc_zeroed(1, sizeof(*subject) + registered->subject.size + 1);
        subject->name_size = registered->subject.size;
        memcpy(subject->name, registered->subject.data, registered->subject.size);
        esk_map_put(&schemas->subjects, registered->subject, subject);
    }
    struct esk_schema *schema = esk_alloc(sizeof(*schema) + registered->text.size + 1);
    *schema = (struct esk_schema){
        .id = registered->id,
        .version = registered->version,
        .type = (enum esk_schema_type)registered->type,
        .fingerprint = registered->fingerprint,
        .subject = subject,
        .text_size = registered->text.size,
    };
    if (registered->text.size > 0) {
        memcpy(schema->text, registered->text.data, registered->text.size);
    }
    schema->text[registered->text.size] = '\0';
    subject->versions = more(subject->versions, subject->count, &subject->capacity);
    subject->versions[subject->count++] = schema;
    schemas->by_id = more(schemas->by_id, schemas->count, &schemas->capacity);
    schemas->by_id[schemas->count++] = schema;
    schemas->bytes += schema->text_size;
    return ESK_OK;
}

void esk_schemas_snapshot(const struct esk_schemas *schemas,
                          void (*emit)(void *context, struct esk_slice payload), void *context) {
    struct esk_buffer payload;
    esk_buffer_init(&payload);
    for (uint32_t i = 0; i < schemas->count; i++) {
        const struct esk_schema *schema = schemas->by_id[i];
        const struct esk_catalogue_change change = {
            .kind = ESK_CATALOGUE_SCHEMA_REGISTERED,
            .schema_registered =
                {
                    .id = schema->id,
                    .version = schema->version,
                    .type = (uint8_t)schema->type,
                    .fingerprint = schema->fingerprint,
                    .subject = esk_slice(schema->subject->name, schema->subject->name_size),
                    .text = esk_slice(schema->text, schema->text_size),
                },
        };
        payload.size = 0;
        esk_catalogue_encode(&payload, &change);
        emit(context, esk_buffer_slice(&payload));
    }
    esk_buffer_fini(&payload);
}
