/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schema: texts from strangers, alone and in pairs. */
#include "schema_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_input(ESK_SCHEMA_JSON, data, size, true);
    return 0;
}
