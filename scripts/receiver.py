"""A small webhook receiver for the demo and the end-to-end tests.

The path says how it behaves: `/ok` takes everything, `/fails-once` answers 500 to the first attempt
of each occurrence, `/down` always answers 503, `/refuses` answers 400, `/hangs` never answers,
`/hangs-first` answers from the second attempt on, and `/sometimes/<percent>` answers 500 to that
share of first attempts. `/accepts` answers 202 and says nothing more, `/works` answers 202 and
completes a moment later, `/works-first` completes and then answers 202. It tells which requests
were signed with the keys that it was given.
`python -m scripts.receiver` runs one on port 8000 and prints what arrives.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn

import urllib3

from scripts.signature import is_signed

HOST = "127.0.0.1"
PORT = 8000
POLL_SECONDS = 0.2
USAGE_ERROR = 2
HANG_SECONDS = 120.0
BACKLOG = 512
HANGS = 0
ALWAYS = {"down": 503, "refuses": 400, "accepts": 202, "works": 202, "works-first": 202}
WORK_SECONDS = 1.0
CALLBACK_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledBack:
    """What a callback was answered."""

    status: int
    body: Any


def called_back(url: str, body: Mapping[str, object] | None = None) -> CalledBack:
    answer = urllib3.request(
        "POST", url, body=json.dumps(body or {}), timeout=CALLBACK_SECONDS, retries=False
    )
    return CalledBack(status=answer.status, body=answer.json())


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request as it came, and the status that it was answered with: `HANGS` for none."""

    path: str
    key: str
    tenant: str
    schedule: str
    scheduled_for: str
    attempt: int
    arrived_at: datetime
    status: int
    body: bytes
    is_signed: bool
    callback_url: str

    def call_back(self, action: str, body: Mapping[str, object] | None = None) -> CalledBack:
        """Call back about this attempt, as its target would."""
        return called_back(f"{self.callback_url}/{action}", body)


@dataclass(slots=True)
class Book:
    """Everything that arrived, safe to read while requests come in."""

    _arrivals: list[Arrival] = field(default_factory=list)
    _seen: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _keys: dict[str, list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)

    def all(self) -> list[Arrival]:
        with self._lock:
            return list(self._arrivals)

    def of(self, schedule: str) -> list[Arrival]:
        return [arrival for arrival in self.all() if arrival.schedule == schedule]

    def add(self, arrival: Arrival) -> None:
        with self._lock:
            self._arrivals.append(arrival)

    def trust(self, tenant: str, keys: list[str]) -> None:
        """Take a tenant's keys, `whsec_…`, in the place of those it had."""
        with self._lock:
            self._keys[tenant] = keys

    def is_signed(self, tenant: str, headers: Message, body: bytes) -> bool:
        with self._lock:
            keys = self._keys.get(tenant, [])
        named = {name.lower(): value for name, value in headers.items()}
        return is_signed(named, body, keys, now=time.time())

    def tries(self, key: str) -> int:
        """Count a try of an occurrence; gives how many there were before."""
        with self._lock:
            before = self._seen[key]
            self._seen[key] += 1
            return before

    def status_for(self, path: str, key: str) -> int:
        """Give the answer that the path asks for; `HANGS` where it asks for none."""
        before = self.tries(key)
        behaviour, _, rest = path.strip("/").partition("/")
        if behaviour == "hangs" or (behaviour == "hangs-first" and before == 0):
            return HANGS
        fails = behaviour == "fails-once" and before == 0
        if behaviour == "sometimes":
            fails = before == 0 and int(key[:8] or "0", 16) % 100 < int(rest)
        return 500 if fails else ALWAYS.get(behaviour, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    url: str
    book: Book

    def wait_for(self, schedule: str, count: int, *, seconds: float) -> list[Arrival]:
        """Wait until a schedule has so many arrivals, or the time is up; gives those there are."""
        until = time.monotonic() + seconds
        while len(found := self.book.of(schedule)) < count and time.monotonic() < until:
            time.sleep(0.05)
        return found


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """Run a receiver on a port of loopback, a free one by default, for the length of the block."""
    book = Book()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            arrived_at = datetime.now(UTC)
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            key = self.headers.get("Idempotency-Key", "")
            tenant = self.headers.get("Puntual-Tenant", "")
            status = book.status_for(self.path, key)
            arrival = Arrival(
                path=self.path,
                key=key,
                tenant=tenant,
                schedule=self.headers.get("Puntual-Schedule", ""),
                scheduled_for=self.headers.get("Puntual-Scheduled-For", ""),
                attempt=int(self.headers.get("Puntual-Attempt", "0")),
                arrived_at=arrived_at,
                status=status,
                body=body,
                is_signed=book.is_signed(tenant, self.headers, body),
                callback_url=self.headers.get("Puntual-Callback-Url", ""),
            )
            book.add(arrival)
            work_on(arrival)
            if status == HANGS:
                book.stopping.wait(HANG_SECONDS)
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: the book says it all."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = BACKLOG

        def handle_error(self, *_: object) -> None:
            """Callers that hang up are part of the tests."""

    server = Server((HOST, port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Receiver(url=f"http://{HOST}:{server.server_port}", book=book)
    finally:
        book.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


def work_on(arrival: Arrival) -> None:
    """Do what the path says of work that ends by a callback."""
    behaviour = arrival.path.strip("/")
    if behaviour == "works-first":
        arrival.call_back("complete")
    if behaviour == "works":
        timer = threading.Timer(WORK_SECONDS, arrival.call_back, ["complete", {"result": "done"}])
        timer.daemon = True
        timer.start()


def line_of(arrival: Arrival) -> str:
    return (
        f"{arrival.arrived_at:%H:%M:%S} {arrival.tenant}/{arrival.schedule} of "
        f"{arrival.scheduled_for}, attempt {arrival.attempt}: {arrival.status}"
    )


def main() -> int:
    try:
        with receiving(PORT) as receiver:
            print(f"Receiving at {receiver.url}/ok; Ctrl-C ends it.", flush=True)
            show_arrivals(receiver.book)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        print(f"Port {PORT} cannot be listened to: {error.strerror}", file=sys.stderr)
        return USAGE_ERROR


def show_arrivals(book: Book) -> NoReturn:
    shown = 0
    while True:
        arrivals = book.all()
        for arrival in arrivals[shown:]:
            print(line_of(arrival), flush=True)
        shown = len(arrivals)
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
