"""Replicas of the log that have diverged, and damaged files."""

from collections.abc import Iterator, Mapping
from typing import Final

from kvorum.spark.pipeline.divergence import DifferenceKind
from kvorum.spark.report.log_files import UNUSABLE, DamagedPlace, Difference, LogFileFacts
from kvorum.spark.report.markup import Markup, element, joined
from kvorum.spark.report.parts import more
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
        sentences.append(f"The metadata log of {replicas[0].name} has diverged.")
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
        paths = files.damaged_paths
        are = count_text(len(paths), "file of the log is", "files of the log are")
        sentences.append(f"{are} damaged.")
    return sentences


def wrong_files(files: LogFileFacts) -> Iterator[Markup]:
    """Yield the places at which replicas differ, and the damaged ones."""
    if files.diverged:
        replicas = count_text(len(files.diverged_replicas), "replica")
        yield element("h3", f"{replicas} of the metadata log diverged")
        yield _places([_difference(each) for each in files.diverged[:PLACES_MAX]])
        yield joined(more(len(files.diverged) - PLACES_MAX, "places"))
    if files.damages:
        yield element("h3", count_text(len(files.damaged_paths), "damaged file"))
        yield _places([_damage(each) for each in files.damages[:PLACES_MAX]])
        yield joined(more(len(files.damages) - PLACES_MAX, "places"))


def behind(files: LogFileFacts) -> Iterator[Markup]:
    """Yield the replicas that have less of the log than the one that was read."""
    if files.behind:
        yield element("h3", "Replicas of the log that were behind")
        yield _places([_difference(each) for each in files.behind[:PLACES_MAX]])
        yield joined(more(len(files.behind) - PLACES_MAX, "replicas"))


def _places(lines: list[Markup]) -> Markup:
    return element("ul", [element("li", line) for line in lines])


def _difference(each: Difference) -> Markup:
    epochs = " and ".join(
        f"epoch {epoch} {where}"
        for epoch, where in ((each.epoch, "there"), (each.reference_epoch, "in the reference"))
        if epoch is not None
    )
    name, reference = each.replica.name, each.reference.name
    return joined(
        element("strong", f"{name[0].upper()}{name[1:]}"),
        f" beside {reference}, offsets {each.from_offset:,} to {each.to_offset - 1:,}: "
        f"{_KINDS.get(each.kind, each.kind)}, {epochs} ",
        _note(each.replica.log_directory),
    )


def _damage(each: DamagedPlace) -> Markup:
    last = "on" if each.last_offset is None else f"to {each.last_offset:,}"
    return joined(
        element("strong", each.path, class_="path"),
        f" from offset {each.offset:,} {last}, {each.kind}: {cut_text(each.reason, _REASON_MAX)} ",
        _note(f"found by run {each.run:,}, {time_text(each.found_ms)}"),
    )


def _note(text: str) -> Markup:
    return element("span", text, class_="note")
