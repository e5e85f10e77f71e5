import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.raft.FileQuorumStateStore;
import org.apache.kafka.raft.ReplicaKey;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/**
 * Reads the small files of data directories as Kafka's nodes do.
 *
 * <p>Argument: a directory for them. By line: the kind of a file and its bytes in hex. Answers what
 * was read, in hex of UTF-16, or "!".
 */
public final class SmallFiles {
    private SmallFiles() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Path directory = Path.of(arguments[0]);
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            String answer;
            try {
                answer = hex(read(parts[0], HexFormat.of().parseHex(parts[1]), directory));
            } catch (Exception problem) {
                answer = "!";
            }
            out.append(answer).append('\n');
        }
        System.out.print(out);
    }

    private static String read(String kind, byte[] content, Path directory) throws Exception {
        // A directory that has failed once is not used again.
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        switch (kind) {
            case "properties":
                return properties(content).entrySet().stream()
                    .map(entry -> hex(entry.getKey().toString()) + "="
                        + hex(entry.getValue().toString()))
                    .sorted()
                    .collect(Collectors.joining(" "));
            case "meta.properties":
                return new MetaProperties.Builder(properties(content)).build().toString();
            case "offsets":
                return new OffsetCheckpointFile(written(directory, kind, content), failures)
                    .read().entrySet().stream()
                    .map(entry -> hex(entry.getKey().topic()) + " " + entry.getKey().partition()
                        + " " + entry.getValue())
                    .sorted()
                    .collect(Collectors.joining("\n"));
            case "epochs":
                return new LeaderEpochCheckpointFile(written(directory, kind, content), failures)
                    .read().stream()
                    .map(entry -> entry.epoch() + " " + entry.startOffset())
                    .collect(Collectors.joining("\n"));
            case "partition.metadata":
                return new PartitionMetadataFile(written(directory, kind, content), failures)
                    .read().topicId().toString();
            case "quorum-state":
                return new FileQuorumStateStore(written(directory, kind, content))
                    .readElectionState()
                    .map(state -> state.epoch() + " " + state.leaderIdOrSentinel() + " "
                        + state.optionalVotedKey().map(SmallFiles::replica).orElse("nobody"))
                    .orElseThrow();
            default:
                written(directory, CleanShutdownFileHandler.CLEAN_SHUTDOWN_FILE_NAME, content);
                return new CleanShutdownFileHandler(directory.toString()).read().toString();
        }
    }

    private static String replica(ReplicaKey key) {
        return key.id() + " " + key.directoryId().map(Uuid::toString).orElse("anywhere");
    }

    private static Properties properties(byte[] content) throws Exception {
        Properties read = new Properties();
        read.load(new ByteArrayInputStream(content));
        return read;
    }

    private static File written(Path directory, String name, byte[] content) throws Exception {
        return Files.write(directory.resolve(name), content).toFile();
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_16BE));
    }
}
