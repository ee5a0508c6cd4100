/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler and the platform's calls: order of mails, clock, crashes, errors of syncs, and that
 * a seed is a run. */
#include "world.h"

#include "base/list.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 100
#define MAILS 20

/* Two loops send numbered mails to a third; everything that arrives is noted. */
struct letter {
    struct esk_mail mail;
    struct bench *bench;
    unsigned sender, number;
};
struct bench {
    struct sim_world world;
    struct esk_loop *to;
    struct esk_loop *from[2];
    struct letter letters[2][MAILS];
    struct letter starts[2];
    unsigned next[2];
    unsigned order[2 * MAILS];
    unsigned got;
};

static void letter_run(struct esk_mail *mail) {
    struct letter *letter = ESK_CONTAINER(mail, struct letter, mail);
    struct bench *bench = letter->bench;
    assert_true(esk_executor_is_current(&bench->to->executor));
    assert_int_equal(letter->number, bench->next[letter->sender]++);
    bench->order[bench->got++] = letter->sender;
}

static void start_run(struct esk_mail *mail) {
    struct letter *start = ESK_CONTAINER(mail, struct letter, mail);
    for (unsigned i = 0; i < MAILS; i++) {
        struct letter *letter = &start->bench->letters[start->sender][i];
        *letter = (struct letter){{NULL, letter_run}, start->bench, start->sender, i};
        esk_post(&start->bench->to->executor, &letter->mail);
    }
}

static void mails_of_one_sender_keep_their_order_and_others_interleave(void **state) {
    (void)state;
    unsigned interleaved = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct bench *bench = esk_alloc_zeroed(1, sizeof(*bench));
        sim_world_init(&bench->world, seed, 1 << 20);
        bench->to = sim_loop_create(&bench->world, "to");
        for (unsigned i = 0; i < 2; i++) {
            bench->from[i] = sim_loop_create(&bench->world, "from");
            bench->starts[i] = (struct letter){{NULL, start_run}, bench, i, 0};
            esk_post(&bench->from[i]->executor, &bench->starts[i].mail);
        }
        assert_int_equal(sim_world_run(&bench->world, NULL, NULL), SIM_IDLE);
        assert_int_equal(bench->got, 2 * MAILS);
        unsigned changes = 0;
        for (unsigned i = 1; i < bench->got; i++) {
            changes += bench->order[i] != bench->order[i - 1];
        }
        interleaved += changes > 2;
        sim_world_end(&bench->world, false);
        free(bench);
    }
    assert_true(interleaved > SEEDS / 2);
}

struct alarm {
    struct esk_timer timer;
    struct esk_loop *loop;
    uint64_t rang_ns;
};

static void alarm_run(struct esk_timer *timer) {
    struct alarm *alarm = ESK_CONTAINER(timer, struct alarm, timer);
    alarm->rang_ns = esk_loop_now_ns(alarm->loop);
}

static void time_moves_to_the_next_timer_and_a_stopped_one_stays_silent(void **state) {
    (void)state;
    struct sim_world world;
    sim_world_init(&world, 3, 1 << 20);
    struct esk_loop *loop = sim_loop_create(&world, "loop");
    uint64_t now = world.now_ns;
    struct alarm a = {{.run = alarm_run}, loop, 0}, b = a;
    esk_timer_start(loop, &a.timer, now + 3600 * SIM_S);
    esk_timer_start(loop, &b.timer, now + 1800 * SIM_S);
    esk_timer_stop(loop, &b.timer);
    assert_int_equal(sim_world_run(&world, NULL, NULL), SIM_IDLE);
    assert_in_range(a.rang_ns, now + 3600 * SIM_S, now + 3601 * SIM_S);
    assert_int_equal(b.rang_ns, 0);
    sim_world_end(&world, false);
}

/* --- the disk through the platform --- */

struct writer {
    struct sim_world world;
    unsigned done; /* numbered writes that were synced */
};

