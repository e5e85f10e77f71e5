import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Copies values from one topic to another exactly once, by a job of Flink in a cluster of its own.
 *
 * <p>Arguments: servers, source, target, a directory, and how transactional ids are named. The job
 * fails at each value that begins with "fail", the first time it has it. The directory keeps the
 * checkpoints, with the latest of which a program begins, and what the job has failed at. Runs
 * until it is killed.
 */
public final class CopyByFlink {
    private CopyByFlink() {
    }

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[3]);
        StreamExecutionEnvironment environment =
            StreamExecutionEnvironment.createLocalEnvironment(1, settings(directory));
        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(arguments[0])
            .setTopics(arguments[1])
            .setGroupId("flink")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(arguments[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(arguments[4]))
            .setTransactionalIdPrefix("flink")
            .setProperty("transaction.timeout.ms", "600000")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(arguments[2])
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "source")
            .map(new Failing(directory.toString()))
            .sinkTo(sink);
        environment.executeAsync();
        System.out.println("submitted");
    }

    private static Configuration settings(Path directory) {
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "3s");
        settings.setString("execution.checkpointing.dir", directory.toUri().toString());
        settings.setString(
            "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1000");
        settings.setString("restart-strategy.fixed-delay.delay", "100ms");
        settings.setString("jobmanager.bind-host", "127.0.0.1");
        settings.setString("taskmanager.bind-host", "127.0.0.1");
        settings.setString("rest.bind-address", "127.0.0.1");
        latestCheckpoint(directory).ifPresent(
            path -> settings.setString("execution.state-recovery.path", path.toUri().toString()));
        return settings;
    }

    /** Return the checkpoint that was completed last: those of a program have a directory. */
    private static Optional<Path> latestCheckpoint(Path directory) {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(file -> file.endsWith("_metadata"))
                .max(Comparator.comparingLong(file -> file.toFile().lastModified()))
                .map(Path::getParent);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A function that fails once at each value that asks for it. */
    private static final class Failing implements MapFunction<String, String> {
        private static final long serialVersionUID = 1L;
        private final String directory;

        Failing(String directory) {
            this.directory = directory;
        }

        @Override
        public String map(String value) throws IOException {
            if (value.startsWith("fail") && Path.of(directory, value).toFile().createNewFile()) {
                throw new IllegalStateException("the first time: " + value);
            }
            return value;
        }
    }
}
