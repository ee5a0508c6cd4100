/* SPDX-License-Identifier: Apache-2.0 */
/* The whole broker: clients create, delete and configure topics, produce, consume and commit, over
 * several lives that end in kills, power losses, failing disks and stops, with other numbers of
 * shards and other flush settings. Each start is followed by reading everything. */
#include "broker_clients.h"
#include "journal_damage.h"

#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLDER "data"
#define JOURNALS "data/journal"
#define GROUPS "data/groups"
#define META "data/esker.meta"

/* A changed byte of a file that is no journal. */
struct file_damage {
    bool done;
    char path[160];
    struct sim_inode *inode;
    uint64_t position;
    uint8_t before[2];      /* of device and media */
    uint8_t page[SIM_PAGE]; /* as it is with the change */
};

struct life {
    struct bs bs;
    struct jd_damage journal; /* damage that a start must refuse */
    char journal_folder[64];
    struct file_damage file; /* damage that must be noticed where it matters */
    bool untold;             /* a write-back failed in an earlier life, and no sync was told */
    bool started, stopped, ended;
    enum esk_err start_err;
    bool stop_early; /* with operations in flight */
    uint64_t stop_after_ns;
};

unsigned bs_faults(const struct bs *bs, bool space) {
    static const enum sim_fault kinds[] = {
        SIM_FAULT_READ,       SIM_FAULT_WRITE,  SIM_FAULT_SYNC,      SIM_FAULT_SYNC_NO_SPACE,
        SIM_FAULT_WRITE_BACK, SIM_FAULT_FOLDER, SIM_FAULT_DISK_FULL, SIM_FAULT_WRITE_NO_SPACE};
    unsigned count = 0;
    for (size_t i = 0; i < (space ? 8 : 6); i++) {
        count += bs->run->world.counts[SIM_COUNT_FAULTS + kinds[i]] - bs->counts[kinds[i]];
    }
    return count;
}

bool bs_tolerates(const struct bs *bs, enum esk_err err, const struct bm_topic *topic) {
    switch (err) {
    case ESK_ERR_NO_SPACE:
    case ESK_ERR_AGAIN:
        return bs_faults(bs, true) > bs_faults(bs, false);
    case ESK_ERR_UNAVAILABLE:
        return bs->stopping || bs->failed;
    case ESK_ERR_NOT_FOUND:
        return topic && topic->deleting;
    case ESK_ERR_CORRUPT:
    case ESK_ERR_VERSION:
        return bs->damaged_segment;
    case ESK_ERR_IO:
        return bs_faults(bs, false) > 0;
    default:
        return false;
    }
}

static void on_failed(void *context, const struct esk_error *error) {
    struct life *life = context;
    sim_trace(&life->bs.run->world, "broker failed", error->text, 0, 0);
    if (bs_faults(&life->bs, false) == 0 && !life->untold) {
        sim_run_fail(life->bs.run, "the broker fails by itself: %s", error->text);
    }
    life->bs.failed = true;
}

/* --- a life --- */

static void start_clients(struct bs *bs) {
    struct sim_random *random = &bs->run->random;
    bs->client_count = (size_t)sim_between(random, 3, BC_CLIENTS);
    size_t writers = 0;
    for (size_t i = 0; i < bs->client_count; i++) {
        struct bc_client *client = &bs->clients[i];
        uint32_t shard = (uint32_t)sim_below(random, bs->options.shard_count);
        enum bc_kind kind = i == 0 ? BC_ADMIN : i == 1 ? BC_PRODUCER : BC_CONSUMER;
        if (i > 2) {
            kind = sim_one_in(random, 3)   ? BC_COMMITTER
                   : sim_one_in(random, 2) ? BC_MEMBER
                                           : BC_PRODUCER;
        }
        struct bw_writer *writer = NULL;
        if (i > 2 && writers < BW_WRITERS && sim_one_in(random, 3)) {
            kind = BC_WRITER;
            writer = &bs->writers[writers++];
        }
        *client =
            (struct bc_client){.bs = bs, .kind = kind, .id = ++bs->client_ids, .writer = writer};
        client->shard = esk_broker_shard(bs->broker, shard);
        client->loop = bs->loops[shard];
        client->actions = kind == BC_ADMIN ? sim_scaled(random, 12) : sim_between(random, 1, 60);
        client->in_flight_max = kind == BC_PRODUCER || kind == BC_WRITER
                                    ? (unsigned)sim_scaled(random, 4)
                                : kind == BC_CONSUMER ? 2
                                                      : 1;
        bc_client_start(client);
    }
}

