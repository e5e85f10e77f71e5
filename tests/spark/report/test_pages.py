"""Pages: what they show, and what they never contain."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.report.made_up_cluster import (
    BEGIN_MS,
    MINUTE_MS,
    MadeUpCluster,
    healthy_cluster,
    troubled_cluster,
)
from tests.spark.report.read_page import clusters_in, read_page
from tests.spark.report.written_tables import cluster_tables, write_log, written_index

from kvorum.metadata.configs_image import ResourceType
from kvorum.spark.report.cluster_report import cluster_report
from kvorum.spark.report.markup import Markup, element, escaped
from kvorum.spark.report.table_files import TablesError
from kvorum.spark.report.tables_directory import TablesDirectory
from kvorum.spark.report.texts import count_text, duration_text
from kvorum.spark.report.time_window import DAY_MS
from kvorum.spark.report.written_report import cluster_page, page_name, write_report

HOSTILE = """<script>alert("1")</script>'&amp;"""


def page_of(cluster: MadeUpCluster, directory: Path) -> str:
    return cluster_page(cluster_report(cluster_tables(directory, cluster.records)))


def test_a_troubled_cluster(tmp_path: Path) -> None:
    text = read_page(page_of(troubled_cluster(), tmp_path)).text
    assert "4 partitions have no leader." in text
    assert "Broker 2 fenced since 2026-11-21 12:22:32, 19 min" in text
    assert "prices-11" in text
    assert "Broker 2 was fenced: 27 partitions changed leader, 4 partitions lost the leader" in text
    assert "2 epochs have no record" in text


def test_a_healthy_cluster(tmp_path: Path) -> None:
    text = read_page(page_of(healthy_cluster(), tmp_path)).text
    assert "All replicas of 9 partitions are in sync." in text
    assert "Nothing: every replica is in sync and every broker in service." in text
    assert "Every partition had a leader all the time." in text


def test_a_cluster_in_which_nothing_has_happened(tmp_path: Path) -> None:
    cluster = MadeUpCluster(1)
    cluster.records = cluster.records[:1]
    text = read_page(page_of(cluster, tmp_path)).text
    assert "There are no partitions, and no broker is out of service." in text
    assert "No broker was registered." in text


def test_a_cluster_without_rows(tmp_path: Path) -> None:
    (tmp_path / "partitions" / "cluster_id=empty").mkdir(parents=True)
    report = cluster_report(TablesDirectory(tmp_path).cluster("empty"))
    assert "its tables have no row with a time" in cluster_page(report)


@pytest.mark.parametrize("make", [troubled_cluster, healthy_cluster])
def test_pages_need_nothing_from_elsewhere_and_all_links_resolve(
    tmp_path: Path, make: Callable[[], MadeUpCluster]
) -> None:
    write_log(tmp_path / "tables", make().records, "one")
    write_log(tmp_path / "tables", MadeUpCluster(1).records, "a/b <c>")
    paths = list(write_report(TablesDirectory(tmp_path / "tables"), tmp_path / "pages"))
    assert len(paths) == 3
    for path in paths:
        html = path.read_text("utf-8")
        page = read_page(html)
        assert re.findall(r"https?:|url\(|@import|//[a-z]", html) == []
        assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
        assert len(page.ids) == len(set(page.ids))
        assert set(page.labelled_by) <= set(page.ids)
        assert page.references, "each page links to others"
        for reference in page.references:
            if reference.startswith("#"):
                assert reference[1:] in page.ids
            else:
                assert (path.parent / reference).is_file()


def test_every_chart_has_a_title_and_every_table_headings(tmp_path: Path) -> None:
    html = page_of(troubled_cluster(), tmp_path)
    charts = re.findall(r'<svg class="plot".*?</svg>', html)
    assert len(charts) > 10
    assert all(re.match(r'<svg [^>]*role="img"><title>[^<]+</title>', chart) for chart in charts)
    tables = re.findall(r"<table.*?</table>", html)
    assert len(tables) > 8
    assert all("<caption>" in table and 'scope="col"' in table for table in tables)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    cluster = MadeUpCluster(1)
    cluster.create_topic(HOSTILE, 1, replica_count=1)
    cluster.permit(f"User:{HOSTILE}", HOSTILE)
    cluster.configure(HOSTILE, "retention.ms", HOSTILE)
    cluster.set_password(HOSTILE, b"x")
    cluster.later(MINUTE_MS)
    cluster.fence(1)
    tables = cluster_tables(tmp_path, cluster.records, HOSTILE)
    page = read_page(cluster_page(cluster_report(tables)))
    assert page.tags["script"] == 0
    for shown in (f"{HOSTILE}-0", f"User:{HOSTILE}", f"topic {HOSTILE}", f"user {HOSTILE}"):
        assert shown in page.text


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    cluster = MadeUpCluster(1)
    kind = ResourceType.BROKER
    cluster.configure("1", "ssl.keystore.password", "hunter2", kind)
    cluster.configure("1", "ssl.keystore.password", None, kind)
    cluster.configure("1", "listener.name.x.scram-sha-256.sasl.jaas.config", "hunter3", kind)
    cluster.configure("1", "plugin.that.kafka.does.not.know", "hunter4", kind)
    cluster.set_password("someone", b"hunter5")
    html = page_of(cluster, tmp_path)
    assert "ssl.keystore.password: unset → (hidden)" in html
    assert "ssl.keystore.password: (hidden) → unset" in html
    assert "user someone" in html
    assert "hunter" not in html
    assert "aHVudGVyNQ" not in html  # in base64


