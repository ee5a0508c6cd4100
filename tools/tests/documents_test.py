# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ that are made from definitions/ are those that the build makes."""
import os
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("ESKER_BUILD", ROOT / "build" / "release"))
MADE = BUILD / "generated" / "docs"


def test_the_generated_pages_are_current():
    pages = sorted(MADE.glob("*.md"))
    assert pages
    old = [page.name for page in pages
           if not (ROOT / "docs" / page.name).is_file()
           or (ROOT / "docs" / page.name).read_bytes() != page.read_bytes()]
    assert not old, f"cp {MADE}/*.md {ROOT}/docs/"
