package org.apache.kafka.storage.internals.log;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.utils.Time;

/**
 * Folds batches into the state of producers as Kafka's log does. Lines in: "new", "append ORIGIN VERSION
 * HEX", "watermark OFFSET" and "expire TIME". A line out: what came of it, and the state behind it.
 */
public final class ProducerStateOracle {
    private static final int EXPIRATION_MS = 1000;

    private ProducerStateOracle() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        ProducerStateManager state = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            String result = "ok";
            if (parts[0].equals("new")) {
                state = newState();
            } else if (parts[0].equals("append")) {
                result = append(state, AppendOrigin.valueOf(parts[1]), Short.parseShort(parts[2]), parts[3]);
            } else if (parts[0].equals("watermark")) {
                state.onHighWatermarkUpdated(Long.parseLong(parts[1]));
            } else {
                state.removeExpiredProducers(Long.parseLong(parts[1]));
            }
            out.append(result).append(" | ").append(described(state)).append('\n');
        }
        System.out.print(out);
    }

    private static ProducerStateManager newState() throws IOException {
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> 0L);
        return new ProducerStateManager(new TopicPartition("topic", 0),
            Files.createTempDirectory("producers").toFile(), 900000,
            new ProducerStateManagerConfig(EXPIRATION_MS, false), time);
    }

    private static String append(ProducerStateManager state, AppendOrigin origin, short version, String hex) {
        ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        MutableRecordBatch batch = MemoryRecords.readableRecords(buffer).batches().iterator().next();
        if (origin == AppendOrigin.CLIENT) {
            Optional<BatchMetadata> known = state.lastEntry(batch.producerId())
                .flatMap(entry -> entry.findDuplicateBatch(batch));
            if (known.isPresent()) {
                return "duplicate " + known.get().firstOffset() + " " + known.get().lastOffset();
            }
        }
        try {
            ProducerAppendInfo info = state.prepareUpdate(batch.producerId(), origin);
            Optional<CompletedTxn> ended =
                info.append(batch, Optional.of(new LogOffsetMetadata(batch.baseOffset())), version);
            state.update(info);
            String result = "ok";
            if (ended.isPresent()) {
                CompletedTxn one = ended.get();
                result = "ended " + one.producerId() + " " + one.firstOffset() + " " + one.lastOffset() + " "
                    + (one.isAborted() ? 1 : 0) + " " + state.lastStableOffset(one);
                state.completeTxn(one);
            }
            state.updateMapEndOffset(batch.lastOffset() + 1);
            return result;
        } catch (RuntimeException refused) {
            return "error " + Errors.forException(refused).code();
        }
    }

    private static String described(ProducerStateManager state) {
        StringBuilder text = new StringBuilder();
        text.append(state.mapEndOffset()).append(' ')
            .append(state.firstUnstableOffset().map(one -> one.messageOffset).orElse(-1L)).append(' ')
            .append(number(state.firstUndecidedOffset()));
        for (Map.Entry<Long, ProducerStateEntry> each : new TreeMap<>(state.activeProducers()).entrySet()) {
            ProducerStateEntry entry = each.getValue();
            text.append(" ; ").append(each.getKey()).append(' ').append(entry.producerEpoch()).append(' ')
                .append(entry.coordinatorEpoch()).append(' ').append(entry.lastTimestamp()).append(' ')
                .append(number(entry.currentTxnFirstOffset()));
            for (BatchMetadata batch : entry.batchMetadata()) {
                text.append(' ').append(batch.firstSeq()).append('-').append(batch.lastSeq()).append('@')
                    .append(batch.firstOffset()).append('-').append(batch.lastOffset()).append('@')
                    .append(batch.timestamp());
            }
        }
        return text.toString();
    }

    private static long number(OptionalLong value) {
        return value.orElse(-1L);
    }
}
