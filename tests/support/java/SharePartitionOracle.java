package kafka.server.share;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ShareFetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.ShareGroupAutoOffsetResetStrategy;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfigProvider;
import org.apache.kafka.server.share.PartitionMetadataProvider;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.dlq.ShareGroupDLQManager;
import org.apache.kafka.server.share.dlq.ShareGroupDLQRecordParameter;
import org.apache.kafka.server.share.fetch.AcquisitionLockTimerTask;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/**
 * Drives Kafka's SharePartition. A line in is a step, a line out is what came of it: the result, the answers that were
 * due, what has to be written or copied, and the whole state behind it.
 */
public final class SharePartitionOracle {
    private static final String GROUP = "group";
    private static final TopicIdPartition PARTITION = new TopicIdPartition(new Uuid(1, 2), 3, "topic");
    private static final int LEADER_EPOCH = 7;

    private record Write(PartitionStateBatchData data, CompletableFuture<WriteShareGroupStateResult> future) { }

    private record Scheduled(long number, TimerTaskEntry entry) { }

    /** The values of the group, which may change from step to step. */
    private static final class Settings extends ShareGroupConfigProvider {
        private int recordLocksMax;
        private int deliveryCountLimit;
        private int recordLockDurationMs;
        private boolean isRenewEnabled;
        private boolean isDeadLetterQueueEnabled;

        private Settings(String[] parts) {
            super(null);
            take(parts);
        }

        private void take(String[] parts) {
            recordLocksMax = Integer.parseInt(parts[1]);
            deliveryCountLimit = Integer.parseInt(parts[2]);
            recordLockDurationMs = Integer.parseInt(parts[3]);
            isRenewEnabled = parts[4].equals("1");
            isDeadLetterQueueEnabled = parts[5].equals("1");
        }

        @Override
        public int recordLockDurationMsOrDefault(String groupId, int defaultValue) {
            return recordLockDurationMs;
        }

        @Override
        public int deliveryCountLimitOrDefault(String groupId, int defaultValue) {
            return deliveryCountLimit;
        }

        @Override
        public int partitionMaxRecordLocksOrDefault(String groupId, int defaultValue) {
            return recordLocksMax;
        }

        @Override
        public boolean isRenewAcknowledgeEnabled(String groupId) {
            return isRenewEnabled;
        }

        @Override
        public ShareGroupAutoOffsetResetStrategy autoOffsetReset(String groupId) {
            return ShareGroupAutoOffsetResetStrategy.EARLIEST;
        }

        @Override
        public Optional<String> errorsDLQTopicName(String groupId) {
            return Optional.of("dead-letters");
        }
    }

    /** Fires tasks by their deadlines, and those of one deadline in the order in which they came. */
    private final class Tasks implements Timer {
        private final PriorityQueue<Scheduled> scheduled = new PriorityQueue<>((one, other) ->
            one.entry().expirationMs != other.entry().expirationMs
                ? Long.compare(one.entry().expirationMs, other.entry().expirationMs)
                : Long.compare(one.number(), other.number()));
        private long count;

        @Override
        public void add(TimerTask task) {
            scheduled.add(new Scheduled(count++, new TimerTaskEntry(task, now + task.delayMs)));
        }

        @Override
        public boolean advanceClock(long unused) {
            while (!scheduled.isEmpty() && scheduled.peek().entry().expirationMs <= now) {
                TimerTaskEntry entry = scheduled.poll().entry();
                if (!entry.cancelled()) {
                    entry.timerTask.run();
                }
            }
            return true;
        }

        @Override
        public int size() {
            return scheduled.size();
        }

        @Override
        public void close() {
        }
    }

    private final List<List<Write>> writes = new ArrayList<>();
    private final List<CompletableFuture<Void>> deadLetters = new ArrayList<>();
    private final List<String> answers = new ArrayList<>();
    private final List<String> due = new ArrayList<>();
    private final Tasks tasks = new Tasks();
    private final Settings settings;
    private final SharePartition partition;
    private ReadShareGroupStateResult stored;
    private long resetOffset;
    private List<Write> expiries;
    private long now;
    private int askedCount;

