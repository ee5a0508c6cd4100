# SPDX-License-Identifier: Apache-2.0
"""Consumer groups through HTTP: members, generations, assignments, time-outs, restarts, lists."""
import pytest


class Group:
    """One group; every call insists on its status."""

    def __init__(self, client, name="g"):
        self.client = client
        self.path = f"/groups/{name}"

    def join(self, *topics, member_id=None, status=200):
        answer = self.client.post(f"{self.path}/join",
                                  {"topics": list(topics), "member_id": member_id})
        assert answer.status == status, answer
        return answer.json

    def heartbeat(self, member, generation=None):
        answer = self.client.post(f"{self.path}/heartbeat", {
            "member_id": member["member_id"],
            "generation": member["generation"] if generation is None else generation})
        assert answer.status == 200, answer
        return answer.json

    def assignment(self, member, status=200):
        answer = self.client.get(f"{self.path}/assignment?member_id={member['member_id']}")
        assert answer.status == status, answer
        return answer.json

    def leave(self, member, status=200):
        answer = self.client.post(f"{self.path}/leave", {"member_id": member["member_id"]})
        assert answer.status == status, answer
        return answer.json

    def shares(self, members):
        """What each has now, in the one generation that all are in, each partition once."""
        now = [self.assignment(member) for member in members]
        assert len({a["generation"] for a in now}) == 1, now
        held = [[(p["topic"], p["partition"]) for p in a["assignment"]] for a in now]
        every = [p for share in held for p in share]
        assert len(every) == len(set(every)), held
        return [set(share) for share in held]


def test_members_share_partitions_and_learn_of_each_other(client):
    client.create_topic("orders", partitions=6)
    client.create_topic("billing", partitions=2)
    group = Group(client)
    first = group.join("orders", "billing")
    assert set(first) == {"member_id", "generation", "assignment"}
    assert first["member_id"].startswith("m_") and first["generation"] == 1
    assert first["assignment"] == (
        [{"topic": "billing", "partition": p} for p in range(2)]
        + [{"topic": "orders", "partition": p} for p in range(6)])
    assert group.heartbeat(first) == {"status": "ok", "generation": 1}
    second = group.join("orders", "billing")
    assert second["generation"] == 2 and len(second["assignment"]) == 4
    assert group.heartbeat(first) == {"status": "rebalance_required", "generation": 2}
    before = group.shares([first, second])
    assert [len(share) for share in before] == [4, 4]
    third = group.join("orders")
    after = group.shares([first, second, third])
    assert sorted(len(share) for share in after) == [2, 3, 3]
    assert all(new <= old for old, new in zip(before, after))  # the newcomer's share moved, no more
    assert group.leave(third) == {}
    assert group.shares([first, second]) != after
    assert group.heartbeat(third) == {"status": "unknown_member"}
    assert group.assignment(third, status=404)["error"].startswith("member_id")
    group.leave(third, status=404)


def test_a_member_joins_again(client):
    client.create_topic("a", partitions=2)
    client.create_topic("b", partitions=1)
    group = Group(client)
    member = group.join("a", "a")  # twice counts once
    again = group.join("a", member_id=member["member_id"])
    assert again == member
    changed = group.join("b", member_id=member["member_id"])
    assert changed == {"member_id": member["member_id"], "generation": 2,
                       "assignment": [{"topic": "b", "partition": 0}]}
    stranger = group.join("a", member_id="m_0123456789abcdef")
    assert stranger["member_id"] != "m_0123456789abcdef" and stranger["generation"] == 3


@pytest.mark.parametrize("body, status, about", [
    ({}, 400, "topics"),
    ({"topics": []}, 400, "topics"),
    ({"topics": "a"}, 400, "topics"),
    ({"topics": ["a"] * 101}, 400, "topics"),
    ({"topics": ["a", 7]}, 400, "topics[1]"),
    ({"topics": [".."]}, 400, "name"),
    ({"topics": ["a"], "member_id": 7}, 400, "member_id"),
    ({"topics": ["a", "none"]}, 404, "none"),
])
def test_joins_that_are_refused(client, body, status, about):
    client.create_topic("a")
    answer = client.post("/groups/g/join", body)
    assert (answer.status, about in answer.error) == (status, True), answer
    assert client.get("/groups").json == {"groups": []}


