/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a strange server: read in one piece and byte by byte, the outcome must be the same.
 * The first byte says whether the body is kept. */
#include "base/assert.h"
#include "esk/http_answer.h"
#include "fuzz.h"

static enum esk_err feed(struct esk_http_answer *answer, struct esk_slice input, size_t piece,
                         size_t *taken) {
    enum esk_err err = ESK_ERR_AGAIN;
    *taken = 0;
    while (err == ESK_ERR_AGAIN && *taken < input.size) {
        size_t left = input.size - *taken;
        size_t consumed;
        struct esk_slice next = esk_slice(input.data + *taken, left < piece ? left : piece);
        err = esk_http_answer_feed(answer, next, &consumed, NULL);
        ESK_ASSERT(consumed <= next.size);
        ESK_ASSERT(err != ESK_ERR_AGAIN || consumed == next.size);
        *taken += consumed;
    }
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    struct esk_slice input = esk_slice(data + 1, size - 1);
    struct esk_http_answer whole;
    struct esk_http_answer bytewise;
    size_t whole_taken;
    size_t bytewise_taken;
    esk_http_answer_init(&whole, data[0] & 1);
    esk_http_answer_init(&bytewise, data[0] & 1);
    enum esk_err err = feed(&whole, input, input.size, &whole_taken);
    ESK_ASSERT(feed(&bytewise, input, 1, &bytewise_taken) == err);
    if (err == ESK_OK) {
        ESK_ASSERT(whole_taken == bytewise_taken);
        ESK_ASSERT(whole.status == bytewise.status);
        ESK_ASSERT(whole.body_bytes == bytewise.body_bytes);
        ESK_ASSERT(whole.tail_size == bytewise.tail_size);
        ESK_ASSERT(
            esk_slice_equal(esk_buffer_slice(&whole.body), esk_buffer_slice(&bytewise.body)));
        ESK_ASSERT(memcmp(whole.tail, bytewise.tail, whole.tail_size) == 0);
    }
    esk_http_answer_fini(&whole);
    esk_http_answer_fini(&bytewise);
    return 0;
}
