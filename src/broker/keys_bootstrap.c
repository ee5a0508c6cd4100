/* SPDX-License-Identifier: Apache-2.0 */
/* The first key: an admin named "bootstrap", whose secret is written to a file of the data folder.
 * The file comes first: a start that is cut off behind it leaves a secret of no key, and the next
 * start makes both anew. Once there is any key the file is left alone, whatever became of it. */
#include "broker/keys_private.h"

#include <stdlib.h>

#define FILE_NAME "bootstrap.key"
#define POLL_NS UINT64_C(100000) /* how often it looks at shard 0: 0.1 ms */

struct bootstrap {
    struct esk_mail mail;
    struct esk_broker_shard *zero;
    struct esk_grant everything;
    struct esk_key_creation creation;
    enum esk_err err;
    atomic_bool is_done;
};

static void created(struct esk_key_creation *creation, enum esk_err err) {
    struct bootstrap *bootstrap = ESK_CONTAINER(creation, struct bootstrap, creation);
    bootstrap->err = err;
    atomic_store(&bootstrap->is_done, true);
}

static void bootstrap_run(struct esk_mail *mail) {
    struct bootstrap *bootstrap = ESK_CONTAINER(mail, struct bootstrap, mail);
    esk_change_submit(bootstrap->zero, &bootstrap->creation.change);
}

static enum esk_err store_secret(struct esk_broker *broker, const char *secret,
                                 struct esk_error *error) {
    char *path = esk_text_format("%s/" FILE_NAME, broker->data_folder);
    char *line = esk_text_format("%s\n", secret);
    enum esk_err err =
        esk_file_store_private(broker->options.platform, path, esk_slice_text(line), error);
    if (err == ESK_OK) {
        ESK_LOG(broker->options.log, ESK_LOG_INFO, "bootstrap-key",
                "there are no keys: the secret of a first one, an admin, is in this file; make "
                "others with it, then delete the file",
                esk_field_text("file", path));
    }
    esk_secret_wipe(line, strlen(line));
    free(line);
    free(path);
    return err;
}

/* false: the broker failed. */
static bool wait_until_created(struct bootstrap *bootstrap) {
    struct esk_broker *broker = bootstrap->zero->broker;
    while (!atomic_load(&bootstrap->is_done)) {
        if (atomic_load(&broker->failed)) {
            return false;
        }
        esk_pause(broker->options.platform, POLL_NS);
    }
    return true;
}

enum esk_err eski_keys_bootstrap(struct esk_broker *broker, struct esk_error *error) {
    struct esk_broker_shard *zero = &broker->shards[0];
    if (!broker->options.auth_required || zero->catalogue.keys.by_id.count > 0) {
        return ESK_OK;
    }
    struct bootstrap *bootstrap = esk_alloc_zeroed(1, sizeof(*bootstrap));
    bootstrap->everything = (struct esk_grant){ESK_ACTION_ADMIN, esk_slice_text("*")};
    bootstrap->zero = zero;
    bootstrap->creation.name = esk_slice_text("bootstrap");
    bootstrap->creation.grants = &bootstrap->everything;
    bootstrap->creation.grant_count = 1;
    bootstrap->creation.done = created;
    eski_key_creation_prepare(zero, &bootstrap->creation);
    enum esk_err err = store_secret(broker, bootstrap->creation.secret, error);
    esk_secret_wipe(bootstrap->creation.secret, sizeof(bootstrap->creation.secret));
    if (err == ESK_OK) {
        eski_post(zero, &bootstrap->mail, bootstrap_run);
        if (!wait_until_created(bootstrap)) { /* the loop may still refer to it: it stays */
            return esk_fail(error, ESK_ERR_IO, "the disk failed during the start");
        }
        err = bootstrap->err;
        if (err != ESK_OK && error != NULL) {
            *error = bootstrap->creation.error;
        }
    }
    if (err != ESK_OK) {
        esk_wrap(error, "the first key");
    }
    free(bootstrap);
    return err;
}
