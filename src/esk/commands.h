/* SPDX-License-Identifier: Apache-2.0 */
/* The commands: each runs once and returns enum esk_exit. */
#ifndef ESK_ESK_COMMANDS_H
#define ESK_ESK_COMMANDS_H

#include "esk/session.h"

esk_command_function esk_topic_create;
esk_command_function esk_topic_list;
esk_command_function esk_topic_describe;
esk_command_function esk_topic_config_command;
esk_command_function esk_topic_delete;
esk_command_function esk_produce;
esk_command_function esk_consume;
esk_command_function esk_group_offsets;
esk_command_function esk_group_commit;
esk_command_function esk_topic_tail;
esk_command_function esk_group_list;
esk_command_function esk_group_delete;
esk_command_function esk_key_create;
esk_command_function esk_key_list;
esk_command_function esk_key_revoke;
esk_command_function esk_schema_register;
esk_command_function esk_schema_check;
esk_command_function esk_schema_list;
esk_command_function esk_schema_show;
esk_command_function esk_schema_latest;
esk_command_function esk_producer_list;
esk_command_function esk_producer_forget;
esk_command_function esk_raft_list;
esk_command_function esk_admin_run_retention;
esk_command_function esk_admin_run_compaction;
esk_command_function esk_admin_reset_offsets;
esk_command_function esk_admin_tiered;
esk_command_function esk_admin_catalogue;
esk_command_function esk_bench_produce;
esk_command_function esk_bench_consume;

/* Records the next offset that a group reads; enum esk_exit. */
int esk_commit(struct esk_session *session, const char *group, const char *topic,
               uint64_t partition, uint64_t offset);

/* --key-separator, where a backslash and t mean a tab; NULL: none was given. */
const char *esk_separator(const struct esk_arguments *arguments);

#endif
