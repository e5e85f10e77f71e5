"""Requests of users that a broker passes on: the same request inside an Envelope.

The broker is the connection that all requests come by. What the controller answers is the error of
the envelope and the answer inside.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final

from tests.interop.differential.script import Step

from kvorum.metadata.principal import Principal
from kvorum.node.principal_serde import encode_principal
from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.create_topics import CreateTopicsResponse
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.primitives import Message

CLIENT_ID: Final = "inner"
CORRELATION_ID: Final = 5


@dataclass(frozen=True, slots=True)
class UserStep(Step):
    """One request of a user at a host."""

    user: str = "User:alice"
    host: str = "10.1.2.3"

    def as_json(self) -> str:
        """The step as one line."""
        return Step.as_json(self).removesuffix("}") + f', "user": "{self.user}"}}'


def in_envelope(step: UserStep, request: Message) -> EnvelopeRequest:
    """Return the request as a broker passes it on."""
    return EnvelopeRequest(
        request_data=encode_request_frame(
            request, version=step.version, correlation_id=CORRELATION_ID, client_id=CLIENT_ID
        ),
        request_principal=encode_principal(Principal.from_text(step.user)),
        client_host_address=ipaddress.ip_address(step.host).packed,
    )


def opened(step: UserStep, frame: bytes) -> Json:
    """Return the envelope's error, and the answer inside."""
    _, envelope = decode_response_frame(frame, response_class=EnvelopeResponse, version=0)
    answer: dict[str, Json] = {"envelopeErrorCode": envelope.error_code}
    if envelope.response_data is not None:
        kind = response_class(step.key)
        header, response = decode_response_frame(
            bytes(envelope.response_data), response_class=kind, version=step.version
        )
        answer["correlationId"] = header.correlation_id
        if isinstance(response, CreateTopicsResponse):
            response.topics.sort(key=_place)
        answer["inner"] = to_json(response, step.version)
    return answer


def _place(topic: CreateTopicsResponse.CreatableTopicResult) -> tuple[bool, str]:
    """Put what is refused for want of a permission last: real Kafka takes it out of a hash set."""
    is_refused = topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return is_refused, topic.name if is_refused else ""
