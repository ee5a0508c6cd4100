/* SPDX-License-Identifier: Apache-2.0 */
/* One thread in sigtimedwait, one lock. State is per process, as signals are. */
#include "esker/stop.h"

#include "base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ECHO_MS 50 /* two signals alike within this are one */

static struct {
    pthread_mutex_t mutex; /* guards the three below */
    pthread_cond_t changed;
    bool asked;
    bool failed;
    bool hung_up;
    void (*on_hangup)(void *context); /* the waiting thread's */
    void *context;
    const struct esk_log *log;
    pthread_t thread;
} stop = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* SIGUSR1 is ours: a failure wakes the signal thread with it, which then counts the time. */
static sigset_t waited_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    return set;
}

static void hang_up(void) {
    pthread_mutex_lock(&stop.mutex);
    stop.hung_up = true;
    pthread_cond_broadcast(&stop.changed);
    pthread_mutex_unlock(&stop.mutex);
}

/* Sets what is asked for; true when it was asked for before. */
static bool ask(bool failed) {
    pthread_mutex_lock(&stop.mutex);
    bool before = stop.asked;
    stop.asked = true;
    stop.failed = stop.failed || failed;
    pthread_cond_broadcast(&stop.changed);
    pthread_mutex_unlock(&stop.mutex);
    return before;
}

static const char *signal_name(int number) {
    return number == SIGTERM ? "SIGTERM" : "SIGINT";
}

/* Whether the signal is the first one once more: GNU timeout, for one, signals its child and then
 * the child's group. Sets what the first one was. */
static bool is_echo(int number, struct timespec *first_at, int *first) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (*first == 0) {
        *first = number;
        *first_at = now;
        return false;
    }
    int64_t passed_ms =
        (now.tv_sec - first_at->tv_sec) * 1000 + (now.tv_nsec - first_at->tv_nsec) / 1000000;
    return number == *first && passed_ms < ECHO_MS;
}

static void *wait_for_signals(void *context) {
    (void)context;
    sigset_t set = waited_signals();
    bool failed = false;
    int first = 0;
    struct timespec first_at = {0};
    for (;;) {
        const struct timespec patience = {ESK_STOP_FAILED_MS / 1000,
                                          ESK_STOP_FAILED_MS % 1000 * 1000000};
        int number = failed ? sigtimedwait(&set, NULL, &patience) : sigwaitinfo(&set, NULL);
        if (number < 0 && errno == EAGAIN) {
            esk_log_line(stop.log, ESK_LOG_ERROR, "exit", "not stopped in time after the failure",
                         NULL, 0);
            _exit(ESK_EXIT_FAILURE);
        }
        if (number == SIGUSR1) {
            failed = true;
        } else if (number == SIGHUP) {
            hang_up();
        } else if (number > 0 && is_echo(number, &first_at, &first)) {
            continue;
        } else if (number > 0 && ask(false)) {
            ESK_LOG(stop.log, ESK_LOG_WARN, "exit", "a second signal, ending at once",
                    esk_field_text("signal", signal_name(number)));
            _exit(ESK_EXIT_FAILURE);
        } else if (number > 0) {
            ESK_LOG(stop.log, ESK_LOG_INFO, "stopping", "asked to stop by a signal",
                    esk_field_text("signal", signal_name(number)));
        }
    }
    return NULL;
}

void esk_stop_begin(const struct esk_log *log) {
    stop.log = log;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGHUP, SIG_DFL); /* nohup leaves it ignored, and then nobody would learn of it */
    sigset_t set = waited_signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int failed = pthread_create(&stop.thread, NULL, wait_for_signals, NULL);
    ESK_ASSERT(failed == 0);
    pthread_setname_np(stop.thread, "signals");
}

void esk_stop_fail(const struct esk_error *error) {
    ESK_LOG(stop.log, ESK_LOG_ERROR, "failed", error->text,
            esk_field_text("code", esk_err_name(error->code)));
    ask(true);
    pthread_kill(stop.thread, SIGUSR1);
}

void esk_stop_on_hangup(void (*run)(void *context), void *context) {
    stop.on_hangup = run;
    stop.context = context;
}

bool esk_stop_wait(void) {
    pthread_mutex_lock(&stop.mutex);
    while (!stop.asked) {
        if (!stop.hung_up) {
            pthread_cond_wait(&stop.changed, &stop.mutex);
            continue;
        }
        stop.hung_up = false;
        pthread_mutex_unlock(&stop.mutex);
        if (stop.on_hangup) {
            stop.on_hangup(stop.context);
        }
        pthread_mutex_lock(&stop.mutex);
    }
    bool failed = stop.failed;
    pthread_mutex_unlock(&stop.mutex);
    return failed;
}

bool esk_stop_asked(void) {
    pthread_mutex_lock(&stop.mutex);
    bool asked = stop.asked;
    pthread_mutex_unlock(&stop.mutex);
    return asked;
}
