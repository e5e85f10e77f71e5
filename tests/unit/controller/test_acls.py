"""Access control entries: what is created, what is refused, what filters remove."""

from dataclasses import asdict, replace

import pytest
from tests.support.controller_under_test import ControllerUnderTest, started_cluster

from kvorum.controller.acls import admit_with_authorizer
from kvorum.controller.api import Requester
from kvorum.controller.apis.create_acls import create_acls
from kvorum.controller.apis.delete_acls import delete_acls
from kvorum.controller.requests import controller_api, handle
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.api import RequestError
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED, Access, AuthorizerRules
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kvorum.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

MANY_DIGITS = "9" * 5000
"""A number of more digits than Python reads."""
NOBODY_KNOWS = 99
NO_COLON = (
    "Could not parse principal from `alice` (no colon is present separating the principal type "
    "from the principal name)"
)


@pytest.fixture
def controller() -> ControllerUnderTest:
    return started_cluster(brokers=1, version=MetadataVersion.V4_4_IV1)


def restricted(controller: ControllerUnderTest) -> ControllerRequestContext:
    """The context of a request to a controller with an authorizer."""
    return replace(
        controller.context(3),
        access=Access(AuthorizerRules(), controller.image.acls, ANONYMOUS, "host"),
    )


def creation(
    *,
    resource_type: int = AclResourceType.TOPIC,
    name: str = "a",
    pattern_type: int = PatternType.LITERAL,
    principal: str = "User:alice",
    operation: int = AclOperation.READ,
    permission_type: int = PermissionType.ALLOW,
    host: str = "*",
) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )


def create(
    controller: ControllerUnderTest, *creations: CreateAclsRequest.AclCreation
) -> list[tuple[int, str | None]]:
    """Create entries, and take them into the image; return the error of each."""
    request = CreateAclsRequest(creations=list(creations))
    result = create_acls(controller.image, request, restricted(controller))
    controller.run(result)
    return [(each.error_code, each.error_message) for each in result.response.results]


def any_filter(
    *,
    resource_type: int = AclResourceType.ANY,
    name: str | None = None,
    pattern_type: int = PatternType.ANY,
    operation: int = AclOperation.ANY,
    permission_type: int = PermissionType.ANY,
) -> DeleteAclsRequest.DeleteAclsFilter:
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=resource_type,
        resource_name_filter=name,
        pattern_type_filter=pattern_type,
        principal_filter=None,
        host_filter=None,
        operation=operation,
        permission_type=permission_type,
    )


def delete(
    controller: ControllerUnderTest, *filters: DeleteAclsRequest.DeleteAclsFilter
) -> DeleteAclsResponse:
    request = DeleteAclsRequest(filters=list(filters))
    result = delete_acls(controller.image, request, restricted(controller))
    controller.run(result)
    return result.response


def test_an_entry_is_created_once(controller: ControllerUnderTest) -> None:
    assert create(controller, creation(), creation(), creation(name="b")) == [(0, "")] * 3
    assert len(controller.last_records) == 2
    assert len(controller.image.acls.entries) == 2
    assert create(controller, creation()) == [(0, "")]
    assert not controller.last_records


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (
            creation(resource_type=AclResourceType.CLUSTER),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (creation(name=""), "Invalid empty resource name"),
        (creation(host=""), "Host pattern cannot be null or empty"),
        (
            creation(host="10.0.0.0/33"),
            "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]",
        ),
        (creation(host="10.0.0/8"), "Invalid CIDR notation '10.0.0/8': Could not parse [10.0.0/8]"),
        (
            creation(host="2001:db8::/129"),
            (
                "Invalid CIDR notation '2001:db8::/129': Could not parse [2001:db8::/129] - prefix "
                "length must be between 0 and 128"
            ),
        ),
        (
            creation(host=f"::/{MANY_DIGITS}"),
            (
                f"Invalid CIDR notation '::/{MANY_DIGITS}': Could not parse [::/{MANY_DIGITS}] - "
                "invalid prefix length"
            ),
        ),
        (creation(resource_type=NOBODY_KNOWS), "Invalid resourceType UNKNOWN"),
        (creation(pattern_type=NOBODY_KNOWS), "Invalid patternType UNKNOWN"),
        (creation(operation=NOBODY_KNOWS), "Invalid operation UNKNOWN"),
        (creation(permission_type=NOBODY_KNOWS), "Invalid permissionType UNKNOWN"),
        (creation(principal="alice"), NO_COLON),
    ],
)
def test_what_makes_no_sense_is_refused_by_itself(
    controller: ControllerUnderTest, refused: CreateAclsRequest.AclCreation, message: str
) -> None:
    answers = create(controller, refused, creation())
    assert answers == [(ErrorCode.INVALID_REQUEST, message), (ErrorCode.NONE, "")]
    assert len(controller.last_records) == 1