    private SharePartitionOracle(String[] parts) {
        settings = new Settings(parts);
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getReturnType() == long.class ? (Object) now : null);
        PartitionMetadataProvider metadata = (PartitionMetadataProvider) Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {PartitionMetadataProvider.class},
            (proxy, method, given) -> resetOffset);
        Persister persister = (Persister) Proxy.newProxyInstance(Time.class.getClassLoader(),
            new Class<?>[] {Persister.class}, (proxy, method, given) -> method.getName().equals("readState")
                ? CompletableFuture.completedFuture(stored) : written((WriteShareGroupStateParameters) given[0]));
        ShareGroupDLQManager deadLetterQueue = new ShareGroupDLQManager() {
            @Override
            public CompletableFuture<Void> enqueue(ShareGroupDLQRecordParameter records) {
                CompletableFuture<Void> copied = new CompletableFuture<>();
                deadLetters.add(copied);
                due.add("dead:" + records.firstOffset() + "-" + records.lastOffset() + "/"
                    + records.deliveryCount().get() + "/" + records.cause().get().getMessage().replace(' ', '_'));
                return copied;
            }

            @Override
            public void stop() {
            }
        };
        partition = new SharePartition(GROUP, PARTITION, LEADER_EPOCH, 0, 0, 0, tasks, time, persister, metadata,
            key -> { }, settings, null, () -> settings.isDeadLetterQueueEnabled, deadLetterQueue);
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        SharePartitionOracle oracle = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            if (parts[0].equals("new")) {
                oracle = new SharePartitionOracle(parts);
                out.println("ok");
                continue;
            }
            out.println(oracle.answer(parts));
        }
    }

    private String answer(String[] parts) {
        answers.clear();
        due.clear();
        String result;
        try {
            result = step(parts);
        } catch (RuntimeException broken) {
            result = "broken " + broken;
        }
        return result + " | " + String.join(" ", answers) + " | " + String.join(" ", due) + " | "
            + described();
    }

    private String step(String[] parts) {
        switch (parts[0]) {
            case "settings":
                settings.take(parts);
                return "ok";
            case "init":
                resetOffset = Long.parseLong(parts[4]);
                stored = new ReadShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(
                    PARTITION.topicId(), List.of(PartitionFactory.newPartitionAllData(PARTITION.partition(),
                        Integer.parseInt(parts[2]), Long.parseLong(parts[3]), Short.parseShort(parts[1]), "why",
                        storedBatches(parts)))))).build();
                answerLater(partition.maybeInitialize());
                return "ok";
            case "time":
                now = Long.parseLong(parts[1]);
                expiries = new ArrayList<>();
                tasks.advanceClock(0);
                if (!expiries.isEmpty()) {
                    writes.add(expiries);
                    due.add(text(expiries));
                }
                expiries = null;
                return "ok";
            case "acquire":
                return acquired(parts);
            case "ack":
                List<ShareAcknowledgementBatch> batches = new ArrayList<>();
                for (String batch : List.of(parts).subList(2, parts.length)) {
                    String[] values = batch.split(":");
                    List<Byte> types = Arrays.stream(values[2].split(",")).map(Byte::parseByte).toList();
                    batches.add(new ShareAcknowledgementBatch(Long.parseLong(values[0]), Long.parseLong(values[1]), types));
                }
                answerLater(partition.acknowledge(parts[1], batches));
                return "ok";
            case "release":
                answerLater(partition.releaseAcquiredRecords(parts[1]));
                return "ok";
            case "start":
                partition.updateCacheAndOffsets(Long.parseLong(parts[1]));
                return "ok";
            case "written":
                WriteShareGroupStateResult result = new WriteShareGroupStateResult.Builder().setTopicsData(List.of(
                    new TopicData<>(PARTITION.topicId(), List.of(PartitionFactory.newPartitionErrorData(
                        PARTITION.partition(), Short.parseShort(parts[2]), "why"))))).build();
                writes.remove(Integer.parseInt(parts[1])).forEach(write -> write.future().complete(result));
                return "ok";
            case "copied":
                deadLetters.remove(Integer.parseInt(parts[1])).complete(null);
                return "ok";
            default:
                throw new IllegalArgumentException(parts[0]);
        }
    }

    private static List<PersisterStateBatch> storedBatches(String[] parts) {
        List<PersisterStateBatch> batches = new ArrayList<>();
        for (String batch : List.of(parts).subList(5, parts.length)) {
            String[] values = batch.split(":");
            batches.add(new PersisterStateBatch(Long.parseLong(values[0]), Long.parseLong(values[1]),
                Byte.parseByte(values[2]), Short.parseShort(values[3])));
        }
        return batches;
    }

    /** Acquires: member, mode, batch size, most records, fetch offset, records, and aborted transactions if wanted. */
    private String acquired(String[] parts) {
        byte[] read = parts[6].equals("none") ? new byte[0] : HexFormat.of().parseHex(parts[6]);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(read));
        List<FetchResponseData.AbortedTransaction> aborted = new ArrayList<>();
        for (String transaction : List.of(parts).subList(7, parts.length)) {
            String[] values = transaction.split(":");
            aborted.add(new FetchResponseData.AbortedTransaction().setProducerId(Long.parseLong(values[0]))
                .setFirstOffset(Long.parseLong(values[1])));
        }
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 0, 0, records, Optional.empty(),
            OptionalLong.empty(), Optional.of(aborted), OptionalInt.empty(), false);
        ShareAcquiredRecords acquired = partition.acquire(parts[1], ShareAcquireMode.forId(Byte.parseByte(parts[2])),
            Integer.parseInt(parts[3]), Integer.parseInt(parts[4]), Long.parseLong(parts[5]), data,
            FetchIsolation.TXN_COMMITTED);
        StringBuilder text = new StringBuilder(String.valueOf(acquired.count()));
        for (ShareFetchResponseData.AcquiredRecords one : acquired.acquiredRecords()) {
            text.append(' ').append(one.firstOffset()).append('-').append(one.lastOffset()).append('/')
                .append(one.deliveryCount());
        }
        if (!acquired.acquiredRecords().isEmpty()) {
            Records sent = ShareFetchUtils.maybeSliceFetchRecords(records, acquired);
            text.append(" sent ").append(sent.batches().iterator().next().baseOffset()).append('+')
                .append(sent.sizeInBytes());
        }
        return text.toString();
    }

    private void answerLater(CompletableFuture<Void> future) {
        int number = askedCount++;
        future.whenComplete((nothing, failure) -> {
            String answer = "ok";
            if (failure != null) {
                Errors error = Errors.forException(failure);
                answer = error.code() + "=" + String.valueOf(failure.getMessage()).replace(' ', '_');
            }
            answers.add(number + ":" + answer);
        });
    }

    private CompletableFuture<WriteShareGroupStateResult> written(WriteShareGroupStateParameters parameters) {
        CompletableFuture<WriteShareGroupStateResult> future = new CompletableFuture<>();
        Write write = new Write(parameters.groupTopicPartitionData().topicsData().get(0).partitions().get(0), future);
        if (expiries == null) {
            writes.add(List.of(write));
            due.add(text(List.of(write)));
        } else {
            expiries.add(write);
        }
        return future;
    }

    /** Shows writes as one: with the offsets and counts of the last. */
    private static String text(List<Write> group) {
        PartitionStateBatchData last = group.get(group.size() - 1).data();
        StringBuilder text = new StringBuilder("write:" + last.partition() + "/" + last.stateEpoch() + "/"
            + last.leaderEpoch() + "/" + last.startOffset() + "/" + last.deliveryCompleteCount());
        for (Write write : group) {
            for (PersisterStateBatch batch : write.data().stateBatches()) {
                text.append(',').append(batch.firstOffset()).append('-').append(batch.lastOffset()).append('/')
                    .append(batch.deliveryState()).append('/').append(batch.deliveryCount());
            }
        }
        return text.toString();
    }

    private String described() {
        StringBuilder text = new StringBuilder();
        String canAcquire;
        try {
            canAcquire = partition.nextFetchOffset() + (partition.canAcquireRecords() ? "+" : "-");
        } catch (RuntimeException broken) {
            canAcquire = broken.toString();
        }
        try {
            partition.canMoveStartOffset();
        } catch (RuntimeException broken) {
            text.append("broken ");
        }
        SharePartition.GapWindow window = partition.persisterReadResultGapWindow();
        text.append(partition.partitionState()).append(' ').append(partition.startOffset()).append('-')
            .append(partition.endOffset()).append(" complete ").append(partition.deliveryCompleteCount())
            .append(" next ").append(canAcquire).append(partition.findNextFetchOffset() ? "?" : "").append(" gaps ")
            .append(window == null ? "none" : window.gapStartOffset() + "-" + window.endOffset());
        for (Map.Entry<Long, InFlightBatch> entry : partition.cachedState().entrySet()) {
            InFlightBatch batch = entry.getValue();
            text.append(' ').append(entry.getKey()).append('-').append(batch.lastOffset()).append('=');
            if (batch.offsetState() == null) {
                text.append(batchText(batch));
                continue;
            }
            text.append('[');
            batch.offsetState().forEach((offset, state) -> text.append(text(state)).append(','));
            text.append(']');
        }
        return text.toString();
    }

    private static String batchText(InFlightBatch batch) {
        return text(batch.batchState().id(), batch.batchDeliveryCount(), batch.batchMemberId(),
            batch.batchAcquisitionLockTimeoutTask(), batch.batchHasOngoingStateTransition());
    }

    private static String text(InFlightState state) {
        return text(state.state().id(), state.deliveryCount(), state.memberId(), state.acquisitionLockTimeoutTask(),
            state.hasOngoingStateTransition());
    }

    private static String text(byte state, int deliveryCount, String memberId,
            AcquisitionLockTimerTask lock, boolean isInTransition) {
        String until = lock == null ? "" : lock.expirationMs() + (lock.hasExpired() ? "!" : "");
        return state + "/" + deliveryCount + "/" + memberId + "/" + until + (isInTransition ? "~" : "");
    }
}
