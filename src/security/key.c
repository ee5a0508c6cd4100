/* SPDX-License-Identifier: Apache-2.0 */
#include "security/key.h"

#include "base/memory.h"
#include "security/usage.h"

#include <stdlib.h>

static struct esk_slice copy_behind(uint8_t **at, struct esk_slice bytes) {
    struct esk_slice copy = esk_slice(*at, bytes.size);
    if (bytes.size > 0) {
        memcpy(*at, bytes.data, bytes.size);
    }
    *at += bytes.size;
    return copy;
}

struct esk_key *esk_key_create(const struct esk_key_description *description,
                               struct esk_usage *usage) {
    size_t size = sizeof(struct esk_key) + description->grant_count * sizeof(struct esk_grant) +
                  description->name.size;
    for (uint32_t i = 0; i < description->grant_count; i++) {
        size += description->grants[i].prefix.size;
    }
    struct esk_key *key = esk_alloc_zeroed(1, size);
    struct esk_grant *grants = (struct esk_grant *)(void *)(key + 1);
    uint8_t *at = (uint8_t *)(grants + description->grant_count);
    key->about = *description;
    key->about.name = copy_behind(&at, description->name);
    key->about.grants = grants;
    for (uint32_t i = 0; i < description->grant_count; i++) {
        grants[i].action = description->grants[i].action;
        grants[i].prefix = copy_behind(&at, description->grants[i].prefix);
        key->admin |= grants[i].action == ESK_ACTION_ADMIN;
    }
    key->uses = 1;
    esk_list_init(&key->watches);
    key->usage = usage;
    return key;
}

void esk_key_release(struct esk_key *key) {
    if (key != NULL && --key->uses == 0) {
        esk_usage_release(key->usage);
        free(key);
    }
}

void esk_key_watch(struct esk_key *key, struct esk_key_watch *watch) {
    esk_list_init(&watch->link);
    if (key->revoked) {
        watch->revoked(watch);
    } else {
        esk_list_append(&key->watches, &watch->link);
    }
}

void esk_key_watch_end(struct esk_key_watch *watch) {
    if (watch->link.next != NULL) {
        esk_list_remove(&watch->link);
    }
}

void esk_key_revoke(struct esk_key *key) {
    key->revoked = true;
    struct esk_link *link;
    while ((link = esk_list_first(&key->watches)) != NULL) {
        esk_list_remove(link);
        struct esk_key_watch *watch = ESK_CONTAINER(link, struct esk_key_watch, link);
        watch->revoked(watch);
    }
}

static const char digits[] = "0123456789abcdef";

void esk_key_id_format(uint64_t id, char text[ESK_KEY_ID_BYTES]) {
    memcpy(text, "k_", 2);
    for (unsigned i = 0; i < 16; i++) {
        text[2 + i] = digits[id >> (60 - 4 * i) & 15];
    }
    text[18] = '\0';
}

bool esk_key_id_parse(struct esk_slice text, uint64_t *id) {
    if (text.size != 18 || memcmp(text.data, "k_", 2) != 0) {
        return false;
    }
    *id = 0;
    for (size_t i = 2; i < 18; i++) {
        const char *digit = text.data[i] == '\0' ? NULL : strchr(digits, text.data[i]);
        if (digit == NULL) {
            return false;
        }
        *id = *id << 4 | (uint64_t)(digit - digits);
    }
    return *id != 0;
}
