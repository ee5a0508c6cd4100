/* SPDX-License-Identifier: Apache-2.0 */
/* What esk consume keeps: where each partition is read, and how records are printed. */
#ifndef ESK_ESK_CONSUME_PRIVATE_H
#define ESK_ESK_CONSUME_PRIVATE_H

#include "esk/record_print.h"
#include "esk/session.h"

#include <esker/client.h>

struct eski_reading {
    uint32_t partition;
    uint64_t offset; /* the next one to read */
    uint64_t end;    /* of the partition, as the last answer has it */
    uint64_t committed;
    bool is_stopped; /* its next record cannot be printed */
};

struct eski_consuming {
    struct esk_session *session;
    struct esk_client *binary; /* NULL: records come over HTTP */
    const char *topic;
    const char *group; /* NULL: nothing is committed */
    const char *separator;
    const char *encoding; /* that is asked for */
    enum esk_print_form form;
    uint64_t left; /* records that may still be printed */
    uint64_t printed;
    bool shows_progress;
    struct eski_reading *readings;
    size_t reading_count;
};

/* The path that reads on; owned, free(). wait_ms 0: does not wait. */
char *eski_consume_path(const struct eski_consuming *consuming, const struct eski_reading *reading,
                        uint32_t wait_ms);
/* Prints an answer's records, writes them out, and commits them where a group was given. A record
 * that is not text stops the reading, and is complained about. enum esk_exit. */
int eski_consume_take(struct eski_consuming *consuming, struct eski_reading *reading,
                      const struct esk_http_answer *answer);
/* Commits what was printed and is not committed yet, where a group was given; enum esk_exit. */
int eski_consume_commit(struct eski_consuming *consuming, struct eski_reading *reading);
/* Marks a reading whose next record is no text, and complains of it. */
void eski_consume_stop(struct eski_reading *reading);
/* As asking and eski_consume_take in one, over the binary protocol. */
int eski_consume_binary(struct eski_consuming *consuming, struct eski_reading *reading);
/* Reads all partitions in turn, until there is nothing left to print; enum esk_exit. */
int eski_consume_binary_follow(struct eski_consuming *consuming);
/* Reads all partitions at once, until there is nothing left to print; enum esk_exit. */
int eski_consume_follow(struct eski_consuming *consuming);

#endif
