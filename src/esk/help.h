/* SPDX-License-Identifier: Apache-2.0 */
/* What esk says about itself, made of the table of commands. Pure. */
#ifndef ESK_ESK_HELP_H
#define ESK_ESK_HELP_H

#include "base/memory.h"
#include "esk/command_table.h"

void esk_help_all(struct esk_buffer *out);
void esk_help_command(const struct esk_tool_command *command, struct esk_buffer *out);
/* The commands that begin with a word; false, and nothing appended, when none does. */
bool esk_help_group(const char *word, struct esk_buffer *out);

#endif
