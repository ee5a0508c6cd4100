# SPDX-License-Identifier: Apache-2.0
esk_generate(tools/generate_esk.py definitions/esk.toml
    "esk/command_table.h;esk/command_table.c;docs/esk.md")
