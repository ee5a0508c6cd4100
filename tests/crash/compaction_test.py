# SPDX-License-Identifier: Apache-2.0
"""kill -9 while segments are written anew, many rounds on one data directory.

After each kill the newest acknowledged value of every key is there, offsets are as they were, and
nothing is left of what the kill cut off. A seed (ESKER_CRASH_SEED) gives the same choices, not the
same moments.
"""
import collections
import http.client
import os
import pathlib
import random
import threading
import time

ROUNDS = int(os.environ.get("ESKER_CRASH_ROUNDS", "50")) // 2
SEED = int(os.environ.get("ESKER_CRASH_SEED", "1"))
WRITERS = 3
KEYS = 40
CONFIG = {"segment_bytes": 262144, "cleanup_policy": "compact", "tombstone_retention_ms": 0}
OPTIONS = ("--compaction-interval", "10ms", "--shards", "1")


class Writer(threading.Thread):
    """Overwrites its own keys until the broker is gone; knows what was acknowledged last."""

    def __init__(self, broker, number, acknowledged, count, pulled):
        super().__init__()
        self.client = broker.client()
        self.keys = [f"w{number}-{key}" for key in range(KEYS)]
        self.acknowledged = acknowledged  # key -> (offset, value) or None: a tombstone
        self.count = count
        self.pulled = pulled
        self.sent = {}  # key -> values that were sent and not answered

    def run(self):
        random_of_mine = random.Random(f"{SEED} {self.name}")
        try:
            while not self.pulled.is_set():
                keys = random_of_mine.sample(self.keys, 8)
                records = [{"key": key, "partition": 0, "value": self.value(random_of_mine)}
                           for key in keys]
                self.sent = {record["key"]: record["value"] for record in records}
                results = self.client.produce("t", *records)
                for record, result in zip(records, results):
                    self.acknowledged[record["key"]] = (result["offset"], record["value"])
                self.sent = {}
                self.count()
        except (OSError, http.client.HTTPException):
            pass  # the broker is gone

    @staticmethod
    def value(random_of_mine):
        if random_of_mine.random() < 0.05:
            return None
        return f"{random_of_mine.random()} " + "v" * random_of_mine.randrange(2000)


class Cleaner(threading.Thread):
    """Asks for one pass behind the other, so that one runs when the broker goes."""

    def __init__(self, broker):
        super().__init__()
        self.client = broker.client()

    def run(self):
        try:
            while self.client.post("/admin/run-compaction").status == 200:
                pass
        except (OSError, http.client.HTTPException):
            pass  # the broker is gone


def read_newest(client):
    """key -> (offset, value) of the newest record; and every offset ascends."""
    newest = {}
    offset = 0
    while True:
        page = client.consume("t", 0, offset, max_records=1000)
        for record in page["records"]:
            assert record["offset"] >= offset, "offsets go back"
            offset = record["offset"] + 1
            newest[record["key"]] = (record["offset"], record["value"])
        if page["next_offset"] >= page["high_watermark"] or not page["records"]:
            return newest
        offset = page["next_offset"]


def segment_files(data_dir):
    """base offset -> names of the files with its records."""
    files = collections.defaultdict(list)
    for folder in (pathlib.Path(data_dir) / "groups").iterdir():
        for path in folder.iterdir():
            if path.suffix == ".segment":
                files[folder.name, path.name.split(".")[0]].append(path.name)
    return files


def look_for_rewriting(data_dir):
    """Returns when a segment is being written anew, or after a while."""
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        if any(len(names) > 1 for names in segment_files(data_dir).values()):
            return


def check(newest, acknowledged, maybe):
    for key, (offset, value) in acknowledged.items():
        found = newest.get(key)
        if found is None:  # a tombstone, whose time is over at once
            assert value is None or maybe.get(key, 0) is None, f"{key} at {offset} is lost"
        elif found[0] > offset:
            assert key in maybe and found[1] == maybe[key], f"{key}: a value nobody sent last"
        elif found[0] == offset:
            assert found[1] == value, f"{key} at {offset} is another one"
        else:
            raise AssertionError(f"{key}: {found[0]} is the newest, {offset} was acknowledged")


def test_a_kill_while_segments_are_written_anew_loses_and_leaves_nothing(make_broker, data_root):
    choices = random.Random(SEED)
    broker = make_broker(*OPTIONS, data_dir=data_root / "data")
    broker.client().create_topic("t", **CONFIG)
    acknowledged = {}
    cut_off = 0
    round_number = 0
    # On until a kill met a rewriting, which a fast machine is seldom at.
    while round_number < ROUNDS or (cut_off == 0 and ROUNDS >= 20 and round_number < 3 * ROUNDS):
        pulled = threading.Event()
        left = [choices.randrange(20, 400)]
        lock = threading.Lock()

        def count():
            with lock:
                left[0] -= 1
                is_time = left[0] == 0
            if is_time:
                look_for_rewriting(broker.data_dir)
                pulled.set()
                broker.process.kill()

        writers = [Writer(broker, number, acknowledged, count, pulled)
                   for number in range(WRITERS)]
        cleaner = Cleaner(broker)
        cleaner.start()
        for number, writer in enumerate(writers):
            writer.name = f"{round_number}.{number}"
            writer.start()
        for writer in [*writers, cleaner]:
            writer.join()
        broker.wait_exit()
        cut_off += sum(len(names) > 1 for names in segment_files(broker.data_dir).values())
        broker.start("--compaction-interval", "30d")  # so that nothing is written anew meanwhile
        maybe = {key: value for writer in writers for key, value in writer.sent.items()}
        newest = read_newest(broker.client())
        check(newest, acknowledged, maybe)
        acknowledged.update((key, newest[key]) for key in maybe if key in newest)
        for key in [key for key in maybe if key not in newest]:
            acknowledged.pop(key, None)
        doubled = [names for names in segment_files(broker.data_dir).values() if len(names) > 1]
        assert not doubled, f"left behind: {doubled}"
        broker.restart()
        round_number += 1
    print(f"{round_number} kills, {cut_off} of a rewriting")
    assert cut_off > 0 or ROUNDS < 20
