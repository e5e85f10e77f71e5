"""The files of the log and the controllers on pages."""

import re
from pathlib import Path

import pytest
from tests.spark.report.made_up_cluster import (
    BEGIN_MS,
    HOUR_MS,
    MINUTE_MS,
    MadeUpCluster,
    healthy_cluster,
)
from tests.spark.report.read_page import clusters_in, read_page
from tests.spark.report.written_tables import facts_of, write_log, write_rows, written_index

from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION
from kvorum.spark.pipeline.tables import ErrorRow, ReplicaDivergenceRow, RunRow
from kvorum.spark.report.cluster_report import ClusterReport, cluster_report
from kvorum.spark.report.log_files import Trouble
from kvorum.spark.report.tables_directory import TablesDirectory
from kvorum.spark.report.time_window import DAY_MS
from kvorum.spark.report.written_report import cluster_page

SEGMENT = "/backup/node-1/__cluster_metadata-0/00000000000000000000.log"


def difference(kind: str, *, node: int = 11) -> ReplicaDivergenceRow:
    return ReplicaDivergenceRow(
        node_id=node,
        log_directory=f"/backup/node-{node}",
        reference_node_id=12,
        reference_log_directory="/backup/node-12",
        kind=kind,
        is_divergence=kind != "behind",
        from_offset=5,
        to_offset=9,
        epoch=2,
        reference_epoch=3,
    )


def damage(run: int, offset: int, kind: str = "damaged", path: str = SEGMENT) -> ErrorRow:
    return ErrorRow(run, path, offset, None, kind, "a checksum is wrong")


def run_row(number: int, to_offset: int) -> RunRow:
    return RunRow(
        run=number, started_at=BEGIN_MS + number * DAY_MS, duration_ms=1, node_id=12,
        log_directory="/backup/node-12", begin="log", from_offset=0, to_offset=to_offset,
        record_count=to_offset, control_record_count=1, error_count=0, is_tail_torn=False,
        row_counts=(),
    )  # fmt: skip


def report_of(directory: Path, *rows: object) -> ClusterReport:
    """Return the report of a healthy cluster with `rows` in the tables about its files."""
    write_log(directory, healthy_cluster().records)
    write_rows(directory, rows)
    return cluster_report(TablesDirectory(directory).cluster("c1"))


def text_of(report: ClusterReport) -> str:
    return read_page(cluster_page(report)).text


def test_sound_files_are_not_mentioned(tmp_path: Path) -> None:
    report = report_of(tmp_path, run_row(1, 100))
    assert report.trouble is Trouble.NONE
    text = text_of(report)
    assert "Nothing: every replica is in sync and every broker in service." in text
    assert not re.search("diverged|damaged|were behind|; not registered", text)


@pytest.mark.parametrize("kind", ["other_epoch", "other_content", "missing", "extra"])
def test_a_replica_that_has_diverged_comes_first(tmp_path: Path, kind: str) -> None:
    report = report_of(tmp_path, run_row(1, 100), difference(kind))
    assert report.trouble is Trouble.CRITICAL
    text = text_of(report)
    assert (
        "Critical"
        "The metadata log of node 11 has diverged. All replicas of 9 partitions are in sync."
        "log replicas diverged1node 11partitions without a leader0"
    ) in text
    wrong = text[text.index("Wrong at the end") :]
    assert wrong.startswith("Wrong at the end1 replica of the metadata log diverged")
    assert re.search(
        r"Node 11 beside node 12, offsets 5 to 8: [a-z ]+, epoch 2 there and epoch 3 in the "
        r"reference /backup/node-11",
        wrong,
    )
    assert "Nothing: every replica" not in text


def test_the_end_of_a_log_that_was_never_committed_is_less_trouble(tmp_path: Path) -> None:
    rows = [difference("beyond"), difference("beyond", node=13)]
    report = report_of(tmp_path, run_row(1, 100), *rows)
    assert report.trouble is Trouble.DEGRADED
    assert "Degraded2 replicas of the metadata log have diverged. All" in text_of(report)


def test_a_replica_that_lags_is_not_a_trouble(tmp_path: Path) -> None:
    report = report_of(tmp_path, run_row(1, 100), difference("behind"))
    assert report.trouble is Trouble.NONE
    text = text_of(report)
    assert text.index("Quorum") < text.index("Replicas of the log that were behind")
    assert (
        "Node 11 beside node 12, offsets 5 to 8: not there yet, epoch 2 there and epoch 3" in text
    )


def test_a_file_that_another_replica_stood_in_for_is_damaged(tmp_path: Path) -> None:
    report = report_of(tmp_path, run_row(2, 100), damage(2, 40), damage(2, 60))
    assert report.trouble is Trouble.DEGRADED
    text = text_of(report)
    assert "Degraded1 file of the log is damaged. All replicas" in text
    assert "damaged files1found by run 2, 2026-11-18 00:00:00" in text
    assert (
        f"{SEGMENT} from offset 40 on, damaged: a checksum is wrong found by run 2, "
        "2026-11-18 00:00:00"
    ) in text


