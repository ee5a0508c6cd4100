# SPDX-License-Identifier: Apache-2.0
"""Random operations of the whole HTTP API against a small model, with restarts and kills between
them. ESKER_RANDOM_SECONDS says how long (a few seconds by default), ESKER_RANDOM_SEED which; a
failure tells its seed."""
import os
import random
import time

from harness.model import Model

SECONDS = float(os.environ.get("ESKER_RANDOM_SECONDS", "8"))
SETTLED_S = 20  # only bounds a failure
TOPICS = ["orders", "orders.eu", "bills", "logs-1"]
GROUPS = ["analytics", "mail", "a group / with é"]
PRODUCERS = ["p-1", "p-2", "ß"]
KEYS = [None, "", "k1", "k2", "k3", "ключ"]
VALUES = ["", "v", "x" * 300, "\u0000\u20ac", None]


def quoted(name):
    from urllib.parse import quote
    return quote(name, safe="")


class Walk:
    """One random walk; each method named do_… is an operation."""

    def __init__(self, broker, seed):
        self.broker = broker
        self.client = broker.client()
        self.random = random.Random(seed)
        self.model = Model()
        self.operations = [getattr(self, name) for name in dir(self) if name.startswith("do_")]
        self.weights = [getattr(operation, "weight", 4) for operation in self.operations]

    def step(self):
        operation = self.random.choices(self.operations, self.weights)[0]
        operation()
        return operation.__name__

    def topic(self):
        return self.random.choice(TOPICS)

    def known(self):
        """A topic that exists, mostly."""
        names = sorted(self.model.topics)
        return self.random.choice(names) if names else None

    def place(self, topic):
        return self.random.randrange(len(self.model.topics[topic].partitions))

    # Topics

    def do_create(self):
        name, partitions = self.topic(), self.random.randint(1, 5)
        compacts = self.random.random() < 0.3
        config = {"segment_bytes": 4096, "retention_ms": None,
                  "cleanup_policy": "compact" if compacts else "delete"}
        answer = self.client.post("/topics", {"name": name, "partitions": partitions,
                                              "config": config})
        if name in self.model.topics:
            assert answer.status == 409, answer
        else:
            assert answer.status == 201 and answer.json["partitions"] == partitions, answer
            self.model.create(name, partitions, compacts)

    def do_delete(self):
        name = self.topic()
        answer = self.client.delete(f"/topics/{name}")
        if name in self.model.topics:
            assert answer.json == {} and answer.status == 200, answer
            self.model.delete(name)
        else:
            assert answer.status == 404, answer
    do_delete.weight = 1

    def do_list(self):
        assert self.client.get("/topics").json == {"topics": [
            {"name": name, "partitions": len(topic.partitions)}
            for name, topic in sorted(self.model.topics.items())]}
        assert self.client.get("/healthz").json == {"status": "ok",
                                                    "topics": len(self.model.topics)}

    def do_describe(self):
        name = self.topic()
        answer = self.client.get(f"/topics/{name}")
        if name not in self.model.topics:
            assert answer.status == 404, answer
            return
        found = answer.json["partitions"]
        topic = self.model.topics[name]
        assert [(p["partition"], p["high_watermark"]) for p in found] == [
            (i, p.end) for i, p in enumerate(topic.partitions)], answer
        assert all(p["start_offset"] == 0 for p in found), answer

    # Records

    def record(self, topic):
        record = {"value": self.random.choice(VALUES)}
        key = self.random.choice(KEYS)
        if key is not None or self.random.random() < 0.5:
            record["key"] = key
        if self.random.random() < 0.4:
            record["partition"] = self.place(topic)
        return record

    def do_produce(self):
        name = self.known()
        if name is None:
            assert self.client.post("/topics/none/produce", {"records": []}).status == 404
            return
        records = [self.record(name) for _ in range(self.random.randint(0, 12))]
        answer = self.client.post(f"/topics/{name}/produce", {"records": records})
        assert answer.status == 200, answer
        self.model.produced(name, None, records, answer.json["results"])
    do_produce.weight = 12

    def sequenced(self, name, producer):
        """Records with sequences: new ones, retries, now and then a gap."""
        records = []
        ahead = {}
        for _ in range(self.random.randint(1, 6)):
            record = self.record(name)
            if record.get("key") is None:
                record["partition"] = self.place(name)
            place = self.model.route(name, record)
            sequences = self.model.topics[name].partitions[place].producers.get(producer)
            last = ahead.get(place, sequences.last if sequences else None)
            if last is None:
                sequence = self.random.choice([0, 1, 1000, 2**63 - 4])
            elif sequences and sequences.offsets and self.random.random() < 0.4:
                sequence = self.random.choice(list(sequences.offsets))
            elif self.random.random() < 0.05:
                sequence = min(last + self.random.randint(2, 300), 2**63 - 1)
            else:
                sequence = last + 1
            if sequence > 2**63 - 1:
                continue
            ahead[place] = max(sequence, last or 0) if last is not None else sequence
            records.append({**record, "sequence": sequence})
        return records

    def do_produce_sequenced(self):
        name, producer = self.known(), self.random.choice(PRODUCERS)
        records = self.sequenced(name, producer) if name else []
        if not records:
            return
        refusal = self.model.refusal(name, producer, records)
        for _ in range(self.random.choice([1, 1, 1, 2])):  # a client may send it twice
            answer = self.client.post(f"/topics/{name}/produce",
                                      {"producer_id": producer, "records": records})
            if refusal:
                assert answer.status == 400 and answer.error.startswith(refusal), (refusal, answer)
            else:
                assert answer.status == 200, answer
                self.model.produced(name, producer, records, answer.json["results"])
    do_produce_sequenced.weight = 8

    def do_forget_producer(self):
        producer = self.random.choice(PRODUCERS)
        answer = self.client.delete(f"/admin/producers/{quoted(producer)}")
        assert answer.status in (200, 404), answer
        for topic in self.model.topics.values():
            for partition in topic.partitions:
                known = partition.producers.pop(producer, None)
                assert known is None or answer.status == 200, answer
    do_forget_producer.weight = 1

    def do_list_producers(self):
        found = {(entry["producer_id"], each["topic"], each["partition"]): each["last_sequence"]
                 for entry in self.client.get("/admin/producers").json["producers"]
                 for each in entry["partitions"]}
        expected = {(producer, name, place): sequences.last
                    for name, topic in self.model.topics.items()
                    for place, partition in enumerate(topic.partitions)
                    for producer, sequences in partition.producers.items()}
        assert found == expected
    do_list_producers.weight = 1

    def do_consume(self):
        name = self.known()
        if name is None:
            return
        place = self.place(name)
        end = self.model.topics[name].partitions[place].end
        offset, most = self.random.randint(0, end + 2), self.random.choice([1, 2, 7, 100, 1000])
        answer = self.client.consume(name, place, offset, max_records=most,
                                     max_bytes=self.random.choice([8 << 20]))
        self.model.consumed(name, place, offset, most, answer)
    do_consume.weight = 12

    def read_all(self, name, place):
        offset, found = 0, []
        while True:
            answer = self.client.consume(name, place, offset, max_records=10000)
            self.model.consumed(name, place, offset, 10000, answer)
            found += answer["records"]
            if not answer["records"]:
                return found
            assert answer["next_offset"] > offset
            offset = answer["next_offset"]

    def do_read_everything(self):
        name = self.known()
        if name is None:
            return
        for place in range(len(self.model.topics[name].partitions)):
            kept = {record["offset"] for record in self.read_all(name, place)}
            assert self.model.newest(name, place) <= kept
    do_read_everything.weight = 1

    # Groups

    def do_commit(self):
        group, name = self.random.choice(GROUPS), self.topic()
        topic = self.model.topics.get(name)
        place = self.random.randrange(6)
        offset = self.random.choice([0, 1, 17, 2**62])
        answer = self.client.post(f"/groups/{quoted(group)}/commit",
                                  {"topic": name, "partition": place, "offset": offset})
        if topic is None or place >= len(topic.partitions):
            assert answer.status == 404, answer
        else:
            assert answer.status == 200 and answer.json == {}, answer
            self.model.committed(group, name, place, offset)

    def do_offsets(self):
        group = self.random.choice(GROUPS)
        answer = self.client.get(f"/groups/{quoted(group)}/offsets")
        assert answer.json == {"offsets": self.model.offsets(group)}, (answer, group)

    def do_group_consume(self):
        group, name = self.random.choice(GROUPS), self.known()
        if name is None:
            return
        place = self.place(name)
        offset = self.model.commits.get(group, {}).get((name, place), 0)
        answer = self.client.get(f"/groups/{quoted(group)}/consume?topic={name}&partition={place}")
        assert answer.status == 200, answer
        self.model.consumed(name, place, offset, 100, answer.json)

    def do_reset_offsets(self):
        name = self.topic()
        answer = self.client.post("/admin/reset-offsets", {"topic": name})
        if name not in self.model.topics:
            assert answer.status == 404, answer
            return
        moved = 0
        for commits in self.model.commits.values():
            places = [place for place in commits if place[0] == name]
            moved += bool(places)
            commits.update({place: 0 for place in places})
        assert answer.json == {"topic": name, "groups": moved}, answer
    do_reset_offsets.weight = 1

    def do_join(self):
        group = self.random.choice(GROUPS)
        names = sorted(self.model.topics)
        if not names:
            return
        topics = self.random.sample(names, self.random.randint(1, len(names)))
        members = self.model.members.setdefault(group, {})
        member = self.random.choice(sorted(members) + [None])
        answer = self.client.post(f"/groups/{quoted(group)}/join",
                                  {"topics": topics, "member_id": member})
        assert answer.status == 200, answer
        assert member is None or answer.json["member_id"] == member, answer
        members[answer.json["member_id"]] = set(topics)

    def do_leave(self):
        group = self.random.choice(GROUPS)
        members = self.model.members.get(group, {})
        if not members:
            return
        member = self.random.choice(sorted(members))
        answer = self.client.post(f"/groups/{quoted(group)}/leave", {"member_id": member})
        assert answer.status == 200 and answer.json == {}, answer
        del members[member]
        answer = self.client.post(f"/groups/{quoted(group)}/heartbeat",
                                  {"member_id": member, "generation": 1})
        assert answer.json == {"status": "unknown_member"}, answer
    do_leave.weight = 2

    def assignments(self, group):
        """{member: [(topic, partition)]}, and the generation that they are of; None while the group
        is between two."""
        found, generations = {}, set()
        for member in self.model.members[group]:
            answer = self.client.get(
                f"/groups/{quoted(group)}/assignment?member_id={quoted(member)}")
            assert answer.status == 200, answer
            generations.add(answer.json["generation"])
            found[member] = [(each["topic"], each["partition"])
                             for each in answer.json["assignment"]]
        return (found, generations.pop()) if len(generations) == 1 else (found, None)

    def do_assignment(self):
        group = self.random.choice(GROUPS)
        if not self.model.members.get(group):
            return
        end = time.monotonic() + SETTLED_S
        while True:  # after a topic went, a rebalance follows on its own
            found, generation = self.assignments(group)
            try:
                assert generation is not None
                self.model.check_assignment(group, found)
                beat = self.client.post(f"/groups/{quoted(group)}/heartbeat",
                                        {"member_id": next(iter(found)), "generation": generation})
                assert beat.json == {"status": "ok", "generation": generation}, beat
                break
            except AssertionError:
                if time.monotonic() > end:
                    raise
        assert generation >= self.model.generations.get(group, 1)
        self.model.generations[group] = generation

    # The broker's own life

    def do_compact(self):
        answer = self.client.post("/admin/run-compaction")
        assert answer.status == 200 and answer.json["records_removed"] >= 0, answer
    do_compact.weight = 1

    def do_bad_request(self):
        path, body = self.random.choice([
            ("/topics", {"name": "..", "partitions": 1}), ("/topics", {"partitions": 1}),
            ("/topics", {"name": "x", "partitions": 0}), ("/topics", "{"),
            ("/groups/g/commit", {"topic": 1}), ("/groups/g/join", {"topics": []}),
            ("/schemas", {"subject": "s"}), ("/admin/keys", {"name": "n", "acls": []})])
        answer = self.client.post(path, body)
        assert answer.status == 400 and answer.error, answer

    def do_restart(self):
        if self.random.random() < 0.5:
            self.broker.restart()
        else:
            self.broker.kill9()
            self.broker.start()
        self.client = self.broker.client()
    do_restart.weight = 0.3


def test_random_operations_agree_with_a_model(make_broker):
    seed = int(os.environ.get("ESKER_RANDOM_SEED", random.randrange(1 << 32)))
    broker = make_broker("--coord-member-timeout", "10m")
    walk = Walk(broker, seed)
    done = []
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            done.append(walk.step())
    except BaseException:
        print(f"ESKER_RANDOM_SEED={seed}, after {len(done)} operations: {done[-20:]}")
        raise
    assert len(done) > 20
