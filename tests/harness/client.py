"""Small requests to a daemon: JSON, streams of events, metrics."""

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.waiting import PATIENCE_S

# Seconds that a request may take by default: short, since what follows a run through faults asks the
# next node when one does not answer.
TIMEOUT_S = 5


class Refused(Exception):
    """A status other than a success, with the JSON of its body."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, json.loads(body)


class Client:
    """A connection that stays open from one request to the next, as measurements need it."""

    def __init__(self, address: str, timeout: float = TIMEOUT_S) -> None:
        self._address = address
        self._connection = http.client.HTTPConnection(address, timeout=timeout)

    def read(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Sends `body` as JSON and returns the body of the answer; OSError or Refused if there is none."""
        data = None if body is None else json.dumps(body)
        sent = {"Content-Type": "application/json"} if data else {}
        try:
            self._connection.request(method, path, data, {**sent, **(headers or {})})
            response = self._connection.getresponse()
            text = response.read()
        except http.client.HTTPException as error:
            # An answer that breaks off is a broken connection for the caller.
            raise OSError(f"{self._address}: {error!r}") from error

        if not 200 <= response.status < 300:
            raise Refused(response.status, text.decode())
        return text

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Like `read`; returns the JSON of the answer."""
        return json.loads(self.read(method, path, body, headers))

    def close(self) -> None:
        """Closes the connection; a later request opens another."""
        self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask(
    address: str,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_S,
) -> Any:
    """Returns the JSON of the answer to one request; OSError or Refused if there is none."""
    with Client(address, timeout) as client:
        return client.ask(method, path, body, headers)


def text(address: str, path: str, accept: str = "*/*", timeout: float = PATIENCE_S) -> str:
    """Returns the text of what GET of a path answers."""
    with Client(address, timeout) as client:
        return client.read("GET", path, headers={"Accept": accept}).decode()


def metrics(address: str, prefix: str) -> dict[str, float]:
    """Returns the samples whose names begin with `prefix`: `{"name{labels}": value}`."""
    lines = text(address, "/metrics", timeout=TIMEOUT_S).splitlines()
    samples = (line.rsplit(" ", 1) for line in lines if line.startswith(prefix))
    return {name: float(value) for name, value in samples}


def events(
    address: str, run: str, after: int, timeout: float = TIMEOUT_S
) -> Iterator[tuple[int | None, Any]]:
    """Yields the events of a run after number `after` as `(number, line)`; at its end `(None, record)`.

    A stream may break off: it then ends without a record, or with OSError.
    """
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": str(after)})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"{response.status}")

        fields: dict[str, str] = {}
        for line in response:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
                continue

            # An empty line ends an event. What only keeps the connection alive has no number.
            if fields.get("event") == "result":
                yield None, json.loads(fields["data"])
                return
            if "id" in fields:
                yield int(fields["id"]), fields["data"]
            fields = {}
    except (http.client.HTTPException, UnicodeDecodeError) as error:
        raise OSError(repr(error)) from error
    finally:
        connection.close()


def finished(address: str, run: str, timeout: float = PATIENCE_S) -> tuple[list[str], Any]:
    """Waits for the end of a run; returns the lines of its events, and its record."""
    *found, (_, record) = events(address, run, 0, timeout)
    return [line for _, line in found], record
