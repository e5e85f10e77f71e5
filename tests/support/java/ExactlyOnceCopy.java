import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies records from one topic to another exactly once, with Kafka's own clients.
 *
 * <p>Arguments: servers, transactional id, group, source, target, count, and for how many
 * milliseconds each transaction is held open. Every third transaction is aborted, and its records
 * are read again. Ends when so many records are copied.
 */
public final class ExactlyOnceCopy {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private final String source;
    private final String target;
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final long holdMs;
    private int transactions = 0;

    private ExactlyOnceCopy(
            String servers, String id, String group, String source, String target, long holdMs) {
        this.source = source;
        this.target = target;
        this.holdMs = holdMs;
        Map<String, Object> reading = new HashMap<>();
        reading.put("bootstrap.servers", servers);
        reading.put("group.id", group);
        reading.put("enable.auto.commit", false);
        reading.put("auto.offset.reset", "earliest");
        reading.put("isolation.level", "read_committed");
        reading.put("max.poll.records", 7);
        reading.put("session.timeout.ms", 6000);
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
        Map<String, Object> writing = new HashMap<>();
        writing.put("bootstrap.servers", servers);
        writing.put("transactional.id", id);
        writing.put("max.block.ms", 30000);
        producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
    }

    public static void main(String[] arguments) throws InterruptedException {
        ExactlyOnceCopy copy = new ExactlyOnceCopy(
            arguments[0],
            arguments[1],
            arguments[2],
            arguments[3],
            arguments[4],
            Long.parseLong(arguments[6]));
        int wanted = Integer.parseInt(arguments[5]);
        copy.producer.initTransactions();
        copy.consumer.subscribe(List.of(copy.source));
        int copied = 0;
        while (copied < wanted) {
            ConsumerRecords<String, String> records = copy.consumer.poll(PATIENCE);
            if (!records.isEmpty() && copy.transfer(records)) {
                copied += records.count();
            }
        }
        copy.consumer.close();
        copy.producer.close();
        System.out.println("copied " + copied + " in " + copy.transactions);
    }

    /** Return whether the transaction was committed. */
    private boolean transfer(ConsumerRecords<String, String> records) throws InterruptedException {
        TopicPartition partition = new TopicPartition(source, 0);
        List<ConsumerRecord<String, String>> read = records.records(partition);
        producer.beginTransaction();
        for (ConsumerRecord<String, String> record : read) {
            producer.send(new ProducerRecord<>(target, 0, null, record.value()));
        }
        long next = read.get(read.size() - 1).offset() + 1;
        producer.sendOffsetsToTransaction(
            Map.of(partition, new OffsetAndMetadata(next)), consumer.groupMetadata());
        producer.flush();
        Thread.sleep(holdMs);
        boolean isAborted = transactions++ % 3 == 1;
        if (isAborted) {
            producer.abortTransaction();
            consumer.seek(partition, read.get(0).offset());
        } else {
            producer.commitTransaction();
        }
        return !isAborted;
    }
}
