import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka's Java consumer of share groups with its ordinary settings.
 *
 * <pre>
 * ShareClients SERVERS TOPIC GROUP implicit    accepts what it reads with the next poll
 * ShareClients SERVERS TOPIC GROUP explicit    does with each record what its value says
 * </pre>
 *
 * It runs until its input ends. It prints "value", the number of deliveries, and each value. What a
 * value says is its first word: "release" is released at the first delivery, "reject" rejected, and
 * everything else accepted.
 */
public final class ShareClients {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private ShareClients() {}

    public static void main(String[] args) {
        var isOver = new AtomicBoolean();
        var watch = new Thread(() -> {
            waitForEnd();
            isOver.set(true);
        });
        watch.setDaemon(true);
        watch.start();
        boolean isExplicit = args[3].equals("explicit");
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0], "group.id", args[2], "share.acknowledgement.mode", args[3]);
        try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args[1]));
            while (!isOver.get()) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                    OUT.println("value " + one.deliveryCount().get() + " " + one.value());
                    if (isExplicit) {
                        acknowledge(consumer, one);
                    }
                }
                if (isExplicit) {
                    consumer.commitSync().forEach((partition, error) ->
                        error.ifPresent(problem -> OUT.println("problem " + problem)));
                }
            }
        }
    }

    private static void acknowledge(KafkaShareConsumer<String, String> consumer, ConsumerRecord<String, String> one) {
        AcknowledgeType type = switch (one.value().split(" ")[0]) {
            case "release" -> one.deliveryCount().get() == 1 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
            case "reject" -> AcknowledgeType.REJECT;
            default -> AcknowledgeType.ACCEPT;
        };
        consumer.acknowledge(one, type);
    }

    private static void waitForEnd() {
        try {
            System.in.transferTo(PrintStream.nullOutputStream());
        } catch (IOException error) {
            OUT.println("problem the input has failed: " + error);
        }
    }
}
