# SPDX-License-Identifier: Apache-2.0
"""What keys, quotas and sequences add to a produce, in instructions of the broker under callgrind.

One record of 100 B a request, one connection, one shard: the worst case, as a larger one
pays no more. A request's instructions are the difference between a long and a short run.
"""
import re
import sys

from lib import Run, median
from lib.run import Broker

LIMIT = 15.0  # percent


def instructions(run, name, count, keys, sequences):
    """Of a broker that serves that many produces, start and stop included."""
    out = run.folder / f"{name}.callgrind"
    folder = run.folder / name
    wrapper = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
               f"--log-file={run.folder / name}.log"]
    options = ["--auth", "required"] if keys else []
    broker = Broker(folder, "--shards", "1", "--memory", "256MiB", *options, wrapper=wrapper)
    broker.start()
    client = broker.admin() if keys else broker.client()
    client.create_topic("orders")
    if keys:
        grant = {"action": "write", "topic_prefix": "orders"}
        key = client.post("/admin/keys", {"name": "writer", "acls": [grant],
                                          "produce_bytes_per_sec": 10**9}).json
        client = broker.client(key=key["secret"])
    for number in range(count):
        record = {"value": "x" * 100, "partition": 0}
        if sequences:
            client.produce("orders", {**record, "sequence": number}, producer_id="p1")
        else:
            client.produce("orders", record)
    run.stop(broker)
    return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)[1])


def per_request(run, name, keys, sequences):
    few, many = (20, 60) if run.quick else (300, 1800)
    first = instructions(run, f"{name}-few", few, keys, sequences)
    return (instructions(run, f"{name}-many", many, keys, sequences) - first) / (many - few)


def main():
    with Run("instructions of a produce with keys, quotas and sequences", rounds=3) as run:
        found = {"without": [], "keys and a quota": [], "sequences, too": []}
        for number in range(run.rounds):
            for at, (name, values) in enumerate(found.items()):
                values.append(per_request(run, f"{at}-{number}", at > 0, at > 1))
        plain = median(found["without"])
        run.note(f"without: {plain:,.0f} instructions a request")
        for name in ("keys and a quota", "sequences, too"):
            more = 100 * (median(found[name]) / plain - 1)
            run.goal(f"with {name}", more, LIMIT, " % more")
    return run.code


if __name__ == "__main__":
    sys.exit(main())
