# SPDX-License-Identifier: Apache-2.0
"""A broker in its own process: started on free ports, watched through its JSON log lines.

Nothing here sleeps or polls: a thread reads the log, and waits are for a line or for the process.
"""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from harness.http import HttpClient
from harness.raw import RawConnection

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Generous, since sanitizer builds on busy machines are slow; it only bounds a failure.
TIMEOUT_S = float(os.environ.get("ESKER_TEST_TIMEOUT", "60"))


def esker_binary():
    return os.environ.get("ESKER_BINARY", str(ROOT / "build" / "release" / "esker"))


def esk_binary():
    return os.environ.get("ESK_BINARY", str(ROOT / "build" / "release" / "esk"))


class BrokerFailed(AssertionError):
    """The broker ended, or did not do what was waited for; the text has its log."""


class Broker:
    """options go to the command line after those that make a test's broker; environment is added
    to this process's own; wrapper is a command put before the program, such as ["strace", ...]."""

    def __init__(self, data_dir, *options, environment=None, wrapper=()):
        self.data_dir = pathlib.Path(data_dir)
        self.options = list(options)
        self.environment = dict(environment or {})
        self.wrapper = list(wrapper)
        self.process = None
        self.log = []  # every line of every start, decoded; a line that is no JSON as {"raw": ...}
        self._first = 0  # the index in log of the present process's first line
        self._changed = threading.Condition()
        self._ended = True
        self._reader = None
        self._clients = []

    # Life

    def start(self, *more_options, ready=True):
        """Starts the process and, unless told otherwise, waits until /readyz is 200."""
        assert self.process is None or self.process.poll() is not None, "it runs already"
        command = [
            *self.wrapper,
            esker_binary(),
            "--data-dir", str(self.data_dir),
            "--bind", "127.0.0.1:0",
            "--log-format", "json",
            *self.options,
            *more_options,
        ]
        self._join_reader()
        self._first = len(self.log)
        self._ended = False
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **self.environment},
        )
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        if ready:
            self.wait_ready()
        return self

    def wait_ready(self):
        self.wait_for_event("listening", door="http")
        client = HttpClient(self.address, TIMEOUT_S)
        try:
            if client.get("/readyz").status != 200:
                self.wait_for_event("ready")
                answer = client.get("/readyz")
                assert answer.status == 200, answer
        finally:
            client.close()

    def stop(self, number=signal.SIGTERM):
        """Asks it to stop, waits, and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait_exit()

    def kill9(self):
        self.process.kill()
        return self.wait_exit()

    def restart(self, *more_options, ready=True):
        """A clean stop, which must succeed, and a start on the same data."""
        if self.running:
            code = self.stop()
            if code != 0:
                raise BrokerFailed(f"stopped with {code}\n{self.log_text()}")
        return self.start(*more_options, ready=ready)

    def wait_exit(self, timeout_s=TIMEOUT_S):
        """Waits until the process ends by itself; the exit code, or minus the signal's number."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise BrokerFailed(f"still running after {timeout_s} s\n{self.log_text()}") from None
        for client in self._clients:
            client.close()
        self._clients.clear()
        self._join_reader()
        return code

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    # Log

    def events(self, event, **fields):
        """The lines of the present process with that event and those fields."""
        return [
            line
            for line in self.log[self._first:]
            if line.get("event") == event and all(line.get(n) == v for n, v in fields.items())
        ]

    def wait_for_event(self, event, timeout_s=TIMEOUT_S, **fields):
        """The first such line of the present process, waited for; BrokerFailed if it ends first."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                found = self.events(event, **fields)
                if found:
                    return found[0]
                if self._ended:
                    raise BrokerFailed(f"ended without event {event} {fields}\n{self.log_text()}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise BrokerFailed(f"no event {event} {fields}\n{self.log_text()}")
                self._changed.wait(left)

    def log_text(self):
        """The present process's log, for people."""
        return "\n".join(line.get("raw") or json.dumps(line) for line in self.log[self._first:])

    # Clients

    def door(self, name):
        """The address "host:port" that a door listens on: "http", "binary" or "kafka"."""
        return self.wait_for_event("listening", door=name)["address"]

    @property
    def address(self):
        return self.door("http")

    @property
    def url(self):
        return f"http://{self.address}"

    def client(self, timeout=TIMEOUT_S, key=None):
        """A new HTTP connection of its own, closed when the broker ends; with a key, if given."""
        client = HttpClient(self.address, timeout, key)
        self._clients.append(client)
        return client

    def bootstrap_key(self):
        """The secret that the first start with --auth required left behind."""
        return (self.data_dir / "bootstrap.key").read_text(encoding="ascii").rstrip("\n")

    def admin(self):
        """A client with that key."""
        return self.client(key=self.bootstrap_key())

    def raw(self, timeout=TIMEOUT_S):
        return RawConnection(self.address, timeout)

    def esk(self, *arguments, stdin=None, check=True):
        """Runs the command-line tool on this broker; the CompletedProcess, output as text."""
        result = subprocess.run(
            [esk_binary(), "--server", self.url, *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if check:
            assert result.returncode == 0, result
        return result

    # The reading thread

    def _read(self, pipe):
        for raw in pipe:
            text = raw.decode("utf-8", "replace").rstrip("\n")
            try:
                line = json.loads(text)
                if not isinstance(line, dict):
                    line = {"raw": text}
            except ValueError:
                line = {"raw": text}
            with self._changed:
                self.log.append(line)
                self._changed.notify_all()
        pipe.close()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _join_reader(self):
        if self._reader is not None:
            self._reader.join()
            self._reader = None
