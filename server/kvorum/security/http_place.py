"""A place to ask by HTTP, with the stores that a login module has for it."""

from collections.abc import Mapping
from typing import Final

from kvorum.metadata.config_definitions import BROKER_CONFIGS, keys_of, parse_all, read_settings
from kvorum.security.allowed_url import HTTPS
from kvorum.security.http_exchange import WAIT_MS, HttpPlace
from kvorum.security.ssl_settings import SslSettings

_SSL_OPTION: Final = "ssl."


def http_place(
    url: str,
    options: Mapping[str, str],
    *,
    connect_ms_max: int = WAIT_MS,
    read_ms_max: int = WAIT_MS,
) -> HttpPlace:
    """Return the place at a URL that has been checked; of `options` those that begin with `ssl.`.

    Raises InvalidConfigError and InvalidSslSettingsError, and ImportError without the extra
    `security` where such an option is set.
    """
    texts = {name: text for name, text in options.items() if name.startswith(_SSL_OPTION)}
    if not texts or not url.startswith(HTTPS):
        return HttpPlace(url, connect_ms_max, read_ms_max)
    # Imported here: only stores of one's own need the library that reads them.
    from kvorum.security.tls_contexts import client_context  # noqa: PLC0415 - see above

    values = parse_all({name: BROKER_CONFIGS[name] for name in keys_of(SslSettings)}, texts)
    tls = client_context(read_settings(SslSettings, values.__getitem__))
    return HttpPlace(url, connect_ms_max, read_ms_max, tls)
