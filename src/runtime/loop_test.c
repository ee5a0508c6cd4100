/* SPDX-License-Identifier: Apache-2.0 */
/* The loop with real threads: order of mails and timers, bounded turns, wake-ups under stress, the
 * turn metric. Nothing sleeps; a lost wake-up shows as the test's time-out. */
#include "runtime/loop.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "runtime/platform.h"
#include "runtime/runtime_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include <cmocka.h>

/* What ran, in order. */
static char trace[64];
static size_t traced;

struct step {
    struct esk_mail mail;
    struct esk_loop *loop;
    char letter;
    struct step *then; /* posted to the loop when this runs */
};

static void note(char letter) {
    trace[traced++] = letter;
    trace[traced] = '\0';
}

static void run_step(struct esk_mail *mail) {
    struct step *step = ESK_CONTAINER(mail, struct step, mail);
    assert_true(esk_executor_is_current(&step->loop->executor));
    note(step->letter);
    if (step->letter == '!') {
        esk_loop_stop(step->loop);
    }
    if (step->then) {
        esk_post(&step->loop->executor, &step->then->mail);
    }
}

static struct step make_step(struct esk_loop *loop, char letter, struct step *then) {
    return (struct step){{NULL, run_step}, loop, letter, then};
}

static void mails_to_oneself_run_behind_what_has_arrived(void **state) {
    (void)state;
    traced = 0;
    struct esk_loop *loop = esk_loop_create("test");
    struct step end = make_step(loop, '!', NULL);
    struct step second = make_step(loop, '2', &end);
    struct step first = make_step(loop, '1', &second);
    struct step a = make_step(loop, 'a', &first);
    struct step b = make_step(loop, 'b', NULL);
    struct step c = make_step(loop, 'c', NULL);
    esk_post(&loop->executor, &a.mail);
    esk_post(&loop->executor, &b.mail);
    esk_post(&loop->executor, &c.mail);
    esk_loop_run(loop);
    assert_string_equal(trace, "abc12!");
    esk_loop_destroy(loop);
}

struct io {
    uv_async_t async;
    struct step *steps; /* two */
    struct esk_mail *foreign;
    struct esk_loop *loop;
};

static void *post_foreign(void *context) {
    struct io *io = context;
    esk_post(&io->loop->executor, io->foreign);
    return NULL;
}

/* An I/O callback: posts to its loop, then a mail of another thread arrives, then goes on. */
static void on_io(uv_async_t *handle) {
    struct io *io = handle->data;
    note('i');
    esk_post(&io->loop->executor, &io->steps[0].mail);
    pthread_t thread;
    eski_thread_start(&thread, "foreign", post_foreign, io);
    pthread_join(thread, NULL);
    note('o');
    uv_close((uv_handle_t *)handle, NULL);
}

static void mails_run_behind_the_io_callbacks_of_the_turn(void **state) {
    (void)state;
    traced = 0;
    struct esk_loop *loop = esk_loop_create("test");
    struct step steps[] = {make_step(loop, 's', &steps[1]), make_step(loop, '!', NULL)};
    struct step foreign = make_step(loop, 'f', NULL);
    struct io io = {.steps = steps, .foreign = &foreign.mail, .loop = loop};
    uv_async_init(esk_loop_uv(loop), &io.async, on_io);
    io.async.data = &io;
    uv_async_send(&io.async);
    esk_loop_run(loop);
    assert_string_equal(trace, "iofs!");
    esk_loop_destroy(loop);
}

struct endless {
    struct esk_mail mail;
    struct esk_timer timer;
    struct esk_loop *loop;
    unsigned runs;
    bool done;
};

static void run_endless(struct esk_mail *mail) {
    struct endless *endless = ESK_CONTAINER(mail, struct endless, mail);
    endless->runs++;
    if (!endless->done) {
        esk_post(&endless->loop->executor, mail);
    }
}

static void end_endless(struct esk_timer *timer) {
    struct endless *endless = ESK_CONTAINER(timer, struct endless, timer);
    endless->done = true;
    esk_loop_stop(endless->loop);
}

static void a_mail_that_posts_itself_for_ever_starves_nothing(void **state) {
    (void)state;
    struct esk_loop *loop = esk_loop_create("test");
    struct endless endless = {.mail = {NULL, run_endless}, .timer.run = end_endless, .loop = loop};
    esk_post(&loop->executor, &endless.mail);
    esk_timer_start(loop, &endless.timer, eski_monotonic_ns() + 2000000);
    esk_loop_run(loop);
    assert_true(endless.runs > 1);
    esk_loop_destroy(loop);
}

static unsigned turns;
static void count_turn(uv_check_t *handle) {
    (void)handle;
    turns++;
}