static void writer_run(void *argument) {
    struct writer *writer = argument;
    struct esk_platform *platform = &writer->world.platform;
    struct esk_file *file;
    struct esk_error error;
    assert_int_equal(
        esk_file_open(platform, "data", ESK_FILE_WRITE | ESK_FILE_CREATE, &file, &error), ESK_OK);
    assert_int_equal(esk_folder_sync(platform, "", &error), ESK_OK);
    for (unsigned i = 0; i < 50; i++) {
        uint8_t bytes[100];
        memset(bytes, (int)i + 1, sizeof(bytes));
        struct esk_slice slice = esk_slice(bytes, sizeof(bytes));
        assert_int_equal(esk_file_write(file, &slice, 1, i * 100, &error), ESK_OK);
        assert_int_equal(esk_file_sync(file, &error), ESK_OK);
        writer->done = i + 1;
    }
    esk_file_close(file);
}

static uint64_t crashed_run(uint64_t seed, bool power_loss, unsigned *done) {
    struct writer *writer = esk_alloc_zeroed(1, sizeof(*writer));
    struct sim_world *world = &writer->world;
    sim_world_init(world, seed, 1 << 20);
    world->faults[SIM_FAULT_WRITE_SHORT] = 1 + seed % 7;
    world->crash_at = 1 + sim_below(&world->random, 120);
    sim_thread_start(world, "writer", writer_run, writer);
    enum sim_outcome outcome = sim_world_run(world, NULL, NULL);
    assert_true(outcome == SIM_CRASHED || (outcome == SIM_IDLE && writer->done == 50));
    sim_world_end(world, power_loss);
    uint8_t bytes[5000] = {0};
    size_t got = 0;
    struct esk_file *file;
    if (esk_file_open(&world->platform, "data", ESK_FILE_READ, &file, NULL) == ESK_OK) {
        assert_int_equal(esk_file_read(file, bytes, sizeof(bytes), 0, 0, &got, NULL), ESK_OK);
        esk_file_close(file);
    }
    assert_true(got >= writer->done * 100);
    for (unsigned i = 0; i < writer->done * 100; i++) {
        assert_int_equal(bytes[i], i / 100 + 1);
    }
    *done = writer->done;
    uint64_t hash = world->hash;
    free(writer);
    return hash;
}

static void synced_bytes_survive_a_crash_at_any_call(void **state) {
    (void)state;
    unsigned least = 50, most = 0, done;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        crashed_run(seed, seed % 2, &done);
        least = done < least ? done : least;
        most = done > most ? done : most;
    }
    assert_true(least == 0 && most > 10);
}

static void a_seed_is_one_run_and_seeds_differ(void **state) {
    (void)state;
    unsigned done;
    for (uint64_t seed = 0; seed < 10; seed++) {
        assert_true(crashed_run(seed, true, &done) == crashed_run(seed, true, &done));
        assert_true(crashed_run(seed, true, &done) != crashed_run(seed + 1, true, &done));
    }
}

