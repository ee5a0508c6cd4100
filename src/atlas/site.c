/* SPDX-License-Identifier: Apache-2.0 */
/* The site's files: an index, a page for each API, and the style sheet and script they share; in a
 * folder, or one by one as the broker serves them. */
#include "atlas/site.h"
#include "atlas/site_private.h"

#include "atlas/assets.inc"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum esk_err eski_site_write(const char *directory, const char *name,
                             const struct esk_atlas_sink *sink, struct esk_error *error) {
    char *path = esk_text_format("%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    enum esk_err err = ESK_OK;
    if (file == NULL) {
        err = esk_fail_errno(error, esk_err_from_errno(errno), errno, "create %s", path);
    } else {
        size_t written = fwrite(sink->buffer.data, 1, sink->buffer.size, file);
        if (fclose(file) != 0 || written != sink->buffer.size)
            err = esk_fail_errno(error, esk_err_from_errno(errno), errno, "write %s", path);
    }
    free(path);
    return err;
}

static enum esk_err write_bytes(const char *directory, const char *name, const void *bytes,
                                size_t size, struct esk_error *error) {
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, NULL);
    esk_atlas_put(&sink, bytes, size);
    enum esk_err err = eski_site_write(directory, name, &sink, error);
    esk_atlas_sink_fini(&sink);
    return err;
}

