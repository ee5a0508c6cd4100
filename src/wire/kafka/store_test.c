/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/kafka/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_codec_gives_the_bytes_back(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 60, 32768, 32769, 65535, 65536, 65537, 300000};
    struct esk_buffer plain;
    struct esk_buffer stored;
    struct esk_buffer back;
    esk_buffer_init(&plain);
    esk_buffer_init(&stored);
    esk_buffer_init(&back);
    for (unsigned codec = ESK_CODEC_NONE; codec <= ESK_CODEC_ZSTD; codec++) {
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            plain.size = stored.size = back.size = 0;
            for (size_t n = 0; n < sizes[i]; n++)
                esk_buffer_u8(&plain, (uint8_t)(n * 31 + n / 7));
            esk_kafka_store((enum esk_codec)codec, esk_buffer_slice(&plain), &stored);
            if (codec == ESK_CODEC_SNAPPY && sizes[i] == 0)
                continue; /* a head without blocks, which snappy-java never writes */
            assert_int_equal(
                esk_inflate((enum esk_codec)codec, esk_buffer_slice(&stored), 1 << 20, &back, NULL),
                ESK_OK);
            assert_true(esk_slice_equal(esk_buffer_slice(&back), esk_buffer_slice(&plain)));
        }
    }
    esk_buffer_fini(&plain);
    esk_buffer_fini(&stored);
    esk_buffer_fini(&back);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_codec_gives_the_bytes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
