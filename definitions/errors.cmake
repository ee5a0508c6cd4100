# SPDX-License-Identifier: Apache-2.0
esk_generate(tools/generate_errors.py definitions/errors.toml
    "base/errors.h;base/errors.c;docs/errors.md")
