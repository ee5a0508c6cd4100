/* SPDX-License-Identifier: Apache-2.0 */
/* What Kafka tolerates is a warning, everything else an error at the right byte; carried batches
 * are checked, and none of it takes much memory. */
#include "atlas/lines.h"
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

static char *answer(const char *prefix, const char *hex) {
    struct esk_atlas_sink sink;
    char *line = malloc(strlen(prefix) + strlen(hex) + 2);
    sprintf(line, "%s %s", prefix, hex);
    esk_atlas_sink_init(&sink, NULL);
    esk_atlas_decode_line(line, strlen(line), &sink);
    esk_buffer_u8(&sink.buffer, '\0');
    char *text = strdup((const char *)sink.buffer.data);
    esk_atlas_sink_fini(&sink);
    free(line);
    return text;
}

static void expect(const char *prefix, const char *hex, const char *part) {
    char *text = answer(prefix, hex);
    if (strstr(text, part) == NULL)
        fail_msg("%s %s\n  gives %s  without %s", prefix, hex, text, part);
    free(text);
}

#define ALLOCATE "request AllocateProducerIds 0"

static void tolerated_oddities_are_warnings(void **state) {
    (void)state;
    /* Bytes behind the body. */
    expect(ALLOCATE, "0000001a0043000000000000000000000000000000000000000000000007ff",
           "\"ok\":false");
    expect(ALLOCATE, "0000001a0043000000000000000000000000000000000000000000000007", "\"ok\":true");
    expect(ALLOCATE, "00000019004300000000000000000000000000000000000000000000ff",
           "bytes behind the body (offset 28)");
    /* A long-winded varint as the header's tag count. */
    expect(ALLOCATE, "0000001900430000000000000000800000000000000000000000000000",
           "a uvarint longer than its value needs (offset 14)");
    /* Unknown tags, descending, then repeated; they are kept. */
    expect(ALLOCATE, "0000001e0043000000000000000000000000000000000000000000020901aa0801bb",
           "tags that do not ascend (offset 31)");
    expect(ALLOCATE, "0000001e0043000000000000000000000000000000000000000000020901aa0901bb",
           "a tag that repeats (offset 31)");
    expect(ALLOCATE, "0000001e0043000000000000000000000000000000000000000000020901aa0801bb",
           "\"unknownTaggedFields\":[{\"tag\":9,\"data\":\"qg==\"},{\"tag\":8,\"data\":\"uw==\"}]");
    /* ClientId of length -2 is null. */
    expect(ALLOCATE,
           "000000180043000000000000fffe00000000000000000000000000"
           "00",
           "ClientId: a length below -1, read as null (offset 12)");
    expect(ALLOCATE,
           "0000001a0043000000000000"
           "0002fffe"
           "00"
           "00000000"
           "0000000000000000"
           "00",
           "ClientId: not valid UTF-8 (offset 12)");
    expect("request Metadata 4",
           "0000000f"
           "0003"
           "0004"
           "00000000"
           "0000"
           "00000000"
           "02",
           "AllowAutoTopicCreation: a bool that is neither 0 nor 1, read as true (offset 18)");
}

static void damage_names_the_field_and_the_byte(void **state) {
    (void)state;
    expect(ALLOCATE, "0000001500430000000000000000000000000000000000000000",
           "AllocateProducerIds request v0: frame size: expected 22, found 21\",\"offset\":0");
    expect(ALLOCATE, "0000001600430000000000000000000000000000000000000000",
           "AllocateProducerIds request v0: BrokerEpoch: expected 8 bytes, 7 are left\","
           "\"offset\":19");
    expect(ALLOCATE, "00000018004400000000000000000000000000000000000000000000",
           "RequestApiKey: expected 67, found 68\",\"offset\":4");
    expect(ALLOCATE,
           "0000001800430001000000000000000000000000000000000000"
           "0000",
           "RequestApiVersion: expected 0, found 1\",\"offset\":6");
    expect("request Metadata 4",
           "000000120003000400000000000000000005000000"
           "00",
           "Metadata request v4: Topics: its length says 5 elements, only 4 bytes are left\","
           "\"offset\":14");
    expect("response Heartbeat 0", "0000000400000000", "ErrorCode: expected 2 bytes, 0 are left");
    /* Tag 0 only came with version 1. */
    expect("request BrokerHeartbeat 0",
           "00000025003f0000000000000000000000000000000000000000000000000000000000000001000101",
           "BrokerHeartbeat request v0: expected a tag of this version, 0 is only in others\","
           "\"offset\":38");
    expect("data OffsetCommitKey 0", "0002000161000162", "record type: expected 1, found 2");
    expect("request Nothing 0", "00", "there is no request named Nothing");
    expect("request Fetch 99", "00", "Fetch request has no version 99");
    expect(ALLOCATE, "000000180043000000000000000000000000000000000000000000zz",
           "expected two hex digits for each byte\",\"offset\":27");
}

