"""Replicas of the log that have diverged, and damaged files."""

from collections.abc import Iterator, Mapping
from typing import Final

from kvorum.spark.pipeline.divergence import DifferenceKind
from kvorum.spark.pipeline.tables import ReplicaDivergenceRow
from kvorum.spark.report.log_files import UNUSABLE, DamagedPlace, LogFileFacts, replica_name
from kvorum.spark.report.markup import Markup, element, joined
from kvorum.spark.report.parts import more, note
from kvorum.spark.report.texts import count_text, cut_text, time_text

PLACES_MAX: Final = 12
_REASON_MAX: Final = 200

_KINDS: Final[Mapping[str, str]] = {
    DifferenceKind.OTHER_EPOCH: "other epochs",
    DifferenceKind.OTHER_CONTENT: "other content",
    DifferenceKind.MISSING: "missing there",
    DifferenceKind.EXTRA: "only there",
    DifferenceKind.BEHIND: "not there yet",
    DifferenceKind.BEYOND: "only there, at the end",
}


def file_sentences(files: LogFileFacts) -> list[str]:
    """Return what is wrong with the files in sentences, the worst first; none where nothing is."""
    sentences: list[str] = []
    replicas = files.diverged_replicas
    if len(replicas) == 1:
        sentences.append(f"The metadata log of {replicas[0]} has diverged.")
    elif replicas:
        sentences.append(f"{len(replicas):,} replicas of the metadata log have diverged.")
    stopped = files.stopped_at
    if stopped is not None and stopped.kind == UNUSABLE:
        sentences.append("The last run could not use the log: what is new is not on this page.")
    elif stopped is not None and files.last_run is not None:
        sentences.append(
            f"Damage ends the tables at offset {files.last_run.to_offset:,}: what came after is "
            "not on this page."
        )
    elif files.damages:
        are = count_text(len(files.damaged_paths), "file of the log is", "files of the log are")
        sentences.append(f"{are} damaged.")
    return sentences


def wrong_files(files: LogFileFacts) -> Iterator[Markup]:
    """Yield the places at which replicas differ, and the damaged ones."""
    diverged = f"{count_text(len(files.diverged_replicas), 'replica')} of the metadata log diverged"
    yield from _listed(diverged, [_difference(each) for each in files.diverged], "places")
    damaged = count_text(len(files.damaged_paths), "damaged file")
    yield from _listed(damaged, [_damage(each) for each in files.damages], "places")


def behind(files: LogFileFacts) -> Iterator[Markup]:
    """Yield the replicas that have less of the log than the one that was read."""
    lines = [_difference(each) for each in files.behind]
    return _listed("Replicas of the log that were behind", lines, "replicas")


def _listed(title: str, lines: list[Markup], what: str) -> Iterator[Markup]:
    """Yield the first lines of a list below its title, and how many more there are."""
    if lines:
        yield element("h3", title)
        yield element("ul", [element("li", line) for line in lines[:PLACES_MAX]])
        yield joined(more(len(lines) - PLACES_MAX, what))


def _difference(each: ReplicaDivergenceRow) -> Markup:
    epochs = " and ".join(
        f"epoch {epoch} {where}"
        for epoch, where in ((each.epoch, "there"), (each.reference_epoch, "in the reference"))
        if epoch is not None
    )
    name = replica_name(each.node_id, each.log_directory)
    reference = replica_name(each.reference_node_id, each.reference_log_directory)
    return joined(
        element("strong", f"{name[0].upper()}{name[1:]}"),
        f" beside {reference}, offsets {each.from_offset:,} to {each.to_offset - 1:,}: "
        f"{_KINDS.get(each.kind, each.kind)}, {epochs} ",
        note(each.log_directory),
    )


def _damage(each: DamagedPlace) -> Markup:
    last = "on" if each.last_offset is None else f"to {each.last_offset:,}"
    return joined(
        element("strong", each.path, class_="path"),
        f" from offset {each.offset:,} {last}, {each.kind}: {cut_text(each.reason, _REASON_MAX)} ",
        note(f"found by run {each.run:,}, {time_text(each.found_ms)}"),
    )
