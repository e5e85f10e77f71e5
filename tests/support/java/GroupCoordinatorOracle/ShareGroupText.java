package org.apache.kafka.coordinator.group;

import java.util.Collection;
import java.util.Map;
import java.util.Objects;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;

/** The whole state of a share group as a text without spaces in its parts; "~" is an absent part. */
final class ShareGroupText {
    private ShareGroupText() { }

    static void append(ShareGroup group, ShareGroup.ShareGroupStatePartitionMetadataInfo state, StringBuilder text) {
        text.append(" share ").append(group.groupId()).append(' ').append(group.stateAsString())
            .append(" epoch ").append(group.groupEpoch())
            .append(" assigned ").append(group.assignmentEpoch()).append('@').append(group.assignmentTimestamp())
            .append(" hash ").append(group.metadataHash())
            .append(' ').append(group.subscriptionType());
        StringJoiner names = new StringJoiner(",");
        new TreeMap<>(group.subscribedTopicNames()).forEach((name, count) ->
            names.add(name + "=" + count.byNameCount()));
        text.append(" names ").append(names);
        new TreeMap<>(group.members()).values().forEach(member -> append(member, text));
        new TreeMap<>(group.targetAssignment()).forEach((memberId, target) ->
            text.append(" target ").append(memberId).append(' ').append(partitions(target.partitions())));
        if (state != null) {
            text.append(" initializing ").append(topics(state.initializingTopics()))
                .append(" initialized ").append(topics(state.initializedTopics()))
                .append(" deleting ").append(joined(state.deletingTopics()));
        }
    }

    private static void append(ShareGroupMember member, StringBuilder text) {
        text.append(" member ").append(member.memberId())
            .append(' ').append(Objects.requireNonNullElse(member.rackId(), "~"))
            .append(' ').append(member.clientId())
            .append(' ').append(member.clientHost())
            .append(' ').append(String.join(",", new TreeSet<>(member.subscribedTopicNames())))
            .append(' ').append(member.memberEpoch()).append('<').append(member.previousMemberEpoch())
            .append(' ').append(member.state())
            .append(" shares ").append(partitions(member.assignedPartitions()));
    }

    private static String topics(Map<Uuid, ShareGroup.InitMapValue> topics) {
        TreeSet<String> texts = new TreeSet<>();
        topics.forEach((topicId, topic) -> texts.add(topicId + "/" + topic.name() + "@" + topic.timestamp() + ":"
            + joined(topic.partitions())));
        return String.join(";", texts);
    }

    static String partitions(Map<Uuid, ? extends Collection<Integer>> partitions) {
        TreeSet<String> texts = new TreeSet<>();
        partitions.forEach((topicId, numbers) -> texts.add(topicId + ":" + joined(numbers)));
        return String.join(";", texts);
    }

    private static <T> String joined(Collection<T> parts) {
        StringJoiner joined = new StringJoiner(",");
        parts.stream().sorted((one, other) -> one instanceof Integer number
            ? number.compareTo((Integer) other) : one.toString().compareTo(other.toString()))
            .forEach(part -> joined.add(part.toString()));
        return joined.toString();
    }
}
