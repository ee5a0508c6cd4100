# SPDX-License-Identifier: Apache-2.0
"""A plain HTTP client on one kept-alive connection. One thread at a time; make one per thread."""
import http.client
import json


class Answer:
    """status, headers (a mapping that ignores case), body (bytes); json is the decoded body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    def __repr__(self):
        return f"<{self.status} {self.body[:500]!r}>"


class HttpClient:
    """address is "host:port". A body that is no bytes or str is sent as JSON. key: a secret that
    every request carries."""

    def __init__(self, address, timeout=30.0, key=None):
        self.address = address
        self.key = key
        self.connection = http.client.HTTPConnection(address, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        headers = dict(headers or {})
        if self.key is not None:
            headers.setdefault("authorization", f"Bearer {self.key}")
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("content-type", "application/json")
        if isinstance(body, str):
            body = body.encode("utf-8")
        try:
            self.connection.request(method, path, body=body, headers=headers)
            response = self.connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        except BaseException:
            self.connection.close()  # the next request opens a new one
            raise

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    def put(self, path, body=None, **more):
        return self.request("PUT", path, body, **more)

    def delete(self, path, **more):
        return self.request("DELETE", path, **more)

    def close(self):
        self.connection.close()

    # The calls that most tests make; each returns the decoded answer and insists on success.

    def create_topic(self, name, partitions=1, **config):
        body = {"name": name, "partitions": partitions}
        if config:
            body["config"] = config
        answer = self.post("/topics", body)
        assert answer.status == 201, answer
        return answer.json

    def produce(self, topic, *records, **fields):
        """Records are dicts as the API has them, or strings: values of keyless records."""
        records = [r if isinstance(r, dict) else {"value": r} for r in records]
        answer = self.post(f"/topics/{topic}/produce", {"records": records, **fields})
        assert answer.status == 200, answer
        return answer.json["results"]

    def consume(self, topic, partition=0, offset=0, **parameters):
        query = "".join(f"&{name}={value}" for name, value in parameters.items())
        answer = self.get(f"/topics/{topic}/consume?partition={partition}&offset={offset}{query}")
        assert answer.status == 200, answer
        return answer.json

    def values(self, topic, partition=0):
        """All values of a partition from its start, read to the high watermark."""
        found = []
        offset = 0
        while True:
            page = self.consume(topic, partition, offset)
            found += [record["value"] for record in page["records"]]
            if page["next_offset"] >= page["high_watermark"]:
                return found
            assert page["next_offset"] > offset, page
            offset = page["next_offset"]