void eski_site_head(struct esk_atlas_sink *sink, const char *title, const char *script) {
    esk_atlas_text(sink, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    esk_atlas_html(sink, title);
    esk_atlas_text(sink, "</title>\n<link rel=\"stylesheet\" href=\"atlas.css\">\n"
                         "<link rel=\"icon\" href=\"data:,\">\n");
    esk_atlas_format(sink, "<script src=\"%s\" defer></script>\n</head>\n<body>\n", script);
}

void eski_site_file_name(const struct esk_kafka_message *request, char name[96]) {
    snprintf(name, 96, "%s%s.html", request->api_name, request->removed ? "-removed" : "");
}

static void put_listeners(const struct esk_kafka_message *request, const char *separator,
                          struct esk_atlas_sink *sink) {
    for (unsigned i = 0; i < ESK_KAFKA_LISTENERS_MAX && request->listeners[i] != NULL; i++) {
        esk_atlas_text(sink, i > 0 ? separator : "");
        esk_atlas_html(sink, request->listeners[i]);
    }
}

struct index {
    struct esk_atlas_sink *sink;
};

static enum esk_err index_row(void *context, const struct esk_kafka_message *request,
                              const struct esk_kafka_message *response, struct esk_error *error) {
    struct esk_atlas_sink *sink = ((struct index *)context)->sink;
    char file[96];
    char requests[16];
    char responses[16];
    (void)error;
    eski_site_file_name(request, file);
    esk_atlas_versions(request, requests);
    esk_atlas_versions(response, responses);
    esk_atlas_format(sink, "<tr data-find=\"k%d ", request->api_key);
    for (const char *c = request->api_name; *c != '\0'; c++)
        esk_atlas_format(sink, "%c", *c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    esk_atlas_text(sink, " ");
    esk_atlas_releases(request, " ", sink);
    esk_atlas_text(sink, " ");
    put_listeners(request, " ", sink);
    esk_atlas_format(sink, "\"><td class=\"number\">%d</td><td><a href=\"%s\">%s</a></td>",
                     request->api_key, file, request->api_name);
    esk_atlas_format(sink, "<td>%s</td><td>%s</td><td>%s</td><td>", requests, responses,
                     request->flexible_text);
    put_listeners(request, ", ", sink);
    esk_atlas_text(sink, "</td><td>");
    esk_atlas_releases(request, ", ", sink);
    esk_atlas_text(sink, "</td></tr>\n");
    return ESK_OK;
}

void eski_site_index(struct esk_atlas_sink *sink, bool removed, bool live) {
    struct index index = {sink};
    eski_site_head(sink, "All Kafka APIs", "atlas.js");
    if (live)
        esk_atlas_text(sink, "<nav aria-label=\"site\"><a href=\"decode.html\">Decode bytes</a>"
                             "</nav>\n");
    esk_atlas_text(sink,
                   "<main>\n<h1>All Kafka APIs</h1>\n<p>Every request and response of Kafka's wire "
                   "protocol in every version, byte by byte.</p>\n"
                   "<form id=\"search\" hidden role=\"search\"><label>Name, key or Kafka version "
                   "<input name=\"q\" type=\"search\" autocomplete=\"off\"></label> "
                   "<output id=\"count\"></output></form>\n<div class=\"scroll\" tabindex=\"0\" "
                   "role=\"region\" aria-label=\"All APIs\"><table class=\"index\"><thead><tr>"
                   "<th scope=\"col\">Key</th><th scope=\"col\">API</th><th scope=\"col\">Request"
                   "</th><th scope=\"col\">Response</th><th scope=\"col\">Flexible</th>"
                   "<th scope=\"col\">Listeners</th><th scope=\"col\">Kafka</th></tr></thead>"
                   "<tbody>\n");
    esk_atlas_each_api(removed, index_row, &index, NULL);
    esk_atlas_text(sink, "</tbody></table></div>\n</main>\n</body>\n</html>\n");
}

static enum esk_err write_index(const char *directory, bool removed, struct esk_error *error) {
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, NULL);
    eski_site_index(&sink, removed, false);
    enum esk_err err = eski_site_write(directory, "index.html", &sink, error);
    esk_atlas_sink_fini(&sink);
    return err;
}

static enum esk_err write_page(void *context, const struct esk_kafka_message *request,
                               const struct esk_kafka_message *response, struct esk_error *error) {
    struct esk_atlas_sink sink;
    char file[96];
    esk_atlas_sink_init(&sink, NULL);
    eski_site_page(request, response, &sink);
    eski_site_file_name(request, file);
    enum esk_err err = eski_site_write(context, file, &sink, error);
    esk_atlas_sink_fini(&sink);
    return err;
}

struct wanted {
    struct esk_slice name;
    struct esk_atlas_sink *sink;
    bool found;
};

static enum esk_err put_wanted(void *context, const struct esk_kafka_message *request,
                               const struct esk_kafka_message *response, struct esk_error *error) {
    struct wanted *wanted = context;
    char file[96];
    (void)error;
    eski_site_file_name(request, file);
    if (!wanted->found && esk_slice_equal(wanted->name, esk_slice_text(file))) {
        wanted->found = true;
        eski_site_page(request, response, wanted->sink);
    }
    return ESK_OK;
}

bool esk_atlas_file(struct esk_slice name, struct esk_atlas_sink *sink, const char **content_type) {
    static const struct {
        const char *name, *type;
        const unsigned char *bytes;
        size_t size;
    } assets[] = {
        {"atlas.css", "text/css; charset=utf-8", atlas_css, sizeof(atlas_css)},
        {"atlas.js", "text/javascript; charset=utf-8", atlas_js, sizeof(atlas_js)},
        {"decode.js", "text/javascript; charset=utf-8", decode_js, sizeof(decode_js)},
    };
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++) {
        if (esk_slice_equal(name, esk_slice_text(assets[i].name))) {
            esk_atlas_put(sink, assets[i].bytes, assets[i].size);
            *content_type = assets[i].type;
            return true;
        }
    }
    *content_type = "text/html; charset=utf-8";
    if (name.size == 0 || esk_slice_equal(name, esk_slice_text("index.html"))) {
        eski_site_index(sink, false, true);
        return true;
    }
    if (esk_slice_equal(name, esk_slice_text("decode.html"))) {
        eski_site_decoder(sink);
        return true;
    }
    struct wanted wanted = {name, sink, false};
    esk_atlas_each_api(false, put_wanted, &wanted, NULL);
    return wanted.found;
}

enum esk_err esk_atlas_export(const char *directory, bool removed, struct esk_error *error) {
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return esk_fail_errno(error, esk_err_from_errno(errno), errno, "create %s", directory);
    enum esk_err err = write_bytes(directory, "atlas.css", atlas_css, sizeof(atlas_css), error);
    if (err == ESK_OK)
        err = write_bytes(directory, "atlas.js", atlas_js, sizeof(atlas_js), error);
    if (err == ESK_OK)
        err = write_index(directory, removed, error);
    if (err == ESK_OK)
        err = esk_atlas_each_api(removed, write_page, (void *)(uintptr_t)directory, error);
    return err;
}
