"""A small log for the tests of this folder."""

import pytest
from tests.spark.pipeline.story_logs import Story, make_story


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The log of a cluster with a few hundred records."""
    return make_story(tmp_path_factory.mktemp("story") / "c", 11, records=300, partitions=30)
