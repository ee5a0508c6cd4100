/* SPDX-License-Identifier: Apache-2.0 */
/* The program esk. */
#include "esk/tool.h"

int main(int argc, char **argv) {
    return esk_tool_run(argc, argv);
}
