/* SPDX-License-Identifier: Apache-2.0 */
/* Registering a schema. Texts are read and compared on a helper, since they may be large: first the
 * new one alone, then, when the loop has found which ones it meets, with those. The comparison is
 * with the newest version that this shard knew; should another have come in the meantime, shard 0
 * sees it when the change's turn comes, and the comparison is done again. */
#include "broker/schemas.h"

#include "base/assert.h"
#include "base/hash.h"
#include "broker/broker_private.h"

#include <stdlib.h>

enum kind { REGISTER, LOOK_UP, CHECK };

/* --- reads --- */

static void view_schema(const struct esk_schema *schema, struct esk_schema_view *view) {
    *view = (struct esk_schema_view){
        .id = schema->id,
        .version = schema->version,
        .type = schema->type,
        .subject = esk_slice(schema->subject->name, schema->subject->name_size),
        .text = esk_slice(schema->text, schema->text_size),
    };
}

bool esk_broker_schema_find(const struct esk_broker_shard *shard, uint32_t id,
                            struct esk_schema_view *view) {
    const struct esk_schema *schema = esk_schemas_find(&shard->catalogue.schemas, id);
    if (schema != NULL) {
        view_schema(schema, view);
    }
    return schema != NULL;
}

static const struct esk_schema *find_version(const struct esk_broker_shard *shard,
                                             struct esk_slice name, uint32_t version) {
    const struct esk_subject *subject = esk_schemas_subject(&shard->catalogue.schemas, name);
    if (subject == NULL || version > subject->count) {
        return NULL;
    }
    return subject->versions[(version > 0 ? version : subject->count) - 1];
}

bool esk_broker_schema_version(const struct esk_broker_shard *shard, struct esk_slice subject,
                               uint32_t version, struct esk_schema_view *view) {
    const struct esk_schema *schema = find_version(shard, subject, version);
    if (schema != NULL) {
        view_schema(schema, view);
    }
    return schema != NULL;
}

uint32_t esk_broker_schema_count(const struct esk_broker_shard *shard) {
    return shard->catalogue.schemas.count;
}

uint32_t esk_broker_schema_version_count(const struct esk_broker_shard *shard,
                                         struct esk_slice name) {
    const struct esk_subject *subject = esk_schemas_subject(&shard->catalogue.schemas, name);
    return subject != NULL ? subject->count : 0;
}

void esk_broker_subject_each(const struct esk_broker_shard *shard,
                             void (*visit)(void *context, struct esk_slice subject),
                             void *context) {
    size_t count;
    const struct esk_subject **subjects = esk_schemas_sorted(&shard->catalogue.schemas, &count);
    for (size_t i = 0; i < count; i++) {
        visit(context, esk_slice(subjects[i]->name, subjects[i]->name_size));
    }
    free(subjects);
}

/* --- operations --- */

static void finish(struct esk_schema_operation *operation, enum esk_err err) {
    free(operation->candidates);
    operation->candidates = NULL;
    esk_buffer_fini(&operation->canonical);
    eski_end(operation->shard);
    operation->done(operation, err);
}

static void finish_with(struct esk_schema_operation *operation, const struct esk_schema *schema) {
    operation->id = schema->id;
    operation->version = schema->version;
    finish(operation, ESK_OK);
}

static void compare(struct esk_schema_operation *operation);

/* In shard 0: is what it was compared with still the newest? */
static enum esk_err decide(struct esk_change *change, const struct esk_catalogue *catalogue,
                           struct esk_catalogue_change *entry, struct esk_error *error) {
    struct esk_schema_operation *operation =
        ESK_CONTAINER(change, struct esk_schema_operation, change);
    const struct esk_schemas *schemas = &catalogue->schemas;
    const struct esk_schema *newest = esk_schemas_newest(schemas, operation->subject);
    uint32_t version = newest != NULL ? newest->version : 0;
    if (version != (operation->older != NULL ? operation->older->version : 0)) {
        operation->is_stale = true;
        return ESK_OK;
    }
    if (operation->text.size > ESK_SCHEMAS_BYTES_MAX - schemas->bytes ||
        schemas->count == UINT32_MAX) {
        return esk_fail(error, ESK_ERR_NO_SPACE, "the schema registry is full: it holds %u MiB",
                        ESK_SCHEMAS_BYTES_MAX >> 20);
    }
    operation->id = schemas->count + 1;
    operation->version = version + 1;
    entry->kind = ESK_CATALOGUE_SCHEMA_REGISTERED;
    entry->schema_registered = (struct esk_catalogue_schema_registered){
        .id = operation->id,
        .version = operation->version,
        .type = (uint8_t)operation->type,
        .fingerprint = operation->fingerprint,
        .subject = operation->subject,
        .text = operation->text,
    };
    return ESK_OK;
}

static void changed(struct esk_change *change, enum esk_err err) {
    struct esk_schema_operation *operation =
        ESK_CONTAINER(change, struct esk_schema_operation, change);
    if (err == ESK_OK && operation->is_stale) {
        compare(operation); /* this shard has the newer version by now: it was mailed before */
        return;
    }
    operation->error = change->error;
    finish(operation, err);
}

static void compared(struct esk_mail *mail) {
    struct esk_schema_operation *operation = ESK_CONTAINER(mail, struct esk_schema_operation, mail);
    if (operation->match != NULL) {
        finish_with(operation, operation->match);
    } else if (operation->err != ESK_OK || operation->kind == CHECK) {
        finish(operation, operation->err);
    } else if (operation->kind == LOOK_UP) {
        finish(operation,
               esk_fail(&operation->error, ESK_ERR_NOT_FOUND, "subject '%.*s' has no such schema",
                        (int)operation->subject.size, (const char *)operation->subject.data));
    } else {
        operation->is_stale = false;
        operation->change = (struct esk_change){.decide = decide, .done = changed};
        esk_change_submit(operation->shard, &operation->change);
    }
}

