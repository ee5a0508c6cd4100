# SPDX-License-Identifier: Apache-2.0
"""esk against a broker: what people type, what they see, and the exit codes."""
import json
import os
import socket
import subprocess

import pytest

from harness.broker import TIMEOUT_S, esk_binary


def run(*arguments, stdin=b"", environment=None):
    """esk on its own; bytes in and out."""
    return subprocess.run([esk_binary(), *arguments], input=stdin, capture_output=True,
                          timeout=TIMEOUT_S, check=False,
                          env={**os.environ, **(environment or {})})


def start(broker, *arguments, **more):
    """esk in the background, its output line by line."""
    return subprocess.Popen([esk_binary(), "--server", broker.url, *arguments],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)


def end(process):
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait(TIMEOUT_S)


def test_a_topic_from_creation_to_deletion(broker):
    assert broker.esk("topic", "create", "orders", "--partitions", "3", "--config",
                      "retention_ms=1h").stdout == "orders created with 3 partitions\n"
    assert broker.esk("topic", "list").stdout == "TOPIC   PARTITIONS\norders           3\n"
    config = json.loads(broker.esk("topic", "config", "orders", "--json").stdout)
    assert config["retention_ms"] == 3600000 and config["retention_bytes"] is None
    changed = broker.esk("topic", "config", "orders", "retention_ms=unlimited",
                         "segment_bytes=1MiB").stdout
    assert "retention_ms            unlimited\n" in changed
    assert "segment_bytes           1048576\n" in changed
    described = broker.esk("topic", "describe", "orders").stdout
    assert described.startswith("PARTITION  START  END  BYTES  SEGMENTS\n        0      0    0 ")
    assert broker.esk("topic", "delete", "orders").stdout == "orders deleted\n"
    assert json.loads(broker.esk("--json", "topic", "list").stdout) == {"topics": []}


def test_lines_come_back_as_they_went(broker, client):
    client.create_topic("lines", partitions=1)
    text = "first\n\n\"quoted\" \\ \u00e9\nlast without line feed"
    assert broker.esk("produce", "lines", stdin=text).stdout == "4 records written\n"
    assert broker.esk("consume", "lines").stdout == text + "\n"
    assert broker.esk("consume", "lines", "--max", "2", "--offset", "1").stdout == \
        "\n\"quoted\" \\ \u00e9\n"
    assert broker.esk("consume", "lines", "--offset", "end").stdout == ""


def test_keys_headers_partitions_and_batches(broker, client, data_root):
    client.create_topic("events", partitions=2)
    source = data_root / "events.txt"
    source.write_text("".join(f"k{i}=v{i}\n" for i in range(10)), encoding="utf-8")
    summary = json.loads(broker.esk(
        "produce", "events", str(source), "--key-separator", "=", "--partition", "1", "--batch",
        "4", "--header", "a=1", "--header", "a=2", "--header", "b=", "--json").stdout)
    assert summary == {"topic": "events", "records": 10, "requests": 3, "partitions": [
        {"partition": 1, "records": 10, "first_offset": 0, "last_offset": 9}]}
    assert broker.esk("consume", "events", "-p", "0").stdout == ""
    assert broker.esk("consume", "events", "-p", "1", "-k", " -> ", "-n", "2").stdout == \
        "k0 -> v0\nk1 -> v1\n"
    record = json.loads(broker.esk("consume", "events", "-n", "1", "--json").stdout)
    assert record["headers"] == {"a": ["1", "2"], "b": ""}
    assert (record["partition"], record["offset"], record["key"]) == (1, 0, "k0")


