/* SPDX-License-Identifier: Apache-2.0 */
/* The reference as a static site: an index and a page per API, readable without scripts. */
#ifndef ESK_ATLAS_SITE_H
#define ESK_ATLAS_SITE_H

#include "atlas/sink.h"
#include "base/error.h"

#include <stdbool.h>

/* Writes index.html, a page per API, atlas.css and atlas.js into the directory, which is made if it
 * is not there. removed: pages of the versions that 4.0 removed, too. ESK_ERR_IO and the like when
 * a file can't be written. Blocks on the disk. */
enum esk_err esk_atlas_export(const char *directory, bool removed, struct esk_error *error);

/* One file of the same site by its name, as a broker serves it: "index.html" (or ""),
 * "Fetch.html", "atlas.css"; besides, "decode.html", a page that sends bytes to the broker's
 * decoder. false: no such file, nothing was written. The largest page is some MB and takes some
 * 10 ms, so a loop asks a helper. Any thread. */
bool esk_atlas_file(struct esk_slice name, struct esk_atlas_sink *sink, const char **content_type);

#endif
