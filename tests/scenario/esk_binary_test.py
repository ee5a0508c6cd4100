# SPDX-License-Identifier: Apache-2.0
"""esk over the binary protocol and over TLS, with keys and profiles."""
import json
import os
import subprocess

import pytest

from harness.broker import TIMEOUT_S, esk_binary
from harness.certificates import Authority


@pytest.fixture
def broker(make_broker):
    return make_broker("--bind-binary", "127.0.0.1:0")


def run(broker, *arguments, stdin=b"", environment=None):
    """esk with both addresses; bytes in and out."""
    return subprocess.run([esk_binary(), "--server", broker.url, "--binary-server",
                           broker.door("binary"), *arguments], input=stdin, capture_output=True,
                          timeout=TIMEOUT_S, check=False,
                          env={**os.environ, **(environment or {})})


def good(broker, *arguments, **more):
    result = run(broker, *arguments, **more)
    assert result.returncode == 0, result
    return result.stdout


@pytest.mark.parametrize("way", [["--binary"], ["-bz"]], ids=["plain", "gzip"])
def test_records_go_the_same_over_both_ways(broker, client, way):
    client.create_topic("t", partitions=2)
    lines = b"".join(b"key%d:%s\n" % (i, b"\xff\x00value" * i) for i in range(200))
    assert good(broker, "produce", "t", "-k:", *way, stdin=lines) == b"200 records written\n"
    for options in (["-e", "raw", "-k:"], ["-e", "base64"], ["--json", "-e", "base64"],
                    ["-p1", "-o", "3", "-n", "4", "-e", "raw"]):
        assert good(broker, "consume", "t", *options, *way) == good(broker, "consume", "t",
                                                                    *options)
    assert sorted(good(broker, "consume", "t", "-e", "raw", "-k:", *way).split(b"\n")) == \
        sorted(lines.split(b"\n"))
    summary = json.loads(good(broker, "produce", "t", "-p1", "--json", *way, stdin=b"a\nb\n"))
    assert [(p["partition"], p["records"]) for p in summary["partitions"]] == [(1, 2)]


def test_what_is_no_text_stops_and_empty_keys_stay_keys(broker, client):
    client.create_topic("t", partitions=1)
    good(broker, "produce", "t", "-b", "-k:", stdin=b":empty key\n:\n")
    assert [r["key"] for r in client.consume("t")["records"]] == ["", ""]
    good(broker, "produce", "t", "-b", stdin=b"\xff\n")
    result = run(broker, "consume", "t", "-b")
    assert (result.returncode, result.stdout) == (1, b"empty key\n\n")
    assert b"partition 0 is read up to offset 2" in result.stderr


def test_following_over_the_binary_protocol(broker, client):
    client.create_topic("live", partitions=2)
    process = subprocess.Popen([esk_binary(), "--server", broker.url, "--binary-server",
                                broker.door("binary"), "consume", "-bfn3", "live"],
                               stdout=subprocess.PIPE)
    for partition in (1, 0, 1):
        client.produce("live", {"value": f"to {partition}", "partition": partition})
        assert process.stdout.readline() == f"to {partition}\n".encode()
    assert process.wait(TIMEOUT_S) == 0
    process.stdout.close()


def test_errors_are_told(broker, make_broker):
    result = run(broker, "produce", "none", "-b", stdin=b"line\nline\n")
    assert result.returncode == 1 and result.stderr.endswith(
        b"lines 1 to 2 were not acknowledged, and those behind them were not sent\n")
    assert b"the broker answered: not found: " in result.stderr
    result = run(broker, "produce", "none", "-b", "--header", "a=1", stdin=b"line\n")
    assert result.returncode == 2 and b"--header" in result.stderr
    result = run(broker, "produce", "none", "-b", "--binary-server", "127.0.0.1:1",
                 stdin=b"line\n")
    assert result.returncode == 1 and b"--bind-binary" in result.stderr
    result = run(broker, "bench", "produce", "--in-flight", "2")
    assert result.returncode == 2 and b"--binary has more" in result.stderr