/* --- batches --- */

static void put_hex(char *text, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
}

/* A batch over these records with right length and CRC. */
static size_t make_batch(uint8_t *batch, uint16_t attributes, uint32_t count, const void *records,
                         size_t size) {
    memset(batch, 0, 61);
    memcpy(batch + 61, records, size);
    esk_store_u32(batch + 8, (uint32_t)(49 + size));
    batch[16] = 2;
    esk_store_u16(batch + 21, attributes);
    esk_store_u32(batch + 57, count);
    esk_store_u32(batch + 17, esk_crc32c(0, batch + 21, 40 + size));
    return 61 + size;
}

static const uint8_t one_record[] = {0x10, 0, 0, 0, 2, 'k', 2, 'v', 0};

static void expect_batch(const uint8_t *batch, size_t size, const char *part) {
    char *hex = malloc(2 * size + 1);
    put_hex(hex, batch, size);
    expect("data RecordBatch 2", hex, part);
    free(hex);
}

static void batches_are_checked_to_the_byte(void **state) {
    (void)state;
    uint8_t batch[256];
    size_t size = make_batch(batch, 0, 1, one_record, sizeof(one_record));
    expect_batch(batch, size,
                 "\"records\":[{\"offset\":0,\"timestamp\":0,\"key\":\"aw==\",\"value\":\"dg==\","
                 "\"headers\":[]}]");
    batch[size - 2] = 'w';
    expect_batch(batch, size, "Crc: expected CRC");
    expect_batch(batch, size, "\"offset\":17");
    size = make_batch(batch, 0, 1, one_record, sizeof(one_record));
    batch[16] = 3;
    expect_batch(batch, size, "expected magic 0, 1 or 2, found 3\",\"offset\":16");
    /* A right CRC over a count that the bytes can't hold. */
    size = make_batch(batch, 0, INT32_MAX, one_record, sizeof(one_record));
    expect_batch(batch, size,
                 "RecordsCount: claims 2147483647 records, 9 bytes can't hold them\","
                 "\"offset\":57");
    size = make_batch(batch, 0, 2, one_record, sizeof(one_record));
    expect_batch(batch, size, "claims 2 records");
    size = make_batch(batch, 0, 0, one_record, sizeof(one_record));
    expect_batch(batch, size, "expected the end of the batch, 9 bytes are left\",\"offset\":61");
    size = make_batch(batch, 5, 1, one_record, sizeof(one_record));
    expect_batch(batch, size, "Attributes: expected codec 0 to 4, found 5\",\"offset\":21");
    size = make_batch(batch, 1, 1, one_record, sizeof(one_record));
    expect_batch(batch, size, "\"ok\":false");
    uint8_t bad[sizeof(one_record)];
    memcpy(bad, one_record, sizeof(bad));
    bad[4] = 0x7e; /* a key of 63 bytes */
    size = make_batch(batch, 0, 1, bad, sizeof(bad));
    expect_batch(batch, size, "Key: its length says 63 bytes, 4 are left\",\"offset\":65");
    size = make_batch(batch, 0, 1, one_record, sizeof(one_record));
    expect_batch(batch, size - 1, "BatchLength: its length says 58 bytes, 57 are left");
}

static size_t gzip(const uint8_t *plain, size_t size, uint8_t *out, size_t room) {
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)plain;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    room = z.total_out;
    deflateEnd(&z);
    return room;
}

static void compressed_batches_are_opened_and_bombs_refused(void **state) {
    (void)state;
    size_t plain_size = 100U << 20;
    uint8_t *plain = calloc(1, plain_size);
    uint8_t *packed = malloc(1 << 20);
    uint8_t *batch = malloc(1 << 20);
    size_t size = gzip(one_record, sizeof(one_record), packed, 1 << 20);
    size = make_batch(batch, 1, 1, packed, size);
    expect_batch(batch, size, "\"compression\":\"gzip\"");
    expect_batch(batch, size, "\"key\":\"aw==\"");
    size = gzip(plain, plain_size, packed, 1 << 20);
    size = make_batch(batch, 1, 1, packed, size);
    expect_batch(batch, size, "\"ok\":false");
    free(plain);
    free(packed);
    free(batch);
}

static void pieces_of_snapshots_need_not_be_batches(void **state) {
    (void)state;
    expect("response FetchSnapshot 0",
           "00000039"
           "0000000000"
           "000000000000"
           "02"
           "0274"
           "02"
           "00000000"
           "0000"
           "0000000000000000"
           "00000000"
           "00"
           "0000000000000000"
           "0000000000000000"
           "04010203"
           "000000",
           "\"unalignedRecords\":\"AQID\"");
}

