/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/capture.h"
#include "atlas/packet_private.h"
#include "base/list.h"
#include "base/map.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_SIZE_BYTES 4
#define REQUEST_HEAD_BYTES 8  /* key, version, correlation id */
#define RESPONSE_HEAD_BYTES 4 /* correlation id */

struct piece {
    uint64_t position; /* in the stream */
    struct esk_slice bytes;
};

/* One direction of a connection. */
struct stream {
    struct esk_link link;
    struct stream *other; /* NULL: nothing was captured of it */
    uint8_t key[37];
    bool started;
    bool client; /* it sent the first SYN, or what it sent reads as requests */
    bool printed;
    uint32_t next_sequence;
    uint64_t next_position;
    struct esk_buffer pieces; /* of struct piece */
};

struct frame {
    uint64_t position; /* of its size, in the stream */
    uint32_t size;     /* with its size */
    int32_t correlation_id;
    bool taken;
};

struct capture {
    const struct esk_capture_visitor *visitor;
    struct esk_map streams;
    struct esk_link order;
    struct esk_buffer frame; /* the one being shown */
};

static void note(const struct capture *c, bool problem, const char *text) {
    c->visitor->note(c->visitor->context, text, problem);
}

static struct stream *stream_of(struct capture *c, const uint8_t *key) {
    struct stream *stream = esk_map_get(&c->streams, esk_slice(key, 37));
    if (stream != NULL)
        return stream;
    stream = esk_alloc_zeroed(1, sizeof(*stream));
    memcpy(stream->key, key, 37);
    esk_buffer_init(&stream->pieces);
    esk_map_put(&c->streams, esk_slice(key, 37), stream);
    esk_list_append(&c->order, &stream->link);
    return stream;
}

static void on_segment(void *context, const struct eski_segment *segment) {
    struct capture *c = context;
    struct stream *stream = stream_of(c, segment->key);
    struct stream *other = esk_map_get(&c->streams, esk_slice(segment->reverse, 37));
    if (other != NULL) {
        stream->other = other;
        other->other = stream;
    }
    uint32_t sequence = segment->sequence + (segment->syn ? 1 : 0);
    if (segment->syn && !segment->ack)
        stream->client = true;
    if (!stream->started) {
        stream->started = true;
        stream->next_sequence = sequence;
    }
    if (segment->payload.size == 0)
        return;
    /* Sequence numbers wrap: take the one next to what was seen last. */
    int64_t position = (int64_t)stream->next_position + (int32_t)(sequence - stream->next_sequence);
    if (position < 0) {
        size_t skip = (size_t)-position;
        if (skip >= segment->payload.size)
            return;
        struct piece late = {0,
                             esk_slice(segment->payload.data + skip, segment->payload.size - skip)};
        esk_buffer_append(&stream->pieces, &late, sizeof(late));
        return;
    }
    struct piece piece = {(uint64_t)position, segment->payload};
    esk_buffer_append(&stream->pieces, &piece, sizeof(piece));
    stream->next_position = (uint64_t)position + segment->payload.size;
    stream->next_sequence = sequence + (uint32_t)segment->payload.size;
}

static int by_position(const void *a, const void *b) {
    uint64_t x = ((const struct piece *)a)->position;
    uint64_t y = ((const struct piece *)b)->position;
    return x < y ? -1 : x > y;
}

/* Sorts the pieces and cuts overlaps; returns how many bytes are there without a gap. */
static uint64_t settle(struct stream *stream) {
    struct piece *pieces = (struct piece *)(void *)stream->pieces.data;
    size_t count = stream->pieces.size / sizeof(struct piece);
    uint64_t end = 0;
    size_t kept = 0;
    if (count > 0)
        qsort(pieces, count, sizeof(pieces[0]), by_position);
    for (size_t i = 0; i < count; i++) {
        uint64_t piece_end = pieces[i].position + pieces[i].bytes.size;
        if (pieces[i].position > end)
            break;
        if (piece_end <= end)
            continue;
        size_t skip = (size_t)(end - pieces[i].position);
        pieces[kept++] = (struct piece){
            end, esk_slice(pieces[i].bytes.data + skip, pieces[i].bytes.size - skip)};
        end = piece_end;
    }
    stream->pieces.size = kept * sizeof(struct piece);
    return end;
}

/* Copies bytes of a settled stream; they are there. */
static void copy(const struct stream *stream, uint64_t position, uint8_t *out, size_t size) {
    const struct piece *pieces = (const struct piece *)(const void *)stream->pieces.data;
    size_t low = 0;
    size_t high = stream->pieces.size / sizeof(struct piece);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (pieces[middle].position <= position)
            low = middle;
        else
            high = middle;
    }
    for (; size > 0; low++) {
        size_t skip = (size_t)(position - pieces[low].position);
        size_t part = pieces[low].bytes.size - skip < size ? pieces[low].bytes.size - skip : size;
        memcpy(out, pieces[low].bytes.data + skip, part);
        out += part;
        position += part;
        size -= part;
    }
}

