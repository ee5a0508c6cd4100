/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the site are made of. */
#ifndef ESK_ATLAS_SITE_PRIVATE_H
#define ESK_ATLAS_SITE_PRIVATE_H

#include "atlas/page.h"
#include "base/error.h"

enum esk_err eski_site_write(const char *directory, const char *name,
                             const struct esk_atlas_sink *sink, struct esk_error *error);
/* Everything up to the body. */
void eski_site_head(struct esk_atlas_sink *sink, const char *title, const char *script);
/* live: a broker is behind it, which decodes. */
void eski_site_index(struct esk_atlas_sink *sink, bool removed, bool live);
/* The page that asks the broker to decode. */
void eski_site_decoder(struct esk_atlas_sink *sink);
/* "Fetch.html", "Fetch-removed.html" */
void eski_site_file_name(const struct esk_kafka_message *request, char name[96]);
/* The page of an API: all versions of its request and of its response. */
void eski_site_page(const struct esk_kafka_message *request,
                    const struct esk_kafka_message *response, struct esk_atlas_sink *sink);
/* What differs from the version before, as list items; nothing for the first one. */
void eski_site_changes(const struct esk_kafka_message *message, int16_t version,
                       struct esk_atlas_sink *sink);

#endif
