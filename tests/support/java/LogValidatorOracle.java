import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * Validates batches as Kafka's leader does before it appends them. A line in: target compression (-1
 * for the producer's), whether the topic is compacted, timestamp type, how far timestamps may lie
 * before and after, the time, first offset, leader epoch, origin, the largest packed record, the
 * batch in hex. A line out: "ok"
 * with append time, highest timestamp, whether the size may have changed, and the batch; or "error" with
 * code, text in hex, and index and text of each record.
 */
public final class LogValidatorOracle {
    private static final HexFormat HEX = HexFormat.of();

    private static final LogValidator.MetricsRecorder NOTHING = new LogValidator.MetricsRecorder() {
        @Override public void recordInvalidMagic() { }
        @Override public void recordInvalidOffset() { }
        @Override public void recordInvalidSequence() { }
        @Override public void recordInvalidChecksums() { }
        @Override public void recordNoKeyCompactedTopic() { }
    };

    private LogValidatorOracle() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.append(answer(line.split(" "))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String[] asked) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(asked[10])));
        try {
            CompressionType source = records.batches().iterator().next().compressionType();
            int target = Integer.parseInt(asked[0]);
            CompressionType wanted = target < 0 ? source : CompressionType.forId(target);
            Time time = stoppedAt(Long.parseLong(asked[5]));
            LogValidator validator = new LogValidator(records, new TopicPartition("topic", 0), time, source,
                Compression.of(wanted).build(), asked[1].equals("1"), RecordBatch.MAGIC_VALUE_V2,
                TimestampType.forName(asked[2]), Long.parseLong(asked[3]), Long.parseLong(asked[4]),
                Integer.parseInt(asked[7]), AppendOrigin.valueOf(asked[8]), Integer.parseInt(asked[9]));
            LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
                PrimitiveRef.ofLong(Long.parseLong(asked[6])), NOTHING, BufferSupplier.NO_CACHING);
            ByteBuffer buffer = result.validatedRecords().buffer();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return "ok " + result.logAppendTimeMs() + " " + result.maxTimestampMs() + " "
                + (result.messageSizeMaybeChanged() ? 1 : 0) + " " + HEX.formatHex(bytes);
        } catch (RecordValidationException refused) {
            StringBuilder text = new StringBuilder(error(refused.invalidException()));
            for (ProduceResponse.RecordError one : refused.recordErrors()) {
                text.append(' ').append(one.batchIndex).append(' ').append(hex(one.message));
            }
            return text.toString();
        } catch (Exception | Error refused) {
            return error(refused);
        }
    }

    private static Time stoppedAt(long milliseconds) {
        return (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> milliseconds);
    }

    private static String error(Throwable refused) {
        return "error " + Errors.forException(refused).code() + " " + hex(String.valueOf(refused.getMessage()));
    }

    private static String hex(String text) {
        return HEX.formatHex(text.getBytes(StandardCharsets.UTF_8)) + ".";
    }
}
