# SPDX-License-Identifier: Apache-2.0
"""libesker as its users have it: installed, found by pkg-config, compiled against, and run."""
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest

from harness.broker import ROOT, TIMEOUT_S
from harness.certificates import Authority

BUILD = pathlib.Path(os.environ.get("ESKER_BUILD", ROOT / "build" / "release"))
HEADERS = ["client.h", "pipeline.h"]


def run(*command, check=True, **more):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                            timeout=TIMEOUT_S, check=False, **more)
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def sanitizer():
    """What a program must be built with to load a library of this build."""
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    kinds = re.search(r"^ESK_SANITIZE:\w+=(.+)$", cache, re.MULTILINE)
    return [f"-fsanitize={kinds[1]}"] if kinds else []


class Installed:
    """The library below a folder, and the examples built against it."""

    def __init__(self, folder):
        self.folder = folder
        run("cmake", "--install", BUILD, "--prefix", folder, "--component", "client")

    def pkg_config(self, *options):
        path = self.folder / "lib" / "pkgconfig"
        text = run("pkg-config", *options, "esker",
                   env={**os.environ, "PKG_CONFIG_PATH": str(path)}).stdout
        return text.split()

    def compile(self, name, *, static=False):
        program = self.folder / (name + (".static" if static else ""))
        if static:
            libraries = [word for word in self.pkg_config("--static", "--libs")
                         if word != "-lesker"]
            libraries.insert(0, str(self.folder / "lib" / "libesker.a"))
        else:
            libraries = [*self.pkg_config("--libs"), f"-Wl,-rpath,{self.folder / 'lib'}"]
        run("cc", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror",
            "-D_POSIX_C_SOURCE=200809", *sanitizer(), *self.pkg_config("--cflags"),
            ROOT / "examples" / f"{name}.c", *libraries, "-o", program)
        return program


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def binary_broker(make_broker):
    return make_broker("--bind-binary", "127.0.0.1:0")


def values_of(client, topic, partition=0):
    """All values, in order."""
    found, offset = [], 0
    while True:
        answer = client.consume(topic, partition=partition, offset=offset, max_records=10000)
        if not answer["records"]:
            return found
        found += [record["value"] for record in answer["records"]]
        offset = answer["next_offset"]


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_the_blocking_example_writes_and_reads(installed, binary_broker, static):
    program = installed.compile("produce_consume", static=static)
    binary_broker.client().create_topic("orders", partitions=2)
    shown = run(program, binary_broker.door("binary"), "orders").stdout
    assert shown == ("wrote user-1 to partition 0 at offset 0\n"
                     "wrote user-2 to partition 1 at offset 0\n"
                     "wrote user-1 to partition 0 at offset 1\n"
                     "0 user-1=checkout\n"
                     "1 user-1=payment\n")
    refused = run(program, binary_broker.door("binary"), "missing", check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("produce: not found: ") and "(not found)" in refused.stderr


def test_the_pipelined_example_survives_the_broker(installed, make_broker):
    """kill -9 in the middle: each record is there once, in order."""
    program = installed.compile("pipeline")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    broker = make_broker("--bind-binary", address)
    broker.client().create_topic("orders", partitions=1)
    count = 30000
    with subprocess.Popen([program, address, "orders", str(count)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        for reached in (count // 10, count // 3):
            client = broker.client()
            while client.consume("orders", offset=reached, wait_ms=30000)["next_offset"] < reached:
                assert process.poll() is None
            broker.kill9()
            broker.start()
        shown, trouble = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, trouble
    assert shown.startswith(f"{count} written, ") and shown.endswith(", 0 failed\n")
    assert values_of(broker.client(), "orders") == [str(number) for number in range(count)]


def test_a_key_and_a_certificate_are_needed_where_they_are(installed, make_broker, data_root):
    authority = Authority(data_root / "certificates")
    pair = authority.server()
    program = installed.compile("produce_consume")
    broker = make_broker("--bind-binary", "127.0.0.1:0", "--auth", "required", "--tls-cert",
                         str(pair.certificate), "--tls-key", str(pair.key), start=False)
    broker.start(ready=False)
    broker.wait_for_event("ready")
    address = broker.door("binary").replace("127.0.0.1", "localhost")
    secret = (broker.data_dir / "bootstrap.key").read_text(encoding="utf-8").strip()
    good = {**os.environ, "ESK_CA": str(authority.certificate), "ESK_KEY": secret}
    wrong_key = {**good, "ESK_KEY": "esk_wrong"}
    no_key = {name: value for name, value in good.items() if name != "ESK_KEY"}
    other = Authority(data_root / "others")
    wrong_ca = {**good, "ESK_CA": str(other.certificate)}

    missing = run(program, address, "orders", check=False, env=good)
    assert missing.returncode == 1 and "(not found)" in missing.stderr
    for environment, code in [(wrong_key, "unauthenticated"), (no_key, "unauthenticated"),
                              (wrong_ca, "TLS failed")]:
        result = run(program, address, "orders", check=False, env=environment)
        assert result.returncode == 1 and f"({code})" in result.stderr, result.stderr


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_stands_alone_in_c_and_c_plus_plus(installed, header, tmp_path):
    source = tmp_path / "alone.c"
    source.write_text(f"#include <esker/{header}>\nstruct esk_pipeline_answer answer;\n",
                      encoding="utf-8")
    flags = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    run("cc", "-std=c11", *flags, *installed.pkg_config("--cflags"), source)
    run("c++", "-x", "c++", "-std=c++11", *flags, *installed.pkg_config("--cflags"), source)
    assert sorted(os.listdir(installed.folder / "include" / "esker")) == HEADERS


def test_the_library_shows_its_own_symbols_only(installed):
    shared = installed.folder / "lib" / "libesker.so"
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    declared = set()
    for header in HEADERS:
        text = (ROOT / "include" / "esker" / header).read_text(encoding="utf-8")
        text = re.sub(r"/\*.*?\*/|typedef[^;]*;", "", text, flags=re.DOTALL)
        declared |= set(re.findall(r"\b(esk_(?:client|pipeline)_\w+)\(", text))
    for arguments in (["-D", shared], ["-g", installed.folder / "lib" / "libesker.a"]):
        lines = run("nm", "--defined-only", *arguments).stdout.split("\n")
        shown = {line.split()[-1] for line in lines if len(line.split()) == 3}
        assert {name for name in shown if not name.startswith("_")} == declared
    assert "libesker.so.0" in run("readelf", "-d", shared).stdout
