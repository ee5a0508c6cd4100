/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop. A start, in this order: lock, identity, journals read (each shard's), group 0
 * replayed (which says what exists), partitions made from disk, everything replayed, folders that
 * nothing knows set aside, terms raised and stored, identity stored, loops take over, every group
 * serves. With another number of shards than before everything is first settled in segments and
 * snapshots, and begins in journals of a new layout; the old ones count until the identity file
 * names the new. */
#include "broker/broker_private.h"
#include "broker/layout.h"
#include "broker/membership_private.h"
#include "broker/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "observe/exposition.h"

#include <stdlib.h>
#include <string.h>

#define TAIL_SHARE 2                            /* of the memory budget: half for memory tails */
#define REQUEST_SHARE 4                         /* a quarter for requests in flight */
#define PRODUCER_SHARE 8                        /* an eighth for windows of producers */
#define KEY_MAP_SHARE 16                        /* a sixteenth for compaction, */
#define KEY_MAP_BYTES_MAX (UINT64_C(128) << 20) /* but not more: 4 million keys at a time */
#define MOVE_BYTES (512u << 10)  /* a tail of this size is worth a write of its own */
#define OPEN_FILES_MAX 1024      /* segment files a shard keeps open */
#define POLL_NS UINT64_C(100000) /* how often a start or stop looks at its loops: 0.1 ms */
#define FULL_PATIENCE_NS UINT64_C(1000000000) /* of a stop on a full disk: 1 s */

/* States carried from journals of another layout, by group. */
struct carried {
    struct esk_group_state *states;
    size_t count;
};

static void shard_failed(void *context, const struct esk_error *error) {
    struct esk_broker *broker = context;
    if (!atomic_exchange(&broker->failed, true)) {
        ESK_LOG(broker->options.log, ESK_LOG_ERROR, "storage-failed", error->text);
        if (broker->options.failed != NULL) {
            broker->options.failed(broker->options.context, error);
        }
    }
}

static uint64_t key_map_bytes(const struct esk_broker_options *options) {
    if (options->key_map_bytes > 0) {
        return options->key_map_bytes;
    }
    uint64_t share = options->memory_bytes / KEY_MAP_SHARE;
    return share < KEY_MAP_BYTES_MAX ? share : KEY_MAP_BYTES_MAX;
}

static void shard_options(struct esk_broker *broker, uint32_t index, const char *journal,
                          struct esk_shard_options *options) {
    const struct esk_broker_options *given = &broker->options;
    uint64_t share = given->memory_bytes / TAIL_SHARE / broker->shard_count;
    *options = (struct esk_shard_options){
        .platform = given->platform,
        .loop = given->loops[index % given->shard_count],
        .helpers = broker->helpers,
        .storage = &broker->storage,
        .node = ESKI_NODE,
        .journal =
            {
                .folder = journal,
                .shard = index,
                .file_bytes = given->journal_file_bytes,
                .held_bytes_max = given->journal_held_bytes_max / broker->shard_count,
                .frame_bytes_max = given->journal_frame_bytes_max,
                .writes_max = given->journal_writes_max,
                .flush_every_records = given->flush_every_records,
                .flush_interval_ms = given->flush_interval_ms,
                .log = given->log,
            },
        .tail_bytes_max = share,
        .producer_bytes_max = given->memory_bytes / PRODUCER_SHARE / broker->shard_count,
        .move_bytes = MOVE_BYTES < share / 8 ? MOVE_BYTES : share / 8,
        .open_files_max = OPEN_FILES_MAX,
        .active_ns = &broker->active_ns,
        .key_map_bytes = key_map_bytes(given) / broker->shard_count,
        .log = given->log,
        .failed = shard_failed,
        .context = broker,
    };
}

/* --- partitions --- */

static int compare_states(const void *a, const void *b) {
    const struct esk_group_state *left = a;
    const struct esk_group_state *right = b;
    return left->group_id < right->group_id ? -1 : left->group_id > right->group_id;
}

static const struct esk_group_state *find_carried(const struct carried *carried,
                                                  uint64_t group_id) {
    const struct esk_group_state key = {.group_id = group_id};
    return carried == NULL
               ? NULL
               : bsearch(&key, carried->states, carried->count, sizeof(key), compare_states);
}

static enum esk_err recover_one(struct esk_broker *broker, const struct esk_partition_spec *spec,
                                const struct carried *carried, struct esk_error *error) {
    return esk_shard_recover_partition(eski_owner(broker, spec->group_id)->log, spec,
                                       find_carried(carried, spec->group_id), NULL, error);
}

static enum esk_err recover_offsets(struct esk_broker *broker, const struct carried *carried,
                                    struct esk_error *error) {
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < broker->options.offset_partitions && err == ESK_OK; i++) {
        struct esk_broker_shard *owner = eski_owner(broker, ESK_FIRST_OFFSET_GROUP + i);
        owner->offsets[i] = esk_alloc_zeroed(1, sizeof(struct esk_offsets));
        esk_offsets_init(owner->offsets[i]);
        const struct esk_partition_spec spec = {
            .group_id = ESK_FIRST_OFFSET_GROUP + i,
            .machine = &owner->offsets[i]->machine,
        };
        err = recover_one(broker, &spec, carried, error);
    }
    return err;
}

