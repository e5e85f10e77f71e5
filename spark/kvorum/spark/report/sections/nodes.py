"""The nodes: leaders among the brokers, the brokers' sessions, elections, and the controllers."""

from collections.abc import Iterator
from typing import Final

from kvorum.spark.report.brokers import BrokerFacts
from kvorum.spark.report.charts import bar
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.log_files import LogFileFacts
from kvorum.spark.report.markup import Content, Markup, element, joined
from kvorum.spark.report.parts import CAUSES, more, section, table, time_element
from kvorum.spark.report.quorum import EPOCHS_MAX, ControllerFacts, Epoch
from kvorum.spark.report.sections.log_files import behind
from kvorum.spark.report.texts import count_text, duration_text

LOADS_MAX: Final = 30

BROKERS_MAX: Final = 40
"""The number of brokers in the table."""

CONTROLLERS_MAX: Final = 30
"""The number of controllers in the table."""


def leaders(facts: ClusterFacts) -> Markup:
    """Return leaders for each broker beside its preferred ones, and leader changes by cause."""
    leadership = facts.leadership
    if leadership.partition_count == 0:
        return section(
            "leaders", "Leaders", element("p", "There are no partitions."), *_causes(facts)
        )
    if leadership.not_preferred_count:
        count = count_text(leadership.not_preferred_count, "partition is", "partitions are")
        lead = f"{count} led by another broker than the preferred one."
    else:
        lead = "No partition is led by another broker than the preferred one."
    if leadership.skew is not None:
        lead += f" The broker with most leaders has {leadership.skew:.2f} times the mean."
    return section("leaders", "Leaders", _loads(facts), *_causes(facts), lead=lead)


def _loads(facts: ClusterFacts) -> Markup:
    loads = sorted(facts.leadership.loads, key=lambda load: (-abs(load.difference), load.broker_id))
    highest = max(1, *(max(load.leader_count, load.preferred_count) for load in loads))
    rows = [
        (
            f"Broker {load.broker_id}",
            bar(load.leader_count / highest, mark=load.preferred_count / highest),
            f"{load.leader_count:,}",
            f"{load.preferred_count:,}",
            f"{load.difference:+,}" if load.difference else "0",
            f"{load.replica_count:,}",
            f"{load.replica_count - load.in_sync_count:,}",
        )
        for load in loads[:LOADS_MAX]
    ]
    columns = (
        "Broker",
        "Leads, and | preferred",
        "#Leads",
        "#Preferred",
        "#Difference",
        "#Replicas",
        "#Not in sync",
    )
    return element(
        "div",
        table(columns, rows, caption="Leaders for each broker at the end, the most uneven first"),
        more(len(loads) - LOADS_MAX, "brokers"),
    )


def _causes(facts: ClusterFacts) -> tuple[Markup, ...]:
    causes = facts.leadership.causes
    if not causes:
        return (element("p", "No leader changed in this time."),)
    highest = max(each.count for each in causes)
    rows = [
        (
            CAUSES.get(each.cause, each.cause),
            bar(each.count / highest),
            f"{each.count:,}",
            f"{each.leaderless_count:,}",
            f"{each.unclean_count:,}",
        )
        for each in causes
    ]
    columns = ("Cause", "Share", "#Leader changes", "#Left no leader", "#Unclean")
    caption = "Leader changes by cause over the whole time"
    return element("h3", "Why leaders changed"), table(columns, rows, caption=caption)


def brokers(facts: ClusterFacts) -> Markup:
    """Return one line for each broker, the one that was out of service longest first."""
    found = sorted(facts.brokers, key=lambda one: (-one.out_of_service_ms, one.broker_id))
    if not found:
        return section("brokers", "Brokers", element("p", "No broker was registered."))
    columns = (
        *("Broker", "State at the end", "Since", "#Incarnations", "#Times fenced"),
        *("#Out of service", "#Longest"),
    )
    return section(
        "brokers",
        "Brokers",
        table(columns, map(_broker, found[:BROKERS_MAX]), caption="Brokers, the longest out first"),
        more(len(found) - BROKERS_MAX, "brokers"),
        lead="Out of service is fenced or in controlled shutdown, from the registration on.",
    )


def _broker(broker: BrokerFacts) -> tuple[Content, ...]:
    state: Content = "in service"
    if not broker.is_in_service:
        text = "not registered" if broker.state is None else broker.state.value.replace("_", " ")
        state = element("strong", text, class_="bad")
    return (
        f"Broker {broker.broker_id}",
        state,
        time_element(broker.state_since_ms),
        f"{broker.incarnation_count:,}",
        f"{broker.fenced_count:,}",
        _length(broker.out_of_service_ms),
        _length(broker.longest_ms),
    )


def _length(length_ms: int) -> str:
    return duration_text(length_ms) if length_ms else "-"


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
        table(columns, map(_epoch, latest), caption="Epochs of the quorum, the latest first"),
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


def _epoch(epoch: Epoch) -> tuple[Content, ...]:
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
