"""A TLS context for new connections, with the stores that it was made of."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from kvorum.security.ssl_settings import SslSettings

if TYPE_CHECKING:
    from kvorum.security.loaded_stores import LoadedStores


ContextT = TypeVar("ContextT", bound=ssl.SSLContext | None)
"""The context of connections, or of a listener: None where no client can connect."""


class UsedTls(Generic[ContextT]):
    """A context that a node uses."""

    def __init__(self, stores: LoadedStores, make: Callable[[LoadedStores], ContextT]) -> None:
        """Make the context; raises InvalidSslSettingsError."""
        self._stores = stores
        self._make = make
        self.context = make(stores)

    @property
    def settings(self) -> SslSettings:
        """The settings that the stores are of."""
        return self._stores.settings

    def successor(self, settings: SslSettings) -> UsedTls[ContextT] | None:
        """Return the one that follows with these settings, None where nothing has changed.

        The files are looked at, and read if they are not those that were read before. Raises
        InvalidSslSettingsError for stores that may not follow.
        """
        if self._stores.is_of(settings):
            return None
        after = type(self._stores).of(settings)
        self._stores.check_successor(after)
        return UsedTls(after, self._make)


def context_of(used: UsedTls[ssl.SSLContext] | None) -> ssl.SSLContext | None:
    """Return the context of connections, None for those in plain text."""
    return None if used is None else used.context
