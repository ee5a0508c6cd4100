# SPDX-License-Identifier: Apache-2.0
"""TLS as clients of the doors see it, and its certificates from start to reload."""
import base64
import concurrent.futures
import http.client
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess

import pytest

from harness.broker import TIMEOUT_S, esker_binary
from harness.certificates import Authority
from harness.es01 import Closed, Es01Client
from harness.raw import RawConnection


@pytest.fixture
def authority(data_root):
    return Authority(data_root / "certificates")


@pytest.fixture
def start_tls(make_broker):
    def start(pair, *options, **more):
        broker = make_broker("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key),
                             *options, start=False, **more)
        broker.start(ready=False)
        broker.wait_for_event("ready")
        return broker

    return start


def context_of(authority, own=None):
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if own is not None:
        context.load_cert_chain(str(own.certificate), str(own.key))
    return context


def port_of(broker):
    return int(broker.address.rpartition(":")[2])


class Https:
    """One kept-alive connection."""

    def __init__(self, broker, context):
        self.connection = http.client.HTTPSConnection("localhost", port_of(broker),
                                                      context=context, timeout=TIMEOUT_S)
        self.connection.connect()

    def request(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, body=text)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    @property
    def serial(self):
        return int(self.connection.sock.getpeercert()["serialNumber"], 16)

    def close(self):
        self.connection.close()


def connect(broker, context):
    raw = socket.create_connection(("127.0.0.1", port_of(broker)), TIMEOUT_S)
    # An end that is not said raises.
    return context.wrap_socket(raw, server_hostname="localhost", suppress_ragged_eofs=False)


def test_a_session_over_https(start_tls, authority):
    broker = start_tls(authority.server())
    client = Https(broker, context_of(authority))
    assert client.request("POST", "/topics", {"name": "orders"})[0] == 201
    record = {"key": "k", "value": "checkout"}
    status, answer = client.request("POST", "/topics/orders/produce", {"records": [record]})
    assert (status, answer["results"]) == (200, [{"partition": 0, "offset": 0}])
    status, answer = client.request("GET", "/topics/orders/consume?partition=0&offset=0")
    assert status == 200
    assert answer["records"][0]["value"] == "checkout"
    client.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_is_agreed_on(start_tls, authority, version):
    broker = start_tls(authority.server())
    context = context_of(authority)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    with connect(broker, context) as client:
        assert client.selected_alpn_protocol() == "http/1.1"
        assert "GCM" in client.cipher()[0]
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = b""
        while more := client.recv(65536):
            answer += more
        assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_versions_are_refused(start_tls, authority):
    broker = start_tls(authority.server(), "--log-level", "debug")
    context = context_of(authority)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        connect(broker, context)
    broker.wait_for_event("tls-handshake-failed")


def test_large_bodies_both_ways_at_once(start_tls, authority):
    broker = start_tls(authority.server())
    context = context_of(authority)
    setup = Https(broker, context)
    assert setup.request("POST", "/topics", {"name": "large", "partitions": 8})[0] == 201
    setup.close()

    def exchange(number):
        client = Https(broker, context)
        value = f"{number}:" + os.urandom(1500000).hex()
        for offset in range(2):
            body = {"records": [{"partition": number, "value": value + str(offset)}]}
            status, answer = client.request("POST", "/topics/large/produce", body)
            assert (status, answer["results"][0]["offset"]) == (200, offset)
            path = f"/topics/large/consume?partition={number}&offset={offset}"
            status, answer = client.request("GET", path)
            assert status == 200
            assert answer["records"][0]["value"] == value + str(offset)
        client.close()

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(exchange, range(8)))


def test_the_binary_door_speaks_it_too(start_tls, authority):
    broker = start_tls(authority.server(), "--bind-binary", "127.0.0.1:0")
    context = context_of(authority)
    http_client = Https(broker, context)
    assert http_client.request("POST", "/topics", {"name": "binary", "partitions": 1})[0] == 201
    values = [os.urandom(1500000) for _ in range(8)]
    with Es01Client(broker.door("binary"), tls=context) as client:
        ids = [client.start_produce("binary", value) for value in values]  # none waits for another
        offsets = [client.finish_produce(request_id)[0].offset for request_id in ids]
        assert offsets == list(range(8))
        fetched = client.consume("binary", max_bytes=20000000)
        fetched = fetched.values + client.consume("binary", offset=fetched.next_offset,
                                                  max_bytes=20000000).values
        assert fetched == values
        assert client.ping(b"now") == b"now"
    status, answer = http_client.request(
        "GET", "/topics/binary/consume?partition=0&offset=7&encoding=base64")
    assert status == 200 and base64.b64decode(answer["records"][0]["value"]) == values[7]
    http_client.close()
    with pytest.raises(Closed):  # one that does not
        Es01Client(broker.door("binary"))


def test_the_binary_door_asks_for_certificates_too(start_tls, authority):
    broker = start_tls(authority.server(), "--bind-binary", "127.0.0.1:0",
                       "--tls-client-ca", str(authority.certificate))
    with Es01Client(broker.door("binary"), tls=context_of(authority, authority.client())) as client:
        assert client.ping(b"x") == b"x"
    with pytest.raises((Closed, ssl.SSLError)):
        Es01Client(broker.door("binary"), tls=context_of(authority))
    client = Https(broker, context_of(authority, authority.client()))
    client.connection.request("GET", "/metrics")
    metrics = client.connection.getresponse().read().decode()
    assert 'esker_tls_handshakes_total{door="es01",result="done"} 1' in metrics
    assert 'esker_tls_handshakes_total{door="es01",result="failed"} 1' in metrics
    client.close()