static bool clients_done(const struct bs *bs) {
    for (size_t i = 0; i < bs->client_count; i++) {
        if (bs->clients[i].actions || bs->clients[i].in_flight) {
            return false;
        }
    }
    return true;
}

static bool over(const struct bs *bs) {
    return bs->failed || bs->run->failed;
}

static void process(void *argument) {
    struct life *life = argument;
    struct bs *bs = &life->bs;
    struct esk_platform *platform = bs->options.platform;
    life->start_err = esk_broker_start(&bs->options, &bs->broker, &bs->error);
    if (life->start_err != ESK_OK) {
        life->ended = true;
        return;
    }
    life->started = true;
    sim_trace(&bs->run->world, "STARTED", "", bs->options.shard_count, 0);
    bc_scan(bs);
    while (!bs->scanned && !over(bs)) {
        esk_pause(platform, 100 * SIM_US);
    }
    if (life->file.done) {
        life->ended = true; /* this life was for reading */
        return;
    }
    if (!over(bs)) {
        sim_trace(&bs->run->world, "SCANNED", "", 0, 0);
        start_clients(bs);
    }
    uint64_t until = bs->run->world.now_ns + life->stop_after_ns;
    while (!over(bs) && !clients_done(bs) && !(life->stop_early && bs->run->world.now_ns > until)) {
        esk_pause(platform, 100 * SIM_US);
    }
    if (over(bs)) {
        life->ended = true;
        return;
    }
    bs->stopping = true;
    sim_trace(&bs->run->world, "STOPPING", "", bs->in_flight, 0);
    enum esk_err err = esk_broker_stop(bs->broker, &bs->error);
    bool full = err == ESK_ERR_NO_SPACE && bs_tolerates(bs, err, NULL);
    if (err != ESK_OK && !bs->failed && !full) {
        sim_run_fail(bs->run, "the stop fails: %s", bs->error.text);
    } else if (err == ESK_OK && bs->in_flight) {
        sim_run_fail(bs->run, "%u operations have no answer after the stop", bs->in_flight);
    }
    bs->run->world.counts[SIM_COUNT_CLEAN_STOP] += err == ESK_OK;
    life->stopped = err == ESK_OK;
    life->ended = true;
}

static bool ended(void *context) {
    struct life *life = context;
    return life->ended || life->bs.run->failed;
}

static void draw_options(struct life *life) {
    struct bs *bs = &life->bs;
    struct sim_random *random = &bs->run->random;
    uint32_t shards = (uint32_t)sim_between(random, 1, BC_SHARDS);
    if (bs->options.shard_count && !sim_one_in(random, 4)) {
        shards = bs->options.shard_count;
    }
    for (uint32_t i = 0; i < shards; i++) {
        bs->loops[i] = sim_loop_create(&bs->run->world, "loop");
    }
    esk_broker_options_init(&bs->options);
    bs->options.platform = &bs->run->world.platform;
    bs->options.loops = bs->loops;
    bs->options.shard_count = shards;
    bs->options.data_folder = FOLDER;
    bs->options.helper_threads = (unsigned)sim_between(random, 1, 2);
    bs->options.log = &bs->run->log;
    bs->options.flush_every_records = sim_one_in(random, 4) ? (uint32_t)sim_below(random, 20) : 1;
    bs->options.flush_interval_ms = (uint32_t)sim_between(random, 1, 1000);
    if (bs->options.flush_every_records != 1 && sim_one_in(random, 2)) {
        bs->options.flush_every_records = 0; /* the interval alone */
    }
    if (ESK_MUTATED(SEGMENT_TAKES_UNDURABLE)) { /* which only a late sync brings to light */
        bs->options.flush_every_records = 0;
        bs->options.flush_interval_ms = 1000;
    }
    bs->options.memory_bytes = shards * sim_between(random, 100000, 400000);
    bs->options.record_bytes_max = 16384;
    bs->options.retention_interval_ms = sim_scaled(random, 1000);
    bs->options.compaction_interval_ms = sim_scaled(random, 1000);
    bs->options.key_map_bytes = shards * (sim_one_in(random, 2) ? 1 : sim_between(random, 1, 4000));
    bs->options.producer_interval_ms = sim_scaled(random, 1000);
    if (bs->forgetful) {
        bs->options.producer_idle_ms = sim_scaled(random, 1000);
    }
    bs->options.member_timeout_ms = 20 + sim_scaled(random, 2000);
    bs->options.journal_file_bytes = 32768 << sim_below(random, 2);
    bs->options.journal_held_bytes_max = shards * sim_between(random, 200000, 400000);
    bs->options.journal_frame_bytes_max = (uint32_t)sim_between(random, 4096, 16384);
    bs->options.journal_writes_max = sim_one_in(random, 5) ? 1 : 2;
    bs->options.reserve_step_bytes = 65536;
    bs->options.reserve_bytes_max = 1u << 20;
    bs->options.pool_bytes_max = 65536;
    bs->options.offset_partitions = 3;
    bs->options.failed = on_failed;
    bs->options.context = life;
}