static enum esk_err recover_topic(struct esk_broker *broker, const struct esk_topic *topic,
                                  const struct carried *carried, struct esk_error *error) {
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < topic->partition_count && err == ESK_OK; i++) {
        const struct esk_partition_spec spec = {
            .group_id = topic->first_group + i,
            .settings = eski_partition_settings(&topic->config),
        };
        err = recover_one(broker, &spec, carried, error);
        if (err != ESK_OK) {
            esk_wrap(error, "topic %s, partition %u", topic->name, i);
        }
    }
    return err;
}

static enum esk_err recover_topics(struct esk_broker *broker, const struct carried *carried,
                                   struct esk_error *error) {
    struct esk_catalogue *catalogue = &broker->shards[0].catalogue;
    size_t position = 0;
    uint64_t id;
    void *value;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && esk_u64_map_next(&catalogue->by_id, &position, &id, &value)) {
        struct esk_topic *topic = value;
        topic->serving = true;
        if (!topic->deleted) {
            err = recover_topic(broker, topic, carried, error);
        }
    }
    return err;
}

static enum esk_err replay_all(struct esk_broker *broker, uint64_t only_group,
                               struct esk_error *error) {
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < broker->shard_count && err == ESK_OK; i++) {
        if (only_group == UINT64_MAX || &broker->shards[i] == eski_owner(broker, only_group)) {
            err = esk_shard_replay(broker->shards[i].log, only_group, error);
        }
    }
    return err;
}

/* The groups that were made with the data folder: where one is unknown its journal is gone. */
static enum esk_err check_founded(struct esk_broker *broker, struct esk_error *error) {
    for (uint64_t id = 0; id < ESK_FIRST_OFFSET_GROUP + broker->options.offset_partitions; id++) {
        const struct esk_broker_shard *owner = eski_owner(broker, id);
        if (!esk_shard_knows(owner->log, id)) {
            return esk_fail(error, ESK_ERR_CORRUPT,
                            "%s: it knows nothing of group %llu: the journal, or its beginning, "
                            "is missing",
                            owner->journal_folder, (unsigned long long)id);
        }
    }
    return ESK_OK;
}

/* The shards' journals read, and every partition as it was. founded: there was a start with this
 * layout before. */
static enum esk_err recover(struct esk_broker *broker, bool founded, const struct carried *carried,
                            struct esk_error *error) {
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < broker->shard_count && err == ESK_OK; i++) {
        struct esk_shard_options options;
        struct esk_broker_shard *shard = &broker->shards[i];
        shard->journal_folder = eski_layout_journal(broker->data_folder, broker->layout, i);
        shard_options(broker, i, shard->journal_folder, &options);
        err = esk_shard_recover(&options, &shard->log, error);
    }
    if (err == ESK_OK && founded) {
        err = check_founded(broker, error);
    }
    const struct esk_partition_spec catalogue = {
        .group_id = ESK_CATALOGUE_GROUP,
        .machine = &broker->shards[0].catalogue.machine,
    };
    if (err == ESK_OK) {
        err = recover_one(broker, &catalogue, carried, error);
    }
    if (err == ESK_OK) {
        err = replay_all(broker, ESK_CATALOGUE_GROUP, error);
    }
    if (err == ESK_OK) {
        err = recover_offsets(broker, carried, error);
    }
    if (err == ESK_OK) {
        err = recover_topics(broker, carried, error);
    }
    if (err == ESK_OK) {
        err = replay_all(broker, UINT64_MAX, error);
    }
    for (uint32_t i = 0; i < broker->shard_count && err == ESK_OK; i++) {
        err = esk_shard_verify(broker->shards[i].log, error);
    }
    return err;
}