def test_plain_http_is_told_so(start_tls, authority):
    broker = start_tls(authority.server())
    with RawConnection(broker.address) as client:
        client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        status, headers, body = client.read_answer()
        assert status == 400
        assert "https" in json.loads(body)["error"]
        assert headers["connection"] == "close"
        assert client.socket.recv(1) == b""  # an end, and no reset


def test_a_reload_changes_new_connections_only(start_tls, authority, data_root):
    first, second = authority.server(), authority.server()
    link = data_root / "current"
    link.mkdir()

    def use(pair):
        for name, file in (("cert.pem", pair.certificate), ("key.pem", pair.key)):
            (link / name).write_bytes(file.read_bytes())

    use(first)
    broker = start_tls(type(first)(link / "cert.pem", link / "key.pem"))
    context = context_of(authority)
    before = Https(broker, context)

    use(second)
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for_event("certificate-reloaded")
    after = Https(broker, context)
    assert after.serial != before.serial

    (link / "key.pem").write_text("nothing")
    broker.process.send_signal(signal.SIGHUP)
    failed = broker.wait_for_event("certificate-reload-failed")
    assert failed["level"] == "error"
    assert "--tls-key" in failed["error"] and "key.pem" in failed["error"]
    third = Https(broker, context)
    assert third.serial == after.serial

    for client in (before, after, third):
        assert client.request("GET", "/readyz")[0] == 200
        client.close()


def test_a_hangup_without_tls_changes_nothing(broker, client):
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for_event("hangup")
    assert client.get("/readyz").status == 200


def is_let_in(broker, context):
    try:
        client = Https(broker, context)
        try:
            return client.request("GET", "/topics")[0] == 200
        finally:
            client.close()
    except (ssl.SSLError, ConnectionError, http.client.BadStatusLine):
        return False


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_clients_need_a_certificate(start_tls, authority, data_root, version):
    pair = authority.server()
    stranger = Authority(data_root / "others", "others").client()
    broker = start_tls(pair, "--tls-client-ca", str(authority.certificate))
    for own, expected in ((authority.client(), True), (None, False), (stranger, False),
                          (pair, False)):
        context = context_of(authority, own)
        context.maximum_version = context.minimum_version = version
        assert is_let_in(broker, context) == expected, own and own.certificate
    client = Https(broker, context_of(authority, authority.client()))
    client.connection.request("GET", "/metrics")
    metrics = client.connection.getresponse().read().decode()
    assert 'esker_tls_handshakes_total{door="http",result="failed"} 3' in metrics
    client.close()


@pytest.mark.parametrize("asks_clients", [False, True])
def test_an_open_address_is_warned_of(start_tls, authority, asks_clients):
    more = ["--tls-client-ca", str(authority.certificate)] if asks_clients else []
    broker = start_tls(authority.server(), "--bind", "0.0.0.0:0", *more)
    assert bool(broker.events("unprotected")) != asks_clients


def test_an_expired_certificate_is_warned_of(start_tls, authority):
    broker = start_tls(authority.expired_server())
    warning = broker.wait_for_event("certificate-expired")
    assert warning["level"] == "warn"
    assert warning["valid_until"] == "2021-01-01T00:00:00Z"
    context = context_of(authority)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        connect(broker, context)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    assert is_let_in(broker, context)


def test_an_rsa_key_does_as_well(start_tls, authority):
    broker = start_tls(authority.server(key_type="rsa"))
    assert is_let_in(broker, context_of(authority))


def test_files_that_cannot_be_used_refuse_the_start(make_broker, authority, data_root):
    pair, other = authority.server(), authority.server()
    nothing = data_root / "nothing"
    nothing.write_text("nothing\n")
    missing = data_root / "missing"
    for certificate, key, authorities, text in (
            (missing, pair.key, None, "--tls-cert: open"),
            (pair.certificate, missing, None, "--tls-key: open"),
            (nothing, pair.key, None, "holds no valid certificate"),
            (pair.certificate, nothing, None, "holds no valid key"),
            (pair.certificate, other.key, None, "is not the key of"),
            (pair.certificate, pair.key, nothing, "--tls-client-ca")):
        options = ["--tls-cert", certificate, "--tls-key", key]
        if authorities:
            options += ["--tls-client-ca", authorities]
        broker = make_broker(*map(str, options), start=False)
        broker.start(ready=False)
        assert broker.wait_exit() == 1
        assert text in broker.wait_for_event("failed")["text"]


@pytest.mark.parametrize("options", [["--tls-cert", "a"], ["--tls-key", "a"],
                                     ["--tls-client-ca", "a"]])
def test_options_go_together(options, data_root):
    result = subprocess.run([esker_binary(), "--data-dir", str(data_root / "data"), *options],
                            capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert result.returncode == 2
    assert options[0] in result.stderr and "without" in result.stderr
    assert not (data_root / "data").exists()


def rss_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024


def is_sanitized():
    with open(esker_binary(), "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def test_idle_connections_cost_what_the_manual_says(start_tls, authority):
    count = 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
    broker = start_tls(authority.server())
    context = context_of(authority)
    request = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"

    def used():
        client = connect(broker, context)
        client.sendall(request)
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        return client

    connections = [used() for _ in range(50)]  # what the first ones alone need
    before = rss_bytes(broker.pid)
    connections += [used() for _ in range(count)]
    cost = (rss_bytes(broker.pid) - before) / count
    print(f"{cost:.0f} bytes a connection")
    if not is_sanitized():  # they keep freed memory
        assert cost < 20 * 1024
    for client in connections:
        client.sendall(request)  # all of them are still served
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        client.close()
