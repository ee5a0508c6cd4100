/* SPDX-License-Identifier: Apache-2.0 */
/* What the layer tells doors of a client, and what it does with one that does not read. */
#include "server/connection/echo_world_testing.h"

#include <errno.h>

static void an_address_is_the_same_on_either_kind_of_listener(void **state) {
    (void)state;
    static const uint8_t loopback[ESK_PEER_BYTES] = {
        [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
    const char *const wheres[] = {"127.0.0.1:0", "[::]:0"};
    for (size_t i = 0; i < 2; i++) {
        struct esk_door door = {.ops = &echo_ops};
        start(&door, wheres[i], NULL);
        int fd = dial();
        shutdown(fd, SHUT_WR);
        wait_for_closed(1);
        pthread_mutex_lock(&world.mutex);
        assert_memory_equal(world.peer.bytes, loopback, ESK_PEER_BYTES);
        pthread_mutex_unlock(&world.mutex);
        close(fd);
        stop();
    }
}

/* --- a door that answers each byte with a flood --- */

#define FLOOD_BYTES (16u << 20) /* more than the sockets of both sides hold */

static size_t output_bound;

static void flood_serve(struct esk_connection *connection) {
    struct esk_slice input = esk_connection_input(connection);
    if (input.size == 0) {
        return;
    }
    esk_connection_consume(connection, input.size);
    esk_connection_set_output_bound(connection, output_bound);
    static const uint8_t zeros[65536];
    for (size_t sent = 0; sent < FLOOD_BYTES; sent += sizeof zeros) {
        esk_connection_write(connection, zeros, sizeof zeros);
    }
    esk_connection_finish(connection);
}

static const struct esk_door_ops flood_ops = {echo_opened, flood_serve, echo_expired, echo_closed};

static size_t flooded(size_t bound, bool waits, int *result) {
    output_bound = bound;
    struct esk_door door = {.ops = &flood_ops};
    start(&door, "127.0.0.1:0", NULL);
    int fd = dial();
    int small = 16384;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    send_all(fd, "x", 1);
    if (waits) {
        wait_for_closed(1);
    }
    char *got = esk_alloc(FLOOD_BYTES + 1);
    size_t size = receive_all(fd, got, FLOOD_BYTES + 1, result);
    free(got);
    close(fd);
    stop();
    return size;
}

static void a_client_that_leaves_too_much_unread_is_dropped(void **state) {
    (void)state;
    int result;
    assert_true(flooded(1 << 20, true, &result) < FLOOD_BYTES);
    assert_int_equal(flooded(FLOOD_BYTES, false, &result), FLOOD_BYTES);
    assert_int_equal(result, 0);
    assert_int_equal(flooded(0, false, &result), FLOOD_BYTES);
    assert_int_equal(result, 0);
}

/* --- a door that collects: a length, and so many bytes, which it sends back --- */

static uint8_t *room;
static size_t room_bytes;
static size_t collected;
static size_t copied; /* of all bytes, by the door */

static bool collect(struct esk_connection *connection) {
    collected += esk_connection_read_count(connection);
    struct esk_slice input = esk_connection_input(connection);
    size_t size = input.size < room_bytes - collected ? input.size : room_bytes - collected;
    if (size) {
        memcpy(room + collected, input.data, size);
        esk_connection_consume(connection, size);
    }
    collected += size;
    copied += size;
    bool is_whole = collected == room_bytes;
    esk_connection_read_into(connection, room + collected, room_bytes - collected);
    return is_whole;
}

static void collect_serve(struct esk_connection *connection) {
    struct esk_slice input = esk_connection_input(connection);
    while (room || input.size >= 4) {
        if (!room) {
            room_bytes = esk_load_u32(input.data);
            room = esk_alloc(room_bytes);
            collected = 0;
            esk_connection_consume(connection, 4);
        }
        if (!collect(connection)) {
            break;
        }
        esk_connection_write(connection, room, room_bytes);
        free(room);
        room = NULL;
        input = esk_connection_input(connection);
    }
    if (esk_connection_input_ended(connection)) {
        esk_connection_finish(connection);
    }
}

static const struct esk_door_ops collect_ops = {echo_opened, collect_serve, echo_expired,
                                                echo_closed};

static void what_a_door_collects_is_read_to_where_it_collects(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 70000, 100000, 3, 300000, 5000, 65536, 200000, 90000};
    struct esk_buffer sent;
    struct esk_buffer expected;
    esk_buffer_init(&sent);
    esk_buffer_init(&expected);
    for (uint32_t i = 0; i < 9; i++) {
        esk_buffer_u32(&sent, sizes[i]);
        for (uint32_t k = 0; k < sizes[i]; k++) {
            esk_buffer_u8(&sent, (uint8_t)(k * 31 + k / 251 + i));
        }
        esk_buffer_append(&expected, sent.data + sent.size - sizes[i], sizes[i]);
    }
    struct esk_door door = {.ops = &collect_ops};
    start(&door, "127.0.0.1:0", NULL);
    int fd = dial();
    int result;
    char *got = esk_alloc(expected.size + 1);
    copied = 0;
    send_all(fd, sent.data, sent.size);
    shutdown(fd, SHUT_WR);
    assert_int_equal(receive_all(fd, got, expected.size + 1, &result), expected.size);
    assert_int_equal(result, 0);
    assert_memory_equal(got, expected.data, expected.size);
    wait_for_closed(1);
    assert_true(copied < expected.size / 2); /* the first window, and heads */
    close(fd);
    stop();
    free(got);
    esk_buffer_fini(&sent);
    esk_buffer_fini(&expected);
}

/* --- a door that answers with bytes of its own --- */

#define LENT_BYTES (1u << 20)
#define LENT_LARGE 8
#define LENT_SMALL 3000

static uint8_t lent[LENT_BYTES];

static void lend_serve(struct esk_connection *connection) {
    struct esk_slice input = esk_connection_input(connection);
    if (input.size == 0) {
        if (esk_connection_data(connection) && esk_connection_output_bytes(connection) == 0) {
            esk_connection_finish(connection);
        }
        return;
    }
    esk_connection_consume(connection, input.size);
    esk_connection_set_data(connection, lent);
    for (size_t i = 0; i < LENT_SMALL; i++) {
        esk_connection_write(connection, lent + i, i % 5);
        esk_connection_lend(connection, esk_slice(lent + i, i % 700));
    }
    for (size_t i = 0; i < LENT_LARGE; i++) {
        struct esk_block *block = esk_connection_block_take(connection);
        block->size = block->capacity;
        memset(block->data, (int)i, block->size);
        esk_connection_lend(connection, esk_slice(block->data + 7, 1000));
        esk_connection_lend(connection, esk_slice(lent, LENT_BYTES));
        esk_connection_write_block(connection, &block, 0, i % 2 ? 0 : 9);
        esk_connection_write(connection, "end", 3);
    }
    esk_connection_wake(connection);
}

static const struct esk_door_ops lend_ops = {echo_opened, lend_serve, echo_expired, echo_closed};

static struct esk_buffer lent_answer(void) {
    struct esk_buffer all;
    esk_buffer_init(&all);
    for (size_t i = 0; i < LENT_SMALL; i++) {
        esk_buffer_append(&all, lent + i, i % 5);
        esk_buffer_append(&all, lent + i, i % 700);
    }
    for (size_t i = 0; i < LENT_LARGE; i++) {
        uint8_t fill[1009];
        memset(fill, (int)i, sizeof fill);
        esk_buffer_append(&all, fill, 1000);
        esk_buffer_append(&all, lent, LENT_BYTES);
        esk_buffer_append(&all, fill, i % 2 ? 0 : 9);
        esk_buffer_append(&all, "end", 3);
    }
    return all;
}

static void what_a_door_lends_is_sent_in_its_place_and_it_learns_when_all_is(void **state) {
    (void)state;
    for (size_t i = 0; i < LENT_BYTES; i++) {
        lent[i] = (uint8_t)(i * 2654435761u >> 16);
    }
    struct esk_door door = {.ops = &lend_ops};
    start(&door, "127.0.0.1:0", NULL);
    int fd = dial();
    int small = 16384;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    send_all(fd, "x", 1);
    struct esk_buffer all = lent_answer();
    char *got = esk_alloc(all.size + 1);
    int result;
    assert_int_equal(receive_all(fd, got, all.size + 1, &result), all.size);
    assert_int_equal(result, 0);
    assert_memory_equal(got, all.data, all.size);
    free(got);
    esk_buffer_fini(&all);
    close(fd);
    stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_the_same_on_either_kind_of_listener),
        cmocka_unit_test(a_client_that_leaves_too_much_unread_is_dropped),
        cmocka_unit_test(what_a_door_collects_is_read_to_where_it_collects),
        cmocka_unit_test(what_a_door_lends_is_sent_in_its_place_and_it_learns_when_all_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