static void a_failed_write_back_is_told_once_per_descriptor(void **state) {
    (void)state;
    struct sim_world world;
    sim_world_init(&world, 5, 1 << 20);
    struct esk_platform *platform = &world.platform;
    struct esk_file *a, *b, *late;
    unsigned flags = ESK_FILE_WRITE | ESK_FILE_READ | ESK_FILE_CREATE;
    assert_int_equal(esk_file_open(platform, "f", flags, &a, NULL), ESK_OK);
    assert_int_equal(esk_file_open(platform, "f", flags, &b, NULL), ESK_OK);
    struct esk_slice slice = esk_slice("new", 3);
    assert_int_equal(esk_file_write(a, &slice, 1, 0, NULL), ESK_OK);
    world.faults[SIM_FAULT_SYNC] = 1;
    struct esk_error error;
    assert_int_equal(esk_file_sync(a, &error), ESK_ERR_IO);
    assert_int_equal(esk_file_sync(a, &error), ESK_OK);
    assert_int_equal(esk_file_sync(b, &error), ESK_ERR_IO);
    assert_int_equal(esk_file_sync(b, &error), ESK_OK);
    assert_int_equal(esk_file_open(platform, "f", flags, &late, NULL), ESK_OK);
    assert_int_equal(esk_file_sync(late, &error), ESK_OK);
    uint8_t bytes[3];
    assert_int_equal(esk_file_read_exactly(b, bytes, 3, 0, &error), ESK_OK);
    assert_memory_equal(bytes, "new", 3);
    assert_int_equal(esk_file_drop_cache(b, &error), ESK_OK);
    assert_int_equal(esk_file_read_exactly(b, bytes, 3, 0, &error), ESK_OK);
    assert_memory_equal(bytes, "\0\0\0", 3);
    esk_file_close(a);
    esk_file_close(b);
    esk_file_close(late);
}

static void a_full_disk_refuses_new_blocks_and_takes_old_ones(void **state) {
    (void)state;
    struct sim_world world;
    sim_world_init(&world, 6, 4 * SIM_PAGE);
    struct esk_platform *platform = &world.platform;
    struct esk_file *file, *ballast;
    unsigned flags = ESK_FILE_WRITE | ESK_FILE_READ | ESK_FILE_CREATE;
    assert_int_equal(esk_file_open(platform, "ballast", flags, &ballast, NULL), ESK_OK);
    assert_int_equal(esk_file_allocate(ballast, 0, 2 * SIM_PAGE, NULL), ESK_OK);
    assert_int_equal(esk_file_open(platform, "f", flags, &file, NULL), ESK_OK);
    uint8_t bytes[3 * SIM_PAGE] = {1};
    struct esk_slice slice = esk_slice(bytes, sizeof(bytes));
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_ERR_NO_SPACE);
    slice.size = 2 * SIM_PAGE;
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_OK);
    slice.size = sizeof(bytes);
    assert_int_equal(esk_file_truncate(ballast, SIM_PAGE, NULL), ESK_OK);
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_OK);
    uint64_t free_bytes, total;
    assert_int_equal(esk_path_space(platform, "", &free_bytes, &total, NULL), ESK_OK);
    assert_int_equal(free_bytes, 0);
    esk_file_close(ballast);
    assert_int_equal(esk_path_remove(platform, "ballast", NULL), ESK_OK);
    assert_int_equal(esk_path_space(platform, "", &free_bytes, &total, NULL), ESK_OK);
    assert_int_equal(free_bytes, SIM_PAGE);
    esk_file_close(file);
}

static void a_worker_ends_behind_its_queue(void **state) {
    (void)state;
    struct bench *bench = esk_alloc_zeroed(1, sizeof(*bench));
    sim_world_init(&bench->world, 9, 1 << 20);
    struct esk_executor *worker = esk_worker_create(&bench->world.platform, "worker", 1);
    bench->to = (struct esk_loop *)worker;
    for (unsigned i = 0; i < MAILS; i++) {
        bench->letters[0][i] = (struct letter){{NULL, letter_run}, bench, 0, i};
        esk_post(worker, &bench->letters[0][i].mail);
    }
    esk_worker_destroy(&bench->world.platform, worker);
    assert_int_equal(bench->got, MAILS);
    free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mails_of_one_sender_keep_their_order_and_others_interleave),
        cmocka_unit_test(time_moves_to_the_next_timer_and_a_stopped_one_stays_silent),
        cmocka_unit_test(synced_bytes_survive_a_crash_at_any_call),
        cmocka_unit_test(a_seed_is_one_run_and_seeds_differ),
        cmocka_unit_test(a_failed_write_back_is_told_once_per_descriptor),
        cmocka_unit_test(a_full_disk_refuses_new_blocks_and_takes_old_ones),
        cmocka_unit_test(a_worker_ends_behind_its_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
