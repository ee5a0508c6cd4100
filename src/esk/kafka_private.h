/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `esk kafka …` and what they share. */
#ifndef ESK_ESK_KAFKA_PRIVATE_H
#define ESK_ESK_KAFKA_PRIVATE_H

#include "base/memory.h"

#define ESKI_EXIT_DAMAGED 1
#define ESKI_EXIT_USAGE 2

int eski_kafka_show(int argc, char **argv);
int eski_kafka_decode(int argc, char **argv);
int eski_kafka_encode(int argc, char **argv);

/* Says on stderr what is wrong with the command line; returns ESKI_EXIT_USAGE. */
int eski_kafka_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A version number from 0 to 32767. */
bool eski_kafka_number(const char *text, int *number);

#endif