/* --- shards --- */

static void shards_create(struct esk_broker *broker, uint32_t count) {
    const struct esk_broker_options *options = &broker->options;
    broker->shard_count = count;
    broker->shards = esk_alloc_zeroed(count, sizeof(struct esk_broker_shard));
    for (uint32_t i = 0; i < count; i++) {
        struct esk_broker_shard *shard = &broker->shards[i];
        shard->broker = broker;
        shard->index = i;
        shard->loop = options->loops[i % options->shard_count];
        shard->offsets = esk_alloc_zeroed(options->offset_partitions, sizeof(struct esk_offsets *));
        esk_list_init(&shard->changes);
        eski_memory_start(shard);
        eski_membership_init(shard);
        esk_catalogue_init(&shard->catalogue, ESK_FIRST_OFFSET_GROUP + options->offset_partitions);
        esk_keys_share(&shard->catalogue.keys, broker->usages);
    }
}

static void shards_destroy(struct esk_broker *broker) {
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        struct esk_broker_shard *shard = &broker->shards[i];
        if (shard->log != NULL) {
            esk_shard_destroy(shard->log);
        }
        for (uint32_t p = 0; p < broker->options.offset_partitions; p++) {
            if (shard->offsets[p] != NULL) {
                esk_offsets_fini(shard->offsets[p]);
                free(shard->offsets[p]);
            }
        }
        free(shard->offsets);
        eski_membership_fini(shard);
        esk_metrics_destroy(shard->metrics);
        free(shard->journal_folder);
        eski_token_cache_destroy(shard->token_cache);
        esk_catalogue_fini(&shard->catalogue);
    }
    free(broker->shards);
    broker->shards = NULL;
    broker->shard_count = 0;
}

static void copy_change(struct esk_broker *broker, const struct esk_catalogue_change *change,
                        struct esk_topic_cursor *cursor) {
    struct esk_block *payload = esk_catalogue_payload(change);
    for (uint32_t i = 1; i < broker->shard_count; i++) {
        ESK_ASSERT(esk_catalogue_apply(&broker->shards[i].catalogue,
                                       esk_slice(payload->data, payload->size), cursor,
                                       NULL) == ESK_OK);
    }
    esk_block_release(payload);
}

/* What is not about topics goes to the copies as a snapshot has it. */
static void copy_other(void *context, struct esk_slice payload) {
    struct esk_broker *broker = context;
    struct esk_catalogue_change change;
    ESK_ASSERT(esk_catalogue_decode(payload, &change, NULL) == ESK_OK);
    if (change.kind > ESK_CATALOGUE_NEXT_GROUP) {
        copy_change(broker, &change, NULL);
    }
}

/* Every shard's copy of the catalogue, with the cursors of shard 0's; tombstones too. */
static void copy_catalogue(struct esk_broker *broker) {
    const struct esk_catalogue *source = &broker->shards[0].catalogue;
    size_t position = 0;
    uint64_t id;
    void *value;
    while (esk_u64_map_next(&source->by_id, &position, &id, &value)) {
        const struct esk_topic *topic = value;
        struct esk_catalogue_change change = esk_catalogue_creation(topic);
        if (topic->deleted) {
            change.topic_created.name = esk_slice(NULL, 0); /* it may be taken again */
        }
        copy_change(broker, &change, topic->cursor);
        for (uint32_t i = 1; i < broker->shard_count; i++) {
            esk_catalogue_topic(&broker->shards[i].catalogue, id)->serving = true;
        }
        if (topic->deleted) {
            change = (struct esk_catalogue_change){.kind = ESK_CATALOGUE_TOPIC_DELETED,
                                                   .topic_deleted = {id}};
            copy_change(broker, &change, NULL);
        }
    }
    struct esk_machine *machine = &broker->shards[0].catalogue.machine;
    machine->ops->snapshot(machine, copy_other, broker);
}

/* --- a change of layout --- */

static enum esk_err settle_all(struct esk_broker *broker, struct carried *carried,
                               struct esk_error *error) {
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < broker->shard_count && err == ESK_OK; i++) {
        struct esk_group_state *states = NULL;
        size_t count = 0;
        err = esk_shard_settle(broker->shards[i].log, &states, &count, error);
        if (err == ESK_OK) {
            carried->states =
                esk_realloc(carried->states, (carried->count + count + 1) * sizeof(*states));
            memcpy(carried->states + carried->count, states, count * sizeof(*states));
            carried->count += count;
        }
        free(states);
    }
    if (carried->count > 0) {
        qsort(carried->states, carried->count, sizeof(*carried->states), compare_states);
    }
    return err;
}

