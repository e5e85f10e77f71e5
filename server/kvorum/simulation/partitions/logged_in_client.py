"""A client that logs in: it has a connection to each broker, and logs in again on it in time.

Now and then it knows an old or a wrong password, comes too early or too late, comes as
another user, or does not log in again at all and goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Final

from kvorum.node.coroutines import GiveUp, Take, Task, Wait
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.security.sasl_client_authenticator import SaslClientAuthenticator, SaslFailedError
from kvorum.security.sasl_login import SaslLogin
from kvorum.security.sasl_login_modules import SCRAM
from kvorum.security.scram_client import ScramClient
from kvorum.simulation.network import OnReply, Route
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.login_book import Login, LoginBook
from kvorum.simulation.partitions.login_settings import MECHANISM
from kvorum.simulation.partitions.ordered_connection import OrderedConnection
from kvorum.simulation.partitions.settings import PEACE_FROM_MS
from kvorum.simulation.requests import CLIENT_ID, OnAnswer, decoded_answer, request_frame
from kvorum.wire.primitives import Message

FRAME_TIMEOUT_MS: Final = 260
PASSWORDS: Final = 3
"""The passwords that a user has had, or will have, in turn."""
_IN_TIME: Final = 0.85, 0.95
"""The part of a session after which a client logs in again, as Kafka's do."""
_WRONG_PASSWORD: Final = 0.1
_OTHER_USER: Final = 0.15
"""The share of further logins that are another user's."""
_TOO_EARLY: Final = 0.1
_TOO_LATE: Final = 0.2
_NEVER: Final = 0.2


def password_of(user: str, number: int) -> str:
    """Return one of the passwords of a user."""
    return f"password {number % PASSWORDS} of {user}"


@dataclass(frozen=True, slots=True)
class _LoginWithNonce(SaslLogin):
    """A login whose nonce the world draws."""

    nonce: str = ""

    def begin(self) -> ScramClient:
        """Begin an authentication."""
        return ScramClient(SCRAM[self.mechanism], self.user, self.password, self.nonce)


class _LoggedInConnection(OrderedConnection):
    """A connection to the listener of a broker that clients log in to."""

    def __init__(self, around: BrokerSurroundings, link: Route) -> None:
        super().__init__(around, link)
        self._server = around.servers[self.broker]
        self._serve: Callable[[bytes, OnReply], None] | None = None
        self._api_versions: bytes | None = None
        self.session_ms = 0
        self.again_at_ms = inf

    def serve(self, frame: bytes, reply: OnReply) -> None:
        """Have the broker handle a frame, the first one on a new connection of its own."""
        if self._serve is None:
            self._serve = self._server.connect(self.opened)
        self._serve(frame, reply)

    async def log_in(self, login: SaslLogin) -> None:
        """Log in, or again; raises ConnectionLostError and SaslFailedError."""
        authenticator = SaslClientAuthenticator(login, CLIENT_ID)
        frame: bytes | None = authenticator.begin()
        if self._api_versions is not None:
            # A client that logs in again knows the versions of the broker.
            frame = authenticator.receive(self._api_versions)
        while frame is not None:
            answered = await self.exchange(frame)
            self._api_versions = self._api_versions or answered
            frame = authenticator.receive(answered)
        self.session_ms = authenticator.session_lifetime_ms

    def exchange(self, frame: bytes) -> Wait[bytes]:
        """Return the wait for the answer to a frame, which raises ConnectionLostError."""

        def begin(take: Take[bytes]) -> GiveUp:
            def answered(said: bytes | None) -> None:
                take(ConnectionLostError("no answer in time") if said is None else said)

            self.ask_frame(frame, answered, timeout_ms=FRAME_TIMEOUT_MS)
            return lambda: None

        return Wait(begin)


class LoggedInClient:
    """The user of one client, and its connections; it asks for one thing at a time."""

    def __init__(
        self,
        around: BrokerSurroundings,
        book: LoginBook,
        *,
        user: str,
        others: tuple[str, ...],
        random: Random,
    ) -> None:
        """`others` are the users that it may pretend to be."""
        self.user = user
        self._around = around
        self._book = book
        self._others = others
        self._random = random
        self._password = password_of(user, 0)
        self._connections: dict[int, _LoggedInConnection] = {}

    def ask(self, link: Route, request: Message, on_answer: OnAnswer, *, version: int) -> None:
        """Send a request as the user; the answer is None where none comes, or no login is right."""

        def answered(result: Message | Exception) -> None:
            if isinstance(result, Exception):
                self._end_connection(link[1])
                if not isinstance(result, ConnectionLostError | SaslFailedError):
                    raise result
                self._count(type(result).__name__)
            on_answer(result if isinstance(result, Message) else None)

        Task(self._answer(link, request, version), answered)

    def _end_connection(self, broker: int) -> None:
        connection = self._connections.pop(broker, None)
        if connection is not None:
            connection.end()

    async def _answer(self, link: Route, request: Message, version: int) -> Message:
        connection = await self._connect(link)
        frame = await connection.exchange(request_frame(request, version))
        return decoded_answer(request, version, frame)

    async def _connect(self, link: Route) -> _LoggedInConnection:
        """Return a connection that is logged in; raises ConnectionLostError and SaslFailedError."""
        connection = self._connections.get(link[1])
        if connection is None:
            connection = self._connections[link[1]] = _LoggedInConnection(self._around, link)
            await self._log_in(connection, self._own())
            self._count("logins")
        elif self._around.now_ms >= connection.again_at_ms:
            pretends = self._is_careless and self._random.random() < _OTHER_USER
            await self._log_in(connection, self._other() if pretends else self._own())
            self._count("further logins")
        return connection

    async def _log_in(self, connection: _LoggedInConnection, login: Login) -> None:
        nonce = f"{self._random.getrandbits(128):032x}"
        self._book.attempts[nonce] = login
        try:
            await connection.log_in(
                _LoginWithNonce(MECHANISM, login.user, login.password, nonce=nonce)
            )
        except SaslFailedError:
            self._learn_password()
            raise
        share = self._share_of_session()
        connection.again_at_ms = self._around.now_ms + share * connection.session_ms

    @property
    def _is_careless(self) -> bool:
        return self._around.now_ms < PEACE_FROM_MS

    def _own(self) -> Login:
        is_wrong = self._is_careless and self._random.random() < _WRONG_PASSWORD
        return Login(self.user, "guessed" if is_wrong else self._password)

    def _other(self) -> Login:
        """Return the right login of another user."""
        user = self._random.choice(self._others)
        logins = [Login(user, password_of(user, number)) for number in range(PASSWORDS)]
        return next((one for one in logins if self._book.is_stored(one)), logins[0])

    def _learn_password(self) -> None:
        """Take the password that the user has now, if there is one."""
        for number in range(PASSWORDS):
            password = password_of(self.user, number)
            if self._book.is_stored(Login(self.user, password)):
                self._password = password

    def _share_of_session(self) -> float:
        """Draw the part of its session after which the client logs in again."""
        random = self._random
        drawn = random.random()
        if not self._is_careless or drawn >= _TOO_EARLY + _TOO_LATE + _NEVER:
            return random.uniform(*_IN_TIME)
        if drawn < _TOO_EARLY:
            return random.uniform(0, _IN_TIME[0])
        return random.uniform(1, 1.2) if drawn < _TOO_EARLY + _TOO_LATE else inf

    def _count(self, what: str) -> None:
        self._around.ledger.counts[what] += 1
