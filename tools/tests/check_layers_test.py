# SPDX-License-Identifier: Apache-2.0
"""The include checker finds each kind of bad include, and lets the good ones pass."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import check_layers  # noqa: E402

TABLE = {
    "folder": [
        {"name": "base", "layer": 0},
        {"name": "model", "layer": 1, "folders": ["base"]},
        {"name": "observe", "layer": 1, "folders": ["base"]},
        {"name": "wire/json", "layer": 2, "layers": [0, 1]},
        {"name": "runtime", "layer": 2, "layers": [0, 1]},
        {"name": "broker", "layer": 6, "layers": [0, 5], "not": ["wire", "runtime"]},
        {"name": "esk", "layer": 8, "folders": ["base", "wire"], "public": True},
    ],
    "library": [
        {"name": "libuv", "headers": ["uv.h"], "folders": ["runtime"]},
        {"name": "cmocka", "headers": ["cmocka.h"], "folders": []},
        {"name": "the operating system", "headers": ["unistd.h", "sys/*"], "folders": ["runtime"]},
    ],
    "language": {"headers": ["stdint.h"]},
}


def problem(path, header, quoted=True, missing=False):
    return check_layers.Layers(TABLE).problem(path, header, quoted, lambda _: not missing)


@pytest.mark.parametrize("path, header", [
    ("model/a.c", "base/b.h"),  # a lower layer
    ("model/a.c", "model/b_private.h"),  # its own private header
    ("broker/a.c", "model/b.h"),  # a range of layers
    ("esk/a.c", "wire/json/b.h"),  # a folder with its subfolders
])
def test_good_includes_of_ours_pass(path, header):
    assert problem(path, header) is None


@pytest.mark.parametrize("path, header, part", [
    ("base/a.c", "model/b.h", "may not include"),  # upwards
    ("model/a.c", "observe/b.h", "may not include"),  # a sibling
    ("broker/a.c", "wire/json/b.h", "may not include"),  # taken out of its layers
    ("broker/a.c", "runtime/b.h", "may not include"),
    ("esk/a.c", "broker/b.h", "may not include"),
    ("model/a.c", "base/b_private.h", "private"),
    ("model/a.c", "../base/b.h", "leaves"),
    ("model/a.c", "b.h", "does not name a folder"),
    ("utils/a.c", "base/b.h", "not in definitions/layers.toml"),
])
def test_bad_includes_of_ours_are_found(path, header, part):
    assert part in problem(path, header)


def test_a_missing_header_is_found():
    assert "neither in src/ nor generated" in problem("model/a.c", "base/b.h", missing=True)


@pytest.mark.parametrize("path, header", [
    ("model/a.c", "stdint.h"),
    ("runtime/a.c", "uv.h"),
    ("runtime/a.c", "sys/uio.h"),
    ("model/a_test.c", "unistd.h"),
    ("model/a_test.c", "cmocka.h"),
    ("esk/a.c", "esker/client.h"),
])
def test_good_includes_of_others_pass(path, header):
    assert problem(path, header, quoted=False) is None


@pytest.mark.parametrize("path, header", [
    ("model/a.c", "uv.h"),
    ("model/a_test.c", "uv.h"),
    ("model/a.c", "cmocka.h"),
    ("model/a.c", "unistd.h"),
    ("model/a.c", "sys/stat.h"),
    ("model/a.c", "curl/curl.h"),
    ("model/a.c", "assert.h"),
    ("broker/a.c", "esker/client.h"),
])
def test_bad_includes_of_others_are_found(path, header):
    assert problem(path, header, quoted=False)


def make_tree(root, text):
    (root / "definitions").mkdir()
    (root / "src" / "base").mkdir(parents=True)
    (root / "definitions" / "layers.toml").write_text(
        '[[folder]]\nname = "base"\nlayer = 0\n'
        '[[library]]\nname = "x"\nheaders = []\nfolders = []\n[language]\nheaders = []\n')
    (root / "definitions" / "errors.cmake").write_text('esk_generate(a b "base/made.h")')
    (root / "src" / "base" / "a.c").write_text(text)


def test_a_tree_is_walked_and_lines_are_named(tmp_path):
    make_tree(tmp_path, '#include "base/made.h"\n\n  # include "base/gone.h"\n')
    assert check_layers.check(tmp_path) == [
        'src/base/a.c:3: "base/gone.h" is neither in src/ nor generated']


def test_a_tree_without_sources_is_a_problem(tmp_path):
    make_tree(tmp_path, "")
    (tmp_path / "src" / "base" / "a.c").unlink()
    assert "no source found" in check_layers.check(tmp_path)[0]


def test_this_tree_keeps_its_layers():
    assert check_layers.check(pathlib.Path(__file__).parents[2]) == []
