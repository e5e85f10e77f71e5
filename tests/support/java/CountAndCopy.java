import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Copies records and counts them by their first letter, exactly once, by Kafka Streams.
 *
 * <p>Arguments: servers, application id, source, topic of copies, topic of counts, state directory.
 * Prints each state of the application, and runs until it is killed.
 */
public final class CountAndCopy {
    private CountAndCopy() {
    }

    public static void main(String[] arguments) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> source = builder.stream(arguments[2]);
        source.mapValues(value -> "copy of " + value).to(arguments[3]);
        source.groupBy((key, value) -> value.substring(0, 1))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String())
                .withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(arguments[4]);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(arguments));
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        Thread.currentThread().join();
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("state.dir", arguments[5]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("default.key.serde", Serdes.String().getClass().getName());
        settings.put("default.value.serde", Serdes.String().getClass().getName());
        settings.put("auto.offset.reset", "earliest");
        settings.put("consumer.session.timeout.ms", "6000");
        settings.put("consumer.heartbeat.interval.ms", "1000");
        return settings;
    }
}
