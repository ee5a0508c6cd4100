/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/owners.h"

#include "model/names.h"

#include <stdlib.h>

struct row {
    uint64_t owner;
    size_t name_size;
    uint8_t name[];
};

void esk_owners_init(struct esk_owners *owners) {
    esk_map_init(&owners->groups);
}

void esk_owners_fini(struct esk_owners *owners) {
    size_t position = 0;
    void *row;
    while (esk_map_next(&owners->groups, &position, NULL, &row)) {
        free(row);
    }
    esk_map_fini(&owners->groups);
}

uint64_t esk_owners_find(const struct esk_owners *owners, struct esk_slice group) {
    const struct row *row = esk_map_get(&owners->groups, group);
    return row == NULL ? 0 : row->owner;
}

void esk_owners_each(const struct esk_owners *owners,
                     void (*visit)(void *context, struct esk_slice group, uint64_t owner),
                     void *context) {
    size_t position = 0;
    void *value;
    while (esk_map_next(&owners->groups, &position, NULL, &value)) {
        const struct row *row = value;
        visit(context, esk_slice(row->name, row->name_size), row->owner);
    }
}

static enum esk_err misfit(struct esk_error *error, const char *what) {
    return esk_fail(error, ESK_ERR_CORRUPT, "the catalogue's entry does not fit: %s", what);
}

enum esk_err esk_owners_apply_owned(struct esk_owners *owners,
                                    const struct esk_catalogue_group_owned *owned,
                                    struct esk_error *error) {
    if (esk_id_check(owned->group, "group", NULL) != ESK_OK) {
        return misfit(error, "not a group's name");
    }
    if (owned->owner == 0 || esk_owners_find(owners, owned->group) != 0) {
        return misfit(error, "a group that has an owner, or an owner that is none");
    }
    struct row *row = esk_alloc(sizeof(*row) + owned->group.size);
    row->owner = owned->owner;
    row->name_size = owned->group.size;
    memcpy(row->name, owned->group.data, owned->group.size);
    esk_map_put(&owners->groups, owned->group, row);
    return ESK_OK;
}

enum esk_err esk_owners_apply_released(struct esk_owners *owners, struct esk_slice group,
                                       struct esk_error *error) {
    void *row = esk_map_remove(&owners->groups, group);
    if (row == NULL) {
        return misfit(error, "a group that has no owner to lose");
    }
    free(row);
    return ESK_OK;
}

static int compare_rows(const void *a, const void *b) {
    const struct row *const *left = a;
    const struct row *const *right = b;
    return esk_slice_compare(esk_slice((*left)->name, (*left)->name_size),
                             esk_slice((*right)->name, (*right)->name_size));
}

void esk_owners_snapshot(const struct esk_owners *owners,
                         void (*emit)(void *context, struct esk_slice payload), void *context) {
    const struct row **rows = esk_alloc((owners->groups.count + 1) * sizeof(*rows));
    size_t count = 0;
    size_t position = 0;
    void *value;
    while (esk_map_next(&owners->groups, &position, NULL, &value)) {
        rows[count++] = value;
    }
    qsort(rows, count, sizeof(*rows), compare_rows);
    struct esk_buffer payload;
    esk_buffer_init(&payload);
    for (size_t i = 0; i < count; i++) {
        const struct esk_catalogue_change change = {
            .kind = ESK_CATALOGUE_GROUP_OWNED,
            .group_owned = {rows[i]->owner, esk_slice(rows[i]->name, rows[i]->name_size)},
        };
        payload.size = 0;
        esk_catalogue_encode(&payload, &change);
        emit(context, esk_buffer_slice(&payload));
    }
    esk_buffer_fini(&payload);
    free(rows);
}
