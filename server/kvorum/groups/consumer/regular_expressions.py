"""Subscriptions by regular expression, matched with the topics by the coordinator (RE2's syntax).

A heartbeat that brings an expression, or that finds the matches to be old, has all expressions of
the group matched at once. The members hear of the topics with later heartbeats.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs] - it has no types

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.consumer_group.group import ConsumerGroup, ResolvedRegularExpression
from kvorum.groups.consumer_group.group_records import (
    group_epoch_record,
    regex_record,
    regex_tombstone,
)
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.modern_group.group import METADATA_REFRESH_MS
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import RegularExpressionsRefresh
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

REFRESH_MS_MIN: Final = 10_000
"""The time within which a group's expressions are not matched again; a constant in Kafka too."""
_RE2: Final[Any] = re2
_REASONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "invalid UTF-8": "invalid escape sequence",
    "trailing \\": "trailing backslash at end of expression",
}
"""The reasons of RE2/J, which a client gets, by those of RE2 where the words differ."""


@dataclass(slots=True)
class RegexChange:
    """The consequence of a member's expression; `is_resolved` if its topics change at once."""

    records: list[CoordinatorRecord] = field(default_factory=list[CoordinatorRecord])
    is_updated: bool = False
    is_resolved: bool = False


@dataclass(frozen=True, slots=True)
class RegularExpressions:
    """The expressions of a group at a heartbeat."""

    shard: ShardState
    context: RequestContext
    group: ConsumerGroup
    now_ms: int

    def change(self, before: ConsumerGroupMember, member: ConsumerGroupMember) -> RegexChange:
        """Return what a member's expression changes, and have all of them matched if it is time.

        Raises INVALID_REGULAR_EXPRESSION for one that is new to the group and that RE2 cannot read.
        """
        old, new = before.subscribed_topic_regex, member.subscribed_topic_regex
        change, is_new = RegexChange(), False
        subscribers = Counter(self.group.subscribed_regexes())
        if old != new:
            change.is_updated = True
            if old:
                subscribers[old] -= 1
                if not subscribers[old]:
                    change.records.append(regex_tombstone(self.group.group_id, old))
                change.is_resolved = not new
            if new:
                is_new = not subscribers[new]
                if is_new:
                    demand_valid(new)
                else:
                    change.is_resolved = self.group.resolved_regexes.get(new) is not None
                subscribers[new] += 1
        self._maybe_refresh(frozenset(+subscribers), is_new=is_new)
        return change

    def _maybe_refresh(self, regexes: frozenset[str], *, is_new: bool) -> None:
        group, shard = self.group, self.shard
        last_ms = group.last_regex_refresh_ms()
        is_recent = self.now_ms <= last_ms + REFRESH_MS_MIN
        if not regexes or is_recent or group.group_id in shard.resolving:
            return
        resolved_count = sum(1 for _ in group.resolved_regexes.items())
        is_old = self.now_ms > last_ms + shard.settings.consumer.regex_refresh_interval_ms
        has_new_topics = group.last_regex_version() < shard.new_topics_version
        if is_new or len(regexes) != resolved_count or has_new_topics or is_old:
            shard.resolving.add(group.group_id)
            refresh = RegularExpressionsRefresh(
                group.group_id, regexes, self.context.describable_topics
            )
            shard.outbox.set_timer(refresh, 0)


def demand_valid(regex: str) -> None:
    """Refuse an expression that RE2 cannot read with INVALID_REGULAR_EXPRESSION."""
    try:
        _RE2.compile(regex, _options())
    except _RE2.error as error:
        raise RequestError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: "
            f"{_reason(error.args[0].decode())}.",
        ) from error


def _reason(text: str) -> str:
    """Return the reason of RE2/J for a text of RE2: a reason, and the part of the expression."""
    reason, _, part = text.partition(": ")
    if part.startswith("(?<"):
        # RE2/J takes what looks behind for the name of a group.
        return "invalid named capture"
    return _REASONS.get(reason, reason)


def on_refresh(
    shard: ShardState, timeout: RegularExpressionsRefresh, now_ms: int
) -> list[CoordinatorRecord]:
    """Match the expressions with the topics; return the records, with a new epoch if it needs one.

    An expression without a subscriber by now is left out.
    """
    group_id = timeout.group_id
    shard.resolving.discard(group_id)
    group = shard.find_consumer_group(group_id)
    if group is None:
        return []
    version = shard.image.last_offset
    records: list[CoordinatorRecord] = []
    has_changed = False
    found = {
        regex: ResolvedRegularExpression(topics, version, now_ms)
        for regex, topics in _matches(shard, timeout).items()
        if group.regex_subscriber_count(regex)
    }
    for regex, resolved in found.items():
        before = group.resolved_regexes.get(regex)
        # An expression that has not been resolved has no topics yet.
        had = frozenset[str]() if before is None else before.topics
        has_changed = has_changed or had != resolved.topics
        records.append(regex_record(group_id, regex, resolved))
    # Expressions that were not matched now keep the topics that they have.
    resolved_regexes = dict(group.resolved_regexes.items()) | found
    topics = frozenset[str]().union(
        *(member.subscribed_topic_names for member in group.members.values()),
        *(resolved.topics for resolved in resolved_regexes.values()),
    )
    epochs = group.epochs()
    metadata_hash = shard.topic_hashes.of_group(topics, shard.image)
    if has_changed or metadata_hash != epochs.metadata_hash:
        group_epoch = epochs.group_epoch + 1
        records.append(group_epoch_record(group_id, group_epoch, metadata_hash))
        group.set_metadata_deadline(now_ms + METADATA_REFRESH_MS, group_epoch)
    return records


def _matches(shard: ShardState, timeout: RegularExpressionsRefresh) -> dict[str, OrderedSet[str]]:
    """Return the topics that each expression matches whole, and that the client may know of."""
    names = list(shard.image.topics.ids)
    found: dict[str, list[str]] = {}
    for regex in sorted(timeout.regexes):
        try:
            pattern = _RE2.compile(regex, _options())
        except _RE2.error:
            # A log may have one that this library does not know.
            found[regex] = []
            continue
        found[regex] = [name for name in names if pattern.fullmatch(name)]
    describable = timeout.describable(sorted(frozenset[str]().union(*found.values())))
    return {
        regex: OrderedSet(names_in_order(sorted(describable.intersection(topics))))
        for regex, topics in found.items()
    }


def _options() -> Any:
    options = _RE2.Options()
    options.log_errors = False
    return options
