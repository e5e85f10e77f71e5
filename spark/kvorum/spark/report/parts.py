"""Parts of pages that sections share: the frame, tables, limits of lists, marks of trouble."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from kvorum.history.tables import LeaderChangeCause
from kvorum.spark.report.availability import Incident, MissingReplica, Outage
from kvorum.spark.report.log_files import Trouble
from kvorum.spark.report.markup import Content, Markup, element, joined
from kvorum.spark.report.texts import clock_text, duration_text, time_text

CAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        LeaderChangeCause.PARTITION_CREATED: "partition created",
        LeaderChangeCause.BROKER_FENCED: "broker fenced",
        LeaderChangeCause.CONTROLLED_SHUTDOWN: "controlled shutdown",
        LeaderChangeCause.BROKER_UNREGISTERED: "broker unregistered",
        LeaderChangeCause.BROKER_RESTARTED: "broker restarted uncleanly",
        LeaderChangeCause.DIRECTORY_FAILED: "log directory failed",
        LeaderChangeCause.BROKER_UNFENCED: "broker unfenced",
        LeaderChangeCause.PREFERRED_ELECTION: "preferred leader elected",
        LeaderChangeCause.REASSIGNMENT: "reassignment",
        LeaderChangeCause.UNCLEAN_ELECTION: "unclean election",
        LeaderChangeCause.UNKNOWN: "unknown cause",
    }
)
"""Causes of leader changes in words; a cause that is not among them is shown as it is stored."""

_OF_BROKER: Final[Mapping[str, str]] = MappingProxyType(
    {
        LeaderChangeCause.BROKER_FENCED: "broker {} fenced",
        LeaderChangeCause.CONTROLLED_SHUTDOWN: "controlled shutdown of broker {}",
        LeaderChangeCause.BROKER_UNREGISTERED: "broker {} unregistered",
        LeaderChangeCause.BROKER_RESTARTED: "broker {} restarted uncleanly",
        LeaderChangeCause.DIRECTORY_FAILED: "log directory of broker {} failed",
        LeaderChangeCause.BROKER_UNFENCED: "broker {} unfenced",
    }
)
_TROUBLE: Final = MappingProxyType(
    {
        Trouble.NONE: ("good", "●", "Healthy"),
        Trouble.DEGRADED: ("warning", "▲", "Degraded"),
        Trouble.CRITICAL: ("bad", "■", "Critical"),
    }
)


def section(id_: str, title: str, *content: Content, lead: Content = None) -> Markup:
    """Return a section with its heading, and a sentence below that."""
    return element(
        "section",
        element("h2", title, id=f"{id_}-title"),
        None if lead is None else element("p", lead, class_="lead"),
        *content,
        id=id_,
        aria_labelledby=f"{id_}-title",
    )


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Content]], *, caption: str, class_: str = ""
) -> Markup:
    """Return a table; a column whose name begins with # holds numbers.

    The first cell of a row is its heading. On narrow screens each cell is shown with the name of
    its column.
    """
    names = [column.removeprefix("#") for column in columns]
    kinds = ["number" if column.startswith("#") else None for column in columns]
    head = [
        element("th", name, scope="col", class_=kind)
        for name, kind in zip(names, kinds, strict=True)
    ]
    body = [
        element(
            "tr",
            [
                _cell(content, name, kind, is_heading=index == 0)
                for index, (content, name, kind) in enumerate(zip(row, names, kinds, strict=True))
            ],
        )
        for row in rows
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", head)),
        element("tbody", body),
        class_=class_ or None,
    )


def _cell(content: Content, name: str, kind: str | None, *, is_heading: bool) -> Markup:
    if is_heading:
        return element("th", content, scope="row", class_=kind)
    return element("td", content, class_=kind, data_name=name)


def more(count: int, what: str) -> Markup | None:
    """Return the line below a list that was cut: and 1,234 more."""
    return element("p", f"… and {count:,} more {what}", class_="more") if count > 0 else None


def folded(
    summary: Content, *content: Content, is_open: bool = False, id_: str | None = None
) -> Markup:
    """Return content that a reader unfolds."""
    return element("details", element("summary", summary), *content, open=is_open, id=id_)


def status(trouble: Trouble) -> Markup:
    """Return a cluster's state as a mark and a word."""
    class_, mark, word = _TROUBLE[trouble]
    return element(
        "span", element("span", mark, aria_hidden="true"), f" {word}", class_=f"status {class_}"
    )


def trouble_class(trouble: Trouble) -> str:
    """Return the class of a state's colour."""
    return _TROUBLE[trouble][0]


def note(text: str) -> Markup:
    """Return text that is less important than what is beside it."""
    return element("span", text, class_="note")


def time_element(time_ms: int, shown: str | None = None) -> Markup:
    """Return a time to the second, or the text that is shown of it."""
    text = time_text(time_ms)
    return element("time", shown or text, datetime=text.replace(" ", "T") + "Z")


def end_of(outage: Outage) -> Content:
    """Return when an interval ended, as the time of day where it began on that day."""
    if outage.is_open:
        return element("strong", "not over", class_="bad")
    begin, end = time_text(outage.begin_ms), time_text(outage.end_ms)
    return clock_text(outage.end_ms) if begin[:10] == end[:10] else end


def begin_of(outage: Outage) -> Content:
    """Return when an interval began."""
    return joined("before " if outage.begins_earlier else "", time_element(outage.begin_ms))


def incident_partitions(incident: Incident) -> str:
    """Return the partition that stands for an incident, and how many others there are."""
    others = incident.partition_count - 1
    partition = incident.longest.partition
    return f"{partition} and {others:,} more" if others else partition


def why_lost(outage: Outage) -> Content:
    """Return why a partition lost its leader."""
    change = outage.began_with
    if change is None:
        return "before the log begins" if outage.begins_earlier else "not in the log"
    return _because(change.cause, change.old_leader)


def how_ended(outage: Outage) -> Content:
    """Return how a partition got a leader again."""
    change = outage.ended_with
    if change is None:
        return "-" if outage.is_open else "topic deleted" if outage.is_deleted else "not in the log"
    text = _because(change.cause, change.new_leader)
    return joined(text, element("strong", ", unclean", class_="bad")) if change.is_unclean else text


def _because(cause: str, broker_id: int | None) -> str:
    """Return a cause with the broker that it is about, which is the leader before or after."""
    if broker_id is None:
        return CAUSES.get(cause, cause)
    if cause in _OF_BROKER:
        return _OF_BROKER[cause].format(broker_id)
    return f"{CAUSES.get(cause, cause)}, broker {broker_id}"


def missing_replicas(outage: Outage) -> Content:
    """Return the brokers whose replicas were out of the ISR, and whether these were in service."""
    return ", ".join(map(_missing, outage.missing)) or "none"


def _missing(replica: MissingReplica) -> str:
    if replica.out_of_service_ms == 0:
        return f"{replica.broker_id} behind"
    return f"{replica.broker_id} out of service {duration_text(replica.out_of_service_ms)}"


def page(title: str, header: Markup, *content: Content) -> str:
    """Return a whole document."""
    style = files("kvorum.spark.report").joinpath("report.css").read_text("utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} - Kafka metadata report"),
        element("style", Markup(style)),
    )
    footer = element(
        "footer", element("p", "Made by kvorum report from tables of kvorum pipeline.")
    )
    body = element("body", header, element("main", *content), footer)
    return f"<!doctype html>\n{element('html', head, body, lang='en').html}\n"
