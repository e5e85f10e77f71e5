"""The authentication of one connection's client by SASL, which comes before its session."""

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
    FailedAuthenticationError,
    IllegalSaslStateError,
    SaslServerAuthenticator,
)
from kvorum.storage.log.file_records import FileRecords
from kvorum.wire.error_codes import ErrorCode

_ERROR_CODE: Final = slice(4, 6)
"""The place of the error code in a response to ApiVersions: after the correlation id."""


class SaslAuthentication:
    """Answers the frames of a client until it knows the user, or does not let the client in."""

    def __init__(
        self,
        rules: ConnectionRules,
        sasl: ListenerSasl,
        client_host: str,
        authentications: Authentications,
    ) -> None:
        self._rules = rules
        self._sasl = sasl
        self._authenticator = SaslServerAuthenticator(sasl.mechanisms)
        self._session = Session(rules.listener, rules.protocol, client_host, UNAUTHENTICATED)
        self._authentications = authentications

    @property
    def principal(self) -> Principal | None:
        """The authenticated user, None before."""
        user = self._authenticator.user
        return None if user is None else Principal(USER_TYPE, user)

    @property
    def frame_bytes_max(self) -> int:
        """The size of the longest frame that the client may send before it is known."""
        return self._sasl.frame_bytes_max

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
            if self._authenticator.user is not None:
                self._authentications.succeed()
            return ResponseFrame((response,))
        return await self._fail(reason, last)

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
        self._authentications.fail(self._session.client_host, self._rules.listener, reason)
        await sleep(self._rules.runtime, self._sasl.failure_delay_ms)
        return ResponseFrame(last, is_last=True)
