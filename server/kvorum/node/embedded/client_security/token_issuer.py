"""An issuer of tokens for the clients of a cluster: OAuth's client credentials, on loopback."""

import json
import secrets
import threading
import time
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from contextlib import suppress
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import ECKey

from kvorum.node.embedded.client_security.client_access import User
from kvorum.node.embedded.client_security.secret_files import write_secret

KEY_FILE: Final = "issuer.key"
KEY_SET_FILE: Final = "jwks.json"
PORT_FILE: Final = "issuer.port"
LOOPBACK: Final = "127.0.0.1"
AUDIENCE: Final = "kafka"
ALGORITHM: Final = "ES256"
LIFETIME_S: Final = 3_600
REQUEST_SECONDS_MAX: Final = 5.0
BODY_BYTES_MAX: Final = 64 * 1024
DISCOVERY: Final = "/.well-known/openid-configuration"
KEY_SET: Final = "/jwks"
TOKEN: Final = "/token"  # noqa: S105 - a path
_GRANT: Final = "client_credentials"
_JSON: Final = "application/json"


class TokenIssuer:
    """Gives a token to a client that shows its id and secret, and its keys to any client.

    The key and the port stay in a folder: tokens of an earlier run are still good.
    """

    def __init__(self, folder: Path, client: User) -> None:
        """Bind the port; raises OSError."""
        self._client = client
        self._key = _key_of(folder / KEY_FILE)
        self.key_set_file = folder / KEY_SET_FILE
        key_set = {"keys": [self._key.as_dict(private=False)]}
        self.key_set_file.write_text(json.dumps(key_set), encoding="utf-8")
        self._server = _bound(folder / PORT_FILE, self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="kvorum-token-issuer", daemon=True
        )

    @property
    def url(self) -> str:
        """The name of the issuer, which its tokens have."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    @property
    def token_url(self) -> str:
        """The URL that gives tokens."""
        return f"{self.url}{TOKEN}"

    def start(self) -> None:
        """Answer requests from now on, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more; nothing happens where it was stopped before."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def token(self) -> str:
        """Return a new token of the client."""
        now_s = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": self._client.name,
            "iat": now_s,
            "exp": now_s + LIFETIME_S,
        }
        header = {"alg": ALGORITHM, "kid": self._key.kid}
        return jwt.encode(header, claims, self._key)

    def answer(self, path: str) -> Mapping[str, Any] | None:
        """Return the document at a path, None at any other path."""
        if path == KEY_SET:
            document: dict[str, Any] = json.loads(self.key_set_file.read_text(encoding="utf-8"))
            return document
        if path != DISCOVERY:
            return None
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}{KEY_SET}",
            "token_endpoint": self.token_url,
            "grant_types_supported": [_GRANT],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    def grant(
        self, form: Mapping[str, str], authorization: str
    ) -> tuple[HTTPStatus, Mapping[str, object]]:
        """Return the answer to a request for a token (RFC 6749, 4.4 and 5.2)."""
        if form.get("grant_type") != _GRANT:
            return HTTPStatus.BAD_REQUEST, {"error": "unsupported_grant_type"}
        in_form = form.get("client_id", ""), form.get("client_secret", "")
        shown = _credentials(authorization) or in_form
        known = self._client.name, self._client.password
        # The time of the comparison says nothing of how much is right.
        if not compare_digest(repr(shown).encode(), repr(known).encode()):
            return HTTPStatus.UNAUTHORIZED, {"error": "invalid_client"}
        granted: dict[str, object] = {
            "access_token": self.token(),
            "token_type": "Bearer",
            "expires_in": LIFETIME_S,
        }
        if "scope" in form:
            granted["scope"] = form["scope"]
        return HTTPStatus.OK, granted

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(_Handler):
            def do_GET(self) -> None:
                document = issuer.answer(self.path)
                status = HTTPStatus.NOT_FOUND if document is None else HTTPStatus.OK
                self.send_document(status, document or {"error": "not_found"})

            def do_POST(self) -> None:
                form = self.read_form()
                if self.path != TOKEN or form is None:
                    self.send_document(HTTPStatus.NOT_FOUND, {"error": "not_found"})
                    return
                self.send_document(*issuer.grant(form, self.headers.get("Authorization", "")))

        return Handler


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS_MAX

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing: requests have secrets."""

    def read_form(self) -> dict[str, str] | None:
        """Return the fields of a form, None if it is missing or too large."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            return None
        text = self.rfile.read(int(length)).decode("utf-8", errors="replace")
        return {name: values[0] for name, values in parse_qs(text).items()}

    def send_document(self, status: HTTPStatus, document: Mapping[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", _JSON)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)


def _credentials(authorization: str) -> tuple[str, str] | None:
    """Return the id and the secret of a header for Basic, None without them."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, separator, secret = b64decode(encoded, validate=True).decode().partition(":")
    except (Base64Error, UnicodeDecodeError):
        return None
    return (name, secret) if separator else None


def _key_of(path: Path) -> ECKey:
    if not path.exists():
        made = ECKey.generate_key("P-256", {"use": "sig", "alg": ALGORITHM}, private=True)
        fields = {**made.as_dict(private=True), "kid": secrets.token_hex(8)}
        write_secret(path, json.dumps(fields).encode())
    return ECKey.import_key(json.loads(path.read_text(encoding="utf-8")))


def _bound(port_file: Path, handler: Callable[..., BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    """Return a server at the port of the run before, or at another one if that is taken."""
    if port_file.exists():
        with suppress(OSError):
            return ThreadingHTTPServer((LOOPBACK, int(port_file.read_text())), handler)
    server = ThreadingHTTPServer((LOOPBACK, 0), handler)
    port_file.write_text(str(server.server_address[1]))
    return server