static void a_turn_takes_a_bounded_number_of_mails(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    traced = 0;
    turns = 0;
    struct esk_loop *loop = esk_loop_create("test");
    uv_check_t check;
    uv_check_init(esk_loop_uv(loop), &check);
    uv_check_start(&check, count_turn);
    struct endless *mails = esk_alloc_zeroed(COUNT, sizeof(*mails));
    for (size_t i = 0; i < COUNT; i++) {
        mails[i] = (struct endless){.mail = {NULL, run_endless}, .done = true};
        esk_post(&loop->executor, &mails[i].mail);
    }
    struct step end = make_step(loop, '!', NULL);
    esk_post(&loop->executor, &end.mail);
    esk_loop_run(loop);
    assert_true(turns >= COUNT / 256);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(mails[i].runs, 1);
    }
    uv_close((uv_handle_t *)&check, NULL);
    uv_run(esk_loop_uv(loop), UV_RUN_NOWAIT);
    free(mails);
    esk_loop_destroy(loop);
}

struct alarm {
    struct esk_timer timer;
    struct esk_loop *loop;
    char letter;
    struct alarm *stops;
};

static void ring(struct esk_timer *timer) {
    struct alarm *alarm = ESK_CONTAINER(timer, struct alarm, timer);
    assert_true(esk_loop_now_ns(alarm->loop) >= timer->deadline.due_ns);
    note(alarm->letter);
    if (alarm->stops) {
        esk_timer_stop(alarm->loop, &alarm->stops->timer);
    }
    if (alarm->letter == '!') {
        esk_loop_stop(alarm->loop);
    }
}

static void timers_run_in_order_and_never_early(void **state) {
    (void)state;
    traced = 0;
    struct esk_loop *loop = esk_loop_create("test");
    struct alarm stopped = {{.run = ring}, loop, 'x', NULL};
    struct alarm a = {{.run = ring}, loop, 'a', &stopped};
    struct alarm b = {{.run = ring}, loop, 'b', NULL};
    struct alarm c = {{.run = ring}, loop, 'c', NULL};
    struct alarm moved = {{.run = ring}, loop, 'm', NULL};
    struct alarm end = {{.run = ring}, loop, '!', NULL};
    uint64_t now = eski_monotonic_ns();
    esk_timer_start(loop, &moved.timer, now);
    esk_timer_start(loop, &end.timer, now + 7300000);
    esk_timer_start(loop, &c.timer, now + 3100000);
    esk_timer_start(loop, &a.timer, now + 1);
    esk_timer_start(loop, &b.timer, now + 1);
    esk_timer_start(loop, &stopped.timer, now + 2000000);
    esk_timer_start(loop, &moved.timer, now + 5000000);
    esk_loop_run(loop);
    assert_string_equal(trace, "abcm!");
    assert_true(eski_monotonic_ns() - now >= 7300000);
    esk_loop_destroy(loop);
}

static void burn(struct esk_mail *mail) {
    (void)mail;
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t until = now.tv_sec * 1000000000 + now.tv_nsec + 30000000;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000000000 + now.tv_nsec < until);
}

static void a_turn_is_measured_without_its_sleep(void **state) {
    (void)state;
    struct esk_loop *loop = esk_loop_create("test");
    struct alarm end = {{.run = ring}, loop, '!', NULL};
    traced = 0;
    esk_timer_start(loop, &end.timer, eski_monotonic_ns() + 40000000);
    esk_loop_run(loop); /* sleeps 40 ms */
    assert_true(esk_counter_get(esk_loop_turn_max_ns(loop)) < 30000000);
    struct esk_mail busy = {NULL, burn};
    struct alarm again = {{.run = ring}, loop, '!', NULL};
    esk_post(&loop->executor, &busy);
    esk_timer_start(loop, &again.timer, eski_monotonic_ns());
    esk_loop_run(loop);
    struct alarm last = {{.run = ring}, loop, '!', NULL};
    esk_timer_start(loop, &last.timer, eski_monotonic_ns() + 40000000);
    esk_loop_run(loop);
    assert_true(esk_counter_get(esk_loop_turn_max_ns(loop)) >= 30000000);
    assert_true(esk_counter_get(esk_loop_turn_recent_max_ns(loop)) >= 30000000);
    esk_loop_turn_reset(loop);
    assert_int_equal(esk_counter_get(esk_loop_turn_recent_max_ns(loop)), 0);
    esk_loop_destroy(loop);
}

/* Stress: every sender sends its mails one after the other, each to both loops in turn and back,
 * and the loops check that what one sender sent last is what arrives next. */
enum { SENDERS = 3, ROUNDS = 4000, WINDOW = 16 };

struct parcel {
    struct esk_mail mail;
    struct sender *sender;
    uint64_t number;
    struct esk_loop *at;
};

struct sender {
    struct esk_executor *worker;
    struct esk_loop *loops[2];
    struct parcel parcels[2][WINDOW];
    uint64_t sent[2];
    uint64_t seen[2]; /* by the loop */
    uint64_t back;
    struct esk_mail start;
    atomic_bool *failed;
    atomic_uint *running;
    struct esk_loop *home;
};

static void send_next(struct sender *sender, struct parcel *parcel, unsigned which);

