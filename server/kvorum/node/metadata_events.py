"""Log lines for committed changes of brokers, controllers, features and voters.

Successive published images are compared: parts that did not change are the same objects, so that
the comparison costs next to nothing. Changes from before the moment when this node had loaded the
whole log are history, which one line summarises.
"""

import logging
from collections.abc import Iterator
from typing import Protocol

from kvorum.metadata.cluster_image import BrokerRegistration
from kvorum.metadata.image import ImageDelta, MapDelta, MetadataImage
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.uuid_text import uuid_to_text

_log = logging.getLogger(__name__)


class Replica(Protocol):
    """The methods of the metadata log's replica that the events need."""

    @property
    def leader_high_watermark(self) -> int | None:
        """Return the leader's high watermark; None if this replica does not know it."""
        ...

    @property
    def voters(self) -> VoterSet:
        """Return the voters as of the log's end."""
        ...


class MetadataEvents:
    """A subscriber of a loader that logs changes, once the loader has caught up with the log."""

    def __init__(self, loader: MetadataLoader, raft: Replica) -> None:
        self._loader = loader
        self._raft = raft
        self._last: MetadataImage | None = None
        self._voters = VoterSet()
        loader.subscribe(self._on_published, doing="logging what has changed")

    def _on_published(self, image: MetadataImage) -> None:
        if self._last is None:
            high_watermark = self._raft.leader_high_watermark
            if high_watermark is not None and self._loader.last_offset >= high_watermark - 1:
                self._begin(image)
            return
        before, self._last = self._last, image
        voters = self._raft.voters
        if voters is not self._voters:
            self._tell_voters(voters)
        delta = ImageDelta(before, image)
        if before.cluster is not image.cluster or before.features is not image.features:
            for event in changes(delta):
                _log.info(event)

    def _begin(self, image: MetadataImage) -> None:
        self._last, self._voters = image, self._raft.voters
        self._loader.measures.caught_up()
        brokers = image.cluster.brokers
        _log.info(
            LogEvent(
                "All committed metadata is known here",
                offset=self._loader.published_offset,
                voters=_ids(self._voters),
                brokers=len(brokers),
                fenced=sum(broker.is_fenced for broker in brokers.values()),
                topics=len(image.topics.by_id),
                metadata_version=image.features.all_levels().get("metadata.version"),
            )
        )

    def _tell_voters(self, voters: VoterSet) -> None:
        before, self._voters = self._voters, voters
        known, new = set(before.voters), set(voters.voters)
        if known == new:
            return
        _log.info(
            LogEvent(
                "The voters of the quorum have changed",
                voters=_ids(voters),
                added=_ids(VoterSet.of(new - known)) or None,
                removed=_ids(VoterSet.of(known - new)) or None,
            )
        )


def _ids(voters: VoterSet) -> str:
    return ",".join(map(str, voters.ids))


def changes(delta: ImageDelta) -> Iterator[LogEvent]:
    """Yield an event for each change of a broker, a controller or a feature."""
    yield from _of_brokers(delta.brokers)
    for controller in delta.controllers.added.values():
        yield LogEvent("A controller has registered", controller=controller.id)
    for old, new in delta.controllers.changed.values():
        if old.incarnation_id != new.incarnation_id:
            yield LogEvent("A controller has registered", controller=new.id)
    features = delta.features
    for name, level in features.added.items():
        yield LogEvent("A feature is on", feature=name, level=level)
    for name, (old_level, level) in features.changed.items():
        yield LogEvent("A feature has changed", feature=name, level=level, before=old_level)
    for name, level in features.removed.items():
        yield LogEvent("A feature is off", feature=name, before=level)


def _of_brokers(delta: MapDelta[int, BrokerRegistration]) -> Iterator[LogEvent]:
    for broker in delta.added.values():
        yield _registered(broker)
        if not broker.is_fenced:
            yield _unfenced(broker)
    for old, new in delta.changed.values():
        yield from _of_broker(old, new)
    for broker in delta.removed.values():
        yield LogEvent("A broker is unregistered", broker=broker.id, epoch=broker.epoch)


def _of_broker(old: BrokerRegistration, new: BrokerRegistration) -> Iterator[LogEvent]:
    if new.epoch != old.epoch:
        yield _registered(new)
    if new.is_fenced and not old.is_fenced:
        yield LogEvent("A broker is fenced", broker=new.id, epoch=new.epoch)
    if not new.is_fenced and old.is_fenced:
        yield _unfenced(new)
    if new.is_in_controlled_shutdown and not old.is_in_controlled_shutdown:
        yield LogEvent("A broker is being shut down in order", broker=new.id, epoch=new.epoch)
    if new.epoch == old.epoch and set(old.directories) - set(new.directories):
        yield LogEvent(
            "A broker has lost log directories",
            broker=new.id,
            lost=_directories(set(old.directories) - set(new.directories)),
            left=len(new.directories),
        )
    if set(new.cordoned_directories or ()) != set(old.cordoned_directories or ()):
        yield LogEvent(
            "A broker's cordoned log directories have changed",
            broker=new.id,
            cordoned=_directories(set(new.cordoned_directories or ())) or "none",
        )


def _registered(broker: BrokerRegistration) -> LogEvent:
    return LogEvent(
        "A broker has registered",
        broker=broker.id,
        epoch=broker.epoch,
        incarnation=uuid_to_text(broker.incarnation_id),
        rack=broker.rack,
    )


def _unfenced(broker: BrokerRegistration) -> LogEvent:
    return LogEvent("A broker is unfenced", broker=broker.id, epoch=broker.epoch)


def _directories(ids: set[bytes]) -> str:
    return ",".join(sorted(map(uuid_to_text, ids)))
