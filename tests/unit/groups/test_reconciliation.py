"""The step of a member of a consumer group towards its target."""

from kvorum.groups.consumer.reconciliation import Reconciliation
from kvorum.groups.consumer_group.group import NOT_OWNED
from kvorum.groups.consumer_group.member import ConsumerGroupMember


def test_a_member_that_was_never_assigned_stays_as_it_is_at_the_epoch_of_the_target() -> None:
    """The upgrade of a group that had no generation yet has a member join at epoch 0."""
    member = ConsumerGroupMember(member_id="m", subscribed_topic_regex="t.*")
    reconciliation = Reconciliation(
        target_epoch=member.member_epoch,
        target={},
        subscribed_topic_ids=frozenset(),
        names_topics=False,
        owner_epoch=lambda _, __: NOT_OWNED,
        owned={},
        has_subscription_changed=True,
    )
    assert reconciliation.step(member) is member
