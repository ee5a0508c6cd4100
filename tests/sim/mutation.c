/* SPDX-License-Identifier: Apache-2.0 */
/* The variables behind base/mutation.h. */
#include "base/mutation.h"

enum esk_mutation esk_mutation_active;
unsigned esk_reached_count[ESK_REACHED_COUNT];
