/* SPDX-License-Identifier: Apache-2.0 */
/* `esk kafka …`: the reference of Kafka's wire format, and a codec for the command line. */
#ifndef ESK_ESK_KAFKA_H
#define ESK_ESK_KAFKA_H

/* argv[0] is "kafka". Prints to stdout, problems to stderr. Exit status: 0, 1 when input was
 * damaged or a file could not be read or written, 2 for a wrong command line. */
int esk_kafka_command(int argc, char **argv);

#endif
