# SPDX-License-Identifier: Apache-2.0
"""10,000 connections, 1,000 of which send a produce request of 15 KB at once, again and again: the
longest turn of a loop in CPU time, as the broker's own metric has it.

The requests arrive but for their last byte first, then all last bytes in one go.
"""
import json
import re
import resource
import select
import socket
import sys

from lib import Run, median


def longest_turn_ms(client):
    """(since the start, since the last scrape)."""
    text = client.get("/metrics").body.decode("utf-8")
    found = []
    for name in ("loop_turn_max_seconds", "loop_turn_recent_max_seconds"):
        values = re.findall(rf"^esker_{name}\{{.*\}} (\S+)$", text, re.MULTILINE)
        found.append(max(float(value) for value in values) * 1000)
    return found


def connect(address, count):
    host, _, port = address.rpartition(":")
    return [socket.create_connection((host, int(port))) for _ in range(count)]


def request(address):
    body = json.dumps({"records": [{"value": "v" * 132} for _ in range(100)]})
    return (f"POST /topics/turns/produce HTTP/1.1\r\nHost: {address}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode("ascii")


def read_answers(run, sockets):
    """Until each has one whole answer."""
    poller = select.epoll()
    waiting = {each.fileno(): [each, b""] for each in sockets}
    for number in waiting:
        poller.register(number, select.EPOLLIN)
    while waiting:
        for number, _ in poller.poll(60):
            entry = waiting[number]
            more = entry[0].recv(65536)
            entry[1] += more
            if entry[1].endswith((b"]}", b"0\r\n\r\n")) or not more:
                if not entry[1].startswith(b"HTTP/1.1 200"):
                    run.fail(f"answered {entry[1][:200]!r}")
                poller.unregister(number)
                del waiting[number]
    poller.close()


def main():
    with Run("longest turn with 10,000 connections, 1,000 sending 15 KB at once", rounds=20) as run:
        total, active = (1000, 200) if run.quick else (10000, 1000)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        broker = run.broker("--flush-every-records", "1")
        client = broker.client()
        client.create_topic("turns", 16)
        sockets = connect(broker.address, total)
        accepting, _ = longest_turn_ms(client)
        data = request(broker.address)
        turns = []
        for at in range(run.rounds):
            first = at * active % (total - active + 1)
            chosen = sockets[first:first + active]
            for each in chosen:
                each.sendall(data[:-1])
            for each in chosen:
                each.send(data[-1:])
            read_answers(run, chosen)
            longest, recent = longest_turn_ms(client)
            turns.append(recent)
        run.note(f"{total} connections, {active} at once, bodies of {len(data)} bytes, "
                 f"{run.rounds} rounds: longest turn {accepting:.2f} ms up to all being connected, "
                 f"in a round {median(turns):.2f} ms, at most {max(turns):.2f} ms")
        run.goal("longest turn of a loop, CPU time", longest, 2, " ms")
        for each in sockets:
            each.close()
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
