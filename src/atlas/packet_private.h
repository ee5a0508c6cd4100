/* SPDX-License-Identifier: Apache-2.0 */
/* TCP segments out of capture files. */
#ifndef ESK_ATLAS_PACKET_PRIVATE_H
#define ESK_ATLAS_PACKET_PRIVATE_H

#include "base/bytes.h"

struct eski_segment {
    uint8_t key[37]; /* 4 or 6, both addresses (16 bytes each), both ports: this direction */
    uint8_t reverse[37];
    uint32_t sequence;
    bool syn;
    bool ack;
    struct esk_slice payload;
};

/* Calls `segment` for each TCP segment in the file's order; *problem (static text) is set when the
 * file itself is damaged. */
void eski_packets_each(struct esk_slice file, void *context,
                       void (*segment)(void *context, const struct eski_segment *segment),
                       const char **problem);

#endif
