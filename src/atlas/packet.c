/* SPDX-License-Identifier: Apache-2.0 */
/* pcap (both byte orders, micro- and nanoseconds) and pcapng; Ethernet with VLAN tags, Linux
 * cooked, loopback and raw IP; IPv4 and IPv6. Fragmented IP is not put together. */
#include "atlas/packet_private.h"

#include <string.h>

enum {
    LINK_NULL = 0,
    LINK_ETHERNET = 1,
    LINK_RAW = 101,
    LINK_LOOP = 108,
    LINK_SLL = 113,
    LINK_SLL2 = 276
};

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_QINQ 0x88a8
#define PROTOCOL_TCP 6
#define TCP_SYN 2
#define TCP_ACK 16
#define PCAP_HEAD_BYTES 24
#define PCAP_PACKET_BYTES 16
#define PCAPNG_BLOCK_BYTES 12 /* type and length in front, the length again behind */
#define INTERFACES_MAX 64

struct walk {
    void *context;
    void (*segment)(void *context, const struct eski_segment *segment);
};

static void on_tcp(const struct walk *walk, struct eski_segment *segment, struct esk_reader *r) {
    const uint8_t *start = r->at;
    uint16_t source = esk_read_u16(r);
    uint16_t target = esk_read_u16(r);
    segment->sequence = esk_read_u32(r);
    esk_read_u32(r);
    unsigned head = (unsigned)(esk_read_u8(r) >> 4) * 4;
    unsigned flags = esk_read_u8(r);
    if (r->failed || head < 20 || head > (size_t)(r->end - start))
        return;
    segment->syn = flags & TCP_SYN;
    segment->ack = flags & TCP_ACK;
    segment->payload = esk_slice(start + head, (size_t)(r->end - start) - head);
    esk_store_u16(segment->key + 33, source);
    esk_store_u16(segment->key + 35, target);
    segment->reverse[0] = segment->key[0];
    memcpy(segment->reverse + 1, segment->key + 17, 16);
    memcpy(segment->reverse + 17, segment->key + 1, 16);
    esk_store_u16(segment->reverse + 33, target);
    esk_store_u16(segment->reverse + 35, source);
    walk->segment(walk->context, segment);
}

static void on_ipv4(const struct walk *walk, struct esk_slice packet) {
    if (packet.size < 20)
        return;
    size_t head = (size_t)(packet.data[0] & 15) * 4;
    size_t total = esk_load_u16(packet.data + 2);
    unsigned fragment = esk_load_u16(packet.data + 6) & 0x3fff; /* more to come, or not the first */
    if (total == 0 || total > packet.size) /* 0: the card segments what is sent */
        total = packet.size;
    if (head < 20 || head > total || packet.data[9] != PROTOCOL_TCP || fragment != 0)
        return;
    struct eski_segment segment = {.key = {4}};
    memcpy(segment.key + 1, packet.data + 12, 4);
    memcpy(segment.key + 17, packet.data + 16, 4);
    struct esk_reader r = esk_reader(esk_slice(packet.data + head, total - head));
    on_tcp(walk, &segment, &r);
}

static void on_ipv6(const struct walk *walk, struct esk_slice packet) {
    if (packet.size < 40)
        return;
    size_t left = esk_load_u16(packet.data + 4);
    unsigned next = packet.data[6];
    size_t at = 40;
    size_t end = left == 0 || at + left > packet.size ? packet.size : at + left;
    while ((next == 0 || next == 43 || next == 60) && at + 8 <= end) { /* options, routing */
        next = packet.data[at];
        at += ((size_t)packet.data[at + 1] + 1) * 8;
    }
    if (next != PROTOCOL_TCP || at > end)
        return;
    struct eski_segment segment = {.key = {6}};
    memcpy(segment.key + 1, packet.data + 8, 32);
    struct esk_reader r = esk_reader(esk_slice(packet.data + at, end - at));
    on_tcp(walk, &segment, &r);
}