def test_bytes_that_are_no_text_arrive_as_they_are(broker, client):
    client.create_topic("bytes", partitions=1)
    data = b"\xff\xfe\x00 raw\nplain\n"
    assert run("--server", broker.url, "produce", "bytes", stdin=data).returncode == 0
    assert run("--server", broker.url, "consume", "bytes", "-e", "raw").stdout == data
    assert broker.esk("consume", "bytes", "-e", "base64").stdout == "//4AIHJhdw==\ncGxhaW4=\n"
    refused = run("--server", broker.url, "consume", "bytes")
    assert refused.returncode == 1 and b"base64" in refused.stderr


def test_a_group_reads_on_where_it_was(broker, client):
    client.create_topic("work", partitions=2)
    client.produce("work", *[{"value": f"{i}", "partition": i % 2} for i in range(6)])
    assert broker.esk("consume", "work", "-g", "team", "-n", "2").stdout == "0\n2\n"
    assert broker.esk("group", "offsets", "team").stdout == (
        "TOPIC  PARTITION  OFFSET  END  LAG\n"
        "work           0       2    3    1\n")
    assert broker.esk("consume", "work", "--group", "team").stdout == "4\n1\n3\n5\n"
    assert broker.esk("consume", "work", "--group", "team").stdout == ""
    assert broker.esk("group", "commit", "team", "work", "1", "1").stdout == \
        "team reads work/1 from 1\n"
    assert json.loads(broker.esk("group", "offsets", "team", "--json").stdout) == {
        "offsets": {"work": {"0": 3, "1": 1}}}


@pytest.mark.parametrize("partitions", [1, 3, 130])
def test_following_prints_records_as_they_arrive(broker, client, partitions):
    client.create_topic("live", partitions=partitions)
    client.produce("live", {"value": "before", "partition": 0})
    process = start(broker, "consume", "-f", "live")
    try:
        assert process.stdout.readline() == b"before\n"
        for partition in (partitions - 1, 0):
            client.produce("live", {"value": f"to {partition}", "partition": partition})
            assert process.stdout.readline() == f"to {partition}\n".encode()
        assert process.poll() is None
    finally:
        end(process)


def test_following_ends_after_max(broker, client):
    client.create_topic("few")
    process = start(broker, "consume", "-f", "few", "-n", "2")
    client.produce("few", "a", "b", "c")
    assert process.wait(TIMEOUT_S) == 0
    assert process.stdout.read() == b"a\nb\n"
    end(process)


def test_a_slow_input_is_not_held_back(broker, client):
    client.create_topic("slow")
    process = start(broker, "produce", "slow")
    try:
        for i in range(3):
            process.stdin.write(f"{i}\n".encode())
            process.stdin.flush()
            found = client.consume("slow", offset=i, wait_ms=30000)["records"]
            assert [record["value"] for record in found] == [f"{i}"]
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout.read() == b"3 records written\n"
    finally:
        process.kill()
        process.stdout.close()
        process.wait(TIMEOUT_S)


def test_many_records_survive_the_round(broker, client):
    client.create_topic("many")
    text = "".join(f"{i} {'x' * (i % 3000)}\n" for i in range(5000))
    broker.esk("produce", "many", stdin=text)
    assert broker.esk("consume", "many").stdout == text


@pytest.mark.parametrize("arguments, text", [
    (["topic", "describe", "none"], b"the broker answered 404: "),
    (["topic", "create", "a/b"], b"the broker answered 400: "),
    (["consume", "none"], b"the broker answered 404: "),
    (["group", "commit", "g", "none", "0", "1"], b"the broker answered 404: "),
    (["produce", "none"], b"line 1 was not acknowledged, and those behind it were not sent\n"),
    (["bench", "consume", "--topic", "none"], b"the broker answered 404: "),
])
def test_what_the_broker_refuses_is_1(broker, arguments, text):
    result = run("--server", broker.url, *arguments, stdin=b"line\n")
    assert result.returncode == 1 and text in result.stderr, result