static void come_back(struct esk_mail *mail) {
    struct parcel *parcel = ESK_CONTAINER(mail, struct parcel, mail);
    struct sender *sender = parcel->sender;
    unsigned which = parcel->at == sender->loops[1];
    sender->back++;
    if (sender->sent[which] < ROUNDS) {
        send_next(sender, parcel, which);
    } else if (sender->back == 2 * ROUNDS && atomic_fetch_sub(sender->running, 1) == 1) {
        esk_loop_stop(sender->home);
    }
}

static void arrive(struct esk_mail *mail) {
    struct parcel *parcel = ESK_CONTAINER(mail, struct parcel, mail);
    struct sender *sender = parcel->sender;
    unsigned which = parcel->at == sender->loops[1];
    if (parcel->number != sender->seen[which]++) {
        atomic_store(sender->failed, true);
    }
    mail->run = come_back;
    esk_post(sender->worker, mail);
}

static void send_next(struct sender *sender, struct parcel *parcel, unsigned which) {
    parcel->mail.run = arrive;
    parcel->number = sender->sent[which]++;
    parcel->sender = sender;
    parcel->at = sender->loops[which];
    esk_post(&parcel->at->executor, &parcel->mail);
}

static void start_sending(struct esk_mail *mail) {
    struct sender *sender = ESK_CONTAINER(mail, struct sender, start);
    for (unsigned which = 0; which < 2; which++) {
        for (unsigned i = 0; i < WINDOW; i++) {
            send_next(sender, &sender->parcels[which][i], which);
        }
    }
}

static void mails_of_a_sender_keep_their_order_under_load(void **state) {
    (void)state;
    struct esk_platform *platform = esk_runtime_platform_create();
    struct esk_loop *home = esk_loop_create("home");
    struct esk_loop *loops[2] = {esk_loop_create("one"), esk_loop_create("two")};
    struct sender *senders = esk_alloc_zeroed(SENDERS, sizeof(*senders));
    atomic_bool failed = false;
    atomic_uint running = SENDERS;
    for (unsigned i = 0; i < SENDERS; i++) {
        struct sender *sender = &senders[i];
        sender->worker = esk_worker_create(platform, "sender", 1);
        sender->loops[0] = loops[0];
        sender->loops[1] = loops[1];
        sender->start.run = start_sending;
        sender->failed = &failed;
        sender->running = &running;
        sender->home = home;
        esk_post(sender->worker, &sender->start);
    }
    esk_loop_start(loops[0]);
    esk_loop_start(loops[1]);
    esk_loop_run(home);
    for (unsigned i = 0; i < SENDERS; i++) {
        esk_worker_destroy(platform, senders[i].worker);
    }
    for (unsigned i = 0; i < 2; i++) {
        esk_loop_stop(loops[i]);
        esk_loop_join(loops[i]);
        esk_loop_destroy(loops[i]);
    }
    esk_loop_destroy(home);
    assert_false(atomic_load(&failed));
    for (unsigned i = 0; i < SENDERS; i++) {
        assert_int_equal(senders[i].seen[0], ROUNDS);
        assert_int_equal(senders[i].seen[1], ROUNDS);
    }
    free(senders);
    esk_runtime_platform_destroy(platform);
}

/* One mail at a time between two loops: each hop meets a loop that is about to sleep. */
struct ball {
    struct esk_mail mail;
    struct esk_loop *sides[2];
    struct esk_loop *home;
    unsigned hops;
};

static void hop(struct esk_mail *mail) {
    struct ball *ball = ESK_CONTAINER(mail, struct ball, mail);
    if (ball->hops++ == 20000) {
        esk_loop_stop(ball->home);
        return;
    }
    esk_post(&ball->sides[ball->hops % 2]->executor, mail);
}

static void no_wake_up_is_lost(void **state) {
    (void)state;
    struct esk_loop *sides[2] = {esk_loop_create("left"), esk_loop_create("right")};
    struct ball ball = {
        .mail = {NULL, hop}, .sides = {sides[0], sides[1]}, .home = esk_loop_create("home")};
    esk_loop_start(sides[0]);
    esk_loop_start(sides[1]);
    esk_post(&sides[0]->executor, &ball.mail);
    esk_loop_run(ball.home);
    assert_int_equal(ball.hops, 20001);
    for (unsigned i = 0; i < 2; i++) {
        esk_loop_stop(sides[i]);
        esk_loop_join(sides[i]);
        esk_loop_destroy(sides[i]);
    }
    esk_loop_destroy(ball.home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mails_to_oneself_run_behind_what_has_arrived),
        cmocka_unit_test(mails_run_behind_the_io_callbacks_of_the_turn),
        cmocka_unit_test(a_mail_that_posts_itself_for_ever_starves_nothing),
        cmocka_unit_test(a_turn_takes_a_bounded_number_of_mails),
        cmocka_unit_test(timers_run_in_order_and_never_early),
        cmocka_unit_test(a_turn_is_measured_without_its_sleep),
        cmocka_unit_test(mails_of_a_sender_keep_their_order_under_load),
        cmocka_unit_test(no_wake_up_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
