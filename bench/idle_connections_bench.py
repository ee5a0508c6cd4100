# SPDX-License-Identifier: Apache-2.0
"""What 1,000 idle connections cost the broker's memory, each greeted and asked something once, over
HTTP and over the binary protocol."""
import socket
import struct
import sys

from lib import Process, Run

CONNECTIONS = 1000


def open_http(address):
    connection = socket.create_connection(address)
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n")
    connection.recv(4096)
    return connection


def open_binary(address):
    connection = socket.create_connection(address)
    connection.sendall(b"ES01" + struct.pack(">II", 0, 0))
    connection.sendall(struct.pack(">IIB", 5, 1, 3))
    received = b""
    while len(received) < 13 + 9:
        received += connection.recv(4096)
    return connection


def split(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def main():
    with Run("1,000 idle connections") as run:
        broker = run.broker("--bind-binary", "127.0.0.1:0",
                            "--binary-max-connections-per-ip", str(CONNECTIONS + 1))
        process = Process(broker.pid)
        for name, opener, address in (("HTTP", open_http, broker.address),
                                      ("ES01", open_binary, broker.door("binary"))):
            opener(split(address)).close()
            before = process.memory_mb()[0]
            connections = [opener(split(address)) for _ in range(CONNECTIONS)]
            each = (process.memory_mb()[0] - before) * 1000 / CONNECTIONS
            run.goal(f"{name}, a connection", each, 20, " KB")
            for connection in connections:
                connection.close()
        run.stop(broker)
    return run.code


if __name__ == "__main__":
    sys.exit(main())
