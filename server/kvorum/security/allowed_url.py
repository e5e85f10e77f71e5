"""The URLs that settings of OAUTHBEARER may name: those of a list alone (CVE-2025-27817)."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from kvorum.security.errors import InvalidOAuthSettingsError

ALLOWED_URLS: Final = "kvorum.sasl.oauthbearer.allowed.urls"
"""Kafka has a property of the JVM instead: org.apache.kafka.sasl.oauthbearer.allowed.urls."""
FILE: Final = "file"
HTTPS: Final = "https"
_SCHEMES: Final = frozenset({FILE, "http", HTTPS})


@contextmanager
def configuring(class_name: str, key: str) -> Generator[None]:
    """Put what Kafka says of a class before the text of an InvalidOAuthSettingsError."""
    try:
        yield
    except InvalidOAuthSettingsError as error:
        raise InvalidOAuthSettingsError(
            f"The class {class_name} defined in the {key} configuration encountered an error on "
            f"configure(): {error}"
        ) from error


def urls_of(text: str) -> tuple[str, ...]:
    """Return the URLs of a list with commas."""
    return tuple(url.strip() for url in text.split(",") if url.strip())


def checked_url(key: str, url: str, allowed: Sequence[str]) -> SplitResult:
    """Return the parts of the URL of a key; raises InvalidOAuthSettingsError."""
    named = f"The OAuth configuration option {key} contains a URL ({url}) that"
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise InvalidOAuthSettingsError(f"{named} is malformed: {error}") from error
    if not parts.scheme:
        raise InvalidOAuthSettingsError(f"{named} is malformed: no protocol: {url}")
    if parts.scheme not in _SCHEMES:
        raise InvalidOAuthSettingsError(
            f"{named} contains an invalid protocol ({parts.scheme}); only "
            '"http", "https", and "file" protocol are supported'
        )
    if url not in allowed:
        raise InvalidOAuthSettingsError(
            f"Invalid value {url} for configuration {key}: The URL cannot be accessed due to "
            f"restrictions. Update the key '{ALLOWED_URLS}' to allow the URL to be accessed."
        )
    if parts.scheme != FILE and not has_host:
        raise InvalidOAuthSettingsError(f"{named} is malformed: no host")
    return parts


def file_of(key: str, parts: SplitResult) -> Path:
    """Return the file that the URL of a key names; raises InvalidOAuthSettingsError."""
    path = Path(unquote(parts.path))
    if not path.exists():
        raise InvalidOAuthSettingsError(
            f"The OAuth configuration option {key} contains a file ({path}) that doesn't exist"
        )
    if path.is_dir():
        raise InvalidOAuthSettingsError(
            f"The OAuth configuration option {key} references a directory ({path}), not a file"
        )
    return path
