"""The key set of an issuer at a URL (RFC 7517), which is had again and again in a thread."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from kvorum.security.http_exchange import HttpFailedError, HttpPlace
from kvorum.security.json_web_keys import InvalidKeySetError, JsonWebKey, read_keys
from kvorum.security.renewable import RenewalFailedError
from kvorum.security.retries import Retries, RetryError

_MISSING_INTERVAL_MS: Final = 60_000
"""The time for which a key that is missing is not looked for again, as in Kafka."""
_MISSING_MAX: Final = 16
"""The ids of missing keys that are remembered: anybody can make up others."""
_ID_CHARACTERS_MAX: Final = 1_000


class JsonWebKeyEndpoint:
    """The keys at a place; `renew` has them again, and those before stay where that fails."""

    def __init__(self, place: HttpPlace, *, refresh_ms: int, retries: Retries) -> None:
        self.renew_at_ms = 0
        """The time at which the keys are had again, in milliseconds since 1970."""
        self._place = place
        self._refresh_ms = refresh_ms
        self._retries = retries
        self._keys: Sequence[JsonWebKey] = ()
        self._missing: OrderedDict[str, int] = OrderedDict()
        self._on_due: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        """A name for the operator."""
        return f"key set at {self._place.url}"

    def watch(self, on_due: Callable[[], None]) -> None:
        """Call `on_due` whenever a key is missing."""
        self._on_due = on_due

    def current_keys(self) -> Sequence[JsonWebKey]:
        """Return the keys that were had last."""
        return self._keys

    def note_missing(self, key_id: str, now_ms: int) -> None:
        """Have the keys again soon, unless that was so for the same id a moment ago."""
        if len(key_id) > _ID_CHARACTERS_MAX or self._missing.get(key_id, now_ms) > now_ms:
            return
        self._missing[key_id] = now_ms + _MISSING_INTERVAL_MS
        self._missing.move_to_end(key_id)
        if len(self._missing) > _MISSING_MAX:
            self._missing.popitem(last=False)
        self.renew_at_ms = now_ms
        if self._on_due is not None:
            self._on_due()

    def renew(self, wall_s: Callable[[], float], pause_s: Callable[[float], None]) -> None:
        """Have the keys, which may block; raises RenewalFailedError."""
        try:
            self._keys = self._retries.run(self._ask, wall_s, pause_s)
        except RetryError as error:
            raise RenewalFailedError(str(error)) from error
        finally:
            self.renew_at_ms = int(wall_s() * 1000) + self._refresh_ms

    def _ask(self) -> Sequence[JsonWebKey]:
        try:
            status, body = self._place.ask("GET", {"Accept": "application/json"})
        except HttpFailedError as error:
            raise RetryError(str(error)) from error
        if status != HTTPStatus.OK:
            raise RetryError(f"Non 200 status code ({status}) returned from {self._place.url}")
        try:
            return read_keys(body.decode("utf-8"))
        except (InvalidKeySetError, UnicodeDecodeError) as error:
            raise RenewalFailedError(f"Could not refresh JWKS: {error}") from error
