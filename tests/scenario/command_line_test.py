# SPDX-License-Identifier: Apache-2.0
"""What esker does with its options, its environment and signals, seen from outside."""
import pathlib
import re
import signal
import socket
import subprocess
import tomllib

import pytest

from harness.broker import esker_binary

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments, environment=None):
    return subprocess.run([esker_binary(), *arguments], capture_output=True, text=True,
                          timeout=60, check=False, env=environment or {})


def test_help_shows_every_option_in_its_group():
    result = run("--help")
    assert result.returncode == 0 and result.stderr == ""
    text = (ROOT / "definitions" / "options.toml").read_text(encoding="utf-8")
    for option in tomllib.loads(text)["option"]:
        assert re.search(rf"^  --{option['name']}\b", result.stdout, re.MULTILINE)
        assert f"\n{option['group']}\n" in result.stdout


def test_version_is_the_project_s():
    version = re.search(r"project\(esker VERSION ([0-9.]+)",
                        (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    result = run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.removesuffix("\n").removesuffix(", with test hooks") == f"esker {version}"


@pytest.mark.parametrize("arguments, text", [
    (["--memory", "lots"], "--memory 'lots': not a size"),
    (["--shards=0"], "--shards '0': too small; allowed is 1 to 256"),
    (["--bind", "9000"], "--bind '9000': not an address"),
    (["--log-format=xml"], "--log-format 'xml': unknown; allowed is text|json"),
    (["--bnd", "127.0.0.1:0"], "--bnd: unknown option, perhaps bind is meant"),
    (["--bind-kafka", "none"], "--bind-kafka: unknown option"),
    (["--config", "/nonexistent"], "--config /nonexistent: No such file"),
    (["serve"], "'serve': esker takes options only"),
])
def test_a_wrong_command_line_is_refused_with_2(tmp_path, arguments, text):
    result = run("--data-dir", str(tmp_path / "data"), *arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert text in result.stderr
    assert not (tmp_path / "data").exists()


def test_a_wrong_variable_is_refused_by_its_name():
    result = run(environment={"ESKER_FLUSH_INTERVAL": "5"})
    assert result.returncode == 2
    assert "ESKER_FLUSH_INTERVAL '5': not a duration" in result.stderr


def test_options_come_from_file_and_environment(make_broker, data_root):
    config = data_root / "esker.conf"
    config.write_text("# for a test\nshards = 2\nmemory = 64MiB\n", encoding="utf-8")
    broker = make_broker("--config", str(config), environment={"ESKER_SHARDS": "3"})
    line = broker.wait_for_event("starting")
    assert (line["shards"], line["memory_bytes"]) == (3, 64 << 20)


def test_a_signal_stops_it_cleanly(make_broker):
    for number in (signal.SIGTERM, signal.SIGINT):
        broker = make_broker()
        assert broker.stop(number) == 0
        assert broker.events("stopped")


def test_a_second_broker_on_the_data_is_refused(make_broker):
    first = make_broker()
    second = make_broker(data_dir=first.data_dir, start=False)
    second.start(ready=False)
    assert second.wait_exit() == 1
    assert str(first.data_dir) in second.events("failed")[0]["text"]
    assert first.client().get("/readyz").status == 200


def test_an_address_in_use_is_a_failure_that_names_it(make_broker):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        broker = make_broker("--bind", address, start=False)
        broker.start(ready=False)
        assert broker.wait_exit() == 1
        text = broker.events("failed")[0]["text"]
        assert address in text and "--bind" in text


def test_data_in_a_file_is_refused(make_broker, data_root):
    path = data_root / "file"
    path.write_text("", encoding="utf-8")
    broker = make_broker(data_dir=path, start=False)
    broker.start(ready=False)
    assert broker.wait_exit() == 1
    assert "is not a folder" in broker.events("failed")[0]["text"]


def test_an_open_address_is_warned_about(make_broker):
    assert make_broker().events("unprotected") == []
    line = make_broker("--bind", "0.0.0.0:0").wait_for_event("unprotected")
    assert line["level"] == "warn" and line["address"].startswith("0.0.0.0:")


def test_open_files_reach_the_hard_limit(make_broker):
    broker = make_broker(wrapper=("sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh"))
    limits = pathlib.Path(f"/proc/{broker.pid}/limits").read_text(encoding="utf-8")
    soft, hard = re.search(r"^Max open files +(\d+) +(\d+)", limits, re.MULTILINE).groups()
    assert soft == hard
