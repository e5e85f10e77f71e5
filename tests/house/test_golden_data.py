"""The golden data and Kafka's jars: there, whole, readable, and fetched where that can be."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.golden_data import dump_text, metadata_directories, read_json_lines
from tests.support.kafka import fetch_jars
from tests.support.kafka.fetch_jars import NotToBeHadError, Wanted, fetch, wanted_for


def test_every_set_of_the_inventory_is_unpacked(golden: Path, golden_sets: Path) -> None:
    inventory = json.loads((golden / "inventory.json").read_text())
    assert {entry.name for entry in golden_sets.iterdir()} == set(inventory) - {"all"}


def test_each_segment_and_snapshot_has_the_text_real_kafka_printed(golden_sets: Path) -> None:
    directories = metadata_directories(golden_sets)
    assert len(directories) >= 9
    dumped = [
        file
        for directory in directories
        for file in [*directory.glob("*.log"), *directory.glob("*.checkpoint")]
        if dump_text(file).exists()
    ]
    assert len(dumped) >= 20
    for file in dumped:
        assert dump_text(file).read_text().startswith(f"Dumping {file.name}\n")


def test_corpus_holds_every_pair_of_message_and_version(golden: Path) -> None:
    pairs = {
        (line["message"], line["version"])
        for line in read_json_lines(golden / "codec-corpus.jsonl.gz")
    }
    assert len(pairs) == 744


def test_the_reference_release_comes_with_all_it_needs_to_run() -> None:
    wanted = wanted_for(fetch_jars.REFERENCE_RELEASE)
    assert wanted.transitive
    assert {name for _, name, _ in wanted.modules} >= {"kafka_2.13", "kafka-tools", "ecj"}


@pytest.mark.parametrize("name", fetch_jars.OLDER_NODES)
def test_an_older_node_comes_with_all_it_needs_to_run(name: str) -> None:
    wanted = wanted_for(name)
    assert wanted.transitive
    release = name.removeprefix("node-")
    for module in ("kafka_2.13", "kafka-tools"):
        assert ("org.apache.kafka", module, release) in wanted.modules


def test_a_release_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(NotToBeHadError, match=r"no list of the modules of 0\.8"):
        wanted_for("0.8")


def test_what_is_there_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "4.3.1").mkdir()
    assert fetch("4.3.1", tmp_path) == tmp_path / "4.3.1"


def test_the_second_way_is_taken_when_the_first_is_blocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocked(_wanted: Wanted, target: Path) -> None:
        (target / "half.jar").touch()
        raise NotToBeHadError("blocked")

    def open_way(_wanted: Wanted, target: Path) -> None:
        (target / "whole.jar").touch()

    monkeypatch.setattr(fetch_jars, "fetch_with_maven", blocked)
    monkeypatch.setattr(fetch_jars, "fetch_with_ivy", open_way)
    assert [jar.name for jar in fetch("4.4.0", tmp_path).iterdir()] == ["whole.jar"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["4.4.0"]


def test_the_reasons_are_shown_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocked(_wanted: Wanted, _target: Path) -> None:
        raise NotToBeHadError("no way")

    monkeypatch.setattr(fetch_jars, "fetch_with_maven", blocked)
    monkeypatch.setattr(fetch_jars, "fetch_with_ivy", blocked)
    with pytest.raises(NotToBeHadError, match=r"Kafka 4\.4\.0: no way; no way"):
        fetch("4.4.0", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_java_reads_the_trust_store_that_is_made_for_it(tmp_path: Path) -> None:
    try:
        java = fetch_jars.find_java()
    except NotToBeHadError as error:
        pytest.skip(str(error))
    keytool = java.resolve().with_name("keytool")
    if not os.access(keytool, os.X_OK):
        pytest.skip("this Java comes without keytool")
    if not fetch_jars.trust_properties(tmp_path):
        pytest.skip("this Python trusts no certificate authority")
    listed = subprocess.run(
        [keytool, "-list", "-keystore", tmp_path / "trust.jks", "-storepass", "changeit"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "trustedCertEntry" in listed.stdout


def test_sparks_connector_comes_without_what_pyspark_has() -> None:
    wanted = wanted_for(fetch_jars.SPARK_CONNECTOR)
    assert not wanted.transitive
    assert not {name for _, name, _ in wanted.modules} & {"spark-core_2.13", "spark-sql_2.13"}