static void index_frames(struct capture *c, struct stream *stream, bool requests,
                         struct esk_buffer *frames) {
    uint64_t end = settle(stream);
    size_t head = requests ? REQUEST_HEAD_BYTES : RESPONSE_HEAD_BYTES;
    char text[160];
    const char *who = requests ? "client" : "server";
    for (uint64_t at = 0; at < end;) {
        uint8_t start[FRAME_SIZE_BYTES + REQUEST_HEAD_BYTES];
        if (end - at < FRAME_SIZE_BYTES + head) {
            snprintf(
                text, sizeof(text),
                "%s's stream, byte %llu: expected a frame of at least %zu bytes, %llu are left",
                who, (unsigned long long)at, FRAME_SIZE_BYTES + head,
                (unsigned long long)(end - at));
            note(c, true, text);
            break;
        }
        copy(stream, at, start, FRAME_SIZE_BYTES + head);
        int32_t size = (int32_t)esk_load_u32(start);
        if (size < (int32_t)head) {
            snprintf(text, sizeof(text),
                     "%s's stream, byte %llu: expected a frame, its size says %d, its header alone "
                     "has %zu bytes",
                     who, (unsigned long long)at, (int)size, head);
            note(c, true, text);
            return;
        }
        if ((uint64_t)size > end - at - FRAME_SIZE_BYTES) {
            snprintf(text, sizeof(text),
                     "%s's stream, byte %llu: expected a frame, its size says %d, %llu bytes are "
                     "left",
                     who, (unsigned long long)at, (int)size,
                     (unsigned long long)(end - at - FRAME_SIZE_BYTES));
            note(c, true, text);
            return;
        }
        struct frame frame = {at, (uint32_t)size + FRAME_SIZE_BYTES,
                              (int32_t)esk_load_u32(start + FRAME_SIZE_BYTES + head - 4), false};
        esk_buffer_append(frames, &frame, sizeof(frame));
        at += frame.size;
    }
    if (stream->next_position > end) {
        snprintf(text, sizeof(text), "%s's stream: bytes from %llu on were not captured", who,
                 (unsigned long long)end);
        note(c, true, text);
    }
}

static bool load(struct capture *c, const struct stream *stream, const struct frame *frame) {
    if (frame->size > ESK_CAPTURE_FRAME_BYTES_MAX) {
        char text[96];
        snprintf(text, sizeof(text), "a frame of %u bytes is skipped: more than %u", frame->size,
                 ESK_CAPTURE_FRAME_BYTES_MAX);
        note(c, true, text);
        return false;
    }
    c->frame.size = 0;
    copy(stream, frame->position, esk_buffer_grow(&c->frame, frame->size), frame->size);
    c->frame.size = frame->size;
    return true;
}

/* The request that a frame's header claims to be. */
static bool identify(const uint8_t *frame, struct esk_atlas_input *input) {
    int16_t key = (int16_t)esk_load_u16(frame + FRAME_SIZE_BYTES);
    input->version = (int16_t)esk_load_u16(frame + FRAME_SIZE_BYTES + 2);
    input->message = esk_kafka_message_find(ESK_KAFKA_REQUEST, key, input->version);
    return input->message != NULL;
}

static void show_unknown(const struct capture *c, const uint8_t *frame) {
    char text[120];
    snprintf(text, sizeof(text), "a request of unknown API key %d, version %d, correlation id %d",
             (int16_t)esk_load_u16(frame + 4), (int16_t)esk_load_u16(frame + 6),
             (int32_t)esk_load_u32(frame + 8));
    note(c, true, text);
}

static struct frame *answer(struct esk_buffer *responses, int32_t correlation_id, size_t *from) {
    struct frame *frames = (struct frame *)(void *)responses->data;
    size_t count = responses->size / sizeof(struct frame);
    while (*from < count && frames[*from].taken)
        ++*from;
    for (size_t i = *from; i < count; i++) { /* nearly always the first */
        if (!frames[i].taken && frames[i].correlation_id == correlation_id) {
            frames[i].taken = true;
            return &frames[i];
        }
    }
    return NULL;
}

static void show_pairs(struct capture *c, struct stream *client, struct esk_buffer *requests,
                       struct esk_buffer *responses) {
    const struct frame *frames = (const struct frame *)(const void *)requests->data;
    size_t from = 0;
    for (size_t i = 0; i < requests->size / sizeof(struct frame); i++) {
        struct esk_atlas_input input;
        if (!load(c, client, &frames[i]))
            continue;
        bool known = identify(c->frame.data, &input);
        struct frame *response = answer(responses, frames[i].correlation_id, &from);
        if (!known) {
            show_unknown(c, c->frame.data);
            continue;
        }
        input.bytes = esk_buffer_slice(&c->frame);
        c->visitor->message(c->visitor->context, &input);
        if (response == NULL || !load(c, client->other, response))
            continue;
        input.message =
            esk_kafka_message_find(ESK_KAFKA_RESPONSE, input.message->api_key, input.version);
        input.bytes = esk_buffer_slice(&c->frame);
        c->visitor->message(c->visitor->context, &input);
    }
    const struct frame *left = (const struct frame *)(const void *)responses->data;
    for (size_t i = 0; i < responses->size / sizeof(struct frame); i++) {
        char text[96];
        if (left[i].taken)
            continue;
        snprintf(text, sizeof(text), "a response with correlation id %d to no captured request",
                 (int)left[i].correlation_id);
        note(c, true, text);
    }
}

