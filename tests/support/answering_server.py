"""A server of HTTP on loopback whose answers a test writes."""

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Answer(NamedTuple):
    """A status, a body, and further fields of the head."""

    status: int = 200
    body: bytes = b""
    fields: Mapping[str, str] = {}


class Asked(NamedTuple):
    """A request: its method, path, fields by name and body."""

    method: str
    path: str
    fields: Mapping[str, str]
    body: bytes


@dataclass
class AnsweringServer:
    """A server that gives the first of `answers` and then the next, the last one again and again.

    `asked` are the requests so far.
    """

    port: int
    answers: list[Answer]
    asked: list[Asked] = field(default_factory=list[Asked])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/place?of=this"

    def take(self, asked: Asked) -> Answer:
        """Return the answer to a request."""
        self.asked.append(asked)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def answering(*answers: Answer) -> Generator[AnsweringServer]:
    """Run a server with these answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

        def _answer(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            answer = made.take(Asked(method, self.path, dict(self.headers), body))
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.fields}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = AnsweringServer(server.server_address[1], list(answers))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
