package org.apache.kafka.coordinator.group;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupStatePartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue;

/** Sorts the arrays whose order comes from the hashes of Java: members, topics and partitions of assignments. */
final class HashOrder {
    private HashOrder() { }

    /** Sorts within a record, which must not be replayed afterwards. */
    static void sort(CoordinatorRecord record) {
        Object value = record.value() == null ? null : record.value().message();
        if (value instanceof ConsumerGroupTargetAssignmentMemberValue target) {
            target.topicPartitions().forEach(one -> one.setPartitions(sorted(one.partitions())));
            target.setTopicPartitions(byTopicId(target.topicPartitions(),
                ConsumerGroupTargetAssignmentMemberValue.TopicPartition::topicId));
        } else if (value instanceof ConsumerGroupCurrentMemberAssignmentValue current) {
            current.setAssignedPartitions(sortedWithEpochs(current.assignedPartitions()));
            current.setPartitionsPendingRevocation(sortedWithEpochs(current.partitionsPendingRevocation()));
        } else if (value instanceof ShareGroupTargetAssignmentMemberValue target) {
            target.topicPartitions().forEach(one -> one.setPartitions(sorted(one.partitions())));
            target.setTopicPartitions(byTopicId(target.topicPartitions(),
                ShareGroupTargetAssignmentMemberValue.TopicPartition::topicId));
        } else if (value instanceof ShareGroupCurrentMemberAssignmentValue current) {
            current.assignedPartitions().forEach(one -> one.setPartitions(sorted(one.partitions())));
            current.setAssignedPartitions(byTopicId(current.assignedPartitions(),
                ShareGroupCurrentMemberAssignmentValue.TopicPartitions::topicId));
        } else if (value instanceof ShareGroupStatePartitionMetadataValue state) {
            state.setInitializingTopics(sortedTopics(state.initializingTopics()));
            state.setInitializedTopics(sortedTopics(state.initializedTopics()));
            state.setDeletingTopics(byTopicId(state.deletingTopics(),
                ShareGroupStatePartitionMetadataValue.TopicInfo::topicId));
        } else if (value instanceof GroupMetadataValue classic) {
            classic.members().forEach(member -> member.setAssignment(sorted(member.assignment())));
        }
    }

    /** Sorts within the bytes of a consumer's assignment; others stay as they are. */
    static byte[] sorted(byte[] assignment) {
        try {
            short version = ConsumerProtocol.deserializeVersion(ByteBuffer.wrap(assignment));
            ConsumerProtocolAssignment read =
                ConsumerProtocol.deserializeConsumerProtocolAssignment(ByteBuffer.wrap(assignment));
            List<ConsumerProtocolAssignment.TopicPartition> topics = new ArrayList<>();
            read.assignedPartitions().forEach(one -> topics.add(new ConsumerProtocolAssignment.TopicPartition()
                .setTopic(one.topic()).setPartitions(sorted(one.partitions()))));
            topics.sort(Comparator.comparing(ConsumerProtocolAssignment.TopicPartition::topic));
            ConsumerProtocolAssignment.TopicPartitionCollection inOrder =
                new ConsumerProtocolAssignment.TopicPartitionCollection();
            topics.forEach(inOrder::mustAdd);
            byte[] written = Utils.toArray(
                ConsumerProtocol.serializeAssignment(read.setAssignedPartitions(inOrder), version));
            return written.length == assignment.length ? written : assignment;
        } catch (RuntimeException none) {
            return assignment;
        }
    }

    static void sort(ConsumerGroupHeartbeatResponseData response) {
        if (response.assignment() != null) {
            response.assignment().topicPartitions().forEach(one -> one.setPartitions(sorted(one.partitions())));
            response.assignment().setTopicPartitions(byTopicId(response.assignment().topicPartitions(),
                ConsumerGroupHeartbeatResponseData.TopicPartitions::topicId));
        }
    }

    static void sort(ShareGroupHeartbeatResponseData response) {
        if (response.assignment() != null) {
            response.assignment().topicPartitions().forEach(one -> one.setPartitions(sorted(one.partitions())));
            response.assignment().setTopicPartitions(byTopicId(response.assignment().topicPartitions(),
                ShareGroupHeartbeatResponseData.TopicPartitions::topicId));
        }
    }

    static void sort(ShareGroupDescribeResponseData.DescribedGroup group) {
        for (ShareGroupDescribeResponseData.Member member : group.members()) {
            member.setSubscribedTopicNames(sorted(member.subscribedTopicNames()));
            member.assignment().topicPartitions().forEach(one -> one.setPartitions(sorted(one.partitions())));
            member.assignment().setTopicPartitions(byTopicId(member.assignment().topicPartitions(),
                ShareGroupDescribeResponseData.TopicPartitions::topicId));
        }
        List<ShareGroupDescribeResponseData.Member> members = new ArrayList<>(group.members());
        members.sort(Comparator.comparing(ShareGroupDescribeResponseData.Member::memberId));
        group.setMembers(members);
    }

    private static List<ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo> sortedTopics(
            List<ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo> topics) {
        topics.forEach(one -> one.setPartitions(sorted(one.partitions())));
        return byTopicId(topics, ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo::topicId);
    }

    static void sort(ConsumerGroupDescribeResponseData.DescribedGroup group) {
        List<ConsumerGroupDescribeResponseData.Member> members = new ArrayList<>(group.members());
        members.sort(Comparator.comparing(ConsumerGroupDescribeResponseData.Member::memberId));
        for (ConsumerGroupDescribeResponseData.Member member : members) {
            sort(member.assignment());
            sort(member.targetAssignment());
            member.setSubscribedTopicNames(sorted(member.subscribedTopicNames()));
        }
        group.setMembers(members);
    }

    private static void sort(ConsumerGroupDescribeResponseData.Assignment assignment) {
        assignment.topicPartitions().forEach(one -> one.setPartitions(sorted(one.partitions())));
        assignment.setTopicPartitions(byTopicId(assignment.topicPartitions(),
            ConsumerGroupDescribeResponseData.TopicPartitions::topicId));
    }

    private static List<ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions> sortedWithEpochs(
            List<ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions> topics) {
        for (ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions one : topics) {
            List<Integer> partitions = sorted(one.partitions());
            List<Integer> epochs = new ArrayList<>();
            partitions.forEach(partition -> epochs.add(one.assignmentEpochs().get(one.partitions().indexOf(partition))));
            one.setPartitions(partitions);
            one.setAssignmentEpochs(epochs);
        }
        return byTopicId(topics, ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions::topicId);
    }

    private static <T extends Comparable<T>> List<T> sorted(List<T> values) {
        return values.stream().sorted().toList();
    }

    private static <T> List<T> byTopicId(List<T> topics, Function<T, Uuid> topicId) {
        List<T> sorted = new ArrayList<>(topics);
        sorted.sort(Comparator.comparing(topicId, (one, other) -> {
            int high = Long.compareUnsigned(one.getMostSignificantBits(), other.getMostSignificantBits());
            return high != 0 ? high
                : Long.compareUnsigned(one.getLeastSignificantBits(), other.getLeastSignificantBits());
        }));
        return sorted;
    }
}
