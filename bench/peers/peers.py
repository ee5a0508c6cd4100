# SPDX-License-Identifier: Apache-2.0
"""Other brokers: how each is started, given work, and stopped. Every run answers
{"records_per_second", "p50_ms", "p99_ms"}; CPU is measured by the caller."""
import base64
import json
import pathlib
import signal
import socket
import subprocess
import time
import uuid

JVM = ["-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
       "-XX:InitiatingHeapOccupancyPercent=35", "-XX:MaxInlineLevel=15",
       "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]  # what Kafka's own scripts pass


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Peer:
    """A broker in a process of its own; ended by stop."""

    name = ""

    def __init__(self, tools, folder):
        self.tools = pathlib.Path(tools)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def spawn(self, command):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)

    def load_program(self, command, **options):
        flags = [text for name, value in options.items() for text in (f"-{name}", str(value))]
        return subprocess.run([self.tools / "peerload", command, "-addr",
                               f"127.0.0.1:{self.port}", *flags],
                              capture_output=True, text=True, check=True).stdout

    def report(self, command, **options):
        found = json.loads(self.load_program(command, **options))
        if found["errors"]:
            raise RuntimeError(f"{self.name}: {found['errors']} errors")
        return found

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Kafka(Peer):
    """One node, broker and controller in one."""

    def __init__(self, tools, folder, flushing):
        super().__init__(tools, folder)
        self.name = "Kafka, flushing each message" if flushing else "Kafka, without fsync"
        self.flushing = flushing
        self.port = free_port()

    @staticmethod
    def is_there(tools):
        tools = pathlib.Path(tools)
        return (tools / "kafka" / "done").exists() and (tools / "peerload").exists()

    def java(self, *arguments):
        return ["java", *JVM, "-cp", str(self.tools / "kafka" / "*"), *arguments]

    def start(self):
        controller = free_port()
        properties = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "log.retention.bytes": 64 << 20,
            "log.segment.bytes": 64 << 20,
        }
        if self.flushing:
            properties["log.flush.interval.messages"] = 1
        path = self.folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()),
                        encoding="utf-8")
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        subprocess.run(self.java("kafka.tools.StorageTool", "format", "-t", "A" + cluster[1:],
                                 "-c", str(path)), check=True, capture_output=True)
        self.spawn(self.java("kafka.Kafka", str(path)))
        self.load_program("ready", secs=60)

    def prepare(self, topic, partitions):
        self.load_program("create", topic=topic, parts=partitions)
        # Metadata names a leader before that takes produces: errors do not count yet.
        self.load_program("kafka", topic=topic, parts=partitions, conns=partitions, secs=1)

    def produce(self, topic, case, seconds):
        return self.report("kafka", topic=topic, parts=case.partitions, conns=case.connections,
                           depth=case.in_flight, batch=case.records, size=case.size, secs=seconds)


class Nats(Peer):
    """File storage, one replica, every message synced; one record at a time a connection."""

    name = "NATS, syncing always"

    def __init__(self, tools, folder):
        super().__init__(tools, folder)
        self.port = free_port()

    @staticmethod
    def is_there(tools):
        tools = pathlib.Path(tools)
        return (tools / "nats-server").exists() and (tools / "peerload").exists()

    def start(self):
        path = self.folder / "server.conf"
        path.write_text(f'listen: 127.0.0.1:{self.port}\njetstream {{\n  store_dir: '
                        f'"{self.folder / "data"}"\n  sync_interval: always\n}}\n',
                        encoding="utf-8")
        self.spawn([self.tools / "nats-server", "-c", path])
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError("nats-server does not listen")

    def prepare(self, topic, partitions):
        pass  # the load makes its stream

    def produce(self, topic, case, seconds):
        return self.report("nats", topic=topic, conns=case.connections, size=case.size,
                           secs=seconds)