/* Brings everything from the journals of `old` into files; the broker is empty afterwards. */
static enum esk_err settle_layout(struct esk_broker *broker, const struct eski_layout *old,
                                  struct carried *carried, struct esk_error *error) {
    ESK_LOG(broker->options.log, ESK_LOG_INFO, "layout-changes",
            "laying partitions out over another number of shards",
            esk_field_u64("from", old->shard_count),
            esk_field_u64("to", broker->options.shard_count));
    ESK_REACHED(SHARDS_CHANGED);
    broker->layout = old->layout;
    shards_create(broker, old->shard_count);
    enum esk_err err = recover(broker, true, NULL, error);
    if (err == ESK_OK) {
        err = settle_all(broker, carried, error);
    }
    shards_destroy(broker);
    return err;
}

/* --- leftovers --- */

static void report_foreign(void *context, const char *name) {
    const struct esk_broker *broker = context;
    ESK_LOG(broker->options.log, ESK_LOG_WARN, "foreign-folder",
            "a folder among the groups is not one of ours", esk_field_text("name", name));
}

/* Folders of no known group: of a deleted topic they go later, others are set aside. */
static enum esk_err set_leftovers_aside(struct esk_broker *broker, struct esk_error *error) {
    uint64_t *ids = NULL;
    size_t count = 0;
    const struct esk_catalogue *catalogue = &broker->shards[0].catalogue;
    enum esk_err err =
        esk_group_files_list(&broker->storage, &ids, &count, report_foreign, broker, error);
    for (size_t i = 0; i < count && err == ESK_OK; i++) {
        bool deleted = false;
        size_t position = 0;
        uint64_t id;
        void *value;
        if (esk_shard_find(eski_owner(broker, ids[i])->log, ids[i]) != NULL) {
            continue;
        }
        while (!deleted && esk_u64_map_next(&catalogue->by_id, &position, &id, &value)) {
            const struct esk_topic *topic = value;
            deleted = topic->deleted && ids[i] >= topic->first_group &&
                      ids[i] - topic->first_group < topic->partition_count;
        }
        if (!deleted) {
            ESK_LOG(broker->options.log, ESK_LOG_WARN, "unknown-group",
                    "a group's folder that the catalogue does not know is set aside in lost/",
                    esk_field_u64("group", ids[i]));
            err = esk_group_files_set_aside(&broker->storage, ids[i], error);
        }
    }
    free(ids);
    return err;
}

/* --- the loops --- */

static void shard_told(void *context) {
    struct esk_broker_shard *shard = context;
    atomic_fetch_sub(&shard->broker->waiting, 1);
}

static bool wait_for_shards(struct esk_broker *broker) {
    while (atomic_load(&broker->waiting) > 0 && !atomic_load(&broker->failed)) {
        esk_pause(broker->options.platform, POLL_NS);
    }
    return atomic_load(&broker->waiting) == 0;
}

/* In shard 0, once everything serves: deletions that a crash cut off. */
static void resume_deletions(struct esk_broker_shard *zero) {
    size_t position = 0;
    uint64_t id;
    void *value;
    while (esk_u64_map_next(&zero->catalogue.by_id, &position, &id, &value)) {
        if (((struct esk_topic *)value)->deleted) {
            eski_topic_delete_again(zero, id);
        }
    }
}

static void serve_run(struct esk_mail *mail) {
    struct esk_broker_shard *shard = ESK_CONTAINER(mail, struct esk_broker_shard, mail);
    if (shard->index == 0) {
        resume_deletions(shard);
        eski_producers_start(shard);
    }
    eski_cleaning_start(shard);
    eski_membership_serve(shard);
    atomic_fetch_sub(&shard->broker->waiting, 1);
}

static enum esk_err start_loops(struct esk_broker *broker, struct esk_error *error) {
    atomic_store(&broker->waiting, broker->shard_count);
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        eski_metrics_start(&broker->shards[i]);
        esk_shard_start(broker->shards[i].log, shard_told, &broker->shards[i]);
    }
    if (!wait_for_shards(broker)) {
        return esk_fail(error, ESK_ERR_IO, "the disk failed during the start");
    }
    atomic_store(&broker->waiting, broker->shard_count);
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        eski_post(&broker->shards[i], &broker->shards[i].mail, serve_run);
    }
    wait_for_shards(broker);
    atomic_store(&broker->serving, true);
    return ESK_OK;
}

