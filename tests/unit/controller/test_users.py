"""Quotas, SCRAM credentials and delegation tokens: what is written, and every refusal."""

import hashlib
import hmac
import math
from dataclasses import replace

import pytest
from tests.support.controller_under_test import SETTINGS, ControllerUnderTest, started_cluster

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.describe_delegation_token import describe_delegation_token
from kvorum.controller.apis.create_delegation_token import create_delegation_token
from kvorum.controller.apis.expire_delegation_token import expire_delegation_token
from kvorum.controller.apis.renew_delegation_token import renew_delegation_token
from kvorum.controller.delegation_tokens import expire_tokens
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acls_image import AclsImage, replay_access_control_entry
from kvorum.metadata.delegation_tokens import TokenSecrets, TokenSettings
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.standard_authorizer import Access, AuthorizerRules, Principal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from kvorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kvorum.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord

NOW_MS = 1_700_000_000_000
KEY = b"the cluster's secret"
ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
DAY_MS = 86_400_000
SECRETS = TokenSecrets(TokenSettings(KEY, lifetime_ms_max=7 * DAY_MS, expiry_ms=DAY_MS))
OF_BOB = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob")


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
        (
            USER | IP,
            RATE,
            1,
            (
                "Invalid quota entity combination, IP entity shouldnot be combined with User or "
                "ClientId"
            ),
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


@pytest.fixture
def controller() -> ControllerUnderTest:
    found = started_cluster(brokers=1)
    found.settings = replace(SETTINGS, token_secrets=TokenSecrets(SECRETS.settings))
    return found


def asked_by(
    controller: ControllerUnderTest,
    principal: Principal,
    *,
    after_ms: int = 0,
    api_version: int = 3,
) -> ControllerRequestContext:
    context = controller.context(api_version)
    return replace(context, principal=principal, wall_clock_ms=NOW_MS + after_ms)


def renewable_by(name: str, kind: str = "User") -> CreateDelegationTokenRequest:
    renewer = CreateDelegationTokenRequest.CreatableRenewers(kind, name)
    return CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1)


def create(
    controller: ControllerUnderTest, request: CreateDelegationTokenRequest | None = None
) -> CreateDelegationTokenResponse:
    """Make a token of alice's that bob may renew."""
    asked = request or renewable_by("bob")
    result = create_delegation_token(controller.image, asked, asked_by(controller, ALICE))
    controller.run(result)
    return result.response


def renew(
    controller: ControllerUnderTest,
    secret: bytes,
    *,
    by: Principal = ALICE,
    period_ms: int = -1,
    after_ms: int = 0,
) -> RenewDelegationTokenResponse:
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
    context = asked_by(controller, by, after_ms=after_ms)
    result = renew_delegation_token(controller.image, request, context)
    controller.run(result)
    return result.response


def expire(
    controller: ControllerUnderTest,
    secret: bytes,
    *,
    by: Principal = ALICE,
    period_ms: int = -1,
    after_ms: int = 0,
) -> ExpireDelegationTokenResponse:
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
    context = asked_by(controller, by, after_ms=after_ms)
    result = expire_delegation_token(controller.image, request, context)
    controller.run(result)
    return result.response


def test_a_token_is_made_for_who_asks(controller: ControllerUnderTest) -> None:
    response = create(controller)
    assert response.error_code == 0
    assert (response.principal_type, response.principal_name) == ("User", "alice")
    assert response.token_requester_principal_name == "alice"
    assert response.issue_timestamp_ms == NOW_MS
    assert response.expiry_timestamp_ms == NOW_MS + DAY_MS
    assert response.max_timestamp_ms == NOW_MS + 7 * DAY_MS
    assert response.hmac == hmac.digest(KEY, response.token_id.encode(), hashlib.sha512)
    ((record, version),) = controller.last_records
    assert isinstance(record, DelegationTokenRecord)
    assert (record.owner, record.requester) == ("User:alice", "User:alice")
    assert record.renewers == ["User:bob"]
    assert version == 0
    assert list(controller.image.delegation_tokens.tokens) == [response.token_id]


def test_a_short_life_is_shorter_than_the_time_between_renewals(
    controller: ControllerUnderTest,
) -> None:
    response = create(controller, CreateDelegationTokenRequest(max_lifetime_ms=1_000))
    assert response.max_timestamp_ms == response.expiry_timestamp_ms == NOW_MS + 1_000
    response = create(controller, CreateDelegationTokenRequest(max_lifetime_ms=2**63 - 1))
    assert response.max_timestamp_ms == NOW_MS + 7 * DAY_MS


def test_a_token_for_another_user_keeps_its_requester(controller: ControllerUnderTest) -> None:
    response = create(controller, OF_BOB)
    assert (response.principal_name, response.token_requester_principal_name) == ("bob", "alice")
    context = asked_by(controller, ALICE, api_version=2)
    old = create_delegation_token(controller.image, OF_BOB, context).response
    assert (old.principal_name, old.token_requester_principal_name) == ("bob", "")


def test_renewers_are_users(controller: ControllerUnderTest) -> None:
    response = create(controller, renewable_by("g", kind="Group"))
    assert response.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert controller.last_records == ()


