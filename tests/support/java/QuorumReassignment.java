import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.TopicPartition;

/**
 * Reassigns the partition of the metadata log by Kafka's own admin client. Each line of the input is
 * a command: "list", "cancel", or the ids of the wanted voters with commas. Each answer is a line.
 */
public final class QuorumReassignment {
    private static final TopicPartition METADATA = new TopicPartition("__cluster_metadata", 0);

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
                BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(answer(admin, line.trim()));
            }
        }
    }

    private static String answer(Admin admin, String command) throws InterruptedException {
        try {
            if (command.equals("list")) {
                var found = admin.listPartitionReassignments().reassignments().get().get(METADATA);
                return found == null
                    ? "none"
                    : found.replicas() + " " + found.addingReplicas() + " " + found.removingReplicas();
            }
            Optional<NewPartitionReassignment> wanted = Optional.empty();
            if (!command.equals("cancel")) {
                List<Integer> ids = Arrays.stream(command.split(",")).map(Integer::valueOf).toList();
                wanted = Optional.of(new NewPartitionReassignment(ids));
            }
            admin.alterPartitionReassignments(Map.of(METADATA, wanted)).all().get();
            return "done";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage();
        }
    }
}
