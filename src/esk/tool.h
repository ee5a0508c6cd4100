/* SPDX-License-Identifier: Apache-2.0 */
/* The program esk from its command line to its exit code. */
#ifndef ESK_ESK_TOOL_H
#define ESK_ESK_TOOL_H

/* Returns enum esk_exit. Blocks until the command is done. */
int esk_tool_run(int argc, char **argv);

#endif
