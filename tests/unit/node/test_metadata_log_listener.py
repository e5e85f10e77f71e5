"""The listeners of a node's log: the loader first, then the registrations."""

from tests.unit.node.committed_batches import batch

from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.shared_server import MetadataLogListener
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord

LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


class Heard:
    """Writes down what it hears, with how far the loader has come by then."""

    def __init__(self, loader: MetadataLoader) -> None:
        self.calls: list[tuple[str, int]] = []
        self._loader = loader

    def committed(self) -> None:
        self.calls.append(("committed", self._loader.last_offset))

    def lead(self, epoch: int) -> None:
        self.calls.append((f"lead {epoch}", self._loader.last_offset))

    def renounce(self) -> None:
        self.calls.append(("renounce", self._loader.last_offset))

    def leader_found(self) -> None:
        self.calls.append(("leader found", self._loader.last_offset))


def test_the_loader_has_folded_in_a_commit_before_it_is_heard_of() -> None:
    loader = MetadataLoader()
    listener = MetadataLogListener(loader, on_failure=lambda _: None)
    heard = Heard(loader)
    listener.register(heard)
    listener.on_leader_change(1, 3)
    for _ in listener.on_commit([batch(0, LEVEL)]):
        pass
    listener.on_leadership_gained(3)
    listener.on_leadership_lost(3)
    assert heard.calls == [("leader found", -1), ("committed", 0), ("lead 3", 0), ("renounce", 0)]


def test_that_no_leader_is_known_is_not_counted_as_one() -> None:
    loader = MetadataLoader()
    listener = MetadataLogListener(loader, on_failure=lambda _: None)
    heard = Heard(loader)
    listener.register(heard)
    listener.on_leader_change(None, 4)
    assert heard.calls == []


def test_a_failure_of_the_log_is_passed_on() -> None:
    failures: list[Exception] = []
    listener = MetadataLogListener(MetadataLoader(), failures.append)
    error = OSError("the disk is gone")
    listener.on_failure(error)
    assert failures == [error]
