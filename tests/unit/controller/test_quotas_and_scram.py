"""AlterClientQuotas and AlterUserScramCredentials: what is written, and every refusal."""

import hashlib
import hmac
import math

import pytest
from tests.support.controller_under_test import ControllerUnderTest, started_cluster

from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from kvorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord


def entry(
    entity: dict[str, str | None], *operations: tuple[str, float | None]
) -> AlterClientQuotasRequest.EntryData:
    return AlterClientQuotasRequest.EntryData(
        entity=[
            AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[
            AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in operations
        ],
    )


def alter(
    controller: ControllerUnderTest,
    *entries: AlterClientQuotasRequest.EntryData,
    validate_only: bool = False,
) -> list[tuple[int, str | None]]:
    response = controller.answer(
        AlterClientQuotasResponse,
        AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only),
    )
    return [(answer.error_code, answer.error_message) for answer in response.entries]


def record(key: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    return ClientQuotaRecord([ClientQuotaRecord.EntityData("user", "a")], key, value, remove)


def test_quotas_are_set_changed_and_removed() -> None:
    controller = started_cluster(brokers=0)
    user: dict[str, str | None] = {"user": "a"}
    assert alter(controller, entry(user, ("producer_byte_rate", 100.0))) == [(0, None)]
    assert controller.written == [record("producer_byte_rate", 100.0)]
    assert alter(controller, entry(user, ("producer_byte_rate", 100.0))) == [(0, None)]
    assert controller.written == []
    changes = (("producer_byte_rate", None), ("request_percentage", 1.5), ("nothing", None))
    assert alter(controller, entry(user, *changes), validate_only=True) == [(0, None)]
    assert controller.written == []
    assert alter(controller, entry(user, *changes)) == [(0, None)]
    assert controller.written == [
        record("producer_byte_rate", 0.0, remove=True),
        record("request_percentage", 1.5),
    ]


USER, IP = {"user": "a"}, {"ip": "1.2.3.4"}
RATE = "producer_byte_rate"


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        ({}, RATE, 1, "Invalid empty client quota entity"),
        ({"planet": "x"}, "k", 1, "Unhandled client quota entity type: planet"),
        ({"user": ""}, RATE, 1, "Empty user not supported"),
        pytest.param(
            USER | IP,
            RATE,
            1,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId",
        ),
        (
            {"ip": "not an address"},
            "connection_creation_rate",
            1,
            "not an address is not a valid IP or resolvable host.",
        ),
        (USER, "k", 1, "Invalid configuration key k"),
        (IP, RATE, 1, "Invalid configuration key producer_byte_rate"),
        (USER, RATE, -1, "Quota producer_byte_rate must be greater than 0"),
        (USER, RATE, math.nan, "Quota producer_byte_rate must be a finite number"),
        (USER, RATE, math.inf, "Quota producer_byte_rate must be a finite number"),
        (USER, RATE, -math.inf, "Quota producer_byte_rate must be a finite number"),
        (USER, RATE, 1.5, "producer_byte_rate cannot be a fractional value."),
        (
            USER,
            "consumer_byte_rate",
            1e19,
            "Proposed value for consumer_byte_rate is too large for a LONG.",
        ),
        (
            {"ip": None},
            "connection_creation_rate",
            2.0**31,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_quotas_that_are_refused(
    entity: dict[str, str | None], key: str, value: float, message: str
) -> None:
    controller = started_cluster(brokers=0)
    assert alter(controller, entry(entity, (key, value))) == [(ErrorCode.INVALID_REQUEST, message)]
    assert controller.last_records == ()


def test_an_entity_that_comes_twice_is_refused_once_and_its_first_entry_counts() -> None:
    controller = started_cluster(brokers=0)
    twice = entry({"user": "a", "client-id": None}, ("producer_byte_rate", 1.0))
    other = entry({"user": "b"}, ("producer_byte_rate", 1.0))
    assert alter(controller, twice, other, twice) == [
        (42, "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=a})"),
        (0, None),
    ]
    assert len(controller.last_records) == 2


Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def upsertion(name: str, *, mechanism: int = 1, iterations: int = 4096) -> Upsertion:
    return Upsertion(name, mechanism, iterations, salt=b"salt", salted_password=b"salted")


def alter_users(
    controller: ControllerUnderTest, *changes: Deletion | Upsertion
) -> list[tuple[str, int, str | None]]:
    request = AlterUserScramCredentialsRequest()
    for change in changes:
        if isinstance(change, Deletion):
            request.deletions.append(change)
        else:
            request.upsertions.append(change)
    response = controller.answer(AlterUserScramCredentialsResponse, request)
    return [(r.user, r.error_code, r.error_message) for r in response.results]


@pytest.mark.parametrize(("mechanism", "digest"), [(1, "sha256"), (2, "sha512")])
def test_credentials_keep_keys_and_no_password(mechanism: int, digest: str) -> None:
    controller = started_cluster(brokers=0)
    assert alter_users(controller, upsertion("u", mechanism=mechanism)) == [("u", 0, None)]
    client_key = hmac.new(b"salted", b"Client Key", digest).digest()
    credential = UserScramCredentialRecord(
        name="u",
        mechanism=mechanism,
        salt=b"salt",
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.new(b"salted", b"Server Key", digest).digest(),
        iterations=4096,
    )
    assert controller.written == [credential]
    assert alter_users(controller, Deletion("u", mechanism)) == [("u", 0, None)]
    assert controller.written == [RemoveUserScramCredentialRecord(name="u", mechanism=mechanism)]


def test_credentials_that_are_refused() -> None:
    controller = started_cluster(brokers=0)
    again = "A user credential cannot be altered twice in the same request"
    answers = alter_users(
        controller,
        Deletion("gone", 1),
        Deletion("", 1),
        upsertion("strange", mechanism=3),
        upsertion("weak", iterations=4095),
        upsertion("slow", iterations=16385),
        upsertion("twice"),
        upsertion("twice", mechanism=2),
        upsertion("gone"),
        upsertion("good"),
    )
    assert answers[0] == ("good", 0, None)
    assert {name: (code, message) for name, code, message in answers[1:]} == {
        "gone": (91, "Attempt to delete a user credential that does not exist"),
        "": (93, "Username must not be empty"),
        "strange": (33, "Unknown SCRAM mechanism"),
        "weak": (93, "Too few iterations"),
        "slow": (93, "Too many iterations"),
        "twice": (92, again),
    }
    assert len(controller.last_records) == 1


def test_old_levels_have_no_credentials() -> None:
    controller = started_cluster(brokers=0, version=MetadataVersion.V3_5_IV1)
    assert alter_users(controller, upsertion("u")) == [
        ("u", 35, "The current metadata.version does not support SCRAM")
    ]
