/* SPDX-License-Identifier: Apache-2.0 */
/* What each command of esk works with: its arguments, a connection, and where output goes. */
#ifndef ESK_ESK_SESSION_H
#define ESK_ESK_SESSION_H

#include "esk/arguments.h"
#include "esk/http_client.h"
#include "esk/settings.h"
#include "wire/json/document.h"
#include "wire/json/writer.h"

enum esk_exit {
    ESK_EXIT_DONE = 0,
    ESK_EXIT_FAILED = 1, /* the broker could not be reached or answered with an error */
    ESK_EXIT_USAGE = 2,  /* the command line is wrong */
};

struct esk_session {
    struct esk_arguments *arguments;
    struct esk_settings settings;
    struct esk_http_tls tls;
    struct esk_http_server server;
    struct esk_http_client client;
    struct esk_json_document *document; /* the last answer; its values point into it */
    struct esk_buffer out;              /* output that is not written yet */
    bool is_json;
    bool shows_progress; /* stderr is a terminal */
    bool was_reached;    /* the broker has answered */
    bool is_unreachable; /* the last call had no answer, or one that says to come back later */
};

/* Behind the text of an answer that wants a key, or another one. */
#define ESK_KEY_HINT "; the key comes from --key, ESK_KEY or the profile"

/* Whatever a command runs returns enum esk_exit. */
typedef int esk_command_function(struct esk_session *session);

/* Writes "esk: ..." to stderr and returns the code that is given. */
int esk_complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends a request and receives its answer, session->client.answer, whatever its status. */
int esk_session_exchange(struct esk_session *session, const char *method, const char *path,
                         struct esk_slice body);
/* Sends a request and reads its answer as JSON. ESK_EXIT_DONE: the status is 2xx and *root is the
 * answer, valid until the next call; else it has complained, with the broker's own text. body
 * data NULL: none. */
int esk_session_call(struct esk_session *session, const char *method, const char *path,
                     struct esk_slice body, struct esk_json_value *root);
/* As esk_session_call, for an answer that esk_http_client_receive got on any connection. */
int esk_session_read(struct esk_session *session, const struct esk_http_answer *answer,
                     struct esk_json_value *root);
static inline int esk_session_get(struct esk_session *session, const char *path,
                                  struct esk_json_value *root) {
    return esk_session_call(session, "GET", path, esk_slice(NULL, 0), root);
}

/* Writes what is in session->out to stdout; ESK_EXIT_FAILED when nobody takes it. */
int esk_session_flush(struct esk_session *session);
/* Writes the last answer to stdout as it came, and a line end. */
int esk_session_print_answer(struct esk_session *session);

/* The parts of an answer; 0, or nothing, where they are not there. */
uint64_t esk_json_field_number(const struct esk_json_value *object, const char *key);
struct esk_slice esk_json_field_text(const struct esk_json_value *object, const char *key);

/* "/topics/NAME" and more; owned, free(). */
char *esk_path(const char *before, const char *name, const char *after);

#endif
