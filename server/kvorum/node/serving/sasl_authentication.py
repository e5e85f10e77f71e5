"""The authentications of one connection's client by SASL: before its session, and again later."""

from collections.abc import Sequence
from typing import Final

from kvorum.metadata.api import RequestError
from kvorum.metadata.standard_authorizer import USER_TYPE, Principal
from kvorum.node.coroutines import sleep
from kvorum.node.errors import CloseConnectionError
from kvorum.node.serving.authentications import Authentications
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.frame_writer import FramePart
from kvorum.node.serving.listener_sasl import ListenerSasl
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import UNAUTHENTICATED, Session
from kvorum.security.sasl_server import SaslBrokenError
from kvorum.security.sasl_server_authenticator import (
    Authentication,
    FailedAuthenticationError,
    IllegalSaslStateError,
    SaslServerAuthenticator,
)
from kvorum.storage.log.file_records import FileRecords
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode

_ERROR_CODE: Final = slice(4, 6)
"""The place of the error code in a response to ApiVersions: after the correlation id."""
_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
"""The first bytes of a request with which a client authenticates again."""
_REPEAT_INTERVAL_MS: Final = 1_000
"""The time between two beginnings of further authentications, as in Kafka."""


class SaslAuthentication:
    """Answers the frames of a client until it knows the user, or does not let the client in.

    A client whose session has an end may authenticate again, before the end and after it (KIP-368).
    """

    def __init__(
        self,
        rules: ConnectionRules,
        sasl: ListenerSasl,
        client_host: str,
        authentications: Authentications,
    ) -> None:
        self._rules = rules
        self._sasl = sasl
        self._authenticator = SaslServerAuthenticator(sasl.mechanisms, rules.runtime.wall_ms)
        self._session = Session(rules.listener, rules.protocol, client_host, UNAUTHENTICATED)
        self._authentications = authentications
        self._session_end_ms: float | None = None
        self._repeated_ms: float | None = None

    @property
    def principal(self) -> Principal | None:
        """The authenticated user, None before."""
        done = self._authenticator.authentication
        if done is None:
            return None
        return Principal(USER_TYPE, done.user.name, done.user.is_by_token)

    @property
    def is_pending(self) -> bool:
        """Whether frames are those of an authentication, and no requests of a session."""
        return not self._authenticator.is_authenticated

    @property
    def is_over(self) -> bool:
        """Whether the session has ended, so that no request may be answered."""
        end_ms = self._session_end_ms
        return end_ms is not None and self._rules.runtime.monotonic_ms() > end_ms

    @property
    def frame_bytes_max(self) -> int:
        """The size of the longest frame that the client may send before it is known."""
        return self._sasl.frame_bytes_max

    def begins_again(self, frame: bytes) -> bool:
        """Return whether a client that is authenticated begins to authenticate again.

        A SaslHandshake without a session end, or too soon after another one, is a request as any.
        """
        if self._session_end_ms is None or not frame.startswith(_HANDSHAKE):
            return False
        now_ms = self._rules.runtime.monotonic_ms()
        if self._repeated_ms is not None and now_ms - self._repeated_ms < _REPEAT_INTERVAL_MS:
            return False
        self._repeated_ms = now_ms
        self._authenticator = SaslServerAuthenticator(
            self._sasl.mechanisms,
            self._rules.runtime.wall_ms,
            before=self._authenticator.authentication,
        )
        return True

    async def answer(self, frame: bytes) -> ResponseFrame:
        """Return the response to a frame; raises CloseConnectionError."""
        try:
            response = self._authenticator.receive(frame)
        except SaslBrokenError as error:
            raise CloseConnectionError(str(error)) from error
        except FailedAuthenticationError as error:
            reason = str(error)
            last: Sequence[FramePart] | None = None
            if error.response is not None:
                last = (error.response,)
        except IllegalSaslStateError as error:
            reason = str(error)
            refusal = RequestError.with_default_message(ErrorCode.ILLEGAL_SASL_STATE)
            last = self._rules.refuse(frame, self._session, refusal).parts
        else:
            if response is None:
                return await self._answer_api_versions(frame)
            done = self._authenticator.authentication
            if done is not None:
                self._begin_session(done)
            return ResponseFrame((response,))
        return await self._fail(reason, last)

    def _begin_session(self, done: Authentication) -> None:
        """Count the authentication, and the time of the session from now."""
        now_ms = self._rules.runtime.monotonic_ms()
        if self._authenticator.is_repeated:
            assert self._repeated_ms is not None
            self._authentications.succeed_again(now_ms - self._repeated_ms)
        else:
            self._authentications.succeed(can_repeat=done.knows_lifetime)
        self._session_end_ms = None if done.lifetime_ms is None else now_ms + done.lifetime_ms

    async def refuse_size(self) -> ResponseFrame:
        """Return the end of a connection whose client announces a frame that is too long."""
        return await self._fail("Failing SASL authentication due to invalid receive size", None)

    async def _answer_api_versions(self, frame: bytes) -> ResponseFrame:
        response = await self._rules.answer(frame, self._session)
        assert response.parts is not None
        # As in Kafka, this request is neither measured nor throttled.
        encoded = b"".join(part for part in response.parts if not isinstance(part, FileRecords))
        if int.from_bytes(encoded[_ERROR_CODE], "big") == ErrorCode.NONE:
            self._authenticator.has_answered_api_versions()
        return ResponseFrame(response.parts)

    async def _fail(self, reason: str, last: Sequence[FramePart] | None) -> ResponseFrame:
        """Hold back the response and the end, which slows down those who guess (KIP-306)."""
        self._authentications.fail(
            self._session.client_host,
            self._rules.listener,
            reason,
            is_repeated=self._authenticator.is_repeated,
        )
        await sleep(self._rules.runtime, self._sasl.failure_delay_ms)
        return ResponseFrame(last, is_last=True)
