# SPDX-License-Identifier: Apache-2.0
"""What a process uses, from /proc."""
import os
import pathlib
import re


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Process:
    """CPU seconds and memory of a process."""

    def __init__(self, pid):
        self.pid = pid
        self.began = self.cpu_seconds()

    def cpu_seconds(self):
        """User and system time so far."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii")
        fields = fields.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def used_cpu_seconds(self):
        """Since this object was made."""
        return self.cpu_seconds() - self.began

    def memory_mb(self):
        """(resident, of it anonymous), in megabytes of 10^6."""
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        sizes = dict(re.findall(r"^(VmRSS|RssAnon):\s+(\d+) kB", text, re.MULTILINE))
        return int(sizes["VmRSS"]) * 1024 / 1e6, int(sizes["RssAnon"]) * 1024 / 1e6
