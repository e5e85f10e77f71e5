package org.apache.kafka.coordinator.group;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Drives one shard of Kafka's group coordinator. A line in is a step, a line out is what came of it: result,
 * records, answers that were due, and the whole state behind it.
 */
public final class GroupCoordinatorOracle {
    private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);

    private record Timeout(long deadlineMs, boolean isRetried, CoordinatorTimer.TimeoutOperation<CoordinatorRecord> operation) { }

    private record Task<R>(CoordinatorExecutor.TaskRunnable<R> runnable,
            CoordinatorExecutor.TaskOperation<CoordinatorRecord, R> operation) {
        private CoordinatorResult<Void, CoordinatorRecord> completed() {
            R result;
            try {
                result = runnable.run();
            } catch (Throwable failure) {
                return operation.onComplete(null, failure);
            }
            return operation.onComplete(result, null);
        }
    }

    private record Pending(CoordinatorResult<?, CoordinatorRecord> result) { }

    private record Logged(long producerId, byte[] key, byte[] value, Boolean isCommit) { }

    private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    private final List<Logged> log = new ArrayList<>();
    private final List<String> answers = new ArrayList<>();
    private final GroupCoordinatorConfig config;
    private final GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics();
    private final GroupConfigManager groupConfigs;
    private final Set<String> hiddenTopics;
    private final Map<String, Timeout> timers = new TreeMap<>();
    private final Map<String, Task<?>> tasks = new TreeMap<>();
    private final ArrayDeque<Pending> pending = new ArrayDeque<>();
    private MetadataImage image = MetadataImage.EMPTY;
    private long now;
    private long committed;
    private SnapshotRegistry registry;
    private GroupMetadataManager groups;
    private OffsetMetadataManager offsets;
    private GroupCoordinatorShard shard;

    private GroupCoordinatorOracle(String[] parts) {
        Map<String, String> settings = pairs(parts, 1);
        hiddenTopics = Set.of(settings.remove("hidden.topics").split(","));
        config = GroupCoordinatorConfig.fromProps(settings);
        groupConfigs = new GroupConfigManager(config, ShareGroupConfig.fromProps(Map.of()));
        build();
        registry.idempotentCreateSnapshot(0);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        GroupCoordinatorOracle oracle = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            if (parts[0].equals("new")) {
                oracle = new GroupCoordinatorOracle(parts);
                oracle.shard.onLoaded(oracle.coordinatorImage());
                out.println("ok | | " + oracle.described());
                continue;
            }
            oracle.answers.clear();
            String result;
            try {
                result = oracle.step(parts);
            } catch (RuntimeException refused) {
                result = "error " + Errors.forException(refused).code() + " | ";
            }
            out.println(result + " | " + String.join(" ", oracle.answers) + " | " + oracle.described());
        }
    }

    private void build() {
        LogContext context = new LogContext();
        registry = new SnapshotRegistry(context);
        timers.clear();
        tasks.clear();
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getReturnType() == long.class ? (Object) now : null);
        CoordinatorTimer<CoordinatorRecord> timer = new Timers();
        GroupCoordinatorMetricsShard metricsShard = metrics.newMetricsShard(registry, PARTITION);
        groups = new GroupMetadataManager.Builder().withLogContext(context).withSnapshotRegistry(registry)
            .withTime(time).withTimer(timer).withExecutor(new Tasks()).withConfig(config)
            .withGroupConfigManager(groupConfigs)
            .withGroupCoordinatorMetricsShard(metricsShard).withAuthorizerPlugin(Optional.of(hidingAuthorizer())).build();
        offsets = new OffsetMetadataManager.Builder().withLogContext(context).withSnapshotRegistry(registry)
            .withTime(time).withGroupMetadataManager(groups).withGroupCoordinatorConfig(config)
            .withGroupCoordinatorMetricsShard(metricsShard).build();
        shard = new GroupCoordinatorShard(context, groups, offsets, time, timer, config, metrics, metricsShard);
    }

    private final class Timers implements CoordinatorTimer<CoordinatorRecord> {
        @Override
        public void schedule(String key, long delay, TimeUnit unit, boolean retry,
                TimeoutOperation<CoordinatorRecord> operation) {
            timers.put(key, new Timeout(now + unit.toMillis(delay), retry, operation));
        }

        @Override
        public void schedule(String key, long delay, TimeUnit unit, boolean retry, long backoff,
                TimeoutOperation<CoordinatorRecord> operation) {
            schedule(key, delay, unit, retry, operation);
        }

        @Override
        public void scheduleIfAbsent(String key, long delay, TimeUnit unit, boolean retry,
                TimeoutOperation<CoordinatorRecord> operation) {
            if (!timers.containsKey(key)) {
                schedule(key, delay, unit, retry, operation);
            }
        }

        @Override
        public void cancel(String key) {
            timers.remove(key);
        }

        @Override
        public boolean isScheduled(String key) {
            return timers.containsKey(key);
        }
    }

    /** Keeps the tasks, of which each is the resolution of a group's regular expressions. */
    private final class Tasks implements CoordinatorExecutor<CoordinatorRecord> {
        @Override
        public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
            return tasks.putIfAbsent(key, new Task<>(task, operation)) == null;
        }

        @Override
        public boolean isScheduled(String key) {
            return tasks.containsKey(key);
        }

        @Override
        public void cancel(String key) {
            tasks.remove(key);
        }
    }

    /** Denies the description of hidden topics, so that no regular expression finds them. */
    private Plugin<Authorizer> hidingAuthorizer() {
        Authorizer authorizer = (Authorizer) Proxy.newProxyInstance(Authorizer.class.getClassLoader(),
            new Class<?>[] {Authorizer.class}, (proxy, method, given) -> {
                List<AuthorizationResult> results = new ArrayList<>();
                for (Object action : (List<?>) given[1]) {
                    boolean isHidden = hiddenTopics.contains(((Action) action).resourcePattern().name());
                    results.add(isHidden ? AuthorizationResult.DENIED : AuthorizationResult.ALLOWED);
                }
                return results;
            });
        return Plugin.wrapInstance(authorizer, null, "authorizer.class.name");
    }

    private static Map<String, String> pairs(String[] parts, int start) {
        Map<String, String> pairs = new HashMap<>();
        for (int index = start; index < parts.length; index++) {
            int equals = parts[index].indexOf('=');
            pairs.put(parts[index].substring(0, equals), parts[index].substring(equals + 1));
        }
        return pairs;
    }

    private CoordinatorMetadataImage coordinatorImage() {
        return new KRaftCoordinatorMetadataImage(image);
    }

    /** Makes a metadata image of records, each in its frame, that ends at an offset. */
    private void publish(String[] parts) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        for (String record : List.of(parts).subList(2, parts.length)) {
            ByteBuffer framed = ByteBuffer.wrap(HexFormat.of().parseHex(record));
            delta.replay(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(framed), framed.remaining()).message());
        }
        image = delta.apply(new MetadataProvenance(Long.parseLong(parts[1]), 1, now, true));
        if (delta.configsDelta() != null) {
            for (ConfigResource resource : delta.configsDelta().changes().keySet()) {
                groupConfigs.updateGroupConfig(resource.name(), image.configs().configProperties(resource));
            }
        }
        shard.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta), coordinatorImage());
    }

    private String step(String[] parts) throws IOException {
        switch (parts[0]) {
            case "time":
                now = Long.parseLong(parts[1]);
                return "ok | ";
            case "fire":
                Timeout timeout = timers.remove(parts[1]);
                return written(timeout.operation().generateRecords(), Short.parseShort(parts[2]), null, -1);
            case "task":
                return written(tasks.remove(parts[1] + "-regex").completed(), Short.parseShort(parts[2]), null, -1);
            case "image":
                publish(parts);
                return "ok | ";
            case "commit":
                committed = log.size();
                registry.deleteSnapshotsUpTo(committed);
                while (!pending.isEmpty()) {
                    CoordinatorResult<?, CoordinatorRecord> result = pending.poll().result();
                    if (result.appendFuture() != null) {
                        result.appendFuture().complete(null);
                    }
                }
                return "ok | ";
            case "late":
                if (!pending.isEmpty()) {
                    CoordinatorResult<?, CoordinatorRecord> result = pending.poll().result();
                    if (result.appendFuture() != null) {
                        result.appendFuture().completeExceptionally(Errors.REQUEST_TIMED_OUT.exception());
                    }
                }
                return "ok | ";
            case "marker":
                log.add(new Logged(Long.parseLong(parts[1]), null, null, parts[2].equals("commit")));
                replayed(log.size() - 1);
                registry.idempotentCreateSnapshot(log.size());
                return "ok | ";
            case "raw":
                log.add(new Logged(Long.parseLong(parts[1]), HexFormat.of().parseHex(parts[2]),
                    parts[3].equals("~") ? null : HexFormat.of().parseHex(parts[3]), null));
                replayed(log.size() - 1);
                registry.idempotentCreateSnapshot(log.size());
                return "ok | ";
            case "topic":
                List<CoordinatorRecord> tombstones = offsets.onTopicsDeleted(List.of(
                    new GroupCoordinatorShard.DeletedTopic(Uuid.fromString(parts[2]), parts[1].equals("~") ? "" : parts[1])));
                return written(new CoordinatorResult<Void, CoordinatorRecord>(tombstones), Short.parseShort(parts[3]),
                    null, -1);
            case "state_topic":
                return written(shard.maybeCleanupShareGroupState(Set.of(Uuid.fromString(parts[1]))),
                    Short.parseShort(parts[2]), null, -1);
            case "unload":
                shard.onUnloaded();
                answers.sort(null);
                return "ok | ";
            case "load":
                pending.clear();
                build();
                for (int offset = 0; offset < log.size(); offset++) {
                    replayed(offset);
                }
                committed = log.size();
                registry.idempotentCreateSnapshot(committed);
                shard.onLoaded(coordinatorImage());
                return "ok | ";
            default:
                return request(parts[0], Short.parseShort(parts[1]), parts[2], Short.parseShort(parts[3]),
                    new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(parts[4]))));
        }
    }

    private void replayed(int offset) {
        Logged one = log.get(offset);
        if (one.isCommit() != null) {
            shard.replayEndTransactionMarker(one.producerId(), (short) 0,
                one.isCommit() ? TransactionResult.COMMIT : TransactionResult.ABORT);
            return;
        }
        CoordinatorRecord record = serde.deserialize(ByteBuffer.wrap(one.key()),
            one.value() == null ? null : ByteBuffer.wrap(one.value()));
        shard.replay(offset, one.producerId(), (short) 0, record);
    }

    private String request(String name, short version, String id, short failure, ByteBufferAccessor data) {
        AuthorizableRequestContext context = context(version);
        switch (name) {
            case "consumer_heartbeat":
                return consumerHeartbeat(context, new ConsumerGroupHeartbeatRequestData(data, version), failure);
            case "join":
                JoinGroupRequestData join = new JoinGroupRequestData(data, version);
                if (version == 0) {
                    join.setRebalanceTimeoutMs(join.sessionTimeoutMs());
                }
                CompletableFuture<JoinGroupResponseData> joined = new CompletableFuture<>();
                joined.whenComplete((response, error) -> answers.add("join:" + id + ":"
                    + hex(new JoinGroupResponse(response, version).data(), (short) 9)));
                return written(shard.classicGroupJoin(context, join, joined, false), failure, null, -1);
            case "sync":
                CompletableFuture<SyncGroupResponseData> synced = new CompletableFuture<>();
                synced.whenComplete((response, error) -> answers.add("sync:" + id + ":"
                    + hex(response.duplicate().setAssignment(HashOrder.sorted(response.assignment())), (short) 5)));
                return written(shard.classicGroupSync(context, new SyncGroupRequestData(data, version), synced),
                    failure, null, -1);
            case "heartbeat":
                return written(shard.classicGroupHeartbeat(context, new HeartbeatRequestData(data, version)),
                    failure, (short) 4, -1);
            case "leave":
                return written(shard.classicGroupLeave(context, new LeaveGroupRequestData(data, version)),
                    failure, (short) 5, -1);
            case "commit_offsets":
                OffsetCommitRequestData commit = new OffsetCommitRequestData(data, version);
                commit.topics().forEach(topic -> topic.setTopicId(idOf(topic.name(), topic.topicId()))
                    .setName(nameOf(topic.name(), topic.topicId())));
                return written(shard.commitOffset(context, commit), failure, version, -1);
            case "txn":
                TxnOffsetCommitRequestData transactional = new TxnOffsetCommitRequestData(data, version);
                transactional.topics().forEach(topic -> topic.setTopicId(idOf(topic.name(), topic.topicId()))
                    .setName(nameOf(topic.name(), topic.topicId())));
                return written(shard.commitTransactionalOffset(context, transactional), failure, (short) 5,
                    transactional.producerId());
            case "delete_offsets":
                return written(shard.deleteOffsets(context, new OffsetDeleteRequestData(data, version)), failure,
                    (short) 0, -1);
            case "share_heartbeat":
                return ShareGroupSteps.heartbeat(shard, context, new ShareGroupHeartbeatRequestData(data, version),
                    result -> written(result, failure, null, -1));
            case "initialize_share":
            case "uninitialize_share":
                return ShareGroupSteps.settled(shard, name, new DeleteShareGroupStateRequestData(data, version),
                    result -> written(result, failure, null, -1));
            case "alter_share_offsets":
                return ShareGroupSteps.altered(shard, new AlterShareGroupOffsetsRequestData(data, version),
                    result -> written(result, failure, null, -1));
            case "delete_share_offsets":
                return ShareGroupSteps.offsetsDeleted(shard, new DeleteShareGroupOffsetsRequestData(data, version),
                    result -> written(result, failure, null, -1));
            case "complete_share_offsets":
                return ShareGroupSteps.deletionCompleted(shard, new DeleteShareGroupStateRequestData(data, version),
                    result -> written(result, failure, (short) 0, -1));
            case "fetch":
                return fetched(new OffsetFetchRequestData(data, version));
            default:
                return named(name, context, failure, data);
        }
    }

    /** A version of a request has names of topics or their ids; a broker fills in the others that it knows. */
    private Uuid idOf(String name, Uuid id) {
        TopicImage topic = image.topics().getTopic(name);
        return topic == null ? id : topic.id();
    }

    private String nameOf(String name, Uuid id) {
        TopicImage topic = image.topics().getTopic(id);
        return topic == null ? name : topic.name();
    }

    private String consumerHeartbeat(AuthorizableRequestContext context, ConsumerGroupHeartbeatRequestData request,
            short failure) {
        CoordinatorResult<ConsumerGroupHeartbeatResponseData, CoordinatorRecord> result;
        try {
            result = shard.consumerGroupHeartbeat(context, request);
        } catch (RuntimeException refused) {
            ApiError error = ApiError.fromThrowable(refused);
            return "error " + error.error().code() + " " + Objects.requireNonNullElse(error.message(), "~") + " | ";
        }
        HashOrder.sort(result.response());
        return written(result, failure, (short) 1, -1);
    }

    private String named(String name, AuthorizableRequestContext context, short failure, ByteBufferAccessor data) {
        String[] words = new String(data.readArray(data.remaining()), StandardCharsets.UTF_8).split(",");
        List<String> names = new ArrayList<>(List.of(words));
        names.removeIf(String::isEmpty);
        if (name.equals("delete_groups")) {
            CoordinatorResult<DeleteGroupsResponseData.DeletableGroupResultCollection, CoordinatorRecord> result =
                shard.deleteGroups(context, names);
            StringBuilder text = new StringBuilder();
            result.response().forEach(one -> text.append(one.groupId()).append('=').append(one.errorCode())
                .append(','));
            return text + written(result, failure, null, -1);
        }
        if (name.equals("delete_share_groups")) {
            return ShareGroupSteps.groupsDeleted(shard, names, result -> written(result, failure, null, -1));
        }
        if (name.equals("describe_share")) {
            return ShareGroupSteps.described(shard, names, committed) + " | ";
        }
        if (name.equals("describe")) {
            List<DescribeGroupsResponseData.DescribedGroup> described =
                groups.describeGroups(context, names, committed);
            described.forEach(group -> group.members().forEach(member ->
                member.setMemberAssignment(HashOrder.sorted(member.memberAssignment()))));
            return hex(new DescribeGroupsResponseData().setGroups(described), (short) 6) + " | ";
        }
        if (name.equals("describe_consumer")) {
            List<ConsumerGroupDescribeResponseData.DescribedGroup> described =
                shard.consumerGroupDescribe(names, committed);
            described.forEach(HashOrder::sort);
            return hex(new ConsumerGroupDescribeResponseData().setGroups(described), (short) 1) + " | ";
        }
        int bar = names.indexOf("/");
        Collection<ListGroupsResponseData.ListedGroup> listed = groups.listGroups(
            new HashSet<>(names.subList(0, bar)), new HashSet<>(names.subList(bar + 1, names.size())), committed);
        TreeSet<String> texts = new TreeSet<>();
        listed.forEach(one -> texts.add(one.groupId() + "/" + one.protocolType() + "/" + one.groupState() + "/"
            + one.groupType()));
        return String.join(",", texts) + " | ";
    }

    private String fetched(OffsetFetchRequestData request) {
        OffsetFetchRequestData.OffsetFetchRequestGroup group = request.groups().get(0);
        if (group.topics() != null) {
            group.topics().forEach(topic -> topic.setTopicId(idOf(topic.name(), topic.topicId()))
                .setName(nameOf(topic.name(), topic.topicId())));
        }
        long epoch = request.requireStable() ? Long.MAX_VALUE : committed;
        return fetchText(group.topics() == null ? offsets.fetchAllOffsets(group, epoch)
            : offsets.fetchOffsets(group, epoch)) + " | ";
    }

    private static String fetchText(OffsetFetchResponseData.OffsetFetchResponseGroup group) {
        TreeSet<String> texts = new TreeSet<>();
        group.topics().forEach(topic -> topic.partitions().forEach(one -> texts.add(topic.name() + ":"
            + one.partitionIndex() + ":" + one.committedOffset() + ":" + one.committedLeaderEpoch() + ":"
            + one.metadata() + ":" + one.errorCode())));
        return String.join(",", texts);
    }

    private String written(CoordinatorResult<?, CoordinatorRecord> result, short failure, Short version,
            long producerId) {
        long base = log.size();
        List<String> texts = new ArrayList<>();
        for (CoordinatorRecord record : result.records()) {
            byte[] key = serde.serializeKey(record);
            byte[] value = serde.serializeValue(record);
            texts.add(text(key, value));
            if (result.replayRecords()) {
                shard.replay(log.size(), producerId, (short) 0, record);
            }
            log.add(new Logged(producerId, key, value, null));
        }
        boolean isUnordered = result.response() == null || texts.size() > 1;
        // The order of the members that an operator removes is that of a set.
        sort(texts, isUnordered, !(result.response() instanceof LeaveGroupResponseData));
        if (!texts.isEmpty() && failure != 0) {
            registry.revertToSnapshot(base);
            log.subList((int) base, log.size()).clear();
            if (result.appendFuture() != null) {
                result.appendFuture().completeExceptionally(Errors.forCode(failure).exception());
            }
        } else if (!texts.isEmpty()) {
            registry.idempotentCreateSnapshot(log.size());
            pending.add(new Pending(result));
        } else if (result.appendFuture() != null && !result.appendFuture().isDone()) {
            // As the runtime does: it waits for what was written before. Nobody waits for a future that is done.
            if (committed < log.size()) {
                pending.add(new Pending(result));
            } else {
                result.appendFuture().complete(null);
            }
        }
        String response = version == null ? "" : hex((Message) result.response(), version);
        return response + " | " + String.join(" ", texts);
    }

    private String text(byte[] key, byte[] value) {
        if (value == null) {
            return HexFormat.of().formatHex(key) + ":~";
        }
        CoordinatorRecord copy = serde.deserialize(ByteBuffer.wrap(key), ByteBuffer.wrap(value));
        HashOrder.sort(copy);
        return HexFormat.of().formatHex(key) + ":" + HexFormat.of().formatHex(serde.serializeValue(copy));
    }

    /** Sorts those of one group within the runs of one type: between these the order is Kafka's. */
    private static void sort(List<String> records, boolean isUnordered, boolean hasRuns) {
        boolean isOfOneGroup = hasRuns && records.stream().noneMatch(one -> one.compareTo("0002") < 0)
            && records.stream().map(GroupCoordinatorOracle::groupOf).distinct().count() == 1;
        if (!isOfOneGroup && isUnordered) {
            records.sort(null);
        }
        for (int start = 0, end = 0; isOfOneGroup && start < records.size(); start = end) {
            String type = records.get(start).substring(0, 4);
            while (end < records.size() && records.get(end).startsWith(type)) {
                end++;
            }
            records.subList(start, end).sort(null);
        }
    }

    /** The group id of a key, which follows the type: its length, and its bytes, in hexadecimal digits. */
    private static String groupOf(String record) {
        return record.substring(4, 8 + 2 * Integer.parseInt(record.substring(4, 8), 16));
    }

    private static AuthorizableRequestContext context(short version) {
        return (AuthorizableRequestContext) Proxy.newProxyInstance(Time.class.getClassLoader(),
            new Class<?>[] {AuthorizableRequestContext.class}, (proxy, method, given) -> {
                switch (method.getName()) {
                    case "requestVersion":
                        return (int) version;
                    case "clientId":
                        return "client";
                    case "clientAddress":
                        return InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
                    default:
                        return null;
                }
            });
    }

    static String hex(Message message, short version) {
        return HexFormat.of().formatHex(Utils.toArray(MessageUtil.toByteBufferAccessor(message, version).buffer()));
    }

    private String described() {
        StringBuilder text = new StringBuilder();
        for (String groupId : new TreeSet<>(groups.groupIds())) {
            Group group = groups.group(groupId);
            if (group instanceof ConsumerGroup consumerGroup) {
                ConsumerGroupText.append(consumerGroup, text);
            } else if (group instanceof ShareGroup shareGroup) {
                ShareGroupText.append(shareGroup, groups.shareGroupStatePartitionMetadata().get(groupId), text);
            } else {
                ClassicGroupText.append((ClassicGroup) group, text);
            }
            for (long epoch : new long[] {Long.MAX_VALUE, committed}) {
                text.append(" offsets ").append(fetchText(offsets.fetchAllOffsets(
                    new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId(groupId), epoch)));
            }
        }
        timers.forEach((key, timeout) -> {
            if (!key.equals("group-size-counter")) {
                // The shard sets the timer of expiration again by itself, when it has fired.
                boolean isRetried = timeout.isRetried() && !key.equals("expire-group-metadata");
                text.append(" timer ").append(key).append('@').append(timeout.deadlineMs())
                    .append(isRetried ? "+" : "");
            }
        });
        tasks.keySet().forEach(key -> text.append(" task ").append(key.substring(0, key.length() - "-regex".length())));
        return text.append(" waiting ").append(pending.size()).toString();
    }
}
