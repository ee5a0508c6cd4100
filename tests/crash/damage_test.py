# SPDX-License-Identifier: Apache-2.0
"""Data folders that are damaged, of another version, read-only or in use: the broker refuses to
start and names the file, or serves what is intact; a wrong record never comes out, and what a
refusal found is all there once the damage is undone."""
import http.client
import pathlib
import shutil
import subprocess

import pytest

from harness import Broker

PARTITIONS = 2
RECORDS = 150


def value(partition, number):
    return f"{partition}-{number}-" + "x" * 200


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A data folder after a clean stop: sealed and open segments, snapshots, checkpoints."""
    folder = tmp_path_factory.mktemp("pristine") / "data"
    broker = Broker(folder, "--shards", "1").start()
    client = broker.client()
    client.create_topic("log", PARTITIONS, segment_bytes=8192)
    for number in range(RECORDS):
        records = [{"value": value(p, number), "partition": p} for p in range(PARTITIONS)]
        client.produce("log", *records)
    body = {"topic": "log", "partition": 0, "offset": 77}
    assert client.post("/groups/readers/commit", body).status == 200
    assert broker.stop() == 0, broker.log_text()
    return folder


@pytest.fixture
def folder(pristine, data_root):
    copy = data_root / "data"
    subprocess.run(["cp", "-a", "--sparse=always", pristine, copy], check=True)
    return copy


def expect_all(broker):
    client = broker.client()
    for partition in range(PARTITIONS):
        assert client.values("log", partition) == [value(partition, n) for n in range(RECORDS)]
    offsets = client.get("/groups/readers/offsets").json["offsets"]
    assert offsets == {"log": {"0": 77}}


def expect_nothing_wrong(broker):
    """Reads everything, page by page: right, or an error that shows no detail."""
    client = broker.client()
    errors = 0
    for partition in range(PARTITIONS):
        offset = 0
        while offset < RECORDS:
            path = f"/topics/log/consume?partition={partition}&offset={offset}&max_records=7"
            answer = client.get(path)
            if answer.status != 200:
                assert answer.status == 500 and "internal error" in answer.error, answer
                errors += 1
                offset += 1
                continue
            for record in answer.json["records"]:
                assert record["offset"] == offset
                assert record["value"] == value(partition, offset)
                offset += 1
    return errors


def refused(broker, *names):
    """It ends by itself, says why, and the reason has one of the names."""
    broker.start(ready=False)
    assert broker.wait_exit() == 1, broker.log_text()
    text = " ".join(line["text"] for line in broker.events("failed"))
    assert any(name in text for name in names), text
    return text


def files(folder):
    """One file of each kind, by kind."""
    def at(pattern, position):
        return sorted(folder.glob(pattern))[position]

    topic = sorted((folder / "groups").iterdir())[-PARTITIONS].name
    return {
        "identity": folder / "esker.meta",
        "journal": at("journal/*/*.journal", -1),
        "sealed segment": at(f"groups/{topic}/*.segment", 0),
        "inner segment": at(f"groups/{topic}/*.segment", 1),
        "open segment": at(f"groups/{topic}/*.segment", -1),
        "index": at(f"groups/{topic}/*.index", 1),
        "catalogue": at("groups/0000000000000000/*.snapshot", -1),
        "commits": max(folder.glob("groups/*/*.snapshot"), key=lambda p: p.stat().st_size
                       if p.parent.name != "0" * 16 else 0),
    }


KINDS = ["identity", "journal", "sealed segment", "inner segment", "open segment", "index",
         "catalogue", "commits"]


def flip(path, position):
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 0x10]))


def used_bytes(path):
    """Up to the last byte that is not zero: journal files are made in full."""
    return len(path.read_bytes().rstrip(b"\0"))


def start_on_damage(broker, path):
    """Starts; a refusal must name the file, or its folder. Returns whether it serves."""
    broker.start(ready=False)
    try:
        broker.wait_ready()
    except (AssertionError, OSError, http.client.HTTPException):
        assert broker.wait_exit() == 1, broker.log_text()
        text = " ".join(line["text"] for line in broker.events("failed"))
        assert path.name in text or path.parent.name in text, text
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_noticed_and_undone_it_is_all_there(make_broker, folder, kind):
    path = files(folder)[kind]
    size = used_bytes(path)
    refusals = errors = 0
    for position in sorted({9, 13, 20, size // 3, size // 2, size - 5}):
        copy = folder.with_name(f"flip-{position}")
        subprocess.run(["cp", "-a", "--sparse=always", folder, copy], check=True)
        target = copy / path.relative_to(folder)
        flip(target, position)
        broker = make_broker("--shards", "1", data_dir=copy, start=False)
        if start_on_damage(broker, target):
            errors += expect_nothing_wrong(broker)
            assert broker.stop() == 0
        else:
            refusals += 1
            flip(target, position)
            broker.start()
            expect_all(broker)
            assert broker.stop() == 0
        shutil.rmtree(copy)
    assert refusals + errors > 0, "no flipped bit was noticed"
    if kind in ("identity", "index", "catalogue", "commits"):
        assert errors == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", ["nothing", "a part"])
def test_a_truncated_file_is_noticed_and_undone_it_is_all_there(make_broker, folder, kind, left):
    path = files(folder)[kind]
    whole = path.read_bytes()
    keep = 0 if left == "nothing" else used_bytes(path) // 2
    path.write_bytes(whole[:keep])
    broker = make_broker("--shards", "1", data_dir=folder, start=False)
    if start_on_damage(broker, path):
        assert kind in ("sealed segment", "inner segment"), "not noticed"
        assert expect_nothing_wrong(broker) > 0
        assert broker.stop() == 0
        path.write_bytes(whole)
        broker.start()
    else:
        path.write_bytes(whole)
        broker.start()
    expect_all(broker)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file_is_refused_and_put_back_it_is_all_there(make_broker, folder, kind):
    path = files(folder)[kind]
    aside = folder.with_name("aside")
    path.rename(aside)
    broker = make_broker("--shards", "1", data_dir=folder, start=False)
    refused(broker, path.stem, path.parent.name)
    aside.rename(path)
    broker.start()
    expect_all(broker)


def test_a_missing_journal_folder_is_refused_whichever_shard(make_broker, folder):
    broker = make_broker("--shards", "3", data_dir=folder)  # lays it out anew
    expect_all(broker)
    assert broker.stop() == 0
    journals = sorted((folder / "journal").iterdir())
    assert len(journals) == 3, "the old layout's are gone"
    for path in journals:
        aside = folder.with_name("aside")
        path.rename(aside)
        refused(broker, path.name)
        if path.exists():
            shutil.rmtree(path)
        aside.rename(path)
    broker.start()
    expect_all(broker)


def test_groups_that_the_journal_does_not_know_keep_their_files(make_broker, folder):
    unknown = folder / "groups" / "00000000deadbeef"
    shutil.copytree(sorted((folder / "groups").iterdir())[-1], unknown)
    before = sorted(path.name for path in unknown.iterdir())
    broker = make_broker("--shards", "1", data_dir=folder)
    assert broker.events("unknown-group")
    assert not unknown.exists()
    aside = next((folder / "lost").iterdir())
    assert aside.name.startswith("00000000deadbeef-")
    assert sorted(path.name for path in aside.iterdir()) == before
    expect_all(broker)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "big")


@pytest.mark.parametrize("kind", ["identity", "journal", "open segment", "index", "catalogue"])
def test_a_newer_version_is_refused_and_named(make_broker, folder, kind):
    path = files(folder)[kind]
    data = bytearray(path.read_bytes())
    at = 4 if kind == "identity" else 8
    before, data[at + 3] = data[at + 3], 9
    if kind == "identity":
        data[-4:] = crc32c(data[:-4])
    elif kind == "journal":  # whose checksum covers the version
        data[12:16] = crc32c(data[:12] + data[16:4096])
    path.write_bytes(data)
    broker = make_broker("--shards", "1", data_dir=folder, start=False)
    text = refused(broker, path.name)
    assert "version 9" in text, text
    data[at + 3] = before
    path.write_bytes(pathlib.Path(path).read_bytes())
    assert broker.events("failed")[0]["code"].lower().endswith("version")


def test_a_folder_in_use_is_refused_and_its_broker_goes_on(make_broker, folder):
    first = make_broker("--shards", "1", data_dir=folder)
    second = make_broker("--shards", "1", data_dir=folder, start=False)
    assert "in use" in refused(second, str(folder))
    expect_all(first)


def test_a_read_only_folder_is_refused_and_left_as_it_is(make_broker, folder):
    if subprocess.run(["mount", "--bind", folder, folder], check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        broker = make_broker("--shards", "1", data_dir=folder, start=False)
        refused(broker, str(folder))
    finally:
        subprocess.run(["umount", folder], check=True)
    broker.start()
    expect_all(broker)


def test_a_journal_damaged_below_what_was_vouched_for_is_refused(make_broker, data_root):
    """After kill -9 the journal alone has the records; idle, it vouches for its last frame."""
    broker = make_broker("--shards", "1")
    client = broker.client()
    client.create_topic("log", PARTITIONS)
    for number in range(RECORDS):
        client.produce("log", *({"value": value(p, number), "partition": p} for p in (0, 1)))
    before = flushes(client)
    while flushes(client) == before:  # the empty frame
        pass
    broker.kill9()
    path = max((broker.data_dir / "journal").glob("*/*.journal"), key=used_bytes)
    whole = path.read_bytes()
    for part in (0.2, 0.5, 0.9):
        position = int(used_bytes(path) * part)
        while whole[position] == 0:  # behind a frame's end nothing counts
            position -= 1
        flip(path, position)
        text = refused(broker, path.name)
        assert " at " in text, text
        flip(path, position)
    broker.start()
    for partition in range(PARTITIONS):
        assert broker.client().values("log", partition) == [value(partition, n)
                                                            for n in range(RECORDS)]


def flushes(client):
    for line in client.get("/metrics").body.decode().splitlines():
        if line.startswith("esker_journal_flushes_total"):
            return float(line.split()[-1])
    raise AssertionError("no such metric")
