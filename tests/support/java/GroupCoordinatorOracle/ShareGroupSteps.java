package org.apache.kafka.coordinator.group;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.AlterShareGroupOffsetsResponseData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;

/** The steps of share groups: each answers with what came of it, and hands the result on to be written. */
final class ShareGroupSteps {
    /** Writes the records of a result, and shows them behind a bar. */
    interface Writing extends Function<CoordinatorResult<?, CoordinatorRecord>, String> { }

    private ShareGroupSteps() { }

    static String heartbeat(GroupCoordinatorShard shard, AuthorizableRequestContext context,
            ShareGroupHeartbeatRequestData request, Writing written) {
        CoordinatorResult<Map.Entry<ShareGroupHeartbeatResponseData, Optional<InitializeShareGroupStateParameters>>,
            CoordinatorRecord> result;
        try {
            result = shard.shareGroupHeartbeat(context, request);
        } catch (RuntimeException refused) {
            return refusal(refused);
        }
        HashOrder.sort(result.response().getKey());
        return GroupCoordinatorOracle.hex(result.response().getKey(), (short) 1) + " "
            + result.response().getValue().map(ShareGroupSteps::text).orElse("~") + written.apply(result);
    }

    static String settled(GroupCoordinatorShard shard, String name, DeleteShareGroupStateRequestData given,
            Writing written) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        given.topics().forEach(topic -> {
            Set<Integer> ofTopic = partitions.computeIfAbsent(topic.topicId(), id -> new HashSet<>());
            topic.partitions().forEach(partition -> ofTopic.add(partition.partition()));
        });
        return written.apply(name.equals("initialize_share")
            ? shard.initializeShareGroupState(given.groupId(), partitions)
            : shard.uninitializeShareGroupState(given.groupId(), partitions));
    }

    static String altered(GroupCoordinatorShard shard, AlterShareGroupOffsetsRequestData request, Writing written) {
        CoordinatorResult<Map.Entry<AlterShareGroupOffsetsResponseData, InitializeShareGroupStateParameters>,
            CoordinatorRecord> result;
        try {
            result = shard.alterShareGroupOffsets(request.groupId(), request);
        } catch (RuntimeException refused) {
            return refusal(refused);
        }
        return GroupCoordinatorOracle.hex(result.response().getKey(), (short) 0) + " "
            + text(result.response().getValue()) + written.apply(result);
    }

    static String offsetsDeleted(GroupCoordinatorShard shard, DeleteShareGroupOffsetsRequestData request,
            Writing written) {
        CoordinatorResult<GroupCoordinatorShard.DeleteShareGroupOffsetsResultHolder, CoordinatorRecord> result =
            shard.initiateDeleteShareGroupOffsets(request.groupId(), request);
        GroupCoordinatorShard.DeleteShareGroupOffsetsResultHolder held = result.response();
        if (held.topLevelErrorCode() != Errors.NONE.code()) {
            return refusal(Errors.forCode(held.topLevelErrorCode()), held.topLevelErrorMessage());
        }
        StringBuilder text = new StringBuilder();
        held.errorTopicResponseList().forEach(one -> text.append(one.topicName()).append('=').append(one.errorCode())
            .append('=').append(one.errorMessage()).append(','));
        return text + " " + (held.deleteStateRequestParameters() == null ? "~"
            : text(held.deleteStateRequestParameters())) + written.apply(result);
    }

    static String deletionCompleted(GroupCoordinatorShard shard, DeleteShareGroupStateRequestData given,
            Writing written) {
        Map<Uuid, String> topics = new TreeMap<>();
        given.topics().forEach(topic -> topics.put(topic.topicId(), "name"));
        return written.apply(shard.completeDeleteShareGroupOffsets(given.groupId(), topics, List.of()));
    }

    static String groupsDeleted(GroupCoordinatorShard shard, List<String> groupIds, Writing written) {
        CoordinatorResult<Map<String, Map.Entry<DeleteShareGroupStateParameters, Errors>>, CoordinatorRecord> result =
            shard.sharePartitionDeleteRequests(groupIds);
        TreeSet<String> texts = new TreeSet<>();
        result.response().forEach((groupId, deletion) -> texts.add(groupId + "=" + deletion.getValue().code() + "="
            + (deletion.getValue() == Errors.NONE ? text(deletion.getKey()) : "")));
        return String.join(" ", texts) + written.apply(result);
    }

    static String described(GroupCoordinatorShard shard, List<String> groupIds, long committed) {
        List<ShareGroupDescribeResponseData.DescribedGroup> groups = shard.shareGroupDescribe(groupIds, committed);
        groups.forEach(HashOrder::sort);
        return GroupCoordinatorOracle.hex(new ShareGroupDescribeResponseData().setGroups(groups), (short) 1);
    }

    private static String text(InitializeShareGroupStateParameters parameters) {
        TreeSet<String> texts = new TreeSet<>();
        parameters.groupTopicPartitionData().topicsData().forEach(topic -> topic.partitions().forEach(one ->
            texts.add(topic.topicId() + ":" + one.partition() + "@" + one.stateEpoch() + "@" + one.startOffset())));
        return parameters.groupTopicPartitionData().groupId() + ";" + String.join(";", texts);
    }

    private static String text(DeleteShareGroupStateParameters parameters) {
        TreeSet<String> texts = new TreeSet<>();
        parameters.groupTopicPartitionData().topicsData().forEach(topic -> topic.partitions().forEach(one ->
            texts.add(topic.topicId() + ":" + one.partition())));
        return parameters.groupTopicPartitionData().groupId() + ";" + String.join(";", texts);
    }

    private static String refusal(RuntimeException refused) {
        ApiError error = ApiError.fromThrowable(refused);
        return refusal(error.error(), error.message());
    }

    private static String refusal(Errors error, String message) {
        boolean isDefault = Objects.equals(message, error.message());
        return "error " + error.code() + " " + (message == null || isDefault ? "~" : message) + " | ";
    }
}
