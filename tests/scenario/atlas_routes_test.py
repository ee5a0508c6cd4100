# SPDX-License-Identifier: Apache-2.0
"""The reference of Kafka's wire format at /kafka, and its decoder."""
import base64
import re
import subprocess

import pytest

from harness.broker import esk_binary

# ApiVersions v0 request, correlation id 7, client "a".
API_VERSIONS = "0000000b 0012 0000 00000007 0001 61"
FRAME_SIZE = len(bytes.fromhex(API_VERSIONS.replace(" ", ""))) - 4


def test_the_pages_are_those_of_the_export(client, data_root):
    site = data_root / "site"
    subprocess.run([esk_binary(), "kafka", "export", str(site)], check=True)
    names = sorted(path.name for path in site.iterdir())
    assert len(names) > 80
    for name in names:
        answer = client.get(f"/kafka/{name}")
        assert answer.status == 200, name
        if name != "index.html":
            assert answer.body == (site / name).read_bytes(), name
    index = client.get("/kafka/").body.decode()
    assert index == client.get("/kafka/index.html").body.decode()
    links = re.findall(r'href="([^":]+)"', index)
    assert len(links) > 80
    for link in links:
        assert client.get(f"/kafka/{link}").status == 200, link


def test_headers(client):
    answer = client.get("/kafka")
    assert (answer.status, answer.headers["location"]) == (308, "/kafka/")
    page = client.get("/kafka/Fetch.html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "*" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert client.get("/kafka/atlas.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/kafka/none.html").status == 404
    assert client.get("/kafka/..%2fx").status == 404


def test_pages_keep_to_their_policy(client):
    """Nothing inline, nothing from outside."""
    for name in ["", "Produce.html", "decode.html"]:
        text = client.get(f"/kafka/{name}").body.decode()
        assert " style=" not in text and " onclick=" not in text
        assert re.findall(r"<script(?! src=\"[a-z]+\.js\" defer></script>)", text) == []
        assert "http://" not in text and "https://" not in text


def decode(client, **fields):
    answer = client.post("/kafka/decode", fields)
    assert answer.status == 200, answer
    return answer.json


def test_the_decoder(client, broker):
    size = f"{FRAME_SIZE:08x}"
    good = size + API_VERSIONS.replace(" ", "")[8:]
    result = decode(client, hex=good)
    assert result["notes"] == []
    message, = result["messages"]
    assert message["title"] == "ApiVersions request v0"
    assert message["error"] is None
    assert "correlation_id" in message["tree"]
    assert decode(client, base64=base64.b64encode(bytes.fromhex(good)).decode()) == result
    # As the command-line tool shows it.
    shown = subprocess.run([esk_binary(), "kafka", "decode"], input=good, capture_output=True,
                           text=True, check=True).stdout
    assert message["tree"].strip() in shown
    # Two, one behind the other, and damage with its place.
    assert len(decode(client, hex=good + good)["messages"]) == 2
    cut = decode(client, hex="00" * 3, type="response", name="ApiVersions", version=0)
    assert cut["messages"][0]["error"]["offset"] <= 3


def test_what_the_decoder_refuses(client):
    for body, status, text in [
            ({}, 400, "one of hex and base64 is required"),
            ({"hex": "00", "base64": "AA=="}, 400, "one of hex and base64 is required"),
            ({"hex": "0g"}, 400, "hex is not hex behind byte 0"),
            ({"base64": "*"}, 400, "base64 is not base64"),
            ({"hex": 7}, 400, "hex must be a string, not integer"),
            ({"hex": "00", "type": "request"}, 400, "name and version are required with type"),
            ({"hex": "00", "type": "request", "name": "Nothing", "version": 0}, 400, None),
            ({"hex": "00" * 65537}, 413, "over 65536 bytes to decode")]:
        answer = client.post("/kafka/decode", body)
        assert answer.status == status, answer
        assert text is None or answer.error == text


def test_the_longest_tree(client):
    """64 KiB of the smallest values: the answer is large, and whole."""
    entries = b"\x00\x00\x00\x00" * 16000  # partitions of a Fetch v0's topic, cut at the end
    body = b"\xff\xff\xff\xff" + b"\x00" * 8 + b"\x00\x00\x00\x01\x00\x00" + b"\x00\x00\x3e\x80"
    frame = b"\x00\x01\x00\x00\x00\x00\x00\x07\xff\xff" + body + entries
    data = len(frame).to_bytes(4, "big") + frame
    result = decode(client, base64=base64.b64encode(data).decode())
    assert result["messages"][0]["tree"].count("\n") > 3000


@pytest.mark.parametrize("path, status", [("/kafka/index.html", 200), ("/kafka", 308)])
def test_files_need_no_key(make_broker, path, status):
    client = make_broker("--auth", "required").client()
    assert client.get(path).status == status
    assert client.post("/kafka/decode", {"hex": "00"}).status == 401
