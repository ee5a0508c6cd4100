/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ESK_ESKER_OPTIONS_PRIVATE_H
#define ESK_ESKER_OPTIONS_PRIVATE_H

#include "esker/options.h"

/* The number that a text means for the option: see esk_option_value. ESK_ERR_INVALID: the text of
 * the error says what the option takes, without naming it. */
enum esk_err eski_option_read(const struct esk_option_description *option, const char *text,
                              uint64_t *number, struct esk_error *error);

/* The option of that name, or ESK_OPTION_COUNT. */
enum esk_option eski_option_find(struct esk_slice name);
/* The option whose name is most like it, or ESK_OPTION_COUNT when none is. */
enum esk_option eski_option_nearest(struct esk_slice name);

#endif
