# SPDX-License-Identifier: Apache-2.0
"""The sessions of README.md work word for word, answers included."""
import os
import pathlib
import re
import subprocess

import pytest

from harness.broker import esk_binary

ROOT = pathlib.Path(__file__).resolve().parents[2]


def session(number):
    """[(command, expected output)] of one of README's console blocks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.findall(r"```console\n(.*?)```", text, re.DOTALL)[number]
    steps = []
    for part in block.split("\n\n"):
        for step in re.split(r"^\$ ", part, flags=re.MULTILINE)[1:]:
            if step.startswith("#"):
                continue
            lines = step.rstrip("\n").split("\n")
            size = 1
            while lines[size - 1].endswith("\\"):
                size += 1
            steps.append(("\n".join(lines[:size]), "\n".join(lines[size:])))
    return steps


def without_time(text):
    return re.sub(r'"timestamp_ms":\d+', '"timestamp_ms":0', text)


def test_the_first_session_answers_as_the_readme_says(broker):
    steps = session(0)
    assert len(steps) == 5
    for command, expected in steps:
        result = subprocess.run(
            ["sh", "-c", command.replace("localhost:9000", broker.address)],
            capture_output=True, text=True, timeout=60, check=True)
        assert without_time(result.stdout.strip()) == without_time(expected), command


def test_the_tool_s_session_goes_on_from_there(broker):
    steps = session(0)[:1] + session(1)
    assert len(steps) == 4
    for command, expected in steps:
        command = command.replace("build/release/esk", esk_binary())
        result = subprocess.run(
            ["sh", "-c", command.replace("localhost:9000", broker.address)],
            env={**os.environ, "ESK_SERVER": broker.url},
            capture_output=True, text=True, timeout=60, check=True)
        if expected:
            assert result.stdout.strip() == expected, command


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")),
                         ids=lambda page: page.name)
def test_links_of_the_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target
