"""Options of `kvorum dev` for other languages and CI, and the recipe in the documents."""

import json
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.node_process import KVORUM, NodeProcess
from tests.support.source_tree import ROOT
from tests.support.topics import read_topics
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.cli import main

ANSWERS = "answers; Ctrl-C stops it"
SMALL = ("dev", "--controllers", "1", "--port", "0")


def topics_of(bootstrap_servers: str) -> Mapping[str, int]:
    """Return how many partitions each topic has."""
    return {name: topic.partition_count for name, topic in read_topics(bootstrap_servers).items()}


def test_topics_and_settings_are_there_when_the_ready_file_is(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    ready.write_text("of a run that was killed")
    command = [*KVORUM, *SMALL, "--ready-file", str(ready), "--override", "num.partitions=2"]
    with NodeProcess([*command, "--topic", "orders:3", "--topic", "one"], ready=ANSWERS) as process:
        facts = json.loads(ready.read_text())
        assert topics_of(facts["bootstrap_servers"]) == {"orders": 3, "one": 1}
        assert facts["node_ids"] == [1]
        assert list(tmp_path.iterdir()) == [ready]
        settings = (Path(facts["data"]) / "server.properties").read_text()
        assert "num.partitions=2" in settings
        process.send(signal.SIGTERM)
        ended = process.wait()
    assert (ended.exit_code, ended.last_line) == (0, "kvorum: stopped; the data is removed")
    assert not ready.exists()


def test_a_topic_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    for partitions in (3, 5):
        command = [*KVORUM, *SMALL, "--data", str(tmp_path), "--topic", f"orders:{partitions}"]
        with NodeProcess([*command, "--json"], ready="bootstrap_servers") as process:
            facts = json.loads(process.lines()[0])
            assert topics_of(facts["bootstrap_servers"]) == {"orders": 3}
            process.send(signal.SIGTERM)
            assert process.wait().lines == (process.lines()[0],)


def test_a_topic_that_is_refused_ends_the_cluster_in_one_line() -> None:
    ended = NodeProcess([*KVORUM, *SMALL, "--topic", "a/b"]).run_to_end()
    assert ended.exit_code == 1
    assert ended.last_line.startswith("kvorum dev: topic a/b: INVALID_TOPIC_EXCEPTION: ")


def test_clients_get_the_advertised_name_of_brokers_that_listen_everywhere() -> None:
    everywhere = ("--host", "0.0.0.0", "--advertised-host", "localhost", "--json")
    two = ("dev", "--controllers", "1", "--brokers", "2", "--port", "0", "--topic", "orders:2")
    with NodeProcess([*KVORUM, *two, *everywhere], ready="bootstrap_servers") as process:
        facts = json.loads(process.lines()[0])
        addresses = facts["bootstrap_servers"].split(",")
        assert all(re.fullmatch(r"localhost:\d+", address) for address in addresses)
        port = int(addresses[0].partition(":")[2])
        with socket.create_connection(("127.0.0.2", port), timeout=PATIENCE_S):
            pass
        assert topics_of(addresses[0]) == {"orders": 2}
        assert all(
            address.startswith("127.0.0.1:") for address in facts["controller_servers"].split(",")
        )


def test_the_settings_of_secured_clients_are_printed(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    with NodeProcess([*KVORUM, *SMALL, *data, "--security", "scram"], ready=ANSWERS) as process:
        assert process.wait_for_line("    sasl_plain_password=")
        told = {line.strip() for line in process.lines()}
        process.send(signal.SIGTERM)
        process.wait()
    with NodeProcess([*KVORUM, "dev", *data, "--json"], ready="bootstrap_servers") as process:
        facts = json.loads(process.lines()[0])
    for settings in facts["client_settings"].values():
        assert {f"{key}={value}" for key, value in settings.items()} <= told
    assert facts["client_settings"]["java"]["security.protocol"] == "SASL_SSL"


def test_events_are_logged_as_asked_for() -> None:
    with NodeProcess([*KVORUM, *SMALL, "--log-level", "info"], ready=ANSWERS) as process:
        assert process.wait_for_line("INFO The node runs")


def test_a_port_that_is_taken_is_one_line_with_the_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["dev", "--port", str(port)]) == 1
    assert capsys.readouterr().err.endswith(
        f"port {port} is taken by another process. Stop it or give another one with --port\n"
    )


def test_a_ready_file_may_be_in_the_directory_of_new_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    files = ("--data", str(data), "--ready-file", str(data / "ready.json"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["dev", *files, "--port", str(taken.getsockname()[1])]) == 1
    assert "is taken by another process" in capsys.readouterr().err
    assert not list(data.iterdir())


def test_output_that_cannot_be_written_ends_the_cluster_at_once(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*KVORUM, *SMALL, "--ready-file", str(ready)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.endswith("No space left on device\n")
    assert not ready.exists()


def test_the_recipe_for_ci_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(recipe.splitlines()) <= 15
    started, waited = (
        line.partition("run: ")[2] for line in recipe.splitlines() if "kafka.json" in line
    )
    words = started.partition(" >")[0]
    assert words.startswith("kvorum dev ")
    command = [*KVORUM, *shlex.split(words)[1:], "--port", "0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert subprocess.run(waited, shell=True, cwd=tmp_path, check=False).returncode == 0
        facts = json.loads((tmp_path / "kafka.json").read_text())
        assert topics_of(facts["bootstrap_servers"]) == {"orders": 3}
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
    wait_for(lambda: not (tmp_path / "kafka.json").exists(), "the file is gone")