def test_a_missing_partition_or_file_is_1(broker, client):
    client.create_topic("t")
    assert "t has no partition 5" in broker.esk("consume", "t", "-p", "5", check=False).stderr
    result = broker.esk("produce", "t", "/nonexistent", check=False)
    assert result.returncode == 1 and "/nonexistent: No such file" in result.stderr
    result = broker.esk("produce", "t", "-k", ":", stdin="a:b\nno key\n", check=False)
    assert result.returncode == 1 and result.stdout == "1 record written\n"
    assert "standard input, line 2: no ':' between key and value" in result.stderr
    broker.esk("produce", "t", "-k", "\\t", stdin="key\tvalue\n")
    assert broker.esk("consume", "t", "-k", "=", "-o", "1").stdout == "key=value\n"


def test_no_broker_is_1():
    result = run("--server", "http://127.0.0.1:1", "topic", "list")
    assert result.returncode == 1 and b"127.0.0.1:1: Connection refused" in result.stderr
    assert b"--server or ESK_SERVER" in result.stderr


def test_a_record_that_is_no_text_stops_its_partition_only(broker, client):
    client.create_topic("mixed", partitions=2)
    assert run("--server", broker.url, "produce", "mixed", "-p0",
               stdin=b"a\n\xff\nb\n").returncode == 0
    broker.esk("produce", "mixed", "-p", "1", stdin="c\n")
    result = broker.esk("consume", "mixed", check=False)
    assert (result.returncode, result.stdout) == (1, "a\nc\n")
    assert "partition 0 is read up to offset 1" in result.stderr
    assert "--encoding raw" in result.stderr
    result = broker.esk("topic", "tail", "mixed", "-o", "start", check=False)
    assert (result.returncode, result.stdout) == (1, "a\n")
    assert result.stderr.endswith("; that is --encoding base64 here, or raw\n")


@pytest.mark.parametrize("command", [["consume", "-f", "outage", "-g", "readers"],
                                     ["topic", "tail", "outage", "-p", "1", "-o", "start"]])