/* A start that was refused, or should have been. */
static void check_start(struct life *life) {
    struct bs *bs = &life->bs;
    struct jd_damage *damage = &life->journal;
    if (life->started && damage->done) {
        sim_run_fail(bs->run, "%s/%s is damaged at %" PRIu64 ", and the broker starts",
                     life->journal_folder, damage->file, damage->position);
    }
    if (life->started || bs_faults(bs, true) > 0 || bs->run->failed) {
        return;
    }
    bool refused = life->start_err == ESK_ERR_CORRUPT || life->start_err == ESK_ERR_VERSION;
    const char *path = damage->done ? life->journal_folder : life->file.path;
    if (!damage->done && !life->file.done) {
        sim_run_fail(bs->run, "the broker does not start: %s", bs->error.text);
    } else if (!refused || !strstr(bs->error.text, path)) {
        sim_run_fail(bs->run, "%s is damaged at %" PRIu64 ", but the broker says: %s", path,
                     damage->done ? damage->position : life->file.position, bs->error.text);
    }
}

/* Puts the byte back where it and what is around it are as they were left. */
static void byte_repair(const struct file_damage *file, uint8_t *bytes, uint8_t before) {
    uint64_t within = file->position % SIM_PAGE, page = file->position - within;
    uint64_t from = within < 8 ? 0 : within - 8, to = within + 8 < SIM_PAGE ? within + 8 : SIM_PAGE;
    if (memcmp(bytes + page + from, file->page + from, to - from) == 0) {
        bytes[file->position] = before;
    }
}

static void file_repair(struct file_damage *file) {
    byte_repair(file, file->inode->media, file->before[1]);
    byte_repair(file, file->inode->device, file->before[0]);
    byte_repair(file, file->inode->cache, file->before[0]);
    file->done = false;
}

static void live(struct life *life, bool calm) {
    struct bs *bs = &life->bs;
    struct sim_run *run = bs->run;
    struct sim_random *random = &run->random;
    life->untold = sim_image_untold(&run->world.image);
    life->started = life->stopped = life->ended = false;
    life->stop_early = sim_one_in(random, 2);
    life->stop_after_ns = sim_scaled(random, SIM_S);
    bs->stopping = bs->failed = false;
    bs->damaged_segment = life->file.done;
    bs->client_count = 0;
    bs->in_flight = 0;
    bs->broker = NULL;
    bs->delay_ns = 50 * SIM_US << sim_between(random, 0, 8);
    memcpy(bs->counts, run->world.counts + SIM_COUNT_FAULTS, sizeof(bs->counts));
    draw_options(life);
    if (!calm) {
        sim_run_plan_faults(run);
        uint64_t point = sim_between(random, 1, 4000);
        run->world.crash_at = sim_one_in(random, 4) ? 0 : run->world.points + point;
    }
    sim_thread_start(&run->world, "main", process, life);
    enum sim_outcome outcome = sim_world_run(&run->world, ended, life);
    if (outcome == SIM_IDLE || outcome == SIM_STUCK) {
        sim_run_fail(run, "%s: %s, %u operations have no answer",
                     outcome == SIM_IDLE ? "nothing moves any more" : "no end",
                     !life->started ? "starting"
                     : bs->stopping ? "stopping"
                                    : "running",
                     bs->in_flight);
    }
    if (outcome == SIM_DONE && !life->untold) {
        check_start(life);
    }
    bool power_loss = sim_one_in(random, 2);
    bool clean = life->stopped;
    bs->model.unsynced |= bs->options.flush_every_records != 1 && life->started && !clean;
    bs->model.loose |= bs->model.unsynced && (power_loss || bs_faults(bs, false) > 0);
    if (life->journal.done) {
        jd_damage_repair(&life->journal);
    }
    if (life->file.done) {
        file_repair(&life->file);
    }
    be_over(bs);
    bw_over(bs->writers);
    sim_world_end(&run->world, power_loss);
    bc_note_segments(bs, sim_image_find(&run->world.image, GROUPS, NULL, NULL));
}

