# SPDX-License-Identifier: Apache-2.0
"""Browsers: which pages may call, and that nobody else hears of it."""
import pytest

ORIGIN = "https://ui.example"
LOCAL = "http://localhost:5173"
PREFLIGHT = {"origin": ORIGIN, "access-control-request-method": "POST",
             "access-control-request-headers": "authorization,content-type"}


def cors_headers(answer):
    return {name.lower() for name in answer.headers
            if name.lower().startswith("access-control")}


@pytest.fixture
def browsed(make_broker):
    return make_broker("--auth", "required", "--cors-origin", ORIGIN, "--cors-origin", LOCAL)


def test_a_preflight_needs_no_key(browsed):
    client = browsed.client()
    answer = client.request("OPTIONS", "/topics/orders/produce", headers=PREFLIGHT)
    assert answer.status == 204 and answer.body == b""
    assert "content-length" not in answer.headers and "content-type" not in answer.headers
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["vary"] == "Origin"
    assert answer.headers["access-control-allow-methods"] == "GET, POST, PUT, DELETE"
    assert answer.headers["access-control-allow-headers"] == (
        "Content-Type, Authorization, X-Es-Key, Last-Event-ID")
    assert "access-control-allow-credentials" not in answer.headers
    assert client.get("/healthz").status == 200  # on the same connection


def test_answers_and_errors_name_the_origin_that_asked(browsed):
    client = browsed.admin()
    for origin in (ORIGIN, LOCAL):
        for path, status in (("/topics", 200), ("/topics/none", 404), ("/none", 404)):
            answer = client.get(path, headers={"origin": origin})
            assert answer.status == status
            assert answer.headers["access-control-allow-origin"] == origin
            assert answer.headers["access-control-expose-headers"] == "Retry-After"
            assert answer.headers["vary"] == "Origin"
    refused = browsed.client().get("/topics", headers={"origin": ORIGIN})
    assert refused.status == 401 and refused.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("origin", [
    None, "https://ui.example.evil", "https://ui.exampl", "http://ui.example", "https://UI.example",
    "https://ui.example:443", "null", "*", f"{ORIGIN} {LOCAL}",
])
def test_no_other_origin_gets_a_header(browsed, origin):
    """But that the answer depends on the origin, for caches."""
    headers = {} if origin is None else {"origin": origin}
    client = browsed.client(key=browsed.bootstrap_key())
    answer = client.get("/topics", headers=headers)
    assert answer.status == 200 and cors_headers(answer) == set()
    assert answer.headers["vary"] == "Origin"
    preflight = {**PREFLIGHT, **headers} if origin else {
        name: value for name, value in PREFLIGHT.items() if name != "origin"}
    answer = client.request("OPTIONS", "/topics", headers=preflight)
    assert answer.status == 405 and cors_headers(answer) == set()
    assert answer.headers["vary"] == "Origin"


def test_without_the_option_there_are_no_such_headers(client):
    answer = client.get("/topics", headers={"origin": ORIGIN})
    assert answer.status == 200 and cors_headers(answer) == set()
    assert "vary" not in answer.headers
    assert client.request("OPTIONS", "/topics", headers=PREFLIGHT).status == 405


def test_several_origins_may_stand_in_one_value(make_broker):
    broker = make_broker(environment={"ESKER_CORS_ORIGIN": f"{ORIGIN} {LOCAL}"})
    answer = broker.client().get("/topics", headers={"origin": LOCAL})
    assert answer.headers["access-control-allow-origin"] == LOCAL


@pytest.mark.parametrize("value", [
    "*", "ui.example", "https://", "https://ui.example/", "https://Ui.example", "ftp://a",
    "https://a,https://b", "null", "", " ",
])
def test_a_value_that_is_no_origin_is_refused(make_broker, value):
    broker = make_broker("--cors-origin", value, start=False)
    broker.start(ready=False)
    assert broker.wait_exit() == 2
    assert "--cors-origin" in broker.log_text()
