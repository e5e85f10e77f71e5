package org.apache.kafka.coordinator.group;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
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
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
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
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Drives one shard of Kafka's group coordinator. A line in is a step, a line out is what came of it: result,
 * records, answers that were due, and the whole state behind it.
 */
public final class GroupCoordinatorOracle {
    private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);

    private record Timeout(long deadlineMs, CoordinatorTimer.TimeoutOperation<CoordinatorRecord> operation) { }

    private record Pending(CoordinatorResult<?, CoordinatorRecord> result) { }

    private record Logged(long producerId, byte[] key, byte[] value, Boolean isCommit) { }

    private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    private final List<Logged> log = new ArrayList<>();
    private final List<String> answers = new ArrayList<>();
    private final GroupCoordinatorConfig config;
    private final GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics();
    private final Map<String, Timeout> timers = new TreeMap<>();
    private final ArrayDeque<Pending> pending = new ArrayDeque<>();
    private long now;
    private long committed;
    private SnapshotRegistry registry;
    private GroupMetadataManager groups;
    private OffsetMetadataManager offsets;
    private GroupCoordinatorShard shard;

    private GroupCoordinatorOracle(String[] parts) {
        Map<String, String> settings = new HashMap<>();
        settings.put("group.max.size", parts[1]);
        settings.put("group.initial.rebalance.delay.ms", parts[2]);
        settings.put("offset.metadata.max.bytes", parts[3]);
        settings.put("offsets.retention.minutes", parts[4]);
        config = GroupCoordinatorConfig.fromProps(settings);
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
                oracle.shard.onLoaded(CoordinatorMetadataImage.EMPTY);
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
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getReturnType() == long.class ? (Object) now : null);
        CoordinatorTimer<CoordinatorRecord> timer = new Timers();
        @SuppressWarnings("unchecked")
        CoordinatorExecutor<CoordinatorRecord> executor = (CoordinatorExecutor<CoordinatorRecord>) Proxy
            .newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {CoordinatorExecutor.class},
                (proxy, method, given) -> method.getReturnType() == boolean.class ? (Object) false : null);
        GroupCoordinatorMetricsShard metricsShard = metrics.newMetricsShard(registry, PARTITION);
        groups = new GroupMetadataManager.Builder().withLogContext(context).withSnapshotRegistry(registry)
            .withTime(time).withTimer(timer).withExecutor(executor).withConfig(config)
            .withGroupConfigManager(new GroupConfigManager(config, ShareGroupConfig.fromProps(Map.of())))
            .withGroupCoordinatorMetricsShard(metricsShard).withAuthorizerPlugin(Optional.empty()).build();
        offsets = new OffsetMetadataManager.Builder().withLogContext(context).withSnapshotRegistry(registry)
            .withTime(time).withGroupMetadataManager(groups).withGroupCoordinatorConfig(config)
            .withGroupCoordinatorMetricsShard(metricsShard).build();
        shard = new GroupCoordinatorShard(context, groups, offsets, time, timer, config, metrics, metricsShard);
    }

    private final class Timers implements CoordinatorTimer<CoordinatorRecord> {
        @Override
        public void schedule(String key, long delay, TimeUnit unit, boolean retry,
                TimeoutOperation<CoordinatorRecord> operation) {
            timers.put(key, new Timeout(now + unit.toMillis(delay), operation));
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

    private String step(String[] parts) throws IOException {
        switch (parts[0]) {
            case "time":
                now = Long.parseLong(parts[1]);
                return "ok | ";
            case "fire":
                Timeout timeout = timers.remove(parts[1]);
                return written(timeout.operation().generateRecords(), Short.parseShort(parts[2]), null, -1);
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
                shard.onLoaded(CoordinatorMetadataImage.EMPTY);
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
                synced.whenComplete((response, error) -> answers.add("sync:" + id + ":" + hex(response, (short) 5)));
                return written(shard.classicGroupSync(context, new SyncGroupRequestData(data, version), synced),
                    failure, null, -1);
            case "heartbeat":
                return written(shard.classicGroupHeartbeat(context, new HeartbeatRequestData(data, version)),
                    failure, (short) 4, -1);
            case "leave":
                return written(shard.classicGroupLeave(context, new LeaveGroupRequestData(data, version)),
                    failure, (short) 5, -1);
            case "commit_offsets":
                return written(shard.commitOffset(context, new OffsetCommitRequestData(data, version)), failure,
                    version, -1);
            case "txn":
                TxnOffsetCommitRequestData transactional = new TxnOffsetCommitRequestData(data, version);
                return written(shard.commitTransactionalOffset(context, transactional), failure, (short) 5,
                    transactional.producerId());
            case "delete_offsets":
                return written(shard.deleteOffsets(context, new OffsetDeleteRequestData(data, version)), failure,
                    (short) 0, -1);
            case "fetch":
                return fetched(new OffsetFetchRequestData(data, version));
            default:
                return named(name, context, failure, data);
        }
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
        if (name.equals("describe")) {
            return hex(new DescribeGroupsResponseData().setGroups(groups.describeGroups(context, names, committed)),
                (short) 6) + " | ";
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
            texts.add(HexFormat.of().formatHex(key) + ":" + (value == null ? "~" : HexFormat.of().formatHex(value)));
            if (result.replayRecords()) {
                shard.replay(log.size(), producerId, (short) 0, record);
            }
            log.add(new Logged(producerId, key, value, null));
        }
        if (result.response() == null || result.records().size() > 1) {
            texts.sort(null);
        }
        if (!texts.isEmpty() && failure != 0) {
            registry.revertToSnapshot(base);
            log.subList((int) base, log.size()).clear();
            if (result.appendFuture() != null) {
                result.appendFuture().completeExceptionally(Errors.forCode(failure).exception());
            }
        } else if (!texts.isEmpty()) {
            registry.idempotentCreateSnapshot(log.size());
            pending.add(new Pending(result));
        }
        String response = version == null ? "" : hex((Message) result.response(), version);
        return response + " | " + String.join(" ", texts);
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

    private static String hex(Message message, short version) {
        return HexFormat.of().formatHex(Utils.toArray(MessageUtil.toByteBufferAccessor(message, version).buffer()));
    }

    private String described() {
        StringBuilder text = new StringBuilder();
        for (String groupId : new TreeSet<>(groups.groupIds())) {
            described((ClassicGroup) groups.group(groupId), text);
            for (long epoch : new long[] {Long.MAX_VALUE, committed}) {
                text.append(" offsets ").append(fetchText(offsets.fetchAllOffsets(
                    new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId(groupId), epoch)));
            }
        }
        timers.forEach((key, timeout) -> {
            if (!key.equals("group-size-counter")) {
                text.append(" timer ").append(key).append('@').append(timeout.deadlineMs());
            }
        });
        return text.toString();
    }

    @SuppressWarnings("unchecked")
    private static void described(ClassicGroup group, StringBuilder text) {
        Collection<String> expected;
        try {
            Field field = ClassicGroup.class.getDeclaredField("pendingJoinMembers");
            field.setAccessible(true);
            expected = new TreeSet<>((Collection<String>) field.get(group));
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
        text.append(" group ").append(group.groupId()).append(' ').append(group.currentState()).append(' ')
            .append(group.previousState()).append(' ').append(group.generationId()).append(' ')
            .append(group.protocolType().orElse("~")).append(' ').append(group.protocolName().orElse("~"))
            .append(' ').append(Optional.ofNullable(group.leaderOrNull()).orElse("~")).append(' ')
            .append(group.currentStateTimestampOrDefault()).append(' ').append(group.newMemberAdded() ? 1 : 0)
            .append(' ').append(group.numAwaitingJoinResponse()).append(' ')
            .append(group.subscribedTopics().map(topics -> String.join(",", new TreeSet<>(topics))).orElse("~"))
            .append(" expected ").append(String.join(",", expected)).append(" unsynced ")
            .append(String.join(",", new TreeSet<>(group.allPendingSyncMembers())));
        for (ClassicGroupMember member : group.allMembers()) {
            text.append(" member ").append(member.memberId()).append(' ')
                .append(member.groupInstanceId().orElse("~")).append(' ').append(member.isAwaitingJoin() ? 1 : 0)
                .append(member.isAwaitingSync() ? 1 : 0).append(member.isNew() ? 1 : 0).append(' ')
                .append(member.sessionTimeoutMs()).append(' ').append(member.rebalanceTimeoutMs()).append(' ')
                .append(HexFormat.of().formatHex(member.assignment()));
            member.supportedProtocols().forEach(one -> text.append(' ').append(one.name()).append('=')
                .append(HexFormat.of().formatHex(one.metadata())));
        }
    }
}
