"""``kvorum report`` as a user runs it."""

import shlex
import sys
from pathlib import Path

import pytest
from tests.spark.report.made_up_cluster import troubled_cluster
from tests.spark.report.written_tables import write_log
from tests.support.node_process import run_python
from tests.support.page_blocks import page_block
from tests.support.waiting import PATIENCE_S

from kvorum.cli import FAILED, OK, WRONG_USAGE, main


def test_a_directory_gets_an_index_and_a_page_for_each_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path / "tables", troubled_cluster().records, "prod")
    arguments = ["--tables", str(tmp_path / "tables"), "--output", str(tmp_path / "pages")]
    assert main(["report", *arguments]) == OK
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / "pages" / "cluster-prod.html"),
        str(tmp_path / "pages" / "index.html"),
    ]
    names = {path.name for path in (tmp_path / "pages").iterdir()}
    assert names == {"cluster-prod.html", "index.html"}


def test_the_commands_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "tables", troubled_cluster().records, "prod")
    snippet = page_block("docs/spark/report.md", "sh", "kvorum report")
    for name, place in (("DIR", "tables"), ("PAGES", "pages"), (" ID", " prod")):
        snippet = snippet.replace(name, place)
    for line in snippet.splitlines():
        assert main(shlex.split(line, comments=True)[1:]) == OK
    *pages, one, tuesday = capsys.readouterr().out.splitlines()
    assert pages == ["pages/cluster-prod.html", "pages/index.html"]
    assert (one, tuesday) == ("prod.html", "tuesday.html")
    assert "2026-11-19" not in Path(tuesday).read_text("utf-8")


def test_last_tuesday(tmp_path: Path) -> None:
    write_log(tmp_path / "tables", troubled_cluster().records, "prod")
    page = tmp_path / "page.html"
    tables = ["--tables", str(tmp_path / "tables"), "--output", str(page)]
    times = ["--since", "2026-11-17", "--until", "2026-11-18T00:00+00:00"]
    assert main(["report", *tables, *times]) == OK
    html = page.read_text("utf-8")
    assert 'id="offline-2026-11-17"' in html
    assert "scratch-3" in html
    assert "broker 4 fenced" in html
    assert "2026-11-19" not in html


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (["--since", "tuesday"], WRONG_USAGE, "'tuesday' is not a time such as 2026-11-17"),
        (
            ["--since", "2026-11-18", "--until", "2026-11-17"],
            WRONG_USAGE,
            "kvorum report: --since must be before --until",
        ),
        ([], FAILED, "/tables: no such directory"),
    ],
)
def test_wrong_options_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int, line: str
) -> None:
    tables = ["--tables", str(tmp_path / "tables"), "--output", str(tmp_path / "pages")]
    assert main(["report", *tables, *options]) == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("kvorum report: ")
    assert line in last


def test_an_output_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path / "tables", troubled_cluster().records, "prod")
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "page.html"
    assert main(["report", "--tables", str(tmp_path / "tables"), "--output", str(output)]) == FAILED
    assert capsys.readouterr().err == f"kvorum report: {output}: cannot be written: File exists\n"


def test_nothing_of_spark_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys; from kvorum.cli import main; main(['report', '--help']);"
        "print([name for name in ('pyarrow', 'numpy', 'pyspark') if name in sys.modules])"
    )
    done = run_python("-c", program, timeout_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--tables DIR" in done.stdout


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("kvorum.spark.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    tables = ["--tables", str(tmp_path), "--output", str(tmp_path / "pages")]
    assert main(["report", *tables]) == FAILED
    assert capsys.readouterr().err == (
        "kvorum report: the report needs the package pyarrow: install kvorum with its extra "
        "'spark'\n"
    )
