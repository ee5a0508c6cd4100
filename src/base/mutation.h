/* SPDX-License-Identifier: Apache-2.0 */
/* Switches that break one durability rule each, and counters of states reached: both exist only in
 * the code as tests/sim builds it (ESK_MUTATIONS=1) and are nothing anywhere else. The simulation
 * must fail with each mutation, and must reach each state; tests/sim/mutation.c has the variables.
 *
 *   if (ESK_MUTATED(NO_CRC_CHECK) || crc == stored) ...     ESK_REACHED(JOURNAL_CUT); */
#ifndef ESK_BASE_MUTATION_H
#define ESK_BASE_MUTATION_H

/* name, the rule that it breaks */
#define ESK_MUTATION_TABLE(X)                                                                      \
    X(ANSWER_BEFORE_DURABLE, "a produce is answered before its journal write is durable")          \
    X(LATER_BEFORE_EARLIER, "a later write is acknowledged before an earlier one")                 \
    X(FAILED_SYNC_TOLD_ONCE, "a failed sync is told to one waiter only")                           \
    X(NO_GENERATION, "a recovery does not raise the generation")                                   \
    X(RECOVER_FROM_CACHE, "recovery reads the page cache and syncs nothing")                       \
    X(NO_CRC_CHECK, "checksums are not compared")                                                  \
    X(TORN_TAIL_NOT_CUT, "frames behind a torn one are taken too")                                 \
    X(DAMAGE_AS_TORN_TAIL, "damage below durable_upto is cut instead of refused")                  \
    X(RECYCLE_BEFORE_SYNC, "a journal file is recycled before segments are synced")                \
    X(NO_FOLDER_SYNC, "folders are not synced after a create, rename or remove")                   \
    X(CHECKPOINT_UNSYNCED_SNAPSHOT, "a checkpoint names a snapshot that is not synced")            \
    X(SEGMENT_TAKES_UNDURABLE, "segments take entries that are not durable yet")                   \
    X(CHECKPOINT_TAKES_UNDURABLE, "a checkpoint covers entries whose segment is not durable yet")  \
    X(COMMIT_BEFORE_DURABLE, "a group's commit is answered before it is durable")                  \
    X(ASSIGNMENT_BEFORE_DURABLE, "a group's assignment is told before it is durable")              \
    X(SEGMENTS_NOT_CUT, "recovery takes segments as they are, not as the checkpoint has them")     \
    X(CLEANING_ABOVE_CHECKPOINT, "compaction and retention go beyond the last checkpoint")         \
    X(COMPACTION_UNSYNCED, "a segment that was written anew counts before it is synced")           \
    X(COMPACTION_TOMBSTONE_FIRST, "a tombstone goes before the older records of its key")          \
    X(PRODUCERS_NOT_IN_CHECKPOINT, "a checkpoint leaves the windows of producers out")             \
    X(RETRY_WRITTEN_TWICE, "a retry of a record in flight is written again")

/* name, when it is counted */
#define ESK_REACHED_TABLE(X)                                                                       \
    X(TWO_WRITES_OUT, "a journal write starts while another is out")                               \
    X(LATER_WRITE_FIRST, "a journal write is done while an earlier one is out")                    \
    X(JOURNAL_ROLL, "a journal goes on in its next file")                                          \
    X(JOURNAL_UNPREPARED, "a journal write goes to blocks that were not written before")           \
    X(JOURNAL_RECYCLE, "a journal file is used again")                                             \
    X(JOURNAL_CARRY, "checkpoints or uncommitted entries are copied to a file's head")             \
    X(JOURNAL_CUT, "recovery cuts a torn tail")                                                    \
    X(JOURNAL_DAMAGE, "recovery finds damage below durable_upto and refuses")                      \
    X(JOURNAL_BUFFERED, "the fallback without O_DIRECT is used")                                   \
    X(JOURNAL_EMPTY_FRAME, "an idle journal writes its empty frame")                               \
    X(JOURNAL_FULL, "appends wait for the bound on uncheckpointed journal")                        \
    X(JOURNAL_FAILED, "a failed write or sync ends the journal")                                   \
    X(JOURNAL_NO_SPACE, "a journal write finds no room")                                           \
    X(JOURNAL_WRITE_AGAIN, "a write that the loop began is left to the flusher")                   \
    X(CHECKPOINT, "a checkpoint entry is durable")                                                 \
    X(CHECKPOINT_USED, "recovery starts a group from a checkpoint")                                \
    X(SNAPSHOT, "a snapshot file is stored")                                                       \
    X(SNAPSHOT_USED, "recovery loads a snapshot file")                                             \
    X(REPLAY, "recovery applies an entry above its group's checkpoint")                            \
    X(SEGMENT_ROLL, "a partition goes on in its next segment")                                     \
    X(SEGMENT_CUT, "recovery cuts a segment to its checkpoint")                                    \
    X(SEGMENT_DAMAGE, "a read of a segment finds a wrong checksum")                                \
    X(RETENTION, "retention removes a segment")                                                    \
    X(COMPACTION, "compaction writes a segment anew")                                              \
    X(COMPACTION_MERGE, "compaction makes one segment of several")                                 \
    X(COMPACTION_MAP_FULL, "compaction goes on with another map")                                  \
    X(COMPACTION_TOMBSTONE, "a tombstone's time is over")                                          \
    X(COMPACTION_LEFTOVER, "recovery removes files of a rewriting that a crash cut off")           \
    X(APPLY_NO_SPACE, "apply finds no room")                                                       \
    X(BALLAST_USED, "the ballast makes room for apply")                                            \
    X(RELAXED_FLUSH, "an answer waits for the write only")                                         \
    X(TOPIC_DELETED, "the files of a deleted topic are gone")                                      \
    X(MEMBER_EXPIRED, "a silent member of a group is removed")                                     \
    X(SHARDS_CHANGED, "a start lays partitions out over another number of shards")                 \
    X(PRODUCERS_SNAPSHOT, "a checkpoint stores windows of producers")                              \
    X(PRODUCERS_SNAPSHOT_USED, "recovery loads windows of producers")                              \
    X(PRODUCER_FORGOTTEN, "a window of a producer is forgotten")                                   \
    X(PRODUCER_EXPIRED, "producers that were not used are forgotten")                              \
    X(SEQUENCES_IN_LINE, "a produce waits for its turn at a producer")                             \
    X(RETRY_AWAITED, "a retry waits for its original, which is in flight")

#define ESK_MUTATION_NAME(name, text) ESK_MUTATION_##name,
#define ESK_REACHED_NAME(name, text) ESK_REACHED_##name,
enum esk_mutation { ESK_MUTATION_NONE, ESK_MUTATION_TABLE(ESK_MUTATION_NAME) ESK_MUTATION_COUNT };
enum esk_reached { ESK_REACHED_TABLE(ESK_REACHED_NAME) ESK_REACHED_COUNT };

#ifdef ESK_MUTATIONS
extern enum esk_mutation esk_mutation_active;
extern unsigned esk_reached_count[ESK_REACHED_COUNT];
#define ESK_MUTATED(name) (esk_mutation_active == ESK_MUTATION_##name)
#define ESK_REACHED(name) ((void)esk_reached_count[ESK_REACHED_##name]++)
#else
#define ESK_MUTATED(name) (0)
#define ESK_REACHED(name) ((void)0)
#endif

#endif
