import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's Java producer and consumer with their ordinary settings.
 *
 * <pre>
 * RecordClients produce SERVERS TOPIC CODEC     sends a record for each line of the input
 * RecordClients member SERVERS TOPIC GROUP      a member of a group until the input ends
 * RecordClients seek SERVERS TOPIC GROUP TIME   commits the first offset of a time in partition 0
 * </pre>
 *
 * A producer prints the offset of each record, a member "partitions" with what it has whenever that
 * changes and "value" with each value, and the last command the offset it has committed.
 */
public final class RecordClients {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private RecordClients() {}

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "produce" -> produce(args[1], args[2], args[3]);
            case "member" -> consume(args[1], args[2], args[3], args[4]);
            case "seek" -> seek(args[1], args[2], args[3], Long.parseLong(args[4]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void produce(String servers, String topic, String codec) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "compression.type", codec);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
                var input = lines()) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String key = line.substring(Math.max(0, line.length() - 2));
                sent.add(producer.send(new ProducerRecord<>(topic, key, line)));
            }
            for (Future<RecordMetadata> one : sent) {
                OUT.println(one.get().offset());
            }
        }
    }

    private static void consume(String servers, String topic, String group, String protocol) {
        var isOver = new AtomicBoolean();
        var watch = new Thread(() -> {
            waitForEnd();
            isOver.set(true);
        });
        watch.setDaemon(true);
        watch.start();
        try (var consumer = consumer(servers, group, protocol)) {
            consumer.subscribe(List.of(topic));
            Set<Integer> before = Set.of();
            while (!isOver.get()) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                    OUT.println("value " + one.value());
                }
                Set<Integer> owned = consumer.assignment().stream()
                    .map(TopicPartition::partition)
                    .collect(Collectors.toCollection(TreeSet::new));
                if (!owned.equals(before)) {
                    OUT.println("partitions " + owned.stream().map(String::valueOf).collect(Collectors.joining(",")));
                    before = owned;
                }
            }
        }
    }

    private static void seek(String servers, String topic, String group, long time) {
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(servers, group, "classic")) {
            consumer.assign(List.of(partition));
            OffsetAndTimestamp place = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(place.offset())));
            OUT.println(consumer.committed(Set.of(partition)).get(partition).offset());
        }
    }

    private static KafkaConsumer<String, String> consumer(String servers, String group, String protocol) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", servers, "group.id", group, "auto.offset.reset", "earliest",
            "group.protocol", protocol);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static BufferedReader lines() {
        return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    }

    private static void waitForEnd() {
        try {
            System.in.transferTo(PrintStream.nullOutputStream());
        } catch (IOException error) {
            OUT.println("the input has failed: " + error);
        }
    }
}
