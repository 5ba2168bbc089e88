"""Receivers of webhooks: real servers on loopback that answer as a test likes."""

import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@dataclass(slots=True)
class Receiver:
    """What came in, and how it is answered."""

    answer: Answer
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0


def answering(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@contextmanager
def receiving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Serve on a free port of 127.0.0.1 until the test ends."""
    receiver = Receiver(answer=answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append((self.path, dict(self.headers), body))
            try:
                receiver.answer(self)
            except OSError:
                self.close_connection = True  # the sender has hung up

        def log_message(self, *_: object) -> None:
            return

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            return  # a sender that hangs up is what some of these tests are about

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
