"""An authorizer decides once it knows what was committed before the node started."""

from types import SimpleNamespace
from typing import cast

import pytest

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.principal import ANONYMOUS, Principal
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.standard_authorizer import AuthorizerRules
from kvorum.node.authorization import Authorizer
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.wire.error_codes import ErrorCode

RULES = AuthorizerRules(frozenset({"User:root"}), allows_without_entries=True)


def test_until_the_log_is_read_only_super_users_are_let_in() -> None:
    raft = SimpleNamespace(high_watermark=None)
    loader = MetadataLoader()
    authorizer = Authorizer(RULES, loader=loader, raft=cast("RaftNode", raft))

    def is_let_in(principal: Principal) -> bool:
        access = authorizer.access(principal, "10.0.0.1")
        return access.allows_on_cluster(AclOperation.CLUSTER_ACTION)

    for end_offset, published_offset in ((None, -1), (5, -1), (5, 3)):
        raft.high_watermark, loader.published_offset = end_offset, published_offset
        assert is_let_in(Principal(name="root"))
        with pytest.raises(RequestError) as caught:
            is_let_in(ANONYMOUS)
        assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    loader.published_offset = 4
    assert is_let_in(ANONYMOUS)
    # Later commits reach the entries a moment later, as everything published does.
    raft.high_watermark = 9
    assert is_let_in(ANONYMOUS)


def test_without_rules_no_request_waits() -> None:
    raft = cast("RaftNode", SimpleNamespace(high_watermark=None))
    authorizer = Authorizer(None, loader=MetadataLoader(), raft=raft)
    assert not authorizer.access(ANONYMOUS, "10.0.0.1").is_restricted
