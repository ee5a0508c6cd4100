# SPDX-License-Identifier: Apache-2.0
"""How long a rebalance takes until all members know their partitions, with a heartbeat a second.

Ten members join a topic of 900 partitions at once; then one of 100 members of 10,000 partitions
leaves. A member is a thread with a connection of its own: it beats each second, fetches its
assignment when it is told to, and a group is settled when all know the newest generation, in which
each partition has one member and the counts differ by one at most.
"""
import sys
import threading
import time

from lib import Run, median

HEARTBEAT_S = 1.0
LIMIT_S = 30.0  # for a group to settle at all


class Group:
    """What its members know."""

    def __init__(self, broker, topic, partitions, count):
        self.topic = topic
        self.partitions = partitions
        self.path = f"/groups/of-{topic}"
        self.changed = threading.Condition()
        self.shares = {}  # member's number -> (generation, set of partitions)
        self.ending = threading.Event()
        self.leaving = {number: threading.Event() for number in range(count)}
        self.trouble = []
        self.threads = [threading.Thread(target=self._member, args=(broker.client(), number))
                        for number in range(count)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def end(self):
        self.ending.set()
        for event in self.leaving.values():
            event.set()
        for thread in self.threads:
            thread.join()

    def _call(self, client, name, **body):
        answer = client.post(f"{self.path}/{name}", body)
        if answer.status != 200:
            raise RuntimeError(f"{name}: {answer}")
        return answer.json

    def _know(self, number, answer):
        share = {held["partition"] for held in answer["assignment"]}
        with self.changed:
            self.shares[number] = (answer["generation"], share)
            self.changed.notify_all()

    def _member(self, client, number):
        try:
            self._live(client, number)
        except Exception as problem:  # the main thread reports it
            with self.changed:
                self.trouble.append(repr(problem))
                self.changed.notify_all()

    def _live(self, client, number):
        mine = self._call(client, "join", topics=[self.topic])
        self._know(number, mine)
        member, generation = mine["member_id"], mine["generation"]
        due = time.monotonic() + HEARTBEAT_S
        while not self.leaving[number].wait(max(0, due - time.monotonic())):
            due += HEARTBEAT_S
            beat = self._call(client, "heartbeat", member_id=member, generation=generation)
            if beat["status"] == "rebalance_required":
                mine = client.get(f"{self.path}/assignment?member_id={member}").json
                generation = mine["generation"]
                self._know(number, mine)
        if not self.ending.is_set():
            with self.changed:
                del self.shares[number]
            self._call(client, "leave", member_id=member)

    def _is_settled(self, count, above):
        if len(self.shares) != count:
            return False
        generations = {generation for generation, _ in self.shares.values()}
        shares = [share for _, share in self.shares.values()]
        sizes = [len(share) for share in shares]
        return (len(generations) == 1 and min(generations) > above
                and sum(sizes) == self.partitions
                and len(set().union(*shares)) == self.partitions
                and max(sizes) - min(sizes) <= 1)

    def generation(self):
        with self.changed:
            return max((generation for generation, _ in self.shares.values()), default=0)

    def settle(self, count, above=0):
        """Waits until the group is; seconds."""
        began = time.monotonic()
        with self.changed:
            settled = self.changed.wait_for(
                lambda: self.trouble or self._is_settled(count, above), LIMIT_S)
        if self.trouble or not settled:
            raise RuntimeError(f"{self.path} did not settle: {self.trouble[:3]}")
        return time.monotonic() - began


def join(run, broker, round_number):
    topic = f"joined-{round_number}"
    broker.client().create_topic(topic, 900)
    group = Group(broker, topic, 900, 10)
    group.start()
    try:
        return group.settle(10)
    finally:
        group.end()


def leave(run, broker, rounds):
    broker.client().create_topic("left", 10000)
    group = Group(broker, "left", 10000, 100)
    group.start()
    took = []
    try:
        run.say(f"100 members that join at once settle in {group.settle(100):.2f} s")
        for number in range(rounds):
            above = group.generation()
            group.leaving[number].set()
            took.append(group.settle(99 - number, above))
    finally:
        group.end()
    return took


def main():
    with Run("rebalances of consumer groups, heartbeats each second", rounds=5) as run:
        broker = run.broker()
        joins = [join(run, broker, number) for number in range(run.rounds)]
        leaves = leave(run, broker, run.rounds)
        run.goal("10 members join 900 partitions, until all have theirs, median", median(joins), 2,
                 " s")
        run.note(f"at most {max(joins):.2f} s")
        run.goal("one of 100 members leaves 10,000 partitions, until all have theirs, median",
                 median(leaves), 2, " s")
        run.note(f"at most {max(leaves):.2f} s")
        metrics = broker.client().get("/metrics").body.decode()
        turns = [float(line.split()[1]) for line in metrics.splitlines()
                 if line.startswith("esker_loop_turn_max_seconds")]
        if turns:
            run.note(f"longest turn of a loop {max(turns) * 1000:.2f} ms")
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