def test_ranges_of_addresses_need_their_metadata_version() -> None:
    ranges = [creation(host="10.0.0.0/8"), creation(host="2001:db8::/32"), creation(host="a/b")]
    older = started_cluster(brokers=1, version=MetadataVersion.V4_3_IV0)
    problem = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    refused = (ErrorCode.UNSUPPORTED_VERSION, problem)
    assert create(older, *ranges, creation()) == [refused, refused, refused, (ErrorCode.NONE, "")]
    current = started_cluster(brokers=1, version=MetadataVersion.V4_4_IV1)
    codes = [code for code, _ in create(current, *ranges)]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(
    "of_filter",
    [
        creation(resource_type=AclResourceType.ANY),
        creation(pattern_type=PatternType.ANY),
        creation(pattern_type=PatternType.MATCH),
        creation(operation=AclOperation.ANY),
        creation(permission_type=PermissionType.ANY),
    ],
)
def test_what_only_filters_know_fails_the_whole_request(
    controller: ControllerUnderTest, of_filter: CreateAclsRequest.AclCreation
) -> None:
    request = CreateAclsRequest(creations=[creation(), of_filter])
    result = handle(controller.image, request, restricted(controller))
    assert result.records == ()
    assert isinstance(result.response, CreateAclsResponse)
    assert [(r.error_code, r.error_message) for r in result.response.results] == [(-1, None)] * 2


def test_too_many_entries_at_once_are_refused(controller: ControllerUnderTest) -> None:
    request = CreateAclsRequest(creations=[creation(name=f"t{number}") for number in range(10_001)])
    with pytest.raises(RequestError) as caught:
        create_acls(controller.image, request, restricted(controller))
    assert caught.value.code == ErrorCode.POLICY_VIOLATION


def test_without_an_authorizer_acls_are_refused() -> None:
    for request in (CreateAclsRequest(), DeleteAclsRequest()):
        assert controller_api(request).admit is admit_with_authorizer
    with pytest.raises(RequestError) as caught:
        admit_with_authorizer(CreateAclsRequest(), requester(UNRESTRICTED))
    assert caught.value.code == ErrorCode.SECURITY_DISABLED
    assert caught.value.message == "No Authorizer is configured."
    secured = Access(AuthorizerRules(), None, ANONYMOUS, "host")
    admit_with_authorizer(CreateAclsRequest(), requester(secured))


def requester(access: Access) -> Requester:
    return Requester(principal=ANONYMOUS, access=access, api_version=3, may_ask_about_tokens=False)


def test_filters_remove_what_they_are_about(controller: ControllerUnderTest) -> None:
    create(
        controller,
        creation(name="orders"),
        creation(name="ord", pattern_type=PatternType.PREFIXED),
        creation(name="*"),
        creation(name="other"),
        creation(name="orders", resource_type=AclResourceType.GROUP),
    )
    literal = any_filter(name="orders", resource_type=AclResourceType.TOPIC)
    holding = any_filter(
        name="orders", resource_type=AclResourceType.TOPIC, pattern_type=PatternType.MATCH
    )
    found = [
        sorted(match.resource_name for match in result.matching_acls)
        for result in delete(controller, literal, holding).filter_results
    ]
    assert found == [["orders"], ["*", "ord", "orders"]]
    assert len(controller.last_records) == 3
    left = {(e.resource_type, e.resource_name) for e in controller.image.acls.entries.values()}
    assert left == {(AclResourceType.TOPIC, "other"), (AclResourceType.GROUP, "orders")}


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        (any_filter(resource_type=NOBODY_KNOWS), "Unknown patternFilter."),
        (any_filter(pattern_type=NOBODY_KNOWS), "Unknown patternFilter."),
        (any_filter(operation=NOBODY_KNOWS), "Unknown entryFilter."),
        (any_filter(permission_type=NOBODY_KNOWS), "Unknown entryFilter."),
    ],
)
def test_unknown_filters_are_refused_by_themselves(
    controller: ControllerUnderTest, unknown: DeleteAclsRequest.DeleteAclsFilter, message: str
) -> None:
    create(controller, creation())
    refused, done = delete(controller, unknown, any_filter()).filter_results
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert (done.error_code, len(done.matching_acls)) == (0, 1)


def test_removing_too_many_entries_at_once_removes_none(controller: ControllerUnderTest) -> None:
    def entry(number: int) -> AccessControlEntry:
        return AccessControlEntry(2, f"t{number}", 3, "User:alice", "*", 3, 3)

    records = (
        AccessControlEntryRecord(id=number.to_bytes(16, "big"), **asdict(entry(number)))
        for number in range(10_001)
    )
    controller.commit(tuple((record, 0) for record in records))
    assert entry(7) in controller.image.acls
    request = DeleteAclsRequest(filters=[any_filter()])
    result = handle(controller.image, request, restricted(controller))
    assert result.records == ()
    assert isinstance(result.response, DeleteAclsResponse)
    (refused,) = result.response.filter_results
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    problem = "Cannot remove more than 10000 acls in a single delete operation."
    assert refused.error_message == problem