def test_characters_that_cannot_be_seen_are_escapes() -> None:
    assert escaped("a\u202eb\x00c\nd") == r"a\u202eb\x00c\nd"
    assert escaped("Größe 漢字 😀") == "Größe 漢字 😀"


def test_elements() -> None:
    assert element(
        "p", "a<b", None, 3, [Markup("<br>")], class_="x", hidden=True, id=None
    ) == Markup('<p class="x" hidden>a&lt;b3<br></p>')
    assert element("a", href='"&') == Markup('<a href="&quot;&amp;"></a>')


def test_lists_are_cut_and_pages_stay_small(tmp_path: Path) -> None:
    cluster = MadeUpCluster(60)
    for number in range(30):
        cluster.create_topic(f"topic-{number}", 100, replica_count=1)
    for broker in range(1, 51):
        cluster.later(MINUTE_MS)
        cluster.fence(broker)
    for number in range(100):
        cluster.later(MINUTE_MS)
        cluster.configure("topic-1", "retention.ms", str(number + 1))
        cluster.elect(101 + number % 3)
    html = page_of(cluster, tmp_path)
    text = read_page(html).text
    assert len(html) < 500_000
    assert "2,700 partitions have no leader." in text
    assert "… and 2,688 more partitions" in text  # of 2,700 that are open, 12 are listed
    assert "… and 2,660 more intervals" in text  # of the day's, 40
    assert "… and 20 more brokers" in text  # of 60 over time, 40
    assert "… and 70 more changes before" in text  # of 100 configurations, 30
    assert "… and 71 more epochs before" in text  # of 101 epochs, 30


def test_the_index_begins_with_the_worst_cluster(tmp_path: Path) -> None:
    write_log(tmp_path / "tables", healthy_cluster().records, "calm")
    write_log(tmp_path / "tables", troubled_cluster().records, "worst")
    lagging = MadeUpCluster(2)
    lagging.create_topic("a", 4, replica_count=2)
    lagging.lag(2, 1)
    write_log(tmp_path / "tables", lagging.records, "lagging")
    html = written_index(tmp_path)
    assert clusters_in(html) == ["worst", "lagging", "calm"]
    assert "1 critical, 1 degraded, 1 healthy." in html


def test_a_cluster_of_another_time_does_not_keep_others_from_the_index(tmp_path: Path) -> None:
    write_log(tmp_path / "tables", MadeUpCluster(1, begin_ms=BEGIN_MS + DAY_MS).records, "later")
    write_log(tmp_path / "tables", healthy_cluster().records, "earlier")
    tables, pages = TablesDirectory(tmp_path / "tables"), tmp_path / "pages"
    *_, index = write_report(tables, pages, until_ms=BEGIN_MS + DAY_MS - 1)
    assert "1 healthy, 1 without events in this time." in read_page(index.read_text("utf-8")).text
    reason = (
        "The tables of cluster 'later' cover 2026-11-17 00:00:00 to 2026-11-17 00:00:00 UTC, and"
    )
    assert reason in read_page((pages / "cluster-later.html").read_text("utf-8")).text


def test_one_page_of_several_clusters_is_an_error(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_log(tmp_path, MadeUpCluster(1).records, name)
    with pytest.raises(TablesError, match="is one page, and the tables have 2 clusters"):
        list(write_report(TablesDirectory(tmp_path), tmp_path / "page.html"))
    (path,) = write_report(TablesDirectory(tmp_path), tmp_path / "page.html", cluster_id="two")
    assert "<h1>two</h1>" in path.read_text("utf-8")


def test_names_of_pages_are_safe_and_differ() -> None:
    assert page_name("MkU3OEVBNTcwNTJENDM2Qk") == "cluster-MkU3OEVBNTcwNTJENDM2Qk.html"
    hostile = {page_name(one) for one in ("../../x", "a/b", "", "x" * 300, "%2e", "ä")}
    assert len(hostile) == 6
    assert all(re.fullmatch(r"cluster-[0-9a-f]{16}\.html", name) for name in hostile)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (90_061_000, "1 d 1 h"),
    ],
)
def test_durations(duration_ms: int, text: str) -> None:
    assert duration_text(duration_ms) == text


def test_counts() -> None:
    assert count_text(1, "partition") == "1 partition"
    assert count_text(1234, "partition is", "partitions are") == "1,234 partitions are"
