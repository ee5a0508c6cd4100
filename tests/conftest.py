# SPDX-License-Identifier: Apache-2.0
"""Fixtures: make_broker (a factory), broker (one that is ready) and client (a connection to it).

At a test's end each broker that still runs must stop cleanly on SIGTERM, exit code 0; its data goes
when the test passed. ESKER_TEST_DIR names the folder for data; the system's own by default.
"""
import os
import pathlib
import shutil
import tempfile

import pytest

from harness import Broker


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    setattr(item, "report_" + call.when, outcome.get_result())


@pytest.fixture
def data_root(request):
    """An empty folder of this test's own."""
    parent = os.environ.get("ESKER_TEST_DIR")
    root = pathlib.Path(tempfile.mkdtemp(prefix="esker-test-", dir=parent))
    yield root
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        print(f"data kept in {root}")
    else:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def make_broker(request, data_root):
    """make_broker(*options, data_dir=None, start=True, environment=None, wrapper=()) -> Broker"""
    made = []

    def make(*options, data_dir=None, start=True, environment=None, wrapper=()):
        directory = data_dir or data_root / f"data-{len(made)}"
        broker = Broker(directory, *options, environment=environment, wrapper=wrapper)
        made.append(broker)
        return broker.start() if start else broker

    yield make
    problems = []
    for broker in made:
        if broker.running:
            code = broker.stop()
            if code != 0:
                problems.append(f"stopped with {code}\n{broker.log_text()}")
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        for broker in made:
            print(broker.log_text())
    assert not problems, "\n".join(problems)


@pytest.fixture
def broker(make_broker):
    return make_broker()


@pytest.fixture
def client(broker):
    return broker.client()
