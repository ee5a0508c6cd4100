/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder call of each other; in the shard's loop, or before the start in the
 * thread that recovers. */
#ifndef ESK_PARTITION_PARTITION_PRIVATE_H
#define ESK_PARTITION_PARTITION_PRIVATE_H

#include "partition/state_private.h"

/* --- partition.c --- */

struct esk_partition *eski_partition_create(struct esk_shard *shard,
                                            const struct esk_partition_spec *spec);
void eski_partition_destroy(struct esk_partition *partition);
void eski_partition_hold(struct esk_partition *partition);
void eski_partition_let_go(struct esk_partition *partition); /* frees a removed one with the last */
struct eski_segment *eski_segment_add(struct esk_partition *partition, uint64_t base_offset);
static inline struct eski_segment *eski_segment_open_one(const struct esk_partition *partition) {
    return partition->segments[partition->segment_count - 1];
}
uint64_t eski_partition_term(const struct esk_partition *partition); /* recovery: the stored one */
/* Bytes that were admitted are in a segment, or dropped: room for others. */
void eski_tail_bytes_release(struct esk_shard *shard, uint64_t bytes);
/* The segment that holds offset, or the open one. */
struct eski_segment *eski_segment_at(const struct esk_partition *partition, uint64_t offset);
/* Drops the first `count` segments from memory; their files are the caller's business. */
void eski_segments_drop(struct esk_partition *partition, size_t count);
/* Makes one segment of `count` from `first` on, which keeps the first's struct; its file, figures
 * and revision are the caller's to set. */
struct eski_segment *eski_segments_replace(struct esk_partition *partition, size_t first,
                                           size_t count);
void eski_segments_forget(struct esk_partition *partition); /* all; recovery */
/* Keeps the file for later reads and moves; takes the reference. */
void eski_segment_keep_file(struct esk_shard *shard, struct eski_segment *segment,
                            struct esk_segment *file);

/* --- apply.c --- */

/* Applies a committed entry; live and in recovery alike. Takes entry->block. */
enum esk_err eski_apply(struct esk_partition *partition, struct eski_entry *entry,
                        struct esk_error *error);

/* --- submit.c --- */

/* Appends an entry of our own without admission; block is taken; submit->done is told, if any. A
 * log start is strict: files go behind it. */
void eski_submit_internal(struct esk_partition *partition, uint8_t kind, struct esk_block *block,
                          struct esk_submit *submit);
struct esk_block *eski_offset_payload(uint64_t offset); /* of a roll or log start: u64 */
void eski_submit_fail(struct esk_submit *submit, enum esk_err err);
/* Takes an admitted submit. */
void eski_submit_now(struct esk_submit *submit);
/* Frees what a failed journal never told of. */
void eski_pending_forget(struct esk_partition *partition);
void eski_stall_check(struct esk_timer *timer);
void eski_stall_arm(struct esk_shard *shard);
/* Begins the term: the group's first step of this life. */
void eski_partition_begin(struct esk_partition *partition);

/* --- admission.c --- */

void eski_waiting_kick(struct esk_shard *shard);
/* Fails what waits for removed partitions. */
void eski_waiting_drop_removed(struct esk_shard *shard);
/* Makes the ballast, behind the first answer. */
void eski_ballast_begin(struct esk_shard *shard);
/* Once a pass of retention: gives it back when nothing was admitted since the last one. */
void eski_ballast_shrink_if_idle(struct esk_shard *shard);

/* --- move.c --- */

struct eski_move;
/* A job that moves up to bytes_max of the tail, or a machine's snapshot; sync: so that a checkpoint
 * may follow. NULL: there is nothing to do. */
struct eski_move *eski_move_create(struct esk_partition *partition, uint64_t bytes_max, bool sync);
/* Encodes up to about bytes_max of the windows of producers that the move stores; false: there are
 * more. In the loop, before it is executed. */
bool eski_move_encode(struct eski_move *move, size_t bytes_max);
enum esk_err eski_move_execute(struct eski_move *move); /* blocks: a worker */
/* Books what was written. *state is the checkpoint to store, when the job ended in one. */
enum esk_err eski_move_finish(struct eski_move *move, bool *checkpoint,
                              struct esk_group_state *state, struct esk_error *error);
void eski_move_destroy(struct eski_move *move);
struct esk_partition *eski_move_partition(const struct eski_move *move);
void eski_move_pace(struct eski_move *move, uint64_t pause_ns);
struct esk_mail *eski_move_mail(struct eski_move *move);
struct eski_move *eski_move_of_mail(struct esk_mail *mail);
/* Whether the partition has a state that its newest checkpoint does not cover. */
bool eski_partition_dirty(const struct esk_partition *partition);

/* --- mover.c --- */

void eski_mover_init(struct esk_shard *shard);
void eski_mover_kick(struct esk_shard *shard);
/* Notes an entry at a journal position, for the order of checkpoints. */
void eski_mover_note(struct esk_partition *partition, uint64_t journal_position);
void eski_mover_note_tail(struct esk_partition *partition);
/* Retention waits for what this partition has applied to be moved and checkpointed. */
void eski_mover_settle(struct esk_partition *partition);
bool eski_mover_idle(const struct esk_shard *shard); /* nothing left to checkpoint */

/* --- recover.c --- */

/* Cuts the segment that was open at the checkpoint. Before anything is written to it, but not
 * before esk_shard_verify found the journals whole: what lies behind may be all there is. */
enum esk_err eski_partition_cut(struct esk_partition *partition, struct esk_error *error);
/* What replay left: makes the group, drops files below the log start, checks that none is missing.
 */
enum esk_err eski_partition_ready(struct esk_partition *partition, struct esk_error *error);

/* --- read.c, retention.c, shard.c --- */

void eski_reads_wake(struct esk_partition *partition);
void eski_reads_end(struct esk_partition *partition, enum esk_err err);
void eski_log_start_applied(struct esk_partition *partition);
bool eski_retention_runs(const struct esk_shard *shard);
void eski_retention_stop(struct esk_shard *shard); /* it waits for nothing any more */
/* A checkpoint of the partition is durable, or it is removed. */
void eski_retention_settled(struct esk_partition *partition);
/* Segments wholly below the last durable checkpoint, which cleaning may touch: how many. */
size_t eski_settled_segments(const struct esk_partition *partition);

/* --- compact.c --- */

bool eski_compaction_runs(const struct esk_shard *shard);
void eski_compaction_stop(struct esk_shard *shard); /* soon; it comes back by itself */
/* A checkpoint of the partition is durable. */
void eski_compaction_settled(struct esk_partition *partition);
/* True: a removed partition's files are being worked on; the removal goes on behind that. */
bool eski_compaction_defers(struct esk_shard *shard, struct esk_partition_removal *removal);
void eski_shard_fail(struct esk_shard *shard, const struct esk_error *error);
void eski_shard_step_stop(struct esk_shard *shard);

#endif
