import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.ModernGroupMember;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.ShareTargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Has Kafka's TargetAssignmentBuilder and assignors compute the targets of consumer groups and share groups.
 *
 * <p>Lines in, of words with a space between them: "group" begins a group without topics and members, "topic NAME ID
 * COUNT" and "delete NAME" change the topics, "member ID INSTANCE NAMES" adds a member or gives it other topics (names
 * with commas between them; "-" is no instance and no name), "remove ID" takes a member out, "replace ID NEW_ID" gives
 * a member's target to another one, "assignable ID PARTITIONS" says which partitions of a topic a share group may
 * assign (numbers with commas between them; "-" is none), and "assign ASSIGNOR TYPE" asks for targets. It is answered
 * by a line: a word for each record of a member's target, which is then applied; topics and partitions stand in the record's order, or "!" for an assignor that fails.
 */
public final class AssignorOracle {
    private record Topic(String name, Uuid id, int partitionCount) implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public List<String> partitionRacks(int partition) {
            return List.of();
        }
    }

    private record Image(Map<String, Topic> byName, Map<Uuid, Topic> byId) implements CoordinatorMetadataImage {
        @Override
        public Set<Uuid> topicIds() {
            return byId.keySet();
        }

        @Override
        public Set<String> topicNames() {
            return byName.keySet();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(byName.get(name));
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.ofNullable(byId.get(id));
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            throw new UnsupportedOperationException();
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public boolean isEmpty() {
            return byId.isEmpty();
        }
    }

    private static final Map<String, PartitionAssignor> ASSIGNORS =
        Map.of("range", new RangeAssignor(), "uniform", new UniformAssignor(), "simple", new SimpleAssignor());

    private final Map<String, Topic> topics = new HashMap<>();
    private final Map<String, ConsumerGroupMember> members =
        new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
    private final Map<String, ShareGroupMember> shareMembers =
        new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
    private final Map<Uuid, Set<Integer>> assignable = new HashMap<>();
    private final Map<String, Assignment> targets = new HashMap<>();

    private AssignorOracle() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        AssignorOracle group = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("group")) {
                group = new AssignorOracle();
            } else if (words[0].equals("assign")) {
                answers.println(group.assign(ASSIGNORS.get(words[1]), SubscriptionType.valueOf(words[2])));
            } else {
                group.change(words);
            }
        }
        answers.flush();
    }

    private void change(String[] words) {
        switch (words[0]) {
            case "topic" -> topics.put(
                words[1], new Topic(words[1], Uuid.fromString(words[2]), Integer.parseInt(words[3])));
            case "delete" -> topics.remove(words[1]);
            case "member" -> {
                // As often as a new member's records do.
                members.put(words[1], member(words[1], words[2], words[3]));
                members.put(words[1], members.get(words[1]));
                shareMembers.put(words[1], new ShareGroupMember.Builder(words[1])
                    .setSubscribedTopicNames(names(words[3])).build());
                shareMembers.put(words[1], shareMembers.get(words[1]));
            }
            case "remove" -> {
                members.remove(words[1]);
                shareMembers.remove(words[1]);
                targets.remove(words[1]);
            }
            case "replace" -> {
                members.remove(words[1]);
                shareMembers.remove(words[1]);
                targets.put(words[2], targets.remove(words[1]));
            }
            case "assignable" -> assignable.put(Uuid.fromString(words[1]), words[2].equals("-") ? Set.of()
                : Stream.of(words[2].split(",")).map(Integer::valueOf).collect(Collectors.toSet()));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static ConsumerGroupMember member(String id, String instance, String names) {
        return new ConsumerGroupMember.Builder(id)
            .setInstanceId(instance.equals("-") ? null : instance)
            .setSubscribedTopicNames(names(names))
            .build();
    }

    private static List<String> names(String names) {
        return names.equals("-") ? List.of() : List.of(names.split(","));
    }

    private String assign(PartitionAssignor assignor, SubscriptionType type) {
        List<CoordinatorRecord> records;
        try {
            records = assignor instanceof SimpleAssignor
                ? records(new ShareTargetAssignmentBuilder("group", 1, assignor)
                    .withTopicAssignablePartitionsMap(assignable), shareMembers, type)
                : records(new ConsumerTargetAssignmentBuilder("group", 1, assignor), members, type);
        } catch (PartitionAssignorException | NoSuchElementException exception) {
            return "!";
        }
        List<String> texts = new ArrayList<>();
        for (CoordinatorRecord record : records) {
            if (record.key() instanceof ConsumerGroupTargetAssignmentMemberKey key) {
                var value = (ConsumerGroupTargetAssignmentMemberValue) record.value().message();
                targets.put(key.memberId(), Assignment.fromRecord(value));
                texts.add(key.memberId() + "=" + value.topicPartitions().stream().map(
                    topic -> text(topic.topicId(), topic.partitions())).collect(Collectors.joining(";")));
            } else if (record.key() instanceof ShareGroupTargetAssignmentMemberKey key) {
                var value = (ShareGroupTargetAssignmentMemberValue) record.value().message();
                targets.put(key.memberId(), Assignment.fromRecord(value));
                texts.add(key.memberId() + "=" + value.topicPartitions().stream().map(
                    topic -> text(topic.topicId(), topic.partitions())).collect(Collectors.joining(";")));
            }
        }
        return String.join(" ", texts);
    }

    private <T extends ModernGroupMember, U extends TargetAssignmentBuilder<T, U>> List<CoordinatorRecord> records(
            U builder, Map<String, T> ofGroup, SubscriptionType type) {
        Map<Uuid, Topic> byId = topics.values().stream().collect(Collectors.toMap(Topic::id, topic -> topic));
        return builder
            .withTime(Time.SYSTEM)
            .withMembers(ofGroup)
            .withSubscriptionType(type)
            .withTargetAssignment(targets)
            .withInvertedTargetAssignment(owners())
            .withMetadataImage(new Image(topics, byId))
            .build()
            .records();
    }

    private static String text(Uuid topicId, List<Integer> partitions) {
        return topicId + ":" + partitions.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    private Map<Uuid, Map<Integer, String>> owners() {
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        targets.forEach((memberId, assignment) -> assignment.partitions().forEach((topicId, partitions) -> {
            Map<Integer, String> ofTopic = owners.computeIfAbsent(topicId, id -> new HashMap<>());
            partitions.forEach(partition -> ofTopic.put(partition, memberId));
        }));
        return owners;
    }
}
