"""Errors of commands that talk to a cluster, with the exception classes of Kafka's clients.

::

    AdminError              one line for the user, and its cause where that adds something
    └── CallFailedError     a request was refused, or got no response in time
        └── NotSupportedByNodeError     a request that the node does not know was not sent

Kafka's tools print the Java class of an exception before its message. Scripts match on it, so our
tools print the same.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kvorum.metadata.known_error_code import known_error_code
from kvorum.wire.error_codes import ErrorCode

ERRORS_PACKAGE: Final = "org.apache.kafka.common.errors"
NOT_CREATED: Final = "Failed to create new KafkaAdminClient"
_OTHER_PACKAGES = MappingProxyType({ErrorCode.INVALID_RECORD: "org.apache.kafka.common"})
# Only codes whose class is not named after them.
_CLASSES = MappingProxyType(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
        ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
        ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
        ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
        ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
        ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
        ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
        ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
        ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
        ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
        ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
        ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
        ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
        ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
        ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
    }
)
_RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"


def class_of(code: ErrorCode) -> str:
    """Return the full name of the class that Kafka's clients raise for a code."""
    name = _CLASSES.get(code)
    if name is None:
        name = "".join(word.capitalize() for word in code.name.split("_"))
        name = name if name.endswith("Exception") else f"{name}Exception"
    return f"{_OTHER_PACKAGES.get(code, ERRORS_PACKAGE)}.{name}"


def is_retriable(code: ErrorCode) -> bool:
    """Return whether Kafka's clients retry after a response with this code."""
    return code in _RETRIABLE


class AdminError(Exception):
    """A command that cannot be carried out; `cause` is a second line, or empty."""

    def __init__(self, text: str, *, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The reason why a call failed: the exception class of Kafka's clients, and its message."""

    class_name: str
    text: str | None
    is_retriable: bool = False
    is_elsewhere: bool = False
    """Whether another node is the controller, so that it has to be looked up again."""

    def __str__(self) -> str:
        return self.class_name if self.text is None else f"{self.class_name}: {self.text}"


class CallFailedError(AdminError):
    """A call that failed."""

    def __init__(self, failure: Failure, *, cause: Failure | None = None) -> None:
        super().__init__(str(failure), cause="" if cause is None else str(cause))
        self.failure = failure


class NotSupportedByNodeError(CallFailedError):
    """A call that was not sent, because the node knows no version in which it can be written."""

    def __init__(self, text: str) -> None:
        super().__init__(
            Failure(class_name=f"{ERRORS_PACKAGE}.UnsupportedVersionException", text=text)
        )


def refusal(number: int, message: str | None) -> CallFailedError:
    """Return the error for a response's error code; without a message, with the default one."""
    code = known_error_code(number)
    text = code.default_message if message is None else message
    failure = Failure(class_name=class_of(code), text=text, is_retriable=is_retriable(code))
    return CallFailedError(failure)


def failed(name: str, text: str, *, can_be_retried: bool = False) -> CallFailedError:
    """Return the error for a failure that has no error code."""
    class_name = f"{ERRORS_PACKAGE}.{name}"
    return CallFailedError(Failure(class_name=class_name, text=text, is_retriable=can_be_retried))


def not_created(problem: str) -> AdminError:
    """Return the error of Kafka's tools for an admin client that cannot be created."""
    cause = f"{CONFIG_EXCEPTION}: {problem}"
    return AdminError(NOT_CREATED, cause=cause)
