package org.apache.kafka.coordinator.group;

import java.lang.reflect.Field;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;

/** The whole state of a consumer group as a text without spaces in its parts; "~" is an absent part. */
final class ConsumerGroupText {
    private ConsumerGroupText() { }

    static void append(ConsumerGroup group, StringBuilder text) {
        text.append(" consumer ").append(group.groupId()).append(' ').append(group.stateAsString())
            .append(" epoch ").append(group.groupEpoch())
            .append(" assigned ").append(group.assignmentEpoch()).append('@').append(group.assignmentTimestamp())
            .append(" hash ").append(group.metadataHash())
            .append(group.hasSubscriptionMetadataRecord() ? " legacy" : "");
        Map<String, Integer> names = new TreeMap<>();
        group.subscribedTopicNames().forEach((name, count) -> {
            if (count.byNameCount() > 0) {
                names.put(name, count.byNameCount());
            }
        });
        text.append(" names ").append(joined(names));
        text.append(" instances ").append(joined(group.staticMembers()));
        text.append(" owners ").append(partitionEpochs(owners(group)));
        text.append(" regexes ").append(joined(group.subscribedRegularExpressions()));
        new TreeMap<>(group.resolvedRegularExpressions()).forEach((regex, resolved) ->
            text.append(" resolved ").append(regex).append('=')
                .append(String.join(",", new TreeSet<>(resolved.topics())))
                .append("@v").append(resolved.version()).append("@t").append(resolved.timestamp()));
        new TreeMap<>(group.members()).values().forEach(member -> append(member, text));
        new TreeMap<>(group.targetAssignment()).forEach((memberId, target) ->
            text.append(" target ").append(memberId).append(' ').append(partitions(target)));
    }

    private static void append(ConsumerGroupMember member, StringBuilder text) {
        text.append(" member ").append(member.memberId())
            .append(' ').append(orAbsent(member.instanceId()))
            .append(' ').append(orAbsent(member.rackId()))
            .append(' ').append(member.clientId())
            .append(' ').append(member.clientHost())
            .append(' ').append(String.join(",", new TreeSet<>(member.subscribedTopicNames())))
            .append(' ').append(orAbsent(member.subscribedTopicRegex()))
            .append(' ').append(member.rebalanceTimeoutMs())
            .append(' ').append(member.serverAssignorName().orElse("~"))
            .append(' ').append(member.classicMemberMetadata().map(ConsumerGroupText::classic).orElse("consumer"))
            .append(' ').append(member.memberEpoch()).append('<').append(member.previousMemberEpoch())
            .append(' ').append(member.state())
            .append(" has ").append(partitionEpochs(member.assignedPartitions()))
            .append(" revokes ").append(partitionEpochs(member.partitionsPendingRevocation()));
    }

    private static String classic(ConsumerGroupMemberMetadataValue.ClassicMemberMetadata member) {
        StringBuilder text = new StringBuilder("classic@").append(member.sessionTimeoutMs());
        member.supportedProtocols().forEach(one -> text.append(',').append(one.name()).append('=')
            .append(HexFormat.of().formatHex(one.metadata())));
        return text.toString();
    }

    private static Map<Uuid, Map<Integer, Integer>> owners(ConsumerGroup group) {
        try {
            Field field = ConsumerGroup.class.getDeclaredField("currentPartitionEpoch");
            field.setAccessible(true);
            @SuppressWarnings("unchecked")
            Map<Uuid, Map<Integer, Integer>> owners = (Map<Uuid, Map<Integer, Integer>>) field.get(group);
            return owners;
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static String partitionEpochs(Map<Uuid, ? extends Map<Integer, Integer>> epochs) {
        TreeSet<String> texts = new TreeSet<>();
        epochs.forEach((topicId, partitions) -> texts.add(topicId + ":" + joined(partitions)));
        return String.join(";", texts);
    }

    private static String partitions(Assignment assignment) {
        TreeSet<String> texts = new TreeSet<>();
        assignment.partitions().forEach((topicId, partitions) -> {
            StringJoiner joined = new StringJoiner(",");
            new TreeSet<>(partitions).forEach(partition -> joined.add(partition.toString()));
            texts.add(topicId + ":" + joined);
        });
        return String.join(";", texts);
    }

    private static String joined(Map<?, ?> map) {
        StringJoiner joined = new StringJoiner(",");
        new TreeMap<>(map).forEach((key, value) -> joined.add(key + "=" + value));
        return joined.toString();
    }

    private static String orAbsent(String part) {
        return Objects.requireNonNullElse(part, "~");
    }
}
