"""The two controllers: one process each, alike in everything but whose they are."""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from tests.interop.differential.metadata_log import LogRecord, LogTail
from tests.interop.differential.script import API_KEYS, Body, Step, message_of
from tests.interop.differential.view import ClusterView
from tests.support.node import Node
from tests.support.raw_client import RawClient
from tests.support.waiting import Errors, wait_for

from kvorum.metadata.standard_authorizer import Principal
from kvorum.node.principal_serde import encode_principal
from kvorum.wire.apis import request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.create_topics import CreateTopicsResponse
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.primitives import Message

NODE_ID: Final = 3000
REGISTRATIONS_SINCE_LEVEL: Final = 15
NO_ANSWER: Final = "the connection was closed without an answer"
# Nothing may be written but what a script asks for, and nothing waits to write more at once.
SETTINGS: Final[Mapping[str, str]] = {
    "process.roles": "controller",
    "controller.quorum.append.linger.ms": "0",
    "metadata.max.idle.interval.ms": "0",
    "broker.session.timeout.ms": "120000",
    "broker.heartbeat.interval.ms": "30000",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": "36000000",
    "num.partitions": "2",
}


_Found = TypeVar("_Found")


class Side:
    """One of the two controllers: its process, a connection to it, and what its log says."""

    def __init__(self, name: str, node: Node) -> None:
        self.name = name
        self.node = node
        self.view = ClusterView()
        self.log = LogTail(node.data)
        self._client: RawClient | None = None
        self._source_host = ""

    @property
    def own_names(self) -> Mapping[str, str]:
        """Texts that only this side has, and how they are called."""
        return {self.node.address: "<address>", str(self.node.folder): "<folder>"}

    def wait_until_active(self) -> None:
        """Return once the controller has written its own registration, or cannot write one."""
        self.node.process.come_up()

        def is_active() -> bool:
            records = self.take_records() if self.log.path.exists() else []
            level = self.view.settings.features.get("metadata.version", 0)
            return 0 < level < REGISTRATIONS_SINCE_LEVEL or any(
                record.type == "RegisterControllerRecord" for record in records
            )

        self.node.process.wait_until(is_active, f"{self.name} has registered itself")

    def wait_until_leading(self) -> None:
        """Return once the controller takes requests: an error may have made it start again."""
        stranger = {"brokerId": 2**31 - 1, "brokerEpoch": -1}

        def leads() -> bool:
            answer = self.ask("BrokerHeartbeat", stranger)
            if not isinstance(answer, Mapping):
                raise ConnectionResetError(f"{self.name}: {NO_ANSWER}")
            return bool(cast("Body", answer)["errorCode"] == ErrorCode.STALE_BROKER_EPOCH)

        self.wait_until(leads, "it leads")

    def wait_until(
        self, look: Callable[[], _Found | None], state: str, *, not_yet: Errors = ()
    ) -> _Found:
        """Wait for a state of this side; a failure shows what it said last."""
        words = f"{self.name}: {state}"
        return wait_for(look, words, not_yet=not_yet, otherwise=self.node.process.last_words)

    def stop(self) -> None:
        """Stop the process, which may have ended by itself."""
        self.hang_up()
        if self.node.process.is_launched:
            self.node.process.terminate()

    def connect_from(self, source_host: str) -> None:
        """Go on by a new connection, from another address of this machine."""
        self._source_host = source_host
        self.hang_up()

    def hang_up(self) -> None:
        if self._client is not None:
            self._client.socket.close()
            self._client = None

    def send(self, step: Step) -> Body:
        """Send the request of a step and return its body with this side's values in it."""
        if self._client is None:
            self._client = RawClient(self.node.address, source_host=self._source_host)
        body: Body = self.view.resolve(step.body)
        request = message_of(request_class(step.key), body, step.version)
        if isinstance(step, UserStep):
            self._client.send(in_envelope(step, request), 0)
        else:
            self._client.send(request, step.version)
        return body

    def receive(self, step: Step) -> Json:
        assert self._client is not None
        frame = self._client.read_frame()
        if frame is None:
            self.hang_up()
            return NO_ANSWER
        if isinstance(step, UserStep):
            return opened(step, frame)
        kind = response_class(step.key)
        _, response = decode_response_frame(frame, response_class=kind, version=step.version)
        return to_json(response, step.version)

    def ask(self, api: str, body: Body) -> Json:
        """Send a request of the newest version and return the answer."""
        step = Step(api, request_class(API_KEYS[api]).MAX_VERSION, body)
        self.send(step)
        return self.receive(step)

    def take_records(self) -> list[LogRecord]:
        """Return what was written since the last call, and take it into the view."""
        records = self.log.read()
        self.view.fold(records)
        if others := without_own_registration(records):
            self.view.end_offset = others[-1].offset + 1
        return records


def without_own_registration(records: Sequence[LogRecord]) -> list[LogRecord]:
    """Leave out the controller's registration of itself, which comes when it comes."""
    return [
        record
        for record in records
        if not (
            record.type == "RegisterControllerRecord" and record.data["controllerId"] == NODE_ID
        )
    ]


CLIENT_ID: Final = "inner"
CORRELATION_ID: Final = 5


@dataclass(frozen=True, slots=True)
class UserStep(Step):
    """One request of a user at a host."""

    user: str = "User:alice"
    host: str = "10.1.2.3"

    def as_json(self) -> str:
        return Step.as_json(self).removesuffix("}") + f', "user": "{self.user}"}}'


def in_envelope(step: UserStep, request: Message) -> EnvelopeRequest:
    """Return the request as a broker passes it on.

    The broker is the connection that all requests come by. What the controller answers is the error
    of the envelope and the answer inside.
    """
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
