# SPDX-License-Identifier: Apache-2.0
"""docs/conformance.md names only files and tests that exist. A name may end in … for the rest."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"


def file_named(name):
    path = ROOT / name if "/" in name else ROOT / "tests" / "scenario" / name
    return path if path.exists() else None


def claims(text):
    """(file, test or None) for each that a row names."""
    for row in text.splitlines():
        if not row.startswith("|"):
            continue
        file = None
        for quoted in re.findall(r"`([^`]+)`", row.split("|")[2]):
            if re.search(r"_test\.(py|c)$|^tests/", quoted):
                file = quoted
                yield file, None
            elif file and file.endswith("_test.py") and re.fullmatch(r"[a-z0-9_]+…?", quoted) \
                    and "_" in quoted:
                yield file, quoted


def missing(text):
    found = []
    for name, test in claims(text):
        path = file_named(name)
        if path is None:
            found.append(name)
        elif test is not None:
            rest = r"\w*" if test.endswith("…") else ""
            source = path.read_text(encoding="utf-8")
            if not re.search(rf"def test_{test.rstrip('…')}{rest}\(", source):
                found.append(f"{name}: {test}")
    return found


class Conformance(unittest.TestCase):
    def test_what_the_page_names_exists(self):
        self.assertEqual(missing(PAGE.read_text(encoding="utf-8")), [])

    def test_a_name_that_does_not_exist_is_found(self):
        row = "| x | `http_api_test.py`: `a_topic_s_life`, `no_such_test`; `no_such_test.py` |"
        self.assertEqual(missing(row), ["http_api_test.py: no_such_test", "no_such_test.py"])


if __name__ == "__main__":
    unittest.main()
