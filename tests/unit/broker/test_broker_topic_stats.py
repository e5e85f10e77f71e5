"""Counts of records, by topic and of all."""

from kvorum.broker.broker_topic_stats import BrokerTopicMetrics, BrokerTopicStats


def test_a_topic_counts_for_itself_and_for_all() -> None:
    stats = BrokerTopicStats()
    stats.on_produce_request("a")
    stats.on_append("a", size_bytes=100, message_count=3)
    stats.on_append("b", size_bytes=10, message_count=1)
    stats.on_fetch_request("b")
    stats.on_bytes_out("b", size_bytes=7, is_follower=False)
    stats.on_bytes_out("b", size_bytes=5, is_follower=True)
    stats.on_rejected("a", size_bytes=2000)
    stats.on_failed_produce_request("a")
    assert stats.topics["a"] == BrokerTopicMetrics(
        messages_in=3,
        bytes_in=100,
        bytes_rejected=2000,
        failed_produce_requests=1,
        total_produce_requests=1,
    )
    assert stats.topics["b"] == BrokerTopicMetrics(
        messages_in=1, bytes_in=10, bytes_out=7, total_fetch_requests=1
    )
    assert (stats.all_topics.messages_in, stats.all_topics.bytes_in) == (4, 110)
    assert stats.replication_bytes_out == 5


def test_a_topic_that_is_gone_is_forgotten_and_still_counts_for_all() -> None:
    stats = BrokerTopicStats()
    stats.on_append("a", size_bytes=100, message_count=3)
    stats.on_append("b", size_bytes=10, message_count=1)
    stats.retain(["b", "b"])
    assert stats.topics.keys() == {"b"}
    assert stats.all_topics.bytes_in == 110
