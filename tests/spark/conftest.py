"""A Spark session, an object store and a small log for the tests of this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.object_store import Options, fsspec, object_store
from tests.spark.pipeline.story_logs import Story, make_story
from tests.support.kafka.fetch_jars import NotToBeHadError, find_java

from kvorum.spark.session import build_session


@pytest.fixture(scope="session")
def spark_java() -> Path:
    """The Java that Spark runs with; a test that asks for it is skipped without one."""
    try:
        return find_java()
    except NotToBeHadError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(spark_java: Path) -> Iterator[SparkSession]:
    """A session on two cores of this machine."""
    session = build_session(master="local[2]")
    # The tables are small: more partitions would only be more tasks.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.stop()


@pytest.fixture(scope="session", name="object_store")
def options_of_object_store() -> Iterator[Options]:
    """Options of fsspec for an S3 server on loopback."""
    with object_store() as options:
        yield options


@pytest.fixture(params=["memory", "s3"])
def remote(request: pytest.FixtureRequest) -> tuple[str, Options]:
    """A folder without files on another file system, and the options of that."""
    bucket = f"{os.getpid()}-{request.node.originalname.replace('_', '-')}"[:63]
    if request.param == "memory":
        return f"memory:///{bucket}/folder", {}
    options: Options = request.getfixturevalue("object_store")
    fsspec.filesystem("s3", **options).mkdir(bucket)
    return f"s3://{bucket}/folder", options


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The log of a cluster with a few hundred records."""
    return make_story(tmp_path_factory.mktemp("story") / "c", 11, records=300, partitions=30)
