package org.apache.kafka.coordinator.share;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.share.SharePartitionKey;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Drives one shard of Kafka's share coordinator, and its combiner of batches. A line in is a step, a line out is what
 * came of it: the response, the records, and the whole state behind it.
 */
public final class ShareCoordinatorOracle {
    private static final TopicPartition PARTITION = new TopicPartition("__share_group_state", 0);

    private record Logged(byte[] key, byte[] value) { }

    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private final List<Logged> log = new ArrayList<>();
    private final ShareCoordinatorConfig config;
    private final ShareCoordinatorMetrics metrics = new ShareCoordinatorMetrics();
    private MetadataImage image = MetadataImage.EMPTY;
    private long now;
    private SnapshotRegistry registry;
    private ShareCoordinatorOffsetsManager offsets;
    private ShareCoordinatorShard shard;

    private ShareCoordinatorOracle(String[] parts) {
        Map<String, String> settings = new HashMap<>();
        for (String part : List.of(parts).subList(1, parts.length)) {
            int equals = part.indexOf('=');
            settings.put(part.substring(0, equals), part.substring(equals + 1));
        }
        config = new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, settings, false));
        build();
        registry.idempotentCreateSnapshot(0);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        ShareCoordinatorOracle oracle = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            if (parts[0].equals("combine")) {
                out.println(combined(Long.parseLong(parts[1]), batches(parts[2]), batches(parts[3])));
                continue;
            }
            String result = "ok | ";
            if (parts[0].equals("new")) {
                oracle = new ShareCoordinatorOracle(parts);
                oracle.shard.onLoaded(new KRaftCoordinatorMetadataImage(oracle.image));
            } else {
                long end = oracle.log.size();
                try {
                    result = oracle.step(parts);
                } catch (RuntimeException refused) {
                    oracle.revert(end);
                    result = "error " + Errors.forException(refused).code() + " | ";
                }
            }
            out.println(result + " | " + oracle.described());
        }
    }

    private void build() {
        LogContext context = new LogContext();
        registry = new SnapshotRegistry(context);
        offsets = new ShareCoordinatorOffsetsManager(registry);
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getReturnType() == long.class ? (Object) now : null);
        shard = new ShareCoordinatorShard(context, config, metrics, metrics.newMetricsShard(registry, PARTITION),
            registry, offsets, time);
    }

    private void revert(long end) {
        registry.revertToSnapshot(end);
        log.subList((int) end, log.size()).clear();
    }

    /** Makes a metadata image of records, each in its frame, that ends at an offset. */
    private void publish(String[] parts) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        for (String record : List.of(parts).subList(2, parts.length)) {
            ByteBuffer framed = ByteBuffer.wrap(HexFormat.of().parseHex(record));
            delta.replay(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(framed), framed.remaining()).message());
        }
        image = delta.apply(new MetadataProvenance(Long.parseLong(parts[1]), 1, now, true));
        shard.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
    }

    private String step(String[] parts) throws IOException {
        switch (parts[0]) {
            case "time":
                now = Long.parseLong(parts[1]);
                return "ok | ";
            case "image":
                publish(parts);
                return "ok | ";
            case "commit":
                registry.deleteSnapshotsUpTo(log.size());
                return "ok | ";
            case "raw":
                log.add(new Logged(HexFormat.of().parseHex(parts[1]),
                    parts[2].equals("~") ? null : HexFormat.of().parseHex(parts[2])));
                replayed(log.size() - 1);
                registry.idempotentCreateSnapshot(log.size());
                return "ok | ";
            case "load":
                build();
                for (int offset = 0; offset < log.size(); offset++) {
                    replayed(offset);
                }
                registry.idempotentCreateSnapshot(log.size());
                shard.onLoaded(new KRaftCoordinatorMetadataImage(image));
                return "ok | ";
            case "cold":
                return written(shard.snapshotColdPartitions(), Short.parseShort(parts[1]), -1);
            case "topics":
                Set<Uuid> ids = new HashSet<>();
                for (String text : List.of(parts).subList(2, parts.length)) {
                    ids.add(Uuid.fromString(text));
                }
                return written(shard.maybeCleanupShareState(ids), Short.parseShort(parts[1]), -1);
            default:
                return request(parts[0], Short.parseShort(parts[1]),
                    new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]))));
        }
    }

    private void replayed(int offset) {
        Logged one = log.get(offset);
        CoordinatorRecord record = serde.deserialize(ByteBuffer.wrap(one.key()),
            one.value() == null ? null : ByteBuffer.wrap(one.value()));
        shard.replay(offset, -1, (short) -1, record);
    }

    private String request(String name, short failure, ByteBufferAccessor data) {
        switch (name) {
            case "initialize":
                return written(shard.initializeState(new InitializeShareGroupStateRequestData(data, (short) 0)), failure, 0);
            case "write":
                return written(shard.writeState(new WriteShareGroupStateRequestData(data, (short) 1)), failure, 1);
            case "read":
                return written(shard.readStateAndMaybeUpdateLeaderEpoch(
                    new ReadShareGroupStateRequestData(data, (short) 0)), failure, 0);
            case "summary":
                return written(shard.readStateSummary(new ReadShareGroupStateSummaryRequestData(data, (short) 1)),
                    failure, 1);
            default:
                return written(shard.deleteState(new DeleteShareGroupStateRequestData(data, (short) 0)), failure, 0);
        }
    }

    private String written(CoordinatorResult<?, CoordinatorRecord> result, short failure, int version) {
        long end = log.size();
        List<String> texts = new ArrayList<>();
        for (CoordinatorRecord record : ordered(result.records())) {
            byte[] key = serde.serializeKey(record);
            byte[] value = serde.serializeValue(record);
            texts.add(HexFormat.of().formatHex(key) + ":" + (value == null ? "~" : HexFormat.of().formatHex(value)));
            shard.replay(log.size(), -1, (short) -1, record);
            log.add(new Logged(key, value));
        }
        if (!texts.isEmpty() && failure != 0) {
            revert(end);
        } else {
            registry.idempotentCreateSnapshot(log.size());
        }
        String response = version < 0 ? "" : HexFormat.of().formatHex(
            Utils.toArray(MessageUtil.toByteBufferAccessor((Message) result.response(), (short) version).buffer()));
        return response + " | " + String.join(" ", texts);
    }

    /** Sorts records, whose order is that of a hash table. */
    private List<CoordinatorRecord> ordered(List<CoordinatorRecord> records) {
        List<CoordinatorRecord> sorted = new ArrayList<>(records);
        sorted.sort((one, other) -> HexFormat.of().formatHex(serde.serializeKey(one))
            .compareTo(HexFormat.of().formatHex(serde.serializeKey(other))));
        return sorted;
    }

    private String described() throws ReflectiveOperationException {
        TimelineHashMap<SharePartitionKey, ShareGroupOffset> states = table("shareStateMap");
        TimelineHashMap<SharePartitionKey, Integer> counts = table("snapshotUpdateCount");
        TreeSet<String> texts = new TreeSet<>();
        for (Map.Entry<SharePartitionKey, ShareGroupOffset> entry : states.entrySet()) {
            SharePartitionKey key = entry.getKey();
            ShareGroupOffset state = entry.getValue();
            Integer stateEpoch = shard.getStateEpochMapValue(key);
            texts.add(key.asCoordinatorKey() + "=" + state.snapshotEpoch() + "," + state.stateEpoch() + ","
                + state.leaderEpoch() + "," + state.startOffset() + "," + state.deliveryCompleteCount() + ","
                + state.createTimestamp() + "," + state.writeTimestamp() + ";" + text(state.stateBatches()) + ";"
                + shard.getLeaderMapValue(key) + "," + (stateEpoch == null ? 0 : stateEpoch) + ","
                + counts.getOrDefault(key, 0));
        }
        return shard.lastRedundantOffset().response().map(String::valueOf).orElse("~") + " " + String.join(" ", texts);
    }

    @SuppressWarnings("unchecked")
    private <V> TimelineHashMap<SharePartitionKey, V> table(String name) throws ReflectiveOperationException {
        Field field = ShareCoordinatorShard.class.getDeclaredField(name);
        field.setAccessible(true);
        return (TimelineHashMap<SharePartitionKey, V>) field.get(shard);
    }

    private static String combined(long startOffset, List<PersisterStateBatch> soFar, List<PersisterStateBatch> added) {
        try {
            return text(new PersisterStateBatchCombiner(soFar, added, startOffset).combineStateBatches());
        } catch (NullPointerException disordered) {
            return "error";
        }
    }

    private static List<PersisterStateBatch> batches(String text) {
        List<PersisterStateBatch> batches = new ArrayList<>();
        for (String one : text.equals("~") ? new String[0] : text.split(",")) {
            String[] parts = one.split(":");
            batches.add(new PersisterStateBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]),
                Byte.parseByte(parts[2]), Short.parseShort(parts[3])));
        }
        return batches;
    }

    private static String text(List<PersisterStateBatch> batches) {
        List<String> texts = new ArrayList<>();
        batches.forEach(one -> texts.add(one.firstOffset() + ":" + one.lastOffset() + ":" + one.deliveryState() + ":"
            + one.deliveryCount()));
        return texts.isEmpty() ? "~" : String.join(",", texts);
    }
}
