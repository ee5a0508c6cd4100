# SPDX-License-Identifier: Apache-2.0
"""What the broker must answer, in a few lines of Python: topics, records, commits, sequences and
group members. It is told each operation's answer and says what is wrong with it."""

WINDOW = 128  # sequences of a producer that are recognised in a partition


def fnv1a(key):
    """32 bits, as int32."""
    value = 0x811C9DC5
    for byte in key:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key, count):
    """Go's remainder, whose sign follows the dividend, without its sign."""
    value = fnv1a(key.encode("utf-8"))
    return abs(value) % count if value >= 0 else (-value) % count


class Partition:
    def __init__(self):
        self.records = []  # (key, value) by offset
        self.producers = {}  # producer id -> Sequences

    @property
    def end(self):
        return len(self.records)


class Sequences:
    """Of one producer in one partition."""

    def __init__(self):
        self.offsets = {}  # those in the window
        self.last = None

    def copy(self):
        other = Sequences()
        other.offsets, other.last = dict(self.offsets), self.last
        return other

    def judge(self, sequence):
        """"new", "duplicate", "gap" or "low"."""
        if self.last is None or sequence == self.last + 1:
            return "new"
        if sequence > self.last:
            return "gap"
        return "duplicate" if sequence in self.offsets else "low"

    def take(self, sequence, offset):
        self.offsets[sequence] = offset
        self.last = sequence
        self.offsets.pop(sequence - WINDOW, None)


class Topic:
    def __init__(self, partitions, compacts):
        self.partitions = [Partition() for _ in range(partitions)]
        self.compacts = compacts


class Model:
    def __init__(self):
        self.topics = {}
        self.commits = {}  # group -> {(topic, partition): offset}
        self.members = {}  # group -> {member id: set of topics}
        self.generations = {}  # group -> the last one seen

    # Topics

    def create(self, name, partitions, compacts):
        self.topics[name] = Topic(partitions, compacts)

    def delete(self, name):
        del self.topics[name]
        for commits in self.commits.values():
            for place in [place for place in commits if place[0] == name]:
                del commits[place]
        for members in self.members.values():
            for topics in members.values():
                topics.discard(name)

    # Produce

    def route(self, topic, record):
        """The partition, or None where the broker may choose."""
        if "partition" in record:
            return record["partition"]
        if record.get("key") is not None:
            return partition_of(record["key"], len(self.topics[topic].partitions))
        return None

    def refusal(self, topic, producer, records):
        """The start of the error that the request must get, or None."""
        judged = {}
        for record in records:
            place = self.route(topic, record)
            partition = self.topics[topic].partitions[place]
            if place not in judged:
                judged[place] = partition.producers.get(producer, Sequences()).copy()
            verdict = judged[place].judge(record["sequence"])
            if verdict == "gap":
                return "sequence gap"
            if verdict == "low":
                return "sequence too low"
            if verdict == "new":
                judged[place].take(record["sequence"], -1)
        return None

    def produced(self, topic, producer, records, results):
        """Takes an accepted request's results, and checks them."""
        assert len(results) == len(records)
        for record, result in zip(records, results):
            place = self.route(topic, record)
            assert place is None or result["partition"] == place, (record, result)
            partition = self.topics[topic].partitions[result["partition"]]
            sequences = None
            if producer is not None:
                sequences = partition.producers.setdefault(producer, Sequences())
                if sequences.judge(record["sequence"]) == "duplicate":
                    assert result == {"partition": place, "duplicate": True,
                                      "offset": sequences.offsets[record["sequence"]]}, result
                    continue
            assert result == {"partition": result["partition"], "offset": partition.end}, (
                record, result, partition.end)
            if sequences is not None:
                sequences.take(record["sequence"], partition.end)
            partition.records.append((record.get("key"), record["value"]))

    # Consume

    def consumed(self, topic, place, offset, most, answer):
        """Checks what was read from an offset on."""
        partition = self.topics[topic].partitions[place]
        assert answer["high_watermark"] == partition.end, answer
        found = answer["records"]
        assert len(found) <= most
        offsets = [record["offset"] for record in found]
        assert offsets == sorted(set(offsets)) and all(each >= offset for each in offsets)
        for record in found:
            assert record["partition"] == place
            assert (record["key"], record["value"]) == partition.records[record["offset"]], record
        if not self.topics[topic].compacts:
            expected = list(range(min(offset, partition.end), min(offset + most, partition.end)))
            assert offsets == expected, (offset, most, offsets[:5], partition.end)
        if not found:
            assert answer["next_offset"] <= partition.end

    def newest(self, topic, place):
        """Offsets that compaction must keep: the newest of each key, unless it is a tombstone,
        and records without a key."""
        latest = {}
        keyless = set()
        for offset, (key, value) in enumerate(self.topics[topic].partitions[place].records):
            if key is None:
                keyless.add(offset)
            else:
                latest[key] = (offset, value)
        return keyless | {offset for offset, value in latest.values() if value}

    # Groups

    def committed(self, group, topic, place, offset):
        self.commits.setdefault(group, {})[topic, place] = offset

    def offsets(self, group):
        """As GET /groups/:group/offsets answers."""
        found = {}
        for (topic, place), offset in self.commits.get(group, {}).items():
            found.setdefault(topic, {})[str(place)] = offset
        return found

    def check_assignment(self, group, assignments):
        """{member: [(topic, partition)]} of all members: everything is owned once, and evenly where
        all want the same topics."""
        members = self.members[group]
        owned = [place for places in assignments.values() for place in places]
        assert len(owned) == len(set(owned)), "a partition has two owners"
        wanted = {topic for topics in members.values() for topic in topics}
        expected = {(topic, place) for topic in wanted
                    for place in range(len(self.topics[topic].partitions))}
        assert set(owned) == expected
        for member, places in assignments.items():
            assert {topic for topic, _ in places} <= members[member]
        if len({frozenset(topics) for topics in members.values()}) == 1:
            counts = [len(places) for places in assignments.values()]
            assert max(counts) - min(counts) <= 1, counts
