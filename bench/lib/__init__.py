# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: brokers, loads, the machine's limits, goals and the report."""
from lib.process import Process, open_files
from lib.run import Run, median

__all__ = ["Process", "Run", "median", "open_files"]