/* --- start --- */

static enum esk_err open_storage(struct esk_broker *broker, struct esk_error *error) {
    const struct esk_broker_options *options = &broker->options;
    char *pool = esk_text_format("%s/pool", broker->data_folder);
    char *ballast = esk_text_format("%s/ballast", broker->data_folder);
    broker->groups_folder = esk_text_format("%s/groups", broker->data_folder);
    broker->storage.platform = options->platform;
    broker->storage.folder = broker->groups_folder;
    broker->storage.reserve = esk_reserve_create(
        options->platform, ballast, options->reserve_step_bytes, options->reserve_bytes_max);
    enum esk_err err = esk_folder_make(options->platform, broker->groups_folder, error);
    if (err == ESK_OK) {
        err = esk_folder_sync(options->platform, broker->data_folder, error);
    }
    if (err == ESK_OK) {
        err = esk_pool_create(options->platform, pool, options->pool_bytes_max,
                              &broker->storage.pool, error);
    }
    free(pool);
    free(ballast);
    return err;
}

/* Recovers into the layout that the options ask for, carrying states over when it changes. */
static enum esk_err recover_layout(struct esk_broker *broker, struct esk_error *error) {
    struct esk_platform *platform = broker->options.platform;
    struct eski_layout layout = {0};
    struct carried carried = {0};
    enum esk_err err = eski_layout_load(platform, broker->data_folder, &layout, error);
    bool fresh = err == ESK_ERR_NOT_FOUND;
    if (err != ESK_OK && !fresh) {
        return err;
    }
    if (!fresh) {
        broker->options.offset_partitions = layout.offset_partitions;
    }
    err = fresh ? eski_layout_check_fresh(platform, broker->data_folder, error) : ESK_OK;
    if (err != ESK_OK) {
        return err;
    }
    err = eski_layout_clean(platform, broker->data_folder, layout.layout, error);
    if (err == ESK_OK) {
        err = open_storage(broker, error);
    }
    bool change = !fresh && layout.shard_count != broker->options.shard_count;
    if (err == ESK_OK && change) {
        err = settle_layout(broker, &layout, &carried, error);
    }
    broker->layout = fresh || change ? layout.layout + 1 : layout.layout;
    if (err == ESK_OK) {
        shards_create(broker, broker->options.shard_count);
        err = recover(broker, !fresh && !change, change ? &carried : NULL, error);
    }
    if (err == ESK_OK) {
        err = set_leftovers_aside(broker, error);
    }
    for (uint32_t i = 0; i < broker->shard_count && err == ESK_OK; i++) {
        err = esk_shard_open(broker->shards[i].log, error);
    }
    if (err == ESK_OK && (fresh || change)) {
        const struct eski_layout now = {broker->layout, broker->options.shard_count,
                                        broker->options.offset_partitions, ESKI_NODE};
        err = eski_layout_store(platform, broker->data_folder, &now, error);
    }
    if (err == ESK_OK && change) { /* from here on the old journals are nothing */
        err = eski_layout_clean(platform, broker->data_folder, broker->layout, error);
    }
    free(carried.states);
    return err;
}

static void destroy(struct esk_broker *broker) {
    struct esk_platform *platform = broker->options.platform;
    shards_destroy(broker);
    esk_usage_registry_destroy(broker->usages);
    if (broker->helpers != NULL) {
        esk_worker_destroy(platform, broker->helpers);
    }
    if (broker->storage.pool != NULL) {
        esk_pool_destroy(broker->storage.pool);
    }
    if (broker->storage.reserve != NULL) {
        esk_reserve_destroy(broker->storage.reserve);
    }
    esk_file_close(broker->lock);
    free(broker->groups_folder);
    free(broker->data_folder);
    free(broker);
}

static void stop_run(struct esk_mail *mail) {
    struct esk_broker_shard *shard = ESK_CONTAINER(mail, struct esk_broker_shard, mail);
    esk_shard_stop(shard->log, shard_told, shard);
}

static enum esk_err failed_stop(struct esk_error *error) {
    return esk_fail(error, ESK_ERR_IO, "the disk failed: the stop is not a clean one");
}

