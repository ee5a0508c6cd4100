# SPDX-License-Identifier: Apache-2.0
esk_generate(tools/generate_metrics.py definitions/metrics.toml
    "observe/metric_table.h;observe/metric_table.c;docs/metrics.md")