def test_other_calls_that_are_refused(client):
    for path, body, about in [
            ("heartbeat", {"generation": 1}, "member_id"),
            ("heartbeat", {"member_id": "m_1"}, "generation"),
            ("heartbeat", {"member_id": "m_1", "generation": -1}, "generation"),
            ("leave", {}, "member_id")]:
        answer = client.post(f"/groups/g/{path}", body)
        assert (answer.status, about in answer.error) == (400, True), answer
    assert client.get("/groups/g/assignment").status == 400
    assert client.get("/groups/g/assignment?member_id=m_1").status == 404
    assert client.post("/groups/g/leave", {"member_id": "m_1"}).status == 404
    assert client.post("/groups/g/heartbeat", {"member_id": "m_1", "generation": 1}).json == {
        "status": "unknown_member"}
    assert client.delete("/groups/g").status == 404
    assert client.post("/groups/%00/join", {"topics": ["a"]}).status == 400


@pytest.mark.parametrize("kill", [False, True])
def test_memberships_survive_a_restart(make_broker, kill):
    broker = make_broker("--shards", "2")
    client = broker.client()
    client.create_topic("t", partitions=5)
    group = Group(client, "gr%C3%BC%C3%9Fe")
    members = [group.join("t") for _ in range(3)]
    group.leave(members.pop())
    shares = group.shares(members)
    generation = group.assignment(members[0])["generation"]
    if kill:
        broker.kill9()
        broker.start("--shards", "3")
    else:
        broker.restart("--shards", "1")
    group.client = broker.client()
    assert group.shares(members) == shares
    assert group.heartbeat(members[0], generation) == {"status": "ok", "generation": generation}
    assert group.client.get("/groups").json == {"groups": [
        {"group": "grüße", "members": 2, "generation": generation, "topics": ["t"]}]}


def test_silent_members_go(make_broker):
    client = make_broker("--coord-member-timeout", "500ms").client()
    client.create_topic("t", partitions=4)
    group = Group(client)
    silent = group.join("t")
    alive = group.join("t")
    while group.heartbeat(alive)["generation"] == 2:  # paced by the answers alone
        pass
    assert group.heartbeat(silent) == {"status": "unknown_member"}
    assert len(group.assignment(alive)["assignment"]) == 4
    metrics = client.get("/metrics").body.decode()
    assert 'esker_group_rebalances_total{group="g"} 3' in metrics


def test_a_deleted_topic_leaves_the_assignment(client):
    client.create_topic("a", partitions=3)
    client.create_topic("b", partitions=3)
    group = Group(client)
    both = group.join("a", "b")
    one = group.join("a")
    client.delete("/topics/a")
    while group.heartbeat(one, 2)["status"] == "ok":  # paced by the answers alone
        pass
    assert group.shares([both, one]) == [{("b", 0), ("b", 1), ("b", 2)}, set()]
    client.create_topic("a", partitions=3)  # another topic
    assert group.shares([both, one])[1] == set()
    assert len(group.join("a", member_id=one["member_id"])["assignment"]) == 3


def test_groups_are_listed_and_deleted(client):
    client.create_topic("a", partitions=2)
    client.create_topic("b")
    group = Group(client, "x")
    member = group.join("b")
    client.post("/groups/x/commit", {"topic": "a", "partition": 1, "offset": 3})
    client.post("/groups/w%22/commit", {"topic": "a", "partition": 0, "offset": 1})
    assert client.get("/groups").json == {"groups": [
        {"group": 'w"', "members": 0, "generation": 0, "topics": ["a"]},
        {"group": "x", "members": 1, "generation": 1, "topics": ["a", "b"]}]}
    assert client.delete("/groups/x").status == 409
    group.leave(member)
    assert client.delete("/groups/x").json == {}
    assert client.delete("/groups/x").status == 404
    assert client.get("/groups/x/offsets").json == {"offsets": {}}
    assert group.join("a")["generation"] == 1  # begins anew
    assert client.delete("/groups/w%22").json == {}


def test_commits_on_a_topic_are_reset(client):
    client.create_topic("a", partitions=2)
    client.create_topic("b")
    client.produce("a", *[{"value": "v", "partition": 1}] * 5)
    for name in ("g", "h", "i"):
        client.post(f"/groups/{name}/commit", {"topic": "a", "partition": 1, "offset": 4})
    client.post("/groups/g/commit", {"topic": "b", "partition": 0, "offset": 7})
    answer = client.post("/admin/reset-offsets", {"topic": "a"})
    assert (answer.status, answer.json) == (200, {"topic": "a", "groups": 3})
    assert client.get("/groups/g/offsets").json == {"offsets": {"a": {"1": 0}, "b": {"0": 7}}}
    assert client.post("/admin/reset-offsets", {"topic": "b"}).json["groups"] == 1
    assert client.post("/admin/reset-offsets", {"topic": "none"}).status == 404
    assert client.post("/admin/reset-offsets", {}).status == 400


