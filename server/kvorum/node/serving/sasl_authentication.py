"""One connection's client by SASL: its authentications, and the session after each of them."""

from collections.abc import Coroutine, Sequence
from typing import Any, Final

from kvorum.metadata.api import RequestError
from kvorum.metadata.standard_authorizer import USER_TYPE, Principal
from kvorum.node.coroutines import Wait, sleep
from kvorum.node.errors import CloseConnectionError
from kvorum.node.serving.authentications import Authentications
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
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
    """Answers the frames of a client: until it knows the user, and as that one's requests then.

    A client whose session has an end may authenticate again, before the end and after it (KIP-368).
    """

    def __init__(
        self,
        rules: ConnectionRules,
        sasl: ListenerSasl,
        client_host: str,
        disconnect: DisconnectListeners,
        authentications: Authentications,
    ) -> None:
        self._rules = rules
        self._sasl = sasl
        self._authenticator = SaslServerAuthenticator(sasl.mechanisms, rules.runtime.wall_ms)
        self._unknown = Session(
            rules.listener, rules.protocol, client_host, UNAUTHENTICATED, disconnect=disconnect
        )
        """The session of a request that comes in an authentication."""
        self._session = self._unknown
        self._authentications = authentications
        self._session_end_ms: float | None = None
        self._repeated_ms: float | None = None

    @property
    def is_pending(self) -> bool:
        """Whether frames are those of an authentication, and no requests of a session."""
        return not self._authenticator.is_authenticated

    @property
    def frame_bytes_max(self) -> int:
        """The size of the longest frame that the client may send before it is known."""
        return self._sasl.frame_bytes_max

    def answer(self, frame: bytes) -> Coroutine[Wait[Any], Any, ResponseFrame]:
        """Return the way to the response to a frame.

        CloseConnectionError is raised at once for a request after the session's end, and on the way
        for what no answer is possible to.
        """
        if self.is_pending or self._begins_again(frame):
            return self._authenticate(frame)
        if self._is_over:
            self._authentications.expire()
            raise CloseConnectionError("the session of its client has ended")
        return self._rules.answer(frame, self._session)

    @property
    def _is_over(self) -> bool:
        """Whether the session has ended, so that no request may be answered."""
        end_ms = self._session_end_ms
        return end_ms is not None and self._rules.runtime.monotonic_ms() > end_ms

    def _begins_again(self, frame: bytes) -> bool:
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

    async def _authenticate(self, frame: bytes) -> ResponseFrame:
        """Return the response to a frame of an authentication; raises CloseConnectionError."""
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
            last = self._rules.refuse(frame, self._unknown, refusal).parts
        else:
            if response is None:
                return await self._answer_api_versions(frame)
            done = self._authenticator.authentication
            if done is not None:
                self._begin_session(done)
            return ResponseFrame((response,))
        return await self._fail(reason, last)

    def _begin_session(self, done: Authentication) -> None:
        """Count the authentication; begin the session of its user, whose time is from now."""
        now_ms = self._rules.runtime.monotonic_ms()
        if self._authenticator.is_repeated:
            assert self._repeated_ms is not None
            self._authentications.succeed_again(now_ms - self._repeated_ms)
        else:
            self._authentications.succeed(can_repeat=done.knows_lifetime)
        principal = Principal(USER_TYPE, done.user.name, done.user.is_by_token)
        self._session = self._unknown._replace(principal=principal)
        self._session_end_ms = None if done.lifetime_ms is None else now_ms + done.lifetime_ms

    async def refuse_size(self) -> ResponseFrame:
        """Return the end of a connection whose client announces a frame that is too long."""
        return await self._fail("Failing SASL authentication due to invalid receive size", None)

    async def _answer_api_versions(self, frame: bytes) -> ResponseFrame:
        response = await self._rules.answer(frame, self._unknown)
        assert response.parts is not None
        # As in Kafka, this request is neither measured nor throttled.
        encoded = b"".join(part for part in response.parts if not isinstance(part, FileRecords))
        if int.from_bytes(encoded[_ERROR_CODE], "big") == ErrorCode.NONE:
            self._authenticator.has_answered_api_versions()
        return ResponseFrame(response.parts)

    async def _fail(self, reason: str, last: Sequence[FramePart] | None) -> ResponseFrame:
        """Hold back the response and the end, which slows down those who guess (KIP-306)."""
        self._authentications.fail(
            self._unknown.client_host,
            self._rules.listener,
            reason,
            is_repeated=self._authenticator.is_repeated,
        )
        await sleep(self._rules.runtime, self._sasl.failure_delay_ms)
        return ResponseFrame(last, is_last=True)
