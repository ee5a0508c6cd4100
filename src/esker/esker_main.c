/* SPDX-License-Identifier: Apache-2.0 */
/* The program esker: reads its options and runs the broker. */
#include "esker/log_output.h"
#include "esker/machine.h"
#include "esker/options.h"
#include "esker/startup.h"
#include "esker/stop.h"
#include "esker/tls.h"

#include <stdio.h>
#include <unistd.h>

static int print(void text(struct esk_buffer *out)) {
    struct esk_buffer out;
    esk_buffer_init(&out);
    text(&out);
    bool written = fwrite(out.data, 1, out.size, stdout) == out.size && fflush(stdout) == 0;
    esk_buffer_fini(&out);
    return written ? ESK_EXIT_CLEAN : ESK_EXIT_FAILURE;
}

int main(int argc, char **argv) {
    struct esk_options options;
    struct esk_error error;
    int code;
    enum esk_err err = esk_options_parse(&options, argc, argv, environ, &error);
    bool asks = err == ESK_OK && (options.values[ESK_OPTION_HELP].number ||
                                  options.values[ESK_OPTION_VERSION].number);
    if (err == ESK_OK && !asks) {
        err = esk_tls_check(&options, &error);
    }
    if (err != ESK_OK) {
        fprintf(stderr, "esker: %s\n", error.text);
        code = ESK_EXIT_USAGE;
    } else if (options.values[ESK_OPTION_HELP].number) {
        code = print(esk_options_help);
    } else if (asks) {
        code = print(esk_options_version);
    } else {
        enum esk_log_level level = (enum esk_log_level)options.values[ESK_OPTION_LOG_LEVEL].number;
        /* For threads that never end: they may log until the process is gone. */
        static struct esk_log log;
        log = esk_log_to_stderr(level, options.values[ESK_OPTION_LOG_FORMAT].number == 1);
        esk_machine_prepare(&log);
        esk_stop_begin(&log);
        code = esk_startup_run(&options, &log);
    }
    esk_options_fini(&options);
    return code;
}