static void on_packet(const struct walk *walk, unsigned link, struct esk_slice packet) {
    size_t skip = 0;
    unsigned type = 0; /* 0: go by the IP version */
    switch (link) {
    case LINK_NULL:
    case LINK_LOOP:
        skip = 4;
        break;
    case LINK_ETHERNET:
        for (skip = 14; skip <= packet.size; skip += 4) {
            type = esk_load_u16(packet.data + skip - 2);
            if (type != ETHERTYPE_VLAN && type != ETHERTYPE_QINQ)
                break;
        }
        break;
    case LINK_SLL:
        skip = 16;
        type = packet.size >= skip ? esk_load_u16(packet.data + 14) : 0;
        break;
    case LINK_SLL2:
        skip = 20;
        type = packet.size >= skip ? esk_load_u16(packet.data) : 0;
        break;
    case LINK_RAW:
        break;
    default:
        return;
    }
    if (packet.size <= skip)
        return;
    packet = esk_slice(packet.data + skip, packet.size - skip);
    unsigned version = packet.data[0] >> 4;
    if (version == 4 && (type == 0 || type == ETHERTYPE_IPV4))
        on_ipv4(walk, packet);
    else if (version == 6 && (type == 0 || type == ETHERTYPE_IPV6))
        on_ipv6(walk, packet);
}

static uint32_t get_u32(const uint8_t *at, bool swapped) {
    uint32_t value = esk_load_u32(at); /* big-endian */
    return swapped ? __builtin_bswap32(value) : value;
}

static uint16_t get_u16(const uint8_t *at, bool swapped) {
    uint16_t value = esk_load_u16(at);
    return swapped ? __builtin_bswap16(value) : value;
}

static void walk_pcap(const struct walk *walk, struct esk_slice file, bool swapped,
                      const char **problem) {
    unsigned link = get_u32(file.data + 20, swapped) & 0xffff;
    for (size_t at = PCAP_HEAD_BYTES; at < file.size;) {
        if (file.size - at < PCAP_PACKET_BYTES) {
            *problem = "the capture ends inside a packet's head";
            return;
        }
        uint32_t size = get_u32(file.data + at + 8, swapped);
        at += PCAP_PACKET_BYTES;
        if (size > file.size - at) {
            *problem = "the capture ends inside a packet";
            return;
        }
        on_packet(walk, link, esk_slice(file.data + at, size));
        at += size;
    }
}

static void walk_pcapng(const struct walk *walk, struct esk_slice file, const char **problem) {
    unsigned links[INTERFACES_MAX] = {0};
    unsigned count = 0;
    bool swapped = false;
    for (size_t at = 0; at < file.size;) {
        if (file.size - at < PCAPNG_BLOCK_BYTES) {
            *problem = "the capture ends inside a block's head";
            return;
        }
        const uint8_t *block = file.data + at;
        uint32_t type = get_u32(block, swapped);
        if (type == 0x0a0d0d0a) { /* the same in both orders; a new section */
            swapped = esk_load_u32(block + 8) == 0x4d3c2b1a;
            count = 0;
        }
        uint32_t size = get_u32(block + 4, swapped);
        if (size < PCAPNG_BLOCK_BYTES || size > file.size - at || size % 4 != 0) {
            *problem = "the capture has a block of an impossible length";
            return;
        }
        if (type == 1 && size >= 20 && count < INTERFACES_MAX)
            links[count++] = get_u16(block + 8, swapped);
        if (type == 6 && size >= 32) {
            uint32_t interface = get_u32(block + 8, swapped);
            uint32_t captured = get_u32(block + 20, swapped);
            if (captured <= size - 32 && interface < count)
                on_packet(walk, links[interface], esk_slice(block + 28, captured));
        }
        if (type == 3 && size >= 16 && count > 0) {
            uint32_t captured = get_u32(block + 8, swapped);
            if (captured > size - 16)
                captured = size - 16;
            on_packet(walk, links[0], esk_slice(block + 12, captured));
        }
        at += size;
    }
}

void eski_packets_each(struct esk_slice file, void *context,
                       void (*segment)(void *context, const struct eski_segment *segment),
                       const char **problem) {
    struct walk walk = {context, segment};
    uint32_t magic = esk_load_u32(file.data);
    if (magic == 0x0a0d0d0a)
        walk_pcapng(&walk, file, problem);
    else if (file.size < PCAP_HEAD_BYTES)
        *problem = "the capture ends inside its head";
    else
        walk_pcap(&walk, file, magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1, problem);
}
