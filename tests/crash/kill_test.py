# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments under concurrent writers, many rounds on one data directory.

After each kill everything that was acknowledged is there, once, at its offset and in order; a
request that was on its way is there wholly or not at all; nothing else is. The same for commits of
consumer groups and for topics. A seed (ESKER_CRASH_SEED) gives the same choices, not the same
moments: those hang on threads.
"""
import http.client
import os
import random
import threading

ROUNDS = int(os.environ.get("ESKER_CRASH_ROUNDS", "50"))
WRITERS = 4
PARTITIONS = 3
SEED = int(os.environ.get("ESKER_CRASH_SEED", "1"))

# How rounds differ in the way the broker is run.
OPTIONS = [
    (),
    ("--shards", "1"),
    ("--shards", "3"),
    ("--flush-every-records", "1000"),
    ("--flush-every-records", "0", "--flush-interval", "20ms"),
    ("--memory", "32MiB"),
]


class Killed(Exception):
    """The broker is gone; what was being asked may or may not have happened."""


def ask(client, method, path, body=None):
    try:
        return client.request(method, path, body)
    except (OSError, http.client.HTTPException) as error:
        raise Killed from error


class Trigger:
    """Kills the broker, or stops it, once so many answers came."""

    def __init__(self, broker, answers, clean):
        self.broker = broker
        self.left = answers
        self.clean = clean
        self.lock = threading.Lock()
        self.pulled = threading.Event()

    def count(self):
        with self.lock:
            self.left -= 1
            pull = self.left == 0
        if pull:
            self.pulled.set()
            if self.clean:
                self.broker.process.terminate()
            else:
                self.broker.process.kill()


class Log:
    """What is known of one partition: records by offset, and requests without an answer."""

    def __init__(self):
        self.known = []  # values from offset 0 on, read or acknowledged and read
        self.acknowledged = {}  # offset: value, since the last check
        self.open = []  # lists of values, each of one request
        self.lock = threading.Lock()

    def check(self, tail, base):
        """tail: what is now there from offset `base` on."""
        assert base == len(self.known)
        for offset, value in self.acknowledged.items():
            assert offset - base < len(tail), f"acknowledged offset {offset} is not there"
            assert tail[offset - base] == value, f"another record at acknowledged offset {offset}"
        at = 0
        while at < len(tail):
            if base + at in self.acknowledged:
                at += 1
                continue
            match = next((r for r in self.open if tail[at:at + len(r)] == r), None)
            assert match is not None, f"offset {base + at} was never sent so: {tail[at]!r:.80}"
            self.open.remove(match)
            at += len(match)
        values = self.known + tail
        assert len(set(values)) == len(values), "a record is there twice"
        self.known = values
        self.acknowledged = {}
        self.open = []  # what did not make it never will

    def check_order(self):
        last = {}
        for value in self.known:
            writer, number = value.split("-")[:2]
            assert int(number) > last.get(writer, -1), f"{value:.40} came late"
            last[writer] = int(number)


class Model:
    def __init__(self):
        self.logs = [Log() for _ in range(PARTITIONS)]
        self.next_number = [0] * WRITERS
        self.commits = {}  # group: (acknowledged, on its way or None)
        self.topics = {}  # name: True, False, or None: unknown
        self.topic_number = 0


def write(model, writer, client, trigger, rng):
    while not trigger.pulled.is_set():
        partition = rng.randrange(PARTITIONS)
        log = model.logs[partition]
        values = []
        size = rng.choice([0, 10, 100, 100, 1000, 20000])
        for _ in range(rng.choice([1, 1, 2, 10])):
            number = model.next_number[writer]
            model.next_number[writer] += 1
            values.append(f"{writer}-{number}-" + "x" * rng.randrange(size + 1))
        with log.lock:
            log.open.append(values)
        records = [{"value": value, "partition": partition} for value in values]
        answer = ask(client, "POST", "/topics/log/produce", {"records": records})
        with log.lock:
            log.open.remove(values)
            if answer.status == 503:  # no memory for it, or a clean stop: nothing is written
                continue
            assert answer.status == 200, answer
            for value, result in zip(values, answer.json["results"]):
                assert result["partition"] == partition
                log.acknowledged[result["offset"]] = value
        trigger.count()


def commit(model, client, trigger, rng):
    while not trigger.pulled.is_set():
        group = f"group-{rng.randrange(20)}"
        acknowledged = model.commits.get(group, (None, None))[0]
        offset = rng.randrange(1 << 40)
        model.commits[group] = (acknowledged, offset)
        body = {"topic": "log", "partition": 1, "offset": offset}
        answer = ask(client, "POST", f"/groups/{group}/commit", body)
        if answer.status == 503:
            model.commits[group] = (acknowledged, None)
            continue
        assert answer.status == 200, answer
        model.commits[group] = (offset, None)
        trigger.count()


def change_topics(model, client, trigger, rng):
    while not trigger.pulled.is_set():
        there = [name for name, exists in model.topics.items() if exists]
        if len(there) > 5 or (there and rng.random() < 0.4):
            name = rng.choice(there)
            model.topics[name] = None
            answer = ask(client, "DELETE", f"/topics/{name}")
            becomes = False
        else:
            name = f"topic-{model.topic_number}"
            model.topic_number += 1
            model.topics[name] = None
            body = {"name": name, "partitions": rng.choice([1, 2, 7])}
            answer = ask(client, "POST", "/topics", body)
            becomes = True
        if answer.status == 503:
            model.topics[name] = not becomes
            continue
        assert answer.status in (200, 201), answer
        model.topics[name] = becomes
        trigger.count()


def run_round(model, broker, rng, clean):
    trigger = Trigger(broker, rng.randrange(1, 250), clean)
    problems = []

    def guarded(work, *arguments):
        client = broker.client()
        try:
            work(*arguments, client, trigger, random.Random(rng_seeds.pop()))
        except Killed:
            pass
        except BaseException as problem:  # told by the main thread
            problems.append(problem)
            trigger.pulled.set()
            broker.process.kill()

    jobs = [(write, model, writer) for writer in range(WRITERS)]
    jobs += [(commit, model), (change_topics, model)]
    rng_seeds = [rng.random() for _ in jobs]
    threads = [threading.Thread(target=guarded, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    code = broker.wait_exit()
    assert code == (0 if clean else -9), broker.log_text()


def read_from(client, partition, offset):
    values = []
    while True:
        page = client.consume("log", partition, offset, max_bytes=1 << 20, max_records=10000)
        values += [record["value"] for record in page["records"]]
        for record in page["records"]:
            assert record["offset"] == offset, record["offset"]
            offset += 1
        if page["next_offset"] >= page["high_watermark"]:
            return values


def check(model, client):
    for partition, log in enumerate(model.logs):
        base = len(log.known)
        log.check(read_from(client, partition, base), base)
    for group, (acknowledged, on_its_way) in model.commits.items():
        offsets = client.get(f"/groups/{group}/offsets").json["offsets"]
        found = offsets.get("log", {}).get("1")
        assert found in (acknowledged, on_its_way), (group, found, acknowledged, on_its_way)
        model.commits[group] = (found, None)
    names = {topic["name"] for topic in client.get("/topics").json["topics"]}
    for name, exists in model.topics.items():
        if exists is not None:
            assert (name in names) == exists, f"topic {name}: {exists} was acknowledged"
        model.topics[name] = name in names
    assert names - {"log"} <= set(model.topics), "a topic that nobody made"


def test_kill_9_loses_nothing_and_invents_nothing(make_broker):
    rng = random.Random(SEED)
    model = Model()
    broker = make_broker()
    broker.client().create_topic("log", PARTITIONS, segment_bytes=65536)
    for number in range(ROUNDS):
        clean = number % 10 == 9
        run_round(model, broker, rng, clean)
        broker.start(*OPTIONS[rng.randrange(len(OPTIONS)) if number % 2 else 0])
        check(model, broker.client())
    for partition, log in enumerate(model.logs):
        assert read_from(broker.client(), partition, 0) == log.known
        log.check_order()
    assert min(len(log.known) for log in model.logs) > ROUNDS