/* --- damage at rest --- */

/* Damages a journal, when all that are there belong to one layout: then all of them count. */
static void damage_journal(struct life *life) {
    struct sim_run *run = life->bs.run;
    struct sim_inode *folder = sim_image_find(&run->world.image, JOURNALS, NULL, NULL);
    size_t count = folder ? folder->entries.count : 0;
    for (size_t i = 0; i < count; i++) {
        if (atoi(folder->entries.items[i].name) != atoi(folder->entries.items[0].name)) {
            return;
        }
    }
    if (count == 0 || !sim_image_find(&run->world.image, META, NULL, NULL)) {
        return;
    }
    const char *name = folder->entries.items[sim_below(&run->random, count)].name;
    snprintf(life->journal_folder, sizeof(life->journal_folder), JOURNALS "/%s", name);
    jd_damage_do(run, life->journal_folder, true, &life->journal);
}

/* Every file below a folder, into paths; at most `most`. */
static size_t list_files(const struct sim_inode *folder, const char *path, char (*paths)[160],
                         size_t count, size_t most) {
    for (size_t i = 0; i < folder->entries.count && count < most; i++) {
        const struct sim_entry *entry = &folder->entries.items[i];
        snprintf(paths[count], sizeof(paths[count]), "%s/%s", path, entry->name);
        if (entry->inode->is_folder) {
            char inner[160];
            memcpy(inner, paths[count], sizeof(inner));
            count = list_files(entry->inode, inner, paths, count, most);
        } else if (entry->inode->size > 0) {
            count++;
        }
    }
    return count;
}

static void damage_file(struct life *life) {
    struct sim_run *run = life->bs.run;
    struct file_damage *file = &life->file;
    static char paths[256][160];
    const struct sim_inode *groups = sim_image_find(&run->world.image, GROUPS, NULL, NULL);
    size_t count = groups ? list_files(groups, GROUPS, paths, 0, 255) : 0;
    if (sim_image_find(&run->world.image, META, NULL, NULL)) {
        snprintf(paths[count++], sizeof(paths[0]), META);
    }
    if (count == 0) {
        return;
    }
    file->done = true;
    memcpy(file->path, paths[sim_below(&run->random, count)], sizeof(file->path));
    file->inode = sim_image_find(&run->world.image, file->path, NULL, NULL);
    uint64_t size = file->inode->size;
    file->position =
        sim_below(&run->random, size > 4200 && sim_one_in(&run->random, 2) ? 300 : size);
    if (size > SIM_PAGE + 1 && !sim_one_in(&run->random, 4)) {
        file->position = sim_between(&run->random, SIM_PAGE, size - 1);
    }
    size_t page = (size_t)(file->position / SIM_PAGE);
    sim_inode_write_back(file->inode, page);
    file->before[0] = file->inode->device[file->position];
    file->before[1] = file->inode->media[file->position];
    uint8_t byte = file->before[0] ^ (uint8_t)(1u << sim_below(&run->random, 8));
    sim_inode_damage(file->inode, file->position, &byte, 1);
    sim_inode_drop(file->inode);
    memcpy(file->page, file->inode->device + page * SIM_PAGE, SIM_PAGE);
    sim_trace(&run->world, "damage", file->path, file->position, byte);
}

void sim_broker_scenario(struct sim_run *run) {
    struct life *life = esk_alloc_zeroed(1, sizeof(*life));
    life->bs.run = run;
    life->bs.model.run = run;
    run->world.direct_refused = sim_one_in(&run->random, 4);
    life->bs.forgetful = sim_one_in(&run->random, 6);
    uint64_t lives = sim_between(&run->random, 2, 6);
    for (uint64_t i = 0; i < lives && !run->failed; i++) {
        if (i > 0 && sim_one_in(&run->random, 6)) {
            damage_journal(life);
        }
        if (i > 0 && !life->journal.done && sim_one_in(&run->random, 6)) {
            damage_file(life);
            live(life, true);
        } else {
            live(life, false);
        }
    }
    for (uint64_t i = 0; i < 2 && !run->failed; i++) {
        live(life, true);
    }
}
