/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf, in its language or as a descriptor: texts from strangers, alone and in pairs. */
#include "schema_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_input(ESK_SCHEMA_PROTOBUF, data, size, false);
    return 0;
}
