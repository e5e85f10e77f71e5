"""The notes of `kvorum log check` on offsets that are missing between batches."""

from pathlib import Path

import pytest
from tests.support.batch_maker import make_batch

from kvorum.inspection.log_check.check import Report, check_paths
from kvorum.inspection.log_check.findings import Finding, Rule, Verdict


def checked(tmp_path: Path, *, gap_count: int) -> Report:
    """Return what is found in a log that has one record, and one behind each gap of two offsets."""
    log = tmp_path / "orders-0"
    log.mkdir()
    batches = [make_batch(3 * number) for number in range(gap_count + 1)]
    (log / f"{0:020}.log").write_bytes(b"".join(batches))
    return check_paths([log])


def gaps(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule is Rule.GAP]


def test_each_gap_of_a_segment_with_few_has_a_note(tmp_path: Path) -> None:
    report = checked(tmp_path, gap_count=2)
    assert report.verdict is Verdict.SOUND
    assert [finding.problem for finding in gaps(report)] == [
        "offsets 1 to 2 are not in the log",
        "offsets 4 to 5 are not in the log",
    ]


@pytest.mark.parametrize(
    ("gap_count", "problem"),
    [
        (11, "1 gap more, of 2 offsets in all, from here on"),
        (500, "490 gaps more, of 980 offsets in all, from here on"),
    ],
)
def test_a_segment_with_many_gaps_has_one_note_on_all_but_the_first_ten(
    tmp_path: Path, gap_count: int, problem: str
) -> None:
    found = gaps(checked(tmp_path, gap_count=gap_count))
    assert [finding.problem for finding in found[10:]] == [problem]
    assert (found[-1].offset, found[-1].position) == (31, 11 * len(make_batch(0)))
