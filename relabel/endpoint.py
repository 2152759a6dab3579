"""One HTTP conversation with an endpoint: opening it, sending, and never letting the key out."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import re
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from audit.errors import ArgumentError, EndpointError, MissingExtraError
from relabel.body import limit_body
from relabel.outcomes import Means, Outcome, connection_outcome, read_answer

try:
    import httpx2
    import openai
except ImportError as error:
    raise MissingExtraError("audit relabel", extra="relabel") from error

__all__ = ["Endpoint", "check_url", "read_key"]

CHAT = "/chat/completions"
PLACEHOLDER = "none"
SECRET_LENGTH = 12  # a shorter "key" is a placeholder such as EMPTY, which replies may well contain


def check_url(url: str) -> tuple[str, dict[str, str]]:
    """The base URL without its query, and the query; raises ArgumentError for an address that cannot work.

    A query may only name ``api-version``: whatever else stands there could be a secret, and the address is
    written to the journal.
    """
    try:
        parts = urlsplit(url.strip())
        parts.port  # noqa: B018 - raises for a port that cannot be one
    except ValueError as error:
        raise ArgumentError(
            f"{url!r} is no base URL ({error}); write it as http://localhost:8000/v1"
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"{url!r} is no base URL; write it as http://localhost:8000/v1")
    if parts.username or parts.password:
        raise ArgumentError("the base URL holds a user or password; give the key in the environment instead")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if set(query) - {"api-version"} or parts.fragment:
        raise ArgumentError("the base URL may have no query but api-version; give a key in the environment")
    path = parts.path.rstrip("/")
    if path.endswith(CHAT):
        raise ArgumentError(f"give the base URL without {CHAT}, as in {url.split(CHAT)[0]}")
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), query


def read_key(variable: str = "OPENAI_API_KEY") -> str | None:
    """The key from the environment, or None; raises ArgumentError if it cannot be one."""
    key = os.environ.get(variable, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ArgumentError(f"the key in {variable} holds characters no key has; set it again")
    return key or None


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


_CODED = re.compile(
    r"\\u00([2-7][0-9a-f])|\\x([2-7][0-9a-f])|%([2-7][0-9a-f])|&#x0{0,6}([2-7][0-9a-f]);|&#0{0,6}(\d{2,3});",
    re.I,
)
_RUNS = re.compile(r"\\{2,}")
DEEPEST = 20


def disguised(text: str, secret: str) -> bool:
    """Whether ``secret`` stands in ``text``, also under escapes of JSON, URLs or HTML, one inside the other."""
    for _ in range(DEEPEST):
        if secret in text.replace("\\", ""):
            return True
        text, found = _CODED.subn(_decoded, _RUNS.sub(r"\\", text))
        if not found:
            return False
    return True  # nobody writes text like that


def _decoded(match: re.Match[str]) -> str:
    *hexes, decimal = match.groups()
    return chr(int(decimal) if decimal else int(next(filter(None, hexes)), 16))


def _escaped(secret: str) -> re.Pattern[bytes]:
    """The key in JSON, each character as it is or escaped, also in JSON that stands inside a JSON text."""
    return re.compile(
        b"".join(
            rb"(?:\\{0,8}%b|\\{1,8}u(?i:%04x))" % (re.escape(char.encode()), ord(char)) for char in secret
        )
    )


class Endpoint:
    """An open endpoint; use it in one event loop, as an asynchronous context manager.

    Parameters
    ----------
    url:
        As for OpenAI's clients, as in ``http://localhost:8000/v1``; ``?api-version=...`` may follow.
    key_variable:
        The environment variable with the key; without it, requests carry a placeholder.
    timeout:
        Seconds for one request from its start to the last byte of its answer.

    Proxies of the environment are used, but for addresses on this machine.
    """

    def __init__(self, url: str, *, key_variable: str = "OPENAI_API_KEY", timeout: float = 120.0) -> None:
        self.base_url, query = check_url(url)
        self.key_variable = key_variable
        self.timeout = timeout
        self._key = read_key(key_variable)
        for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):  # headers, as the key is
            read_key(name)
        self._secret = self._key if self._key and len(self._key) >= SECRET_LENGTH else None
        self._escaped = _escaped(self._secret) if self._secret else None
        host = urlsplit(self.base_url).hostname or ""
        headers = {"accept-encoding": "identity"}
        if self._key and host.endswith(".azure.com"):
            headers["api-key"] = self._key
        try:
            self._http = openai.DefaultAsyncHttpxClient(
                trust_env=not _is_loopback(self.base_url),
                event_hooks={"response": [limit_body]},
                limits=httpx2.Limits(
                    max_connections=None, max_keepalive_connections=None
                ),  # the gate bounds them
            )
        except OSError as error:
            raise EndpointError(
                f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read ({error});"
                " correct it, or unset it for the usual ones"
            ) from error
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            raise EndpointError(
                f"the proxy settings of the environment cannot be used ({self.redact(str(error))});"
                " set NO_PROXY for this endpoint, or correct HTTPS_PROXY, HTTP_PROXY and ALL_PROXY"
            ) from error
        self._client = openai.AsyncOpenAI(
            api_key=self._key or PLACEHOLDER,
            base_url=self.base_url,
            default_query=dict(query),
            default_headers=headers,
            max_retries=0,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, 15.0), pool=None),
            http_client=self._http,
        )

    async def chat(self, body: Mapping[str, Any]) -> Outcome:
        """Send one chat request, once; never raises for what the endpoint does."""
        return await self._send("POST", CHAT, body)

    async def models(self) -> Outcome:
        """What the endpoint says about its models."""
        return await self._send("GET", "/models", {})

    async def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Outcome:
        sent = {name: value for name, value in body.items() if name not in ("model", "messages")}
        try:
            async with asyncio.timeout(self.timeout):
                if method == "GET":
                    response = await self._client.get(path, cast_to=httpx2.Response)
                else:
                    content = json.dumps(body, separators=(",", ":")).encode()
                    headers = {"content-type": "application/json"}
                    response = await self._client.post(
                        path, cast_to=httpx2.Response, content=content, options={"headers": headers}
                    )
        except openai.APIStatusError as error:
            response = error.response
        except (TimeoutError, openai.APITimeoutError):
            return connection_outcome(f"no answer within {self.timeout:g} s", timed_out=True)
        except openai.APIConnectionError as error:
            return self._broken(error)
        content = self._without_key(response.content)
        if self._secret and disguised(content.decode("utf-8", "replace"), self._secret):
            told = "the answer quotes the key, disguised; nothing of it was kept"
            return Outcome(means=Means.ROW, status=response.status_code, told=told)
        return read_answer(response.status_code, response.headers, content, sent=sent)

    def _broken(self, error: Exception) -> Outcome:
        cause: BaseException | None = error
        reached = True
        while cause is not None:
            reached = reached and not isinstance(cause, httpx2.ConnectError | httpx2.ProxyError)
            if isinstance(cause, ssl.SSLCertVerificationError):
                return connection_outcome(
                    f"its certificate does not hold ({cause.verify_message}); set SSL_CERT_FILE if it is your own",
                    fatal=True,
                )
            if isinstance(cause, httpx2.TooManyRedirects | httpx2.UnsupportedProtocol):
                return connection_outcome(self.redact(str(cause)), fatal=True)
            last, cause = cause, cause.__cause__ or cause.__context__
        told = self.redact(str(last)) or type(last).__name__
        return connection_outcome(f"the connection failed ({told})", answered=reached)

    def _without_key(self, content: bytes) -> bytes:
        """An answer that quotes the key back, as it is or escaped, is kept without it."""
        if self._secret is None or self._escaped is None:
            return content
        content = content.replace(self._secret.encode(), b"[key]")
        return self._escaped.sub(b"[key]", content) if b"\\" in content else content

    def redact(self, text: str) -> str:
        """``text`` as one line of at most 300 characters without the key."""
        line = " ".join(text.split())
        if self._secret:
            line = line.replace(self._secret, "[key]")
            if disguised(line, self._secret):
                line = "[a message that quotes the key, disguised]"
        return line if len(line) <= 300 else line[:297] + "..."

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def __aenter__(self) -> Endpoint:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