/* A message of the older formats with this value. */
static size_t make_message(uint8_t *out, int64_t offset, int8_t magic, int8_t attributes,
                           const void *value, size_t size) {
    struct esk_writer w = esk_writer(out, 1024);
    esk_write_u64(&w, (uint64_t)offset);
    esk_write_u32(&w, (uint32_t)(14 + (magic ? 8 : 0) + size));
    esk_write_u32(&w, 0);
    esk_write_u8(&w, (uint8_t)magic);
    esk_write_u8(&w, (uint8_t)attributes);
    if (magic)
        esk_write_u64(&w, 5);
    esk_write_u32(&w, UINT32_MAX); /* no key */
    esk_write_u32(&w, (uint32_t)size);
    esk_write_bytes(&w, esk_slice(value, size));
    size = esk_writer_size(&w);
    esk_store_u32(out + 12, (uint32_t)crc32(0, out + 16, (uInt)(size - 16)));
    return size;
}

static void expect_messages(const uint8_t *bytes, size_t size, const char *part) {
    char *hex = malloc(2 * size + 1);
    put_hex(hex, bytes, size);
    expect("data MessageSet 1", hex, part);
    free(hex);
}

static void older_messages_are_read(void **state) {
    (void)state;
    uint8_t inner[1024];
    uint8_t packed[1024];
    uint8_t set[1024];
    size_t size = make_message(set, 3, 0, 0, "old", 3);
    expect_messages(set, size,
                    "{\"batches\":[{\"magic\":0,\"compression\":\"none\",\"baseOffset\":3,"
                    "\"attributes\":0,\"records\":[{\"offset\":3,\"key\":null,\"value\":\"b2xk\"}"
                    "]}]}");
    size = make_message(inner, 0, 1, 0, "a", 1);
    size += make_message(inner + size, 1, 1, 0, "b", 1);
    size = gzip(inner, size, packed, sizeof(packed));
    size = make_message(set, 7, 1, 1, packed, size);
    expect_messages(set, size,
                    "{\"magic\":1,\"compression\":\"gzip\",\"baseOffset\":7,\"attributes\":1,"
                    "\"records\":[{\"offset\":0,\"timestamp\":5,\"key\":null,\"value\":\"YQ==\"},"
                    "{\"offset\":1,\"timestamp\":5,\"key\":null,\"value\":\"Yg==\"}]}");
    set[size - 1] ^= 1;
    expect_messages(set, size, "Crc: expected CRC 0x");
    expect_messages(set, size, "\"offset\":12}");
}

static void a_fetch_response_may_end_in_a_partial_batch(void **state) {
    (void)state;
    uint8_t batch[256];
    char hex[1024];
    size_t size = make_batch(batch, 0, 1, one_record, sizeof(one_record));
    size_t kept = size - 5;
    /* v4: throttle, one topic "t", partition 0, no error, offsets, aborted null, records. */
    size_t body = 4 + 4 + 3 + 4 + 4 + 2 + 8 + 8 + 4 + 4 + kept;
    int length = sprintf(hex,
                         "%08zx00000000"
                         "00000000"
                         "00000001"
                         "000174"
                         "00000001"
                         "00000000"
                         "0000"
                         "0000000000000001"
                         "0000000000000001"
                         "ffffffff"
                         "%08zx",
                         body + 4, kept);
    put_hex(hex + length, batch, kept);
    expect("response Fetch 4", hex, "\"ok\":true");
    expect("response Fetch 4", hex, "\"warnings\":[]");
    /* A damaged whole batch in it is found. */
    batch[60] = 9;
    length = sprintf(hex,
                     "%08zx00000000"
                     "00000000"
                     "00000001"
                     "000174"
                     "00000001"
                     "00000000"
                     "0000"
                     "0000000000000001"
                     "0000000000000001"
                     "ffffffff"
                     "%08zx",
                     body + 4 + 5, size);
    put_hex(hex + length, batch, size);
    expect("response Fetch 4", hex,
           "Fetch response v4: Responses[0].Partitions[0].Records.batches");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tolerated_oddities_are_warnings),
        cmocka_unit_test(damage_names_the_field_and_the_byte),
        cmocka_unit_test(batches_are_checked_to_the_byte),
        cmocka_unit_test(compressed_batches_are_opened_and_bombs_refused),
        cmocka_unit_test(pieces_of_snapshots_need_not_be_batches),
        cmocka_unit_test(older_messages_are_read),
        cmocka_unit_test(a_fetch_response_may_end_in_a_partial_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
