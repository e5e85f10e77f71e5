"""Runs with Spark's executors, which are processes of their own, against runs without Spark."""

import gc
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.pipeline.runs import Notes, content, files_of, rows_of, run_here
from tests.spark.pipeline.story_logs import damage, make_story, segment_of

from kvorum.spark.errors import PipelineError
from kvorum.spark.pipeline.cluster_plan import PieceOutcome
from kvorum.spark.pipeline.job import SparkTasks
from kvorum.spark.pipeline.request import PipelineRequest
from kvorum.spark.pipeline.run import run_pipeline
from kvorum.spark.worker_process import YOUNG_OBJECTS_MAX

# pyspark leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.mark.slow
def test_a_fleet_in_two_runs_has_the_tables_of_one_run_without_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    stories = [make_story(tmp_path / f"made-{seed}", seed, records=600) for seed in (1, 2, 3)]
    fleet, output = tmp_path / "fleet", tmp_path / "out"
    for number, story in enumerate(stories):
        story.write(fleet / str(number), end=len(story.batches) // 2)
    # Records are written by tasks of their own, in a second job.
    request = PipelineRequest((str(fleet),), str(output), inline_bytes_max=0)
    run_pipeline(request, lambda: SparkTasks(spark), Notes())
    for number, story in enumerate(stories[:2]):
        story.write(fleet / str(number))
    report = run_pipeline(request, lambda: SparkTasks(spark), Notes())
    assert (report.cluster_count, report.changed_count) == (3, 2)
    run_here(fleet, tmp_path / "expected")
    assert content(output) == content(tmp_path / "expected")
    found = spark.read.parquet(str(output / "records")).groupBy("cluster_id").count().collect()
    rows = rows_of(output, "records")
    assert {row["cluster_id"]: row[1] for row in found} == {
        story.cluster_id: sum(row["cluster_id"] == story.cluster_id for row in rows)
        for story in stories
    }


def test_damage_of_one_cluster_ends_the_run_with_its_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    for seed in (1, 2):
        story = make_story(tmp_path / "fleet" / str(seed), seed, records=600)
    segment = segment_of(tmp_path / "fleet" / "2")
    offset = damage(tmp_path / "fleet" / "2", story, 30)
    request = PipelineRequest((str(tmp_path / "fleet"),), str(tmp_path / "out"))
    with pytest.raises(PipelineError, match=rf"^{segment}: damaged at offset {offset}: "):
        run_pipeline(request, lambda: SparkTasks(spark), Notes())
    assert not [name for name in files_of(tmp_path / "out") if not name.startswith("_staging")]


def test_a_task_collects_garbage_rarely_in_a_process_that_is_prepared(spark: SparkSession) -> None:
    def states(_: int) -> PieceOutcome:
        is_prepared = gc.get_threshold()[0] == YOUNG_OBJECTS_MAX and gc.get_freeze_count() > 0
        return PieceOutcome("prepared" if is_prepared else "not prepared", 0, [])

    (found,) = SparkTasks(spark).run(states, [1], "tasks", Notes())
    assert found.cluster_id == "prepared"
    # Other code in the same process has Python's own settings.
    threshold = spark.sparkContext.parallelize([1], 1).map(lambda _: gc.get_threshold()[0])
    assert threshold.collect() != [YOUNG_OBJECTS_MAX]