def test_without_a_key_there_are_no_tokens(controller: ControllerUnderTest) -> None:
    controller.settings = SETTINGS
    assert create(controller).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert renew(controller, b"x").error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert expire(controller, b"x").error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_before_their_metadata_version_tokens_are_refused() -> None:
    old = started_cluster(brokers=1, version=MetadataVersion.V3_6_IV1)
    old.settings = replace(SETTINGS, token_secrets=SECRETS)
    assert create(old).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert renew(old, b"x").error_code == ErrorCode.UNSUPPORTED_VERSION
    assert expire(old, b"x").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_owner_and_renewer_renew_up_to_the_end(controller: ControllerUnderTest) -> None:
    secret = create(controller).hmac
    assert renew(controller, secret, period_ms=5_000).expiry_timestamp_ms == NOW_MS + 5_000
    renewed = renew(controller, secret, by=BOB, period_ms=3 * DAY_MS)
    assert renewed.expiry_timestamp_ms == NOW_MS + DAY_MS
    (token,) = controller.image.delegation_tokens.tokens.values()
    assert token.expiration_timestamp_ms == NOW_MS + DAY_MS
    for day in range(1, 7):
        renewed = renew(controller, secret, after_ms=day * DAY_MS)
    assert renewed.expiry_timestamp_ms == NOW_MS + 7 * DAY_MS
    late = renew(controller, secret, after_ms=6 * DAY_MS + 5)
    assert late.expiry_timestamp_ms == NOW_MS + 7 * DAY_MS
    assert renew(controller, secret, after_ms=7 * DAY_MS + 1).error_code == (
        ErrorCode.DELEGATION_TOKEN_EXPIRED
    )


def test_no_other_user_renews_or_ends_a_token(controller: ControllerUnderTest) -> None:
    secret = create(controller).hmac
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(controller, secret, by=CAROL).error_code == mismatch
    assert expire(controller, secret, by=CAROL).error_code == mismatch
    not_found = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert renew(controller, b"another").error_code == not_found
    assert expire(controller, b"another").error_code == not_found


def test_a_token_ends_at_once_or_after_a_while(controller: ControllerUnderTest) -> None:
    secret = create(controller).hmac
    assert expire(controller, secret, period_ms=7).expiry_timestamp_ms == NOW_MS + 7
    over = expire(controller, secret, period_ms=7, after_ms=8)
    assert over.error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(controller, secret, by=BOB, after_ms=8).expiry_timestamp_ms == NOW_MS + 8
    assert not controller.image.delegation_tokens.tokens
    assert expire(controller, secret).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_expired_tokens_are_removed_a_thousand_a_run(controller: ControllerUnderTest) -> None:
    for _ in range(1_001):
        create(controller, CreateDelegationTokenRequest(max_lifetime_ms=10))
    lasting = create(controller)
    context = asked_by(controller, ALICE, after_ms=11)
    assert expire_tokens(controller.image, asked_by(controller, ALICE, after_ms=10)).records == ()
    first = expire_tokens(controller.image, context)
    assert (first.response, len(first.records)) == (True, 1_000)
    controller.run(first)
    second = expire_tokens(controller.image, context)
    assert (second.response, len(second.records)) == (False, 1)
    controller.run(second)
    assert list(controller.image.delegation_tokens.tokens) == [lasting.token_id]


def test_secrets_of_tokens_that_are_gone_are_forgotten(controller: ControllerUnderTest) -> None:
    secrets = TokenSecrets(SECRETS.settings)
    gone = create(controller).hmac
    assert secrets.find(controller.image.delegation_tokens, gone) is not None
    expire(controller, gone)
    assert secrets.find(controller.image.delegation_tokens, gone) is None
    there = create(controller).hmac
    assert secrets.find(controller.image.delegation_tokens, there) is not None


def described(
    controller: ControllerUnderTest, principal: Principal, *, owners: list[str] | None = None
) -> list[str]:
    """Return the owners of the tokens that `principal` is shown."""
    entry = AccessControlEntryRecord(
        bytes(16),
        AclResourceType.USER,
        "User:bob",
        PatternType.LITERAL,
        "User:dave",
        "*",
        AclOperation.DESCRIBE_TOKENS,
        PermissionType.ALLOW,
    )
    view = BrokerView(
        node_id=1,
        cluster_id="c",
        listener="l",
        api_version=3,
        access=Access(
            AuthorizerRules(), replay_access_control_entry(AclsImage(), entry), principal, "host"
        ),
        token_settings=SECRETS.settings,
        may_ask_about_tokens=True,
    )
    request = DescribeDelegationTokenRequest(owners=None)
    if owners is not None:
        request.owners = [
            DescribeDelegationTokenRequest.DescribeDelegationTokenOwner("User", owner)
            for owner in owners
        ]
    response = describe_delegation_token(controller.image, request, view)
    assert response.error_code == 0
    assert all(token.hmac == SECRETS.of(token.token_id) for token in response.tokens)
    return sorted(token.principal_name for token in response.tokens)


def test_tokens_are_shown_to_those_who_have_to_do_with_them(
    controller: ControllerUnderTest,
) -> None:
    create(controller, OF_BOB)
    create(controller, renewable_by("carol"))
    assert described(controller, ALICE) == ["alice", "bob"]
    assert described(controller, BOB) == ["bob"]
    assert described(controller, CAROL) == ["alice"]
    assert described(controller, Principal("User", "dave")) == ["bob"]
    assert described(controller, Principal("User", "eve")) == []
    assert described(controller, ALICE, owners=["bob"]) == ["bob"]
    assert described(controller, ALICE, owners=[]) == []
