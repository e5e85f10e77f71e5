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
            .setDirectories(directories(array()))
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
        builder.setDefaultDirProvider(broker -> directory(10 + broker));
        builder.setTargetIsr(list());
        builder.setTargetReplicas(list());
        builder.setTargetRemoving(list());
        builder.setTargetAdding(list());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(words[next++]));
        builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) number()));
        builder.setUncleanShutdownReplicas(list());
        List<Integer> assigned = list();
        for (int index = 0; index < assigned.size(); index += 2) {
            builder.setDirectory(assigned.get(index), directory(assigned.get(index + 1)));
        }
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

    /** The lowest numbers are the ids that stand for something else than a directory. */
    private static Uuid directory(int number) {
        return new Uuid(number < 3 ? 0 : 2, number);
    }

    private static Uuid[] directories(int[] numbers) {
        Uuid[] found = new Uuid[numbers.length];
        for (int index = 0; index < numbers.length; index++) {
            found[index] = directory(numbers[index]);
        }
        return found;
    }
}