def test_following_goes_on_when_the_broker_is_back(make_broker, command):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    broker = make_broker("--bind", address)
    broker.client().create_topic("outage", partitions=2)
    broker.esk("produce", "outage", "-p", "1", stdin="before\n")
    process = start(broker, *command, stderr=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"before\n"
        broker.stop()
        broker.start()
        broker.esk("produce", "outage", "-p", "1", stdin="after\n")
        assert process.stdout.readline() == b"after\n"
        again = b"; trying again until the broker is back\n"
        trouble = process.stderr.readline()
        if not trouble.endswith(again):  # the stop was before the commit of what was printed
            trouble = process.stderr.readline()
        assert trouble.endswith(again)
        assert process.stderr.readline() == b"esk: the broker is back\n"
        assert process.poll() is None
    finally:
        process.stderr.close()
        end(process)


def test_following_ends_when_its_reader_goes(broker, client):
    client.create_topic("head")
    process = start(broker, "consume", "-f", "head")
    client.produce("head", "one")
    assert process.stdout.readline() == b"one\n"
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == 1
    process.stdin.close()


def test_more_connections_than_the_machine_has_are_refused(broker):
    result = broker.esk("bench", "produce", "--connections", "100000", check=False)
    assert result.returncode == 1 and "100000 connections need" in result.stderr


def test_a_commit_beyond_the_end_shows(broker, client):
    client.create_topic("short")
    broker.esk("group", "commit", "ahead", "short", "0", "7")
    assert broker.esk("group", "offsets", "ahead").stdout.split()[-2:] == ["0", "-7"]


def test_kafka_has_help_of_each_command_and_takes_keys():
    for words in (["kafka", "show", "--help"], ["help", "kafka", "show"]):
        result = run(*words)
        assert result.returncode == 0 and b"show NAME|KEY" in result.stdout
        assert b"export" not in result.stdout
    assert run("kafka", "show", "18", "--hex").stdout == \
        run("kafka", "show", "ApiVersions", "--hex").stdout != b""
    assert json.loads(run("--json", "kafka", "list").stdout)


@pytest.mark.parametrize("arguments, text", [
    ([], b"Usage: esk COMMAND"),
    (["frobnicate"], b"'frobnicate' is no command"),
    (["prodce"], b"perhaps produce is meant"),
    (["topic", "creat"], b"perhaps topic create is meant"),
    (["topic", "lst"], b"perhaps topic list is meant"),
    (["prodce", "orders"], b"perhaps produce is meant"),
    (["topic"], b"topic create"),
    (["topic", "create"], b"too few arguments"),
    (["topic", "create", "a", "--config", "retention=1h"], b"'retention=1h' is no setting"),
    (["consume", "a", "--offset", "middle"], b"allowed is a number, start or end"),
    (["consume", "a", "--offset", "1", "--group", "g"], b"exclude each other"),
    (["produce", "a", "-z"], b"--gzip is for the binary protocol: add --binary"),
    (["consume", "a", "--gzip"], b"--gzip is for the binary protocol: add --binary"),
    (["produce", "a", "--header", "x"], b"allowed is NAME=VALUE"),
    (["group", "commit", "g", "t", "zero", "1"], b"not a whole number"),
    (["--server", "ftp://a", "topic", "list"], b"is no server"),
    (["--binary-server", "localhost", "topic", "list"], b"allowed is HOST:PORT"),
    (["bench", "--binary"], b"behind bench comes one of: produce, consume; "),
])
def test_a_wrong_command_line_is_2(arguments, text):
    result = run(*arguments)
    assert result.returncode == 2 and text in result.stderr and result.stdout == b"", result


def test_help_and_version_are_0():
    for arguments in (["--help"], ["help"], ["help", "topic"], ["help", "topic", "create"],
                      ["consume", "--help"], ["-h"]):
        result = run(*arguments)
        assert result.returncode == 0 and result.stdout.startswith(b"Usage: esk"), arguments
    assert run("--version").stdout.startswith(b"esk 0")


def test_the_server_comes_from_the_environment_too(broker):
    result = run("topic", "list", environment={"ESK_SERVER": broker.url})
    assert result.returncode == 0 and result.stdout == b"TOPIC  PARTITIONS\n"


def test_bench_counts_what_the_broker_has(broker, client):
    report = json.loads(broker.esk(
        "bench", "produce", "--topic", "load", "--partitions", "3", "--connections", "4",
        "--records", "10", "--size", "50", "--requests", "101", "--threads", "2",
        "--json").stdout)
    assert (report["requests"], report["records"], report["errors"]) == (101, 1010, 0)
    assert report["bytes"] == 1010 * 50
    assert 0 < report["latency_ms"]["p50"] <= report["latency_ms"]["max"]
    partitions = client.get("/topics/load").json["partitions"]
    ends = [partition["high_watermark"] for partition in partitions]
    assert sum(ends) == 1010 and all(ends)

    report = json.loads(broker.esk("bench", "produce", "--topic", "load", "--rate", "100",
                                   "--seconds", "1", "--warmup-seconds", "0", "--json").stdout)
    assert (report["requests"], report["errors"]) == (100, 0)

    report = json.loads(broker.esk("bench", "consume", "--topic", "load", "--seconds", "1",
                                   "--connections", "3", "--warmup-seconds", "0",
                                   "--json").stdout)
    assert report["errors"] == 0 and report["records"] > 0
    assert "latency" in broker.esk("bench", "consume", "--topic", "load", "--seconds", "1").stdout


def test_bench_tells_of_errors(broker, client):
    client.create_topic("empty")
    result = broker.esk("bench", "consume", "--topic", "empty", "--seconds", "1",
                        "--warmup-seconds", "0", "--json", check=False)
    report = json.loads(result.stdout)
    assert result.returncode == 1 and report["requests"] == 0 and report["errors"] > 0
    assert report["first_error"] == "an answer without records"
