"""The tokens by which a node logs in at others, each of which is replaced before its end."""

import logging
from collections.abc import Iterable
from functools import partial
from threading import Event
from typing import Final

from kvorum.node.coroutines import ClosableTasks, in_thread, sleep
from kvorum.node.errors import NodeStartError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.security.client_login import ClientLogin
from kvorum.security.oauth_login import OAuthLogin
from kvorum.security.sasl_client import LoginFailedError

_log: Final = logging.getLogger(__name__)


class RenewedLogins:
    """Has the tokens of a node's logins, in threads, and other ones in their turn, until `close`.

    Logins by a password need nothing of that.
    """

    def __init__(self, logins: Iterable[ClientLogin | None], runtime: Runtime) -> None:
        self._logins = [login for login in logins if isinstance(login, OAuthLogin)]
        self._runtime = runtime
        self._tasks = ClosableTasks()
        self._is_closed = Event()

    async def start(self) -> None:
        """Have the first tokens; without one, as in Kafka, raises NodeStartError."""
        for login in self._logins:
            try:
                await self._renew(login)
            except LoginFailedError as error:
                raise NodeStartError(
                    f"The node cannot log in by {login.mechanism} at others: {error}"
                ) from error
        for login in self._logins:
            self._tasks.start(self._renew_in_turn(login))

    def close(self) -> None:
        """Have no other tokens, and end the wait for one."""
        self._is_closed.set()
        self._tasks.close()

    async def _renew_in_turn(self, login: OAuthLogin) -> None:
        while True:
            await sleep(self._runtime, login.renew_at_ms - self._runtime.wall_ms())
            try:
                await self._renew(login)
            except LoginFailedError as error:
                _log.warning(
                    LogEvent("A token to log in with could not be renewed", reason=str(error))
                )

    async def _renew(self, login: OAuthLogin) -> None:
        await in_thread(self._runtime, partial(login.renew, self._wall_s, self._pause))

    def _wall_s(self) -> float:
        return self._runtime.wall_ms() / 1000

    def _pause(self, seconds: float) -> None:
        if self._is_closed.wait(seconds):
            raise LoginFailedError("the node stops")
