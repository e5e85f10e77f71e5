import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecordJsonConverter;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** Answers, for each line of input, with the record that Kafka writes for a partition's change. */
public class PartitionChanges {
    private final String[] words;
    private int next = 0;

    PartitionChanges(String line) {
        words = line.split(" ");
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(new PartitionChanges(line).answer());
            System.out.flush();
        }
    }

    private String answer() {
        MetadataVersion version = MetadataVersion.fromFeatureLevel((short) number());
        int minIsr = number();
        boolean elrEnabled = number() == 1;
        int[] replicas = array();
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(directories(replicas))
            .setIsr(array())
            .setRemovingReplicas(array())
            .setAddingReplicas(array())
            .setLeader(number())
            .setLeaderRecoveryState(LeaderRecoveryState.of((byte) number()))
            .setLeaderEpoch(5)
            .setPartitionEpoch(7)
            .setElr(array())
            .setLastKnownElr(array())
            .build();
        List<Integer> alive = list();
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, new Uuid(1, 1), 0, alive::contains, version, minIsr, elrEnabled);
        builder.setDefaultDirProvider(PartitionChanges::directory);
        builder.setTargetIsr(list());
        builder.setTargetReplicas(list());
        builder.setTargetRemoving(list());
        builder.setTargetAdding(list());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(words[next++]));
        builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) number()));
        builder.setUncleanShutdownReplicas(list());
        Optional<ApiMessageAndVersion> record = builder.build();
        if (record.isEmpty()) {
            return "-";
        }
        PartitionChangeRecord message = (PartitionChangeRecord) record.get().message();
        short written = record.get().version();
        return written + " " + PartitionChangeRecordJsonConverter.write(message, written);
    }

    private int number() {
        return Integer.parseInt(words[next++]);
    }

    private List<Integer> list() {
        List<Integer> numbers = new ArrayList<>();
        String word = words[next++];
        if (!word.equals("-")) {
            for (String number : word.split(",")) {
                numbers.add(Integer.parseInt(number));
            }
        }
        return numbers;
    }

    private int[] array() {
        return list().stream().mapToInt(Integer::intValue).toArray();
    }

    private static Uuid directory(int broker) {
        return new Uuid(2, broker);
    }

    private static Uuid[] directories(int[] replicas) {
        Uuid[] found = new Uuid[replicas.length];
        for (int index = 0; index < replicas.length; index++) {
            found[index] = directory(replicas[index]);
        }
        return found;
    }
}