# Keys


GRANT = [{"action": "read", "topic_prefix": "orders"}]


def make_key(admin, name, acls=None, **fields):
    answer = admin.post("/admin/keys", {"name": name, "acls": acls or GRANT, **fields})
    assert answer.status == 201, answer
    return answer.json


@pytest.fixture
def secured(make_broker):
    """A broker that wants keys, its bootstrap key's client, and a maker of clients."""
    broker = make_broker("--auth", "required")
    admin = broker.admin()
    admin.create_topic("orders", partitions=4)
    admin.create_topic("secret")
    return broker, admin


def test_a_group_belongs_to_the_key_that_first_used_it(secured):
    broker, admin = secured
    mine = broker.client(key=make_key(admin, "mine")["secret"])
    other = broker.client(key=make_key(admin, "other")["secret"])
    group = Group(mine)
    member = group.join("orders")
    assert Group(mine).join("secret", status=403) and Group(mine).join("none", status=403)
    theirs = Group(other)
    theirs.join("orders", status=403)
    theirs.leave(member, status=403)
    theirs.assignment(member, status=403)
    commit = {"topic": "orders", "partition": 0, "offset": 1}
    assert other.post("/groups/g/commit", commit).status == 403
    assert other.get("/groups/g/offsets").status == 403
    assert other.get("/groups/g/consume?topic=orders&partition=0").status == 403
    assert other.post("/groups/g/heartbeat", {**member, "assignment": None}).status == 403
    assert other.delete("/groups/g").status == 403
    assert other.get("/groups").json == {"groups": []}
    assert mine.post("/groups/g/commit", commit).status == 200
    assert admin.post("/groups/g/commit", commit).status == 200
    assert [g["group"] for g in admin.get("/groups").json["groups"]] == ["g"]
    Group(admin).join("orders", member_id=member["member_id"], status=403)  # bound to its key
    assert other.post("/groups/h/commit", commit).status == 200
    assert [g["group"] for g in other.get("/groups").json["groups"]] == ["h"]
    assert mine.post("/admin/reset-offsets", {"topic": "orders"}).status == 403


def test_a_group_is_listed_with_the_topics_that_the_key_may_read(secured):
    broker, admin = secured
    both = make_key(admin, "both", [*GRANT, {"action": "read", "topic_prefix": "secret"}])
    client = broker.client(key=both["secret"])
    for topic in ("orders", "secret"):
        commit = {"topic": topic, "partition": 0, "offset": 1}
        assert client.post("/groups/g/commit", commit).status == 200
    narrow = broker.client(key=make_key(admin, "narrow", replaces=both["key_id"])["secret"])
    for reader, topics in ((client, ["orders", "secret"]), (narrow, ["orders"])):
        assert [g["topics"] for g in reader.get("/groups").json["groups"]] == [topics]


def test_ownership_outlives_restart_rotation_and_revocation(secured):
    broker, admin = secured
    old = make_key(admin, "old")
    group = Group(broker.client(key=old["secret"]))
    member = group.join("orders")
    new = make_key(admin, "new", replaces=old["key_id"])
    broker.restart()
    group.client = broker.client(key=new["secret"])
    assert group.heartbeat(member) == {"status": "ok", "generation": 1}
    admin = broker.admin()
    assert admin.delete(f"/admin/keys/{old['key_id']}").status == 200
    assert group.leave(member) == {}
    stranger = make_key(admin, "stranger")
    Group(broker.client(key=stranger["secret"])).join("orders", status=403)


def test_what_anonymous_owned_passes_to_the_first_key(make_broker):
    broker = make_broker()
    client = broker.client()
    client.create_topic("orders", partitions=2)
    member = Group(client).join("orders")
    client.post("/groups/g/commit", {"topic": "orders", "partition": 0, "offset": 1})
    broker.restart("--auth", "required")
    admin = broker.admin()
    first = broker.client(key=make_key(admin, "first")["secret"])
    second = broker.client(key=make_key(admin, "second")["secret"])
    assert first.get("/groups/g/offsets").json == {"offsets": {"orders": {"0": 1}}}
    joined = Group(first).join("orders", member_id=member["member_id"])
    assert joined["member_id"] == member["member_id"]
    Group(second).join("orders", status=403)