def test_bench_counts_what_the_broker_has(broker, client):
    report = json.loads(good(
        broker, "bench", "produce", "-b", "--topic", "load", "-p3", "-c4", "-i8", "-r10",
        "--size", "50", "--requests", "1001", "-t2", "--json"))
    assert (report["requests"], report["records"], report["errors"]) == (1001, 10010, 0)
    assert (report["bytes"], report["in_flight"]) == (10010 * 50, 8)
    assert 0 < report["latency_ms"]["p50"] <= report["latency_ms"]["max"]
    ends = [p["high_watermark"] for p in client.get("/topics/load").json["partitions"]]
    assert sum(ends) == 10010 and all(ends)

    report = json.loads(good(broker, "bench", "produce", "-bz", "--topic", "load", "--rate", "100",
                             "-s1", "--warmup-seconds", "0", "--json"))
    assert (report["requests"], report["errors"]) == (100, 0)

    report = json.loads(good(broker, "bench", "consume", "-b", "--topic", "load", "-s1", "-c3",
                             "-i2", "--warmup-seconds", "0", "--json"))
    assert report["errors"] == 0 and report["records"] > 0 and report["bytes"] > 0


def test_https_keys_and_profiles(make_broker, data_root):
    authority = Authority(data_root / "certificates")
    pair = authority.server()
    broker = make_broker("--bind-binary", "127.0.0.1:0", "--auth", "required", "--tls-cert",
                         str(pair.certificate), "--tls-key", str(pair.key), start=False)
    broker.start(ready=False)
    broker.wait_for_event("ready")
    profiles = data_root / "profiles"
    url = broker.url.replace("http://", "https://").replace("127.0.0.1", "localhost")
    profiles.write_text(f"[secure]\nserver = {url}\nbinary-server = {broker.door('binary')}\n"
                        f"key = {broker.bootstrap_key()}\nca = {authority.certificate}\n",
                        encoding="utf-8")

    def esk(*arguments, stdin=b""):
        return subprocess.run([esk_binary(), "--profile", "secure", *arguments], input=stdin,
                              capture_output=True, timeout=TIMEOUT_S, check=False,
                              env={**os.environ, "ESK_PROFILES": str(profiles)})

    assert esk("topic", "create", "t").stdout == b"t created with 1 partition\n"
    lines = b"".join(b"%d\n" % i for i in range(3000))
    assert esk("produce", "t", stdin=lines).stdout == b"3000 records written\n"
    assert esk("produce", "t", "-b", stdin=lines).stdout == b"3000 records written\n"
    assert esk("consume", "t").stdout == esk("consume", "t", "-b").stdout == lines * 2
    assert esk("consume", "-fn2", "t").stdout == b"0\n1\n"
    assert json.loads(esk("bench", "produce", "--requests", "50", "--topic", "t",
                          "--json").stdout)["errors"] == 0
    assert json.loads(esk("bench", "produce", "-bi4", "--requests", "50", "--topic", "t",
                          "--json").stdout)["errors"] == 0

    refused = esk("topic", "list", "--key", "esk_wrong")
    assert refused.returncode == 1 and b"the broker answered 401" in refused.stderr
    refused = esk("produce", "t", "-b", "--key", "esk_wrong")
    assert refused.returncode == 1 and b"(status 2)" in refused.stderr
    assert refused.stderr.endswith(b"; the key comes from --key, ESK_KEY or the profile\n")
    other = Authority(data_root / "others")
    refused = esk("topic", "list", "--ca", str(other.certificate))
    assert refused.returncode == 1 and b": TLS: " in refused.stderr, refused
    assert refused.stderr.endswith(b"; --ca names the authority that signed it\n"), refused
    assert esk("topic", "list", "--ca", str(other.certificate), "--insecure").returncode == 0
    refused = esk("topic", "list", "--ca", "/nonexistent")
    assert refused.returncode == 2 and b"--ca /nonexistent: " in refused.stderr


def test_a_client_without_its_certificate_is_told(make_broker, data_root):
    authority = Authority(data_root / "certificates")
    pair = authority.server()
    broker = make_broker("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key),
                         "--tls-client-ca", str(authority.certificate), start=False)
    broker.start(ready=False)
    broker.wait_for_event("ready")
    url = broker.url.replace("http://", "https://").replace("127.0.0.1", "localhost")

    def esk(*options):
        return subprocess.run([esk_binary(), "--server", url, "--ca", str(authority.certificate),
                               *options, "topic", "list"], capture_output=True, timeout=TIMEOUT_S,
                              check=False)

    refused = esk()
    assert refused.returncode == 1 and b": TLS: " in refused.stderr, refused
    assert refused.stderr.endswith(b" that it trusts: --cert and --cert-key\n"), refused
    own = authority.client()
    assert esk("--cert", str(own.certificate), "--cert-key", str(own.key)).returncode == 0