def test_damage_at_which_the_tables_end_is_critical(tmp_path: Path) -> None:
    report = report_of(tmp_path, run_row(2, 40), damage(2, 40))
    assert report.trouble is Trouble.CRITICAL
    sentence = "CriticalDamage ends the tables at offset 40: what came after is not on this page."
    assert sentence in text_of(report)


def test_damage_that_a_later_run_got_past_does_not_end_the_tables(tmp_path: Path) -> None:
    report = report_of(tmp_path, run_row(1, 40), run_row(3, 100), damage(1, 40))
    assert report.trouble is Trouble.DEGRADED
    assert report.files.stopped_at is None
    assert [(each.run, each.found_ms) for each in report.files.damages] == [(1, BEGIN_MS + DAY_MS)]


def test_damage_that_was_cut_off_does_not_end_the_tables(tmp_path: Path) -> None:
    report = report_of(tmp_path, run_row(1, 40), run_row(2, 40), damage(1, 40))
    assert report.files.stopped_at is None


def test_a_log_that_cannot_be_used_any_more_is_critical(tmp_path: Path) -> None:
    rows = [run_row(1, 40), run_row(2, 40), damage(2, 0, "unusable", "/backup/node-1")]
    report = report_of(tmp_path, *rows)
    assert report.trouble is Trouble.CRITICAL
    assert "The last run could not use the log: what is new is not on this" in text_of(report)


def test_a_place_that_several_runs_came_to_is_one(tmp_path: Path) -> None:
    rows = [run_row(1, 40), run_row(2, 40), damage(1, 40), damage(2, 40)]
    assert [each.run for each in report_of(tmp_path, *rows).files.damages] == [2]


def test_a_cluster_without_a_history_shows_why(tmp_path: Path) -> None:
    rows = [run_row(1, 0), damage(1, 0, "unusable", "/backup/node-1")]
    write_rows(tmp_path / "tables", rows, "broken")
    write_log(tmp_path / "tables", healthy_cluster().records, "calm")
    html = written_index(tmp_path)
    assert clusters_in(html) == ["broken", "calm"]
    text = read_page(html).text
    assert "1 critical, 1 healthy." in text
    assert "Critical1 damaged" in text
    page = read_page((tmp_path / "pages" / "cluster-broken.html").read_text("utf-8")).text
    assert "CriticalThe last run could not use the log: what is new is not on this" in page
    assert "unusable: a checksum is wrong" in page
    assert "its tables have no row with a time" in page


def test_clusters_with_diverged_replicas_come_first_of_equal_trouble(tmp_path: Path) -> None:
    offline = MadeUpCluster(2)
    offline.create_topic("a", 4, replica_count=1)
    offline.fence(1)
    write_log(tmp_path / "tables", offline.records, "offline")
    write_log(tmp_path / "tables", healthy_cluster().records, "split")
    write_rows(tmp_path / "tables", [run_row(1, 9), difference("other_epoch")], "split")
    assert clusters_in(written_index(tmp_path)) == ["split", "offline"]


def test_controllers(tmp_path: Path) -> None:
    cluster = MadeUpCluster(1)
    for controller in (101, 102, 109):
        cluster.register_controller(controller, 1)
    cluster.later(HOUR_MS)
    cluster.register_controller(102, 2)
    cluster.later(HOUR_MS)
    cluster.register_controller(102, 2, port=1099)
    cluster.later(MINUTE_MS)
    cluster.idle()
    cluster.elect(101)
    write_log(tmp_path, cluster.records)
    tables = TablesDirectory(tmp_path).cluster("c1")
    report = cluster_report(tables)
    assert report.facts is not None
    found = [
        (one.controller_id, one.since_ms - BEGIN_MS, one.incarnation_count, one.listeners)
        for one in report.facts.controllers
    ]
    assert found == [
        (101, 0, 1, ("CONTROLLER controller-101:9093",)),
        (102, HOUR_MS, 2, ("CONTROLLER controller-102:1099",)),
        (109, 0, 1, ("CONTROLLER controller-109:9093",)),
    ]
    level = LATEST_PRODUCTION_METADATA_VERSION.text
    assert {one.metadata_version for one in report.facts.controllers} == {level}
    text = text_of(report)
    assert "voters3101, 102, 103; not registered: 103" in text
    since = "2026-11-16 01:00:00"
    assert f"Controller 102voter{since}2CONTROLLER controller-102:1099{level}" in text
    assert "Controller 109observer" in text
    assert [one.text for one in report.facts.events if one.text.startswith("Controller 102")] == [
        "Controller 102 changed its registration",
        "Controller 102 registered",
        "Controller 102 registered",
    ]
    before = facts_of(tables, until_ms=BEGIN_MS + MINUTE_MS)
    assert [one.incarnation_count for one in before.controllers] == [1, 1, 1]
