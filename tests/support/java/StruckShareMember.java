import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's Java consumers of a share group, several in one process, which say what they do.
 *
 * <pre>
 * StruckShareMember SERVERS GROUP TOPIC CLIENT_ID COUNT
 * </pre>
 *
 * They acknowledge what they read by chance: most is accepted. They run until the input ends, and
 * leave. The lines, with START as the time at which the process began, and END as that of the answer,
 * in nanoseconds of a clock that all processes of the machine share:
 *
 * <pre>
 * got START PARTITION OFFSET...                                before anything is acknowledged
 * said START END PARTITION TYPE:OFFSET:DELIVERIES...           what was acknowledged without an error
 * refused PROBLEM                                              what was not
 * </pre>
 */
public final class StruckShareMember {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final long START = System.nanoTime();
    private static final double RELEASED = 0.08;
    private static final double REJECTED = 0.02;

    private StruckShareMember() {}

    public static void main(String[] args) throws InterruptedException {
        var isOver = new AtomicBoolean();
        var threads = new ArrayList<Thread>();
        for (int one = 0; one < Integer.parseInt(args[4]); one++) {
            var thread = new Thread(() -> consume(args, isOver));
            thread.start();
            threads.add(thread);
        }
        waitForEnd();
        isOver.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void consume(String[] args, AtomicBoolean isOver) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0],
            "group.id", args[1],
            "client.id", args[3],
            "share.acknowledgement.mode", "explicit",
            "request.timeout.ms", 5000);
        var random = new Random();
        try (var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(args[2]));
            while (!isOver.get()) {
                acknowledge(consumer, random);
            }
        }
    }

    private static void acknowledge(KafkaShareConsumer<byte[], byte[]> consumer, Random random) {
        var got = new TreeMap<Integer, StringBuilder>();
        var said = new TreeMap<Integer, StringBuilder>();
        for (ConsumerRecord<byte[], byte[]> one : consumer.poll(POLL)) {
            AcknowledgeType type = drawn(random);
            consumer.acknowledge(one, type);
            got.computeIfAbsent(one.partition(), partition -> new StringBuilder()).append(" " + one.offset());
            said.computeIfAbsent(one.partition(), partition -> new StringBuilder())
                .append(" " + type + ":" + one.offset() + ":" + one.deliveryCount().get());
        }
        got.forEach((partition, offsets) -> OUT.println("got " + START + " " + partition + offsets));
        var results = consumer.commitSync(PATIENCE);
        long end = System.nanoTime();
        results.forEach((partition, error) -> {
            String words = said.get(partition.partition()).toString();
            OUT.println(error.map((KafkaException problem) -> "refused " + problem)
                .orElse("said " + START + " " + end + " " + partition.partition() + words));
        });
    }

    private static AcknowledgeType drawn(Random random) {
        double chance = random.nextDouble();
        if (chance < REJECTED) {
            return AcknowledgeType.REJECT;
        }
        return chance < REJECTED + RELEASED ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
    }

    private static void waitForEnd() {
        try {
            System.in.transferTo(PrintStream.nullOutputStream());
        } catch (IOException error) {
            OUT.println("refused the input has failed: " + error);
        }
    }
}
