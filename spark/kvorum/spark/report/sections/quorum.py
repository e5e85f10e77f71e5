"""Elections of the metadata quorum, its controllers, and the replicas of its log."""

from collections.abc import Iterator
from typing import Final

from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.controllers import ControllerFacts
from kvorum.spark.report.log_files import LogFileFacts
from kvorum.spark.report.markup import Content, Markup, element, joined
from kvorum.spark.report.parts import more, section, table, time_element
from kvorum.spark.report.quorum import EPOCHS_MAX, Epoch
from kvorum.spark.report.sections.log_files import behind
from kvorum.spark.report.texts import count_text, duration_text

CONTROLLERS_MAX: Final = 30


def quorum(facts: ClusterFacts, files: LogFileFacts) -> Markup:
    """Return the latest epochs with their leaders, latest first, controllers, and late replicas."""
    found = facts.quorum
    if not found.epochs:
        return section(
            "quorum", "Quorum", element("p", "No epoch is in the log."), *_rest(facts, files)
        )
    lead = f"{count_text(found.election_count, 'election')} in this time."
    if found.lost_count:
        without = count_text(found.lost_count, "epoch has", "epochs have")
        lead += f" {without} no record: no controller won, or the winner wrote nothing."
    latest = found.epochs[::-1][:EPOCHS_MAX]
    columns = ("#Epoch", "Leader", "From", "To", "#Duration", "Voted for it", "#Epochs lost before")
    return section(
        "quorum",
        "Quorum",
        table(columns, map(_row, latest), caption="Epochs of the quorum, the latest first"),
        more(found.epoch_count - len(latest), "epochs before"),
        *_rest(facts, files),
        lead=lead,
    )


def _rest(facts: ClusterFacts, files: LogFileFacts) -> Iterator[Markup]:
    if facts.controllers:
        columns = (
            *("Controller", "Voter", "Registered", "#Incarnations", "Listens on"),
            "metadata.version up to",
        )
        rows = [_controller(each, facts.quorum.voters) for each in facts.controllers]
        yield element("h3", "Controllers")
        yield table(columns, rows[:CONTROLLERS_MAX], caption="Registered controllers")
        yield joined(more(len(rows) - CONTROLLERS_MAX, "controllers"))
    yield from behind(files)


def _controller(each: ControllerFacts, voters: tuple[int, ...]) -> tuple[Content, ...]:
    return (
        f"Controller {each.controller_id}",
        "voter" if each.controller_id in voters else "observer",
        joined("before " if each.begins_earlier else "", time_element(each.since_ms)),
        f"{each.incarnation_count:,}",
        ", ".join(each.listeners) or "-",
        each.metadata_version,
    )


def _row(epoch: Epoch) -> tuple[Content, ...]:
    votes = ", ".join(str(one) for one in epoch.granting_voters)
    return (
        str(epoch.epoch),
        "not known" if epoch.leader is None else f"controller {epoch.leader}",
        time_element(epoch.begin_ms),
        "goes on" if epoch.is_open else time_element(epoch.end_ms),
        duration_text(epoch.duration_ms),
        f"{votes} of {', '.join(str(one) for one in epoch.voters)}" if votes else "-",
        element("strong", f"{epoch.lost_count:,}", class_="bad") if epoch.lost_count else "0",
    )
