# SPDX-License-Identifier: Apache-2.0
"""A bare TCP connection, for requests that no HTTP library would send."""
import socket


class RawConnection:
    def __init__(self, address, timeout=30.0):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def read_until(self, mark):
        """The bytes up to and with mark; ConnectionError when the peer closes before it."""
        while mark not in self.pending:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError(f"closed after {self.pending[:200]!r}")
            self.pending += more
        end = self.pending.index(mark) + len(mark)
        found, self.pending = self.pending[:end], self.pending[end:]
        return found

    def read_exactly(self, size):
        while len(self.pending) < size:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError(f"closed after {len(self.pending)} of {size} bytes")
            self.pending += more
        found, self.pending = self.pending[:size], self.pending[size:]
        return found

    def read_answer(self):
        """One HTTP answer with a Content-Length: (status, {lower-case header: value}, body)."""
        head = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        headers = {}
        for line in head[1:]:
            if line:
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
        return status, headers, self.read_exactly(int(headers.get("content-length", "0")))

    def read_to_end(self):
        """What is left until the peer closes or resets."""
        try:
            while True:
                more = self.socket.recv(65536)
                if not more:
                    break
                self.pending += more
        except ConnectionResetError:
            pass
        found, self.pending = self.pending, b""
        return found

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