/* Without a SYN: does what the stream carries first read as a request? */
static bool looks_like_requests(struct stream *stream) {
    uint8_t start[FRAME_SIZE_BYTES + REQUEST_HEAD_BYTES];
    struct esk_atlas_input input;
    if (settle(stream) < sizeof(start))
        return false;
    copy(stream, 0, start, sizeof(start));
    return identify(start, &input);
}

static void put_address(char *text, size_t size, const uint8_t *key, unsigned side) {
    char address[INET6_ADDRSTRLEN] = "?";
    inet_ntop(key[0] == 4 ? AF_INET : AF_INET6, key + 1 + side * 16, address, sizeof(address));
    snprintf(text, size, key[0] == 4 ? "%s:%u" : "[%s]:%u", address,
             esk_load_u16(key + 33 + side * 2));
}

static void show_connection(struct capture *c, struct stream *client) {
    char from[64];
    char to[64];
    char text[160];
    struct esk_buffer requests;
    struct esk_buffer responses;
    put_address(from, sizeof(from), client->key, 0);
    put_address(to, sizeof(to), client->key, 1);
    snprintf(text, sizeof(text), "connection %s -> %s", from, to);
    note(c, false, text);
    esk_buffer_init(&requests);
    esk_buffer_init(&responses);
    index_frames(c, client, true, &requests);
    if (client->other != NULL)
        index_frames(c, client->other, false, &responses);
    show_pairs(c, client, &requests, &responses);
    esk_buffer_fini(&requests);
    esk_buffer_fini(&responses);
}

bool esk_capture_is(struct esk_slice bytes) {
    if (bytes.size < 8)
        return false;
    uint32_t magic = esk_load_u32(bytes.data);
    return magic == 0xa1b2c3d4 || magic == 0xd4c3b2a1 || magic == 0xa1b23c4d ||
           magic == 0x4d3cb2a1 || magic == 0x0a0d0d0a;
}

void esk_capture_walk(struct esk_slice bytes, const struct esk_capture_visitor *visitor) {
    struct capture c = {.visitor = visitor};
    const char *problem = NULL;
    esk_map_init(&c.streams);
    esk_list_init(&c.order);
    esk_buffer_init(&c.frame);
    eski_packets_each(bytes, &c, on_segment, &problem);
    for (struct esk_link *link = c.order.next; link != &c.order; link = link->next) {
        struct stream *stream = ESK_CONTAINER(link, struct stream, link);
        if (stream->printed || stream->pieces.size == 0)
            continue;
        struct stream *other = stream->other;
        bool is_client =
            stream->client || (!(other != NULL && other->client) && looks_like_requests(stream));
        if (!is_client && other != NULL && (other->client || looks_like_requests(other)))
            stream = other;
        stream->printed = true;
        if (stream->other != NULL)
            stream->other->printed = true;
        show_connection(&c, stream);
    }
    if (problem != NULL)
        note(&c, true, problem);
    while (!esk_list_empty(&c.order)) {
        struct stream *stream = ESK_CONTAINER(esk_list_first(&c.order), struct stream, link);
        esk_list_remove(&stream->link);
        esk_buffer_fini(&stream->pieces);
        free(stream);
    }
    esk_buffer_fini(&c.frame);
    esk_map_fini(&c.streams);
}

void esk_capture_requests(struct esk_slice bytes, const struct esk_capture_visitor *visitor) {
    struct capture c = {.visitor = visitor};
    char text[120];
    size_t at = 0;
    while (bytes.size - at >= FRAME_SIZE_BYTES + REQUEST_HEAD_BYTES) {
        struct esk_atlas_input input;
        const uint8_t *frame = bytes.data + at;
        int32_t size = (int32_t)esk_load_u32(frame);
        if (!identify(frame, &input)) {
            show_unknown(&c, frame);
            return;
        }
        /* A wrong size is shown as damage of the message itself. */
        bool whole = size >= REQUEST_HEAD_BYTES && (size_t)size <= bytes.size - at - 4;
        input.bytes = esk_slice(frame, whole ? (size_t)size + 4 : bytes.size - at);
        visitor->message(visitor->context, &input);
        at += input.bytes.size;
    }
    if (at < bytes.size) {
        snprintf(text, sizeof(text),
                 "offset 0x%04zx: expected a request of at least 12 bytes, %zu "
                 "are left",
                 at, bytes.size - at);
        note(&c, true, text);
    }
}
