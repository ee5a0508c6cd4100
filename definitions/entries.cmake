# SPDX-License-Identifier: Apache-2.0
esk_generate(tools/generate_entries.py definitions/entries.toml
    "model/entries.h;model/entries.c;docs/format-entries.md")
