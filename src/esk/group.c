/* SPDX-License-Identifier: Apache-2.0 */
/* esk group offsets, commit. */
#include "esk/commands.h"
#include "esk/session.h"
#include "esk/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct commit {
    char *topic; /* owned */
    uint32_t partition;
    uint64_t offset;
    uint64_t end; /* the partition's high watermark */
    bool is_end_known;
};

struct commits {
    struct commit *items;
    size_t count;
};

static void collect(struct commits *commits, const struct esk_json_value *root) {
    struct esk_json_value topics;
    struct esk_json_value partitions;
    struct esk_json_value offset;
    struct esk_slice topic;
    struct esk_slice partition;
    if (!esk_json_find(root, "offsets", &topics)) {
        return;
    }
    struct esk_json_iterator each = esk_json_each(&topics);
    while (topics.type == ESK_JSON_OBJECT && esk_json_next_field(&each, &topic, &partitions)) {
        struct esk_json_iterator inner = esk_json_each(&partitions);
        while (partitions.type == ESK_JSON_OBJECT &&
               esk_json_next_field(&inner, &partition, &offset)) {
            commits->items =
                esk_realloc(commits->items, (commits->count + 1) * sizeof(*commits->items));
            struct commit *commit = &commits->items[commits->count++];
            *commit = (struct commit){0};
            commit->topic = esk_text_format("%.*s", (int)topic.size, (const char *)topic.data);
            for (size_t i = 0; i < partition.size; i++) {
                commit->partition = commit->partition * 10 + (partition.data[i] - '0');
            }
            (void)esk_json_uint64(&offset, &commit->offset);
        }
    }
}

/* Finds the ends of the partitions of commits[first], for all commits of its topic. */
static int find_ends(struct esk_session *session, struct commits *commits, size_t first) {
    const char *topic = commits->items[first].topic;
    char *path = esk_path("/topics/", topic, "");
    struct esk_json_value root;
    struct esk_json_value partitions;
    int code = esk_session_get(session, path, &root);
    free(path);
    if (code != ESK_EXIT_DONE || !esk_json_find(&root, "partitions", &partitions)) {
        return code;
    }
    struct esk_json_iterator each = esk_json_each(&partitions);
    struct esk_json_value partition;
    while (partitions.type == ESK_JSON_ARRAY && esk_json_next_element(&each, &partition)) {
        uint64_t number = esk_json_field_number(&partition, "partition");
        for (size_t i = first; i < commits->count; i++) {
            struct commit *commit = &commits->items[i];
            if (commit->partition == number && strcmp(commit->topic, topic) == 0) {
                commit->end = esk_json_field_number(&partition, "high_watermark");
                commit->is_end_known = true;
            }
        }
    }
    return code;
}

static void print_commits(struct esk_session *session, const struct commits *commits) {
    struct esk_table table;
    esk_table_init(&table,
                   (const char *const[]){"TOPIC", ">PARTITION", ">OFFSET", ">END", ">LAG", NULL});
    for (size_t i = 0; i < commits->count; i++) {
        const struct commit *commit = &commits->items[i];
        esk_table_text(&table, esk_slice_text(commit->topic));
        esk_table_number(&table, commit->partition);
        esk_table_number(&table, commit->offset);
        if (commit->is_end_known) {
            esk_table_number(&table, commit->end);
            char lag[24]; /* below 0: the group's next record is not there yet */
            snprintf(lag, sizeof(lag), "%" PRId64, (int64_t)(commit->end - commit->offset));
            esk_table_text(&table, esk_slice_text(lag));
        } else {
            esk_table_text(&table, esk_slice_text("-"));
            esk_table_text(&table, esk_slice_text("-"));
        }
    }
    esk_table_print(&table, &session->out);
    esk_table_fini(&table);
}

int esk_group_offsets(struct esk_session *session) {
    char *path = esk_path("/groups/", session->arguments->arguments[0], "/offsets");
    struct esk_json_value root;
    int code = esk_session_get(session, path, &root);
    free(path);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    struct commits commits = {0};
    collect(&commits, &root);
    for (size_t i = 0; i < commits.count && code == ESK_EXIT_DONE; i++) {
        if (i == 0 || strcmp(commits.items[i].topic, commits.items[i - 1].topic) != 0) {
            code = find_ends(session, &commits, i);
        }
    }
    if (code == ESK_EXIT_DONE) {
        print_commits(session, &commits);
        code = esk_session_flush(session);
    }
    for (size_t i = 0; i < commits.count; i++) {
        free(commits.items[i].topic);
    }
    free(commits.items);
    return code;
}

int esk_group_commit(struct esk_session *session) {
    const char **arguments = session->arguments->arguments;
    uint64_t partition;
    uint64_t offset;
    if (!esk_number_read(arguments[2], ESK_TOOL_INTEGER, &partition)) {
        return esk_complain(ESK_EXIT_USAGE, "partition '%s': not a whole number", arguments[2]);
    }
    if (!esk_number_read(arguments[3], ESK_TOOL_INTEGER, &offset)) {
        return esk_complain(ESK_EXIT_USAGE, "offset '%s': not a whole number", arguments[3]);
    }
    int code = esk_commit(session, arguments[0], arguments[1], partition, offset);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    if (session->is_json) {
        return esk_session_print_answer(session);
    }
    esk_buffer_format(&session->out, "%s reads %s/%llu from %llu\n", arguments[0], arguments[1],
                      (unsigned long long)partition, (unsigned long long)offset);
    return esk_session_flush(session);
}

int esk_commit(struct esk_session *session, const char *group, const char *topic,
               uint64_t partition, uint64_t offset) {
    struct esk_buffer body;
    esk_buffer_init(&body);
    struct esk_json_writer writer = esk_json_writer(&body);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "topic");
    esk_json_write_text(&writer, topic);
    esk_json_write_key(&writer, "partition");
    esk_json_write_uint64(&writer, partition);
    esk_json_write_key(&writer, "offset");
    esk_json_write_uint64(&writer, offset);
    esk_json_close_object(&writer);
    char *path = esk_path("/groups/", group, "/commit");
    struct esk_json_value root;
    int code = esk_session_call(session, "POST", path, esk_buffer_slice(&body), &root);
    free(path);
    esk_buffer_fini(&body);
    return code;
}