/* Those that were opened. */
static enum esk_err close_journals(struct esk_broker *broker, struct esk_error *error) {
    atomic_store(&broker->waiting, broker->shard_count);
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        struct esk_broker_shard *shard = &broker->shards[i];
        if (shard->log != NULL && esk_shard_is_open(shard->log)) {
            eski_post(shard, &shard->mail, stop_run);
        } else {
            shard_told(shard);
        }
    }
    /* A journal may have failed and then told, before anybody looked. */
    return wait_for_shards(broker) && !atomic_load(&broker->failed) ? ESK_OK : failed_stop(error);
}

static enum esk_err drain(struct esk_broker *broker, struct esk_error *error);

enum esk_err esk_broker_start(const struct esk_broker_options *options, struct esk_broker **made,
                              struct esk_error *error) {
    ESK_ASSERT(options->shard_count > 0);
    struct esk_broker *broker = esk_alloc_zeroed(1, sizeof(*broker));
    broker->options = *options;
    broker->data_folder = esk_text_copy(options->data_folder);
    broker->memory_share = options->memory_bytes / REQUEST_SHARE / options->shard_count;
    broker->usages = esk_usage_registry_create();
    broker->helpers = esk_worker_create(options->platform, "helper", options->helper_threads);
    enum esk_err err =
        eski_layout_lock(options->platform, broker->data_folder, &broker->lock, error);
    if (err == ESK_OK) {
        err = recover_layout(broker, error);
    }
    if (err == ESK_OK) {
        copy_catalogue(broker);
        for (uint32_t i = 0; i < broker->shard_count; i++) {
            eski_producers_purge(&broker->shards[i]);
        }
        err = start_loops(broker, error);
    }
    if (err == ESK_OK) {
        err = eski_keys_bootstrap(broker, error);
        if (err != ESK_OK) {
            struct esk_error ignored; /* the first one counts */
            drain(broker, &ignored);  /* everything serves by now */
        }
    }
    if (err != ESK_OK) {
        struct esk_error ignored; /* the first one counts */
        if (close_journals(broker, &ignored) == ESK_OK) {
            destroy(broker);
        } /* else loops still refer to it; the process ends */
        return err;
    }
    *made = broker;
    return ESK_OK;
}

/* --- stop --- */

static void drain_run(struct esk_mail *mail) {
    struct esk_broker_shard *shard = ESK_CONTAINER(mail, struct esk_broker_shard, mail);
    shard->stopping = true;
    eski_cleaning_stop(shard);
    esk_timer_stop(shard->loop, &shard->producers_timer);
    eski_membership_stop(shard);
    esk_shard_end_waits(shard->log);
    atomic_fetch_add(&shard->broker->operations, shard->operations);
    atomic_fetch_add(&shard->broker->full, !esk_shard_has_space(shard->log));
    shard_told(shard);
}

/* Waits until everything that was begun has its answer: none of it may meet a closed journal. An
 * operation counts in the shard where it began, until its answer there; a change of a topic counts
 * in shard 0 from its arrival on, which a round may miss by asking shard 0 before and the other one
 * behind: so two rounds must agree. */
static enum esk_err drain(struct esk_broker *broker, struct esk_error *error) {
    uint64_t patience_ns = FULL_PATIENCE_NS;
    for (unsigned quiet = 0; quiet < 2;) {
        atomic_store(&broker->full, 0);
        atomic_store(&broker->operations, 0);
        atomic_store(&broker->waiting, broker->shard_count);
        for (uint32_t i = 0; i < broker->shard_count; i++) {
            eski_post(&broker->shards[i], &broker->shards[i].mail, drain_run);
        }
        if (!wait_for_shards(broker)) {
            return failed_stop(error);
        }
        quiet = atomic_load(&broker->operations) == 0 ? quiet + 1 : 0;
        if (quiet == 0) {
            esk_pause(broker->options.platform, POLL_NS);
            patience_ns -= atomic_load(&broker->full) > 0 ? POLL_NS : 0;
        }
        if (patience_ns == 0) {
            return esk_fail(error, ESK_ERR_NO_SPACE,
                            "the disk is full: changes in the journal wait for room");
        }
    }
    return ESK_OK;
}

enum esk_err esk_broker_stop(struct esk_broker *broker, struct esk_error *error) {
    atomic_store(&broker->serving, false);
    enum esk_err err = drain(broker, error);
    if (err == ESK_OK) {
        err = close_journals(broker, error);
    }
    if (err == ESK_OK) {
        destroy(broker);
    }
    return err;
}
