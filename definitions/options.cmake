# SPDX-License-Identifier: Apache-2.0
esk_generate(tools/generate_options.py definitions/options.toml
    "esker/option_table.h;esker/option_table.c;docs/options.md")
