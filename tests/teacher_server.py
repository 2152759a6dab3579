"""A teacher on loopback: a real HTTP server that speaks the chat completions protocol and answers as it is told."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

#: From the request's body: the message of the reply (``content``, ``reasoning_content``, ...), or (status, error).
Answer = Callable[[dict[str, Any]], "dict[str, Any] | tuple[int, str]"]


class Teacher:
    """``with Teacher(answer) as teacher:`` serves at ``teacher.base_url``; ``teacher.asked`` counts by body."""

    def __init__(self, answer: Answer, *, port: int = 0) -> None:
        self.asked: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self._lock = threading.Lock()
        teacher = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # head and body leave together

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with teacher._lock:
                    teacher.asked[json.dumps(sent, sort_keys=True)] += 1
                    teacher.bodies.append(sent)
                    teacher.keys.add(self.headers["authorization"] or "")
                found = answer(sent)
                if isinstance(found, tuple):
                    self._send(found[0], {"error": {"message": found[1], "type": "error", "code": None}})
                    return
                finish = found.pop("finish_reason", "stop")
                choice = {"index": 0, "message": {"role": "assistant", **found}, "finish_reason": finish}
                usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
                self._send(
                    200,
                    {"id": "r", "object": "chat.completion", "created": 0, "model": sent["model"],
                     "choices": [choice], "usage": usage},
                )  # fmt: skip

            def _send(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:  # the other side was killed
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                """Keep quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: object, address: object) -> None:
                """A client that went away is no news."""

        self._server = Server(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Teacher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def question_of(sent: dict[str, Any]) -> str:
    """The text that is asked about: what stands after ``Text: `` in the last message."""
    return str(sent["messages"][-1]["content"]).rpartition("Text: ")[2]


def red_or_not(sent: dict[str, Any], *, error: float = 0.1) -> dict[str, Any]:
    """A teacher of `tests.tiny_model.task_files`: thinks about the colour; wrong on ``error`` of its draws."""
    text = question_of(sent)
    right = "red" in text
    wrong = (sent["seed"] % 1000) / 1000 < error
    label = str(int(right != wrong))
    return {"content": f"it is {'red' if label == '1' else 'not so'}\nAnswer: {label}"}
