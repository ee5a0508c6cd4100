/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and applies the rules of faults.h. */
#include "runtime/faults_private.h"

#include "base/memory.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const operation_names[ESKI_FAULT_OPERATION_COUNT] = {
    "open", "read", "write", "sync", "truncate", "allocate", "lock", "remove", "rename", "folder"};

static const struct {
    const char *name;
    int what;
} what_names[] = {
    {"EIO", EIO},
    {"ENOSPC", ENOSPC},
    {"EDQUOT", EDQUOT},
    {"EFBIG", EFBIG},
    {"EROFS", EROFS},
    {"EACCES", EACCES},
    {"ENOENT", ENOENT},
    {"EINVAL", EINVAL},
    {"short", ESKI_FAULT_SHORT},
    {"lost", ESKI_FAULT_LOST},
    {"stall", ESKI_FAULT_STALL},
};

static bool parse_number(const char **at, uint64_t *number) {
    char *end = NULL;
    if (**at < '0' || **at > '9') {
        return false;
    }
    *number = strtoull(*at, &end, 10);
    *at = end;
    return *number > 0;
}

static bool parse_when(struct eski_fault_rule *rule, const char *text) {
    if (*text == '@') {
        rule->while_exists = esk_text_copy(text + 1);
        return text[1] != '\0';
    }
    if (*text == '%') {
        text++;
        return parse_number(&text, &rule->every) && *text == '\0';
    }
    if (!parse_number(&text, &rule->first)) {
        return false;
    }
    rule->last = rule->first;
    if (*text == '-') {
        text++;
        rule->last = UINT64_MAX;
        if (*text != '\0' && !parse_number(&text, &rule->last)) {
            return false;
        }
    }
    return *text == '\0';
}

static bool parse_operation(struct eski_fault_rule *rule, const char *text) {
    for (unsigned i = 0; i < ESKI_FAULT_OPERATION_COUNT; i++) {
        if (strcmp(text, operation_names[i]) == 0) {
            rule->operation = (enum eski_fault_operation)i;
            return true;
        }
    }
    return false;
}

static bool parse_what(struct eski_fault_rule *rule, const char *text) {
    for (size_t i = 0; i < sizeof(what_names) / sizeof(what_names[0]); i++) {
        if (strcmp(text, what_names[i].name) == 0) {
            rule->what = what_names[i].what;
            return rule->what > 0 || rule->operation == ESKI_FAULT_WRITE;
        }
    }
    return false;
}

/* Takes a rule's text apart, writing into it. */
static enum esk_err parse_rule(struct eski_fault_rule *rule, char *text, struct esk_error *error) {
    char whole[256];
    strncpy(whole, text, sizeof(whole) - 1);
    whole[sizeof(whole) - 1] = '\0';
    char *rest = text;
    const char *operation = strsep(&rest, ":");
    const char *when = rest ? strsep(&rest, ":") : "";
    const char *what = rest ? strsep(&rest, ":") : "";
    rule->pattern = esk_text_copy(rest ? rest : "*");
    const char *wrong = NULL;
    if (!parse_operation(rule, operation)) {
        wrong = "the operation is unknown";
    } else if (!parse_when(rule, when)) {
        wrong = "when is none of N, N-M, N-, %N, @FILE";
    } else if (!parse_what(rule, what)) {
        wrong = "what is to happen is unknown, or not for this operation";
    }
    return wrong ? esk_fail(error, ESK_ERR_INVALID, "fault rule '%s': %s", whole, wrong) : ESK_OK;
}

enum esk_err eski_fault_rules_parse(struct eski_fault_rules *rules, const char *text,
                                    struct esk_error *error) {
    memset(rules, 0, sizeof(*rules));
    pthread_mutex_init(&rules->mutex, NULL);
    char *copy = esk_text_copy(text);
    char *rest = copy;
    enum esk_err err = ESK_OK;
    while (rest && err == ESK_OK) {
        char *rule = strsep(&rest, ";");
        if (*rule == '\0') {
            continue;
        }
        if (rules->count == ESKI_FAULT_RULES_MAX) {
            err =
                esk_fail(error, ESK_ERR_INVALID, "more than %d fault rules", ESKI_FAULT_RULES_MAX);
        } else {
            err = parse_rule(&rules->rules[rules->count++], rule, error);
        }
    }
    free(copy);
    return err;
}

void eski_fault_rules_fini(struct eski_fault_rules *rules) {
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->rules[i].pattern);
        free(rules->rules[i].while_exists);
    }
    pthread_mutex_destroy(&rules->mutex);
}

static bool hits(const struct eski_fault_rule *rule) {
    if (rule->while_exists) {
        return access(rule->while_exists, F_OK) == 0;
    }
    if (rule->every > 0) {
        return rule->calls % rule->every == 0;
    }
    return rule->calls >= rule->first && rule->calls <= rule->last;
}

int eski_fault_decide(struct eski_fault_rules *rules, enum eski_fault_operation operation,
                      const char *path) {
    int what = 0;
    pthread_mutex_lock(&rules->mutex);
    for (size_t i = 0; i < rules->count; i++) {
        struct eski_fault_rule *rule = &rules->rules[i];
        if (rule->operation == operation && fnmatch(rule->pattern, path, 0) == 0) {
            rule->calls++;
            if (what == 0 && hits(rule)) {
                what = rule->what;
            }
        }
    }
    pthread_mutex_unlock(&rules->mutex);
    return what;
}
