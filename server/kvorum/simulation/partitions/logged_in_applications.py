"""The applications of users that log in, and the operator who changes what they may.

Writers and readers have a password and their permission at times; a stranger has a password, and
never a permission.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.controller.api import ControllerResult, Pieces
from kvorum.controller.requests import handle
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.credentials_image import SCRAM_ITERATIONS_MIN, ScramMechanism
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import ANONYMOUS, Access, AuthorizerRules
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.clients import Consumer, Producer
from kvorum.simulation.partitions.controller_tasks import run_task
from kvorum.simulation.partitions.logged_in_client import PASSWORDS, LoggedInClient, password_of
from kvorum.simulation.partitions.login_book import LoginBook, Stored, principal_of
from kvorum.simulation.partitions.settings import PEACE_FROM_MS, TOPIC
from kvorum.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kvorum.wire.messages.create_acls import CreateAclsRequest
from kvorum.wire.messages.delete_acls import DeleteAclsRequest
from kvorum.wire.primitives import Message

WRITERS: Final = ("writer-0", "writer-1")
READERS: Final = ("reader-0", "reader-1")
STRANGER: Final = "stranger"
USERS: Final = (*WRITERS, *READERS, STRANGER)
FIRST_WRITER_ID: Final = 700
"""The producer id of the first writer."""
STRANGERS_ID: Final = 790
CHANGE_MS: Final = 120
"""The time from one change by the operator to the next."""
IS_ABOUT_PASSWORD: Final = 0.6
IS_TAKEN_AWAY: Final = 0.4
_ANY_HOST: Final = "*"
_OPERATORS_ACCESS: Final = Access(
    AuthorizerRules(frozenset({ANONYMOUS.text})), None, ANONYMOUS, "127.0.0.1"
)


class LoggedInApplications:
    """All clients that log in, and their operator."""

    def __init__(self, around: BrokerSurroundings, book: LoginBook) -> None:
        self._around = around
        self._operator = LoginOperator(around, book)
        random = around.random_for("users")
        indexes = [random.randrange(around.settings.partitions) for _ in WRITERS]
        ids = range(FIRST_WRITER_ID, FIRST_WRITER_ID + len(WRITERS))
        self._writers = [
            Producer(around, index, acks=ALL_IN_SYNC, producer_id=producer_id)
            for index, producer_id in zip(indexes, ids, strict=True)
        ]
        self._stranger = Producer(around, 0, acks=ALL_IN_SYNC, producer_id=STRANGERS_ID)
        around.ledger.strangers.add(STRANGERS_ID)
        self._readers = [Consumer(around, index) for index in (*indexes, 0)]
        clients = (*self._writers, *self._readers, self._stranger)
        for user, client in zip((*USERS, STRANGER), clients, strict=True):
            others = tuple(one for one in USERS if one != user)
            client.login = LoggedInClient(around, book, user=user, others=others, random=random)

    def begin(self) -> None:
        """Let all of them do what they do again and again."""
        every = self._around.every
        every(CHANGE_MS, self._operator.step)
        for producer in (*self._writers, self._stranger):
            every(24, producer.step)
        for consumer in self._readers:
            every(40, consumer.step)

    def check_end(self, waiting: Collection[int]) -> None:
        """Check that the writers have come to an end, who may write in peace."""
        for producer in self._writers:
            if producer.index not in waiting:
                self._around.checks.demand(
                    promises.WRITES_END, producer.describe(), holds=producer.is_idle
                )


class LoginOperator:
    """The operator, who sets, changes and removes passwords, and gives and takes permissions.

    In peace each user has a password again, and the permission.
    """

    def __init__(self, around: BrokerSurroundings, book: LoginBook) -> None:
        self._around = around
        self._book = book
        self._random: Random = around.random_for("operator of users")
        self._changes = 0

    def step(self) -> None:
        """Change one thing about one user, or give back what is missing."""
        request = self._change() if self._around.now_ms < PEACE_FROM_MS else self._restore()
        if request is not None:
            run_task(self._around.quorum, partial(_decide, request))

    def _change(self) -> Message | None:
        random = self._random
        user = random.choice(USERS)
        is_taken = random.random() < IS_TAKEN_AWAY
        if user == STRANGER or random.random() < IS_ABOUT_PASSWORD:
            if is_taken and self._book.has_password(user):
                return _without_password(user)
            self._changes += 1
            return _with_password(user, password_of(user, self._changes))
        return _without_permission(user) if is_taken else _with_permission(user)

    def _restore(self) -> Message | None:
        for user in USERS:
            if not self._book.has_password(user):
                return _with_password(user, password_of(user, PASSWORDS))
            if user != STRANGER and not self._book.permissions(user):
                return _with_permission(user)
        return None


def _decide(
    request: Message, image: MetadataImage, context: ControllerRequestContext
) -> Pieces[ControllerResult[bool]]:
    """Decide on a request as a controller does, with an authorizer that lets the operator."""
    yield from ()
    result = handle(image, request, replace(context, access=_OPERATORS_ACCESS))
    return ControllerResult(False, result.records)


def _operation_of(user: str) -> AclOperation:
    return AclOperation.WRITE if user in WRITERS else AclOperation.READ


def _with_password(user: str, password: str) -> Message:
    stored = Stored.of(password)
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        user,
        ScramMechanism.SCRAM_SHA_256,
        SCRAM_ITERATIONS_MIN,
        stored.salt,
        stored.salted_password,
    )
    return AlterUserScramCredentialsRequest([], [upsertion])


def _without_password(user: str) -> Message:
    deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion(
        user, ScramMechanism.SCRAM_SHA_256
    )
    return AlterUserScramCredentialsRequest([deletion], [])


def _with_permission(user: str) -> Message:
    creation = CreateAclsRequest.AclCreation(
        resource_type=AclResourceType.TOPIC,
        resource_name=TOPIC,
        resource_pattern_type=PatternType.LITERAL,
        principal=principal_of(user).text,
        host=_ANY_HOST,
        operation=_operation_of(user),
        permission_type=PermissionType.ALLOW,
    )
    return CreateAclsRequest([creation])


def _without_permission(user: str) -> Message:
    wanted = DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=AclResourceType.TOPIC,
        resource_name_filter=TOPIC,
        pattern_type_filter=PatternType.LITERAL,
        principal_filter=principal_of(user).text,
        host_filter=_ANY_HOST,
        operation=_operation_of(user),
        permission_type=PermissionType.ALLOW,
    )
    return DeleteAclsRequest([wanted])