static bool is_same(const struct esk_schema_operation *operation, const struct esk_schema *schema) {
    struct esk_buffer canonical;
    esk_buffer_init(&canonical);
    bool same =
        esk_schema_canonical(schema->type, esk_slice(schema->text, schema->text_size), &canonical,
                             NULL) == ESK_OK &&
        esk_slice_equal(esk_buffer_slice(&canonical), esk_buffer_slice(&operation->canonical));
    esk_buffer_fini(&canonical);
    return same;
}

static enum esk_err judge(struct esk_schema_operation *operation) {
    const struct esk_schema *older = operation->older;
    if (operation->kind == LOOK_UP || older == NULL) {
        return ESK_OK;
    }
    if (older->type != operation->type) {
        return esk_fail(&operation->error, ESK_ERR_CONFLICT,
                        "backward-incompatible: new schema is of type %s, not %s",
                        esk_schema_type_name(operation->type), esk_schema_type_name(older->type));
    }
    return esk_schema_backward(operation->type, operation->text,
                               esk_slice(older->text, older->text_size), &operation->error);
}

/* On a helper; schemas stay as they are. */
static void compare_run(struct esk_mail *mail) {
    struct esk_schema_operation *operation = ESK_CONTAINER(mail, struct esk_schema_operation, mail);
    operation->match = NULL;
    operation->err = ESK_OK;
    for (uint32_t i = 0; i < operation->candidate_count && operation->match == NULL; i++) {
        if (is_same(operation, operation->candidates[i])) {
            operation->match = operation->candidates[i];
        }
    }
    if (operation->match == NULL) {
        operation->err = judge(operation);
    }
    eski_post(operation->shard, mail, compared);
}

/* Which of the subject's versions may be the same schema: by their fingerprints, newest first. */
static void find_candidates(struct esk_schema_operation *operation) {
    const struct esk_subject *subject =
        esk_schemas_subject(&operation->shard->catalogue.schemas, operation->subject);
    free(operation->candidates);
    operation->candidates = NULL;
    operation->candidate_count = 0;
    if (subject == NULL || operation->kind == CHECK) {
        return;
    }
    bool newest_only = operation->kind == REGISTER && !operation->any_version;
    operation->candidates = esk_alloc(subject->count * sizeof(struct esk_schema *));
    for (uint32_t i = subject->count; i-- > (newest_only ? subject->count - 1 : 0);) {
        const struct esk_schema *schema = subject->versions[i];
        if (schema->type == operation->type && schema->fingerprint == operation->fingerprint) {
            operation->candidates[operation->candidate_count++] = schema;
        }
    }
}

static void compare(struct esk_schema_operation *operation) {
    struct esk_broker *broker = operation->shard->broker;
    uint32_t version = operation->kind == CHECK ? operation->against : 0;
    operation->older = find_version(operation->shard, operation->subject, version);
    find_candidates(operation);
    operation->mail.run = compare_run;
    esk_post(broker->helpers, &operation->mail);
}

static void read(struct esk_mail *mail) {
    struct esk_schema_operation *operation = ESK_CONTAINER(mail, struct esk_schema_operation, mail);
    if (operation->err != ESK_OK) {
        finish(operation, operation->err);
        return;
    }
    if (operation->kind == CHECK && operation->against > 0 &&
        find_version(operation->shard, operation->subject, operation->against) == NULL) {
        finish(operation, esk_fail(&operation->error, ESK_ERR_NOT_FOUND,
                                   "subject '%.*s' has no version %u", (int)operation->subject.size,
                                   (const char *)operation->subject.data, operation->against));
        return;
    }
    compare(operation);
}

/* On a helper. */
static void read_run(struct esk_mail *mail) {
    struct esk_schema_operation *operation = ESK_CONTAINER(mail, struct esk_schema_operation, mail);
    if (operation->text.size > ESK_SCHEMA_BYTES_MAX) {
        operation->err = esk_fail(&operation->error, ESK_ERR_TOO_LARGE, "schema is over %u bytes",
                                  ESK_SCHEMA_BYTES_MAX);
    } else {
        operation->err = esk_schema_canonical(operation->type, operation->text,
                                              &operation->canonical, &operation->error);
        operation->fingerprint = esk_hash64(operation->canonical.data, operation->canonical.size);
    }
    eski_post(operation->shard, mail, read);
}

static void start(struct esk_broker_shard *shard, struct esk_schema_operation *operation,
                  enum kind kind) {
    eski_begin(shard);
    operation->shard = shard;
    operation->kind = kind;
    operation->candidates = NULL;
    esk_buffer_init(&operation->canonical);
    operation->mail.run = read_run;
    esk_post(shard->broker->helpers, &operation->mail);
}

void esk_broker_schema_register(struct esk_broker_shard *shard,
                                struct esk_schema_operation *operation) {
    start(shard, operation, REGISTER);
}

void esk_broker_schema_look_up(struct esk_broker_shard *shard,
                               struct esk_schema_operation *operation) {
    start(shard, operation, LOOK_UP);
}

void esk_broker_schema_check(struct esk_broker_shard *shard,
                             struct esk_schema_operation *operation) {
    start(shard, operation, CHECK);
}
