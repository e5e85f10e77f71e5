import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A connector whose only task makes a record of each line of a file that grows.
 *
 * <p>Its offset is the number of lines that it has read. A line that ends with a full stop ends the
 * transaction. A line without its end is left for later.
 */
public final class LineSource extends SourceConnector {
    private static final String FILE = "file";
    private static final String TOPIC = "topic";
    private static final String LINES = "lines";
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> given) {
        settings = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Reader.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasksMax) {
        return List.of(settings);
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define(FILE, ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "the file")
            .define(TOPIC, ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "the topic");
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> given) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> given) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }

    @Override
    public String version() {
        return "1";
    }

    /** The task: polls give some lines at a time. */
    public static final class Reader extends SourceTask {
        private static final int LINES_AT_ONCE = 10;
        private static final long PAUSE_MS = 50;
        private Path file;
        private String topic;
        private int read;

        @Override
        public void start(Map<String, String> settings) {
            file = Path.of(settings.get(FILE));
            topic = settings.get(TOPIC);
            Map<String, Object> offset = context.offsetStorageReader().offset(partition());
            read = offset == null ? 0 : ((Long) offset.get(LINES)).intValue();
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            List<String> lines = wholeLines();
            if (read >= lines.size()) {
                Thread.sleep(PAUSE_MS);
                return null;
            }
            List<SourceRecord> records = new ArrayList<>();
            while (read < lines.size() && records.size() < LINES_AT_ONCE) {
                records.add(record(lines.get(read)));
            }
            return records;
        }

        @Override
        public void stop() {
        }

        @Override
        public String version() {
            return "1";
        }

        /** Return the record of the next line, which is read with it. */
        private SourceRecord record(String line) {
            read++;
            Map<String, Long> offset = Map.of(LINES, (long) read);
            SourceRecord record =
                new SourceRecord(partition(), offset, topic, Schema.STRING_SCHEMA, line);
            if (line.endsWith(".")) {
                context.transactionContext().commitTransaction(record);
            }
            return record;
        }

        private Map<String, String> partition() {
            return Map.of(FILE, file.toString());
        }

        private List<String> wholeLines() {
            try {
                String text = Files.readString(file, StandardCharsets.UTF_8);
                int end = text.lastIndexOf('\n') + 1;
                return text.substring(0, end).lines().toList();
            } catch (IOException error) {
                throw new ConnectException(error);
            }
        }
    }
}
