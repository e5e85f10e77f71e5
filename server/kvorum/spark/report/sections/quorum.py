"""Elections of the metadata quorum."""

from __future__ import annotations

from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.markup import Content, Markup, element
from kvorum.spark.report.parts import more, section, table, time_element
from kvorum.spark.report.quorum import EPOCHS_MAX, Epoch
from kvorum.spark.report.texts import count_text, duration_text


def quorum(facts: ClusterFacts) -> Markup:
    """Return the latest epochs with their leaders, latest first."""
    found = facts.quorum
    if not found.epochs:
        return section("quorum", "Quorum", element("p", "No epoch is in the log."))
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
        lead=lead,
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
