"""The versions of the requests that a client sends: the latest, or those of an older release."""

from random import Random

from kvorum.node.handlers.registry import broker_apis
from kvorum.wire.primitives import Message


class ClientVersions:
    """The versions that one client has of each API, any that brokers serve.

    `random` draws them; without it they are the latest.
    """

    def __init__(self, random: Random | None) -> None:
        self._random = random
        self._drawn: dict[type[Message], int] = {}

    def of(self, kind: type[Message], *, lowest: int, latest: int | None) -> int:
        """Return the version of a request, no lower than `lowest`.

        A client that is not of an older release has `latest`, if that is given.
        """
        assert kind.API_KEY is not None
        served = broker_apis()[kind.API_KEY]
        if self._random is None:
            return served.max_version if latest is None else latest
        if kind not in self._drawn:
            self._drawn[kind] = self._random.randint(
                max(lowest, served.min_version), served.max_version
            )
        return self._drawn[kind]
