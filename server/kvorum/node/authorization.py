"""The authorization of clients, by the access control entries that this node knows."""

from kvorum.metadata.standard_authorizer import (
    UNRESTRICTED,
    Access,
    AuthorizerRules,
    Principal,
    host_text,
)
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode


class Authorizer:
    """Decides what a client may do, by the committed access control entries."""

    def __init__(
        self, rules: AuthorizerRules | None, *, loader: MetadataLoader, raft: RaftNode
    ) -> None:
        self._rules = rules
        self._loader = loader
        self._raft = raft
        self._is_loaded = False

    def access(self, principal: Principal, host: str, request: str = "") -> Access:
        """Return what `principal` may do from `host`, by the entries of this moment.

        The log names `request` as what asks.
        """
        if self._rules is None:
            return UNRESTRICTED
        acls = self._loader.published.acls if self._has_loaded() else None
        return Access(self._rules, acls, principal, host_text(host), request)

    def _has_loaded(self) -> bool:
        """Return whether all entries that were committed before this node's start are known."""
        if not self._is_loaded:
            end_offset = self._raft.high_watermark
            self._is_loaded = (
                end_offset is not None and self._loader.published_offset + 1 >= end_offset
            )
        return self._is_loaded
