"""The balance of leaders among the brokers, and the reasons for their changes."""

from __future__ import annotations

from typing import Final

from kvorum.spark.report.charts import bar
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.markup import Markup, element
from kvorum.spark.report.parts import CAUSES, more, section, table
from kvorum.spark.report.texts import count_text

BROKERS_MAX: Final = 30


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
        for load in loads[:BROKERS_MAX]
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
        more(len(loads) - BROKERS_MAX, "brokers"),
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
