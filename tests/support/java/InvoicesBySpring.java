import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.ShareKafkaListenerContainerFactory;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ContainerProperties.ShareAckMode;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.support.ShareAcknowledgment;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Makes an invoice of each order in a transaction, and a payment of each invoice in a share group.
 *
 * <p>A bad order is tried twice, and goes to the topic of dead letters. A refused invoice is
 * rejected, a late one is released when it is first delivered. The topics are made at the start.
 *
 * <p>Arguments: servers, group protocol, replication factor. Prints a line when its listeners have
 * started, and runs until it is killed.
 */
public final class InvoicesBySpring {
    private static final String ORDERS = "orders";
    private static final String INVOICES = "invoices";
    private static final String PAYMENTS = "payments";
    private static final int PARTITIONS = 3;
    private static final long ONE_TRY_MORE = 1;
    private static final int TRANSACTION_TIMEOUT_MS = 5000;
    /** With the consumer protocol the brokers have it. */
    private static final int SESSION_TIMEOUT_MS = 6000;

    private static String servers;
    private static String groupProtocol;
    private static short replicas;

    private InvoicesBySpring() {
    }

    public static void main(String[] arguments) throws InterruptedException {
        servers = arguments[0];
        groupProtocol = arguments[1];
        replicas = Short.parseShort(arguments[2]);
        new AnnotationConfigApplicationContext(Application.class);
        System.out.println("The listeners have started");
        Thread.currentThread().join();
    }

    /** The listeners and what they need. */
    @Configuration
    @EnableKafka
    public static class Application {
        private final Set<String> lateOnes = ConcurrentHashMap.newKeySet();

        @Bean
        public KafkaAdmin admin() {
            KafkaAdmin admin = new KafkaAdmin(Map.of("bootstrap.servers", servers));
            admin.setFatalIfBrokerNotAvailable(true);
            return admin;
        }

        @Bean
        public KafkaAdmin.NewTopics topics() {
            return new KafkaAdmin.NewTopics(
                Stream.of(ORDERS, ORDERS + "-dlt", INVOICES, PAYMENTS)
                    .map(name ->
                        TopicBuilder.name(name).partitions(PARTITIONS).replicas(replicas).build())
                    .toArray(NewTopic[]::new));
        }

        @Bean
        public KafkaTemplate<String, String> transactions() {
            Map<String, Object> settings = producerSettings();
            settings.put("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS);
            DefaultKafkaProducerFactory<String, String> producers =
                new DefaultKafkaProducerFactory<>(settings);
            producers.setTransactionIdPrefix("invoices-");
            return new KafkaTemplate<>(producers);
        }

        @Bean
        public KafkaTemplate<String, String> records() {
            return new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(producerSettings()));
        }

        @Bean
        public ConcurrentKafkaListenerContainerFactory<String, String> inTransactions() {
            Map<String, Object> settings = consumerSettings();
            settings.put("group.protocol", groupProtocol);
            settings.put("auto.offset.reset", "earliest");
            settings.put("isolation.level", "read_committed");
            if (groupProtocol.equals("classic")) {
                settings.put("session.timeout.ms", SESSION_TIMEOUT_MS);
            }
            ConcurrentKafkaListenerContainerFactory<String, String> factory =
                new ConcurrentKafkaListenerContainerFactory<>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(settings));
            factory.setConcurrency(2);
            factory.getContainerProperties().setKafkaAwareTransactionManager(
                new KafkaTransactionManager<>(transactions().getProducerFactory()));
            factory.setAfterRollbackProcessor(new DefaultAfterRollbackProcessor<>(
                new DeadLetterPublishingRecoverer(transactions()),
                new FixedBackOff(0, ONE_TRY_MORE),
                transactions(),
                true));
            return factory;
        }

        @Bean
        public ShareKafkaListenerContainerFactory<String, String> shared() {
            ShareKafkaListenerContainerFactory<String, String> factory =
                new ShareKafkaListenerContainerFactory<>(
                    new DefaultShareConsumerFactory<>(consumerSettings()));
            factory.setConcurrency(2);
            factory.getContainerProperties().setShareAckMode(ShareAckMode.MANUAL);
            return factory;
        }

        @KafkaListener(topics = ORDERS, groupId = "invoicing", containerFactory = "inTransactions")
        public void invoice(ConsumerRecord<String, String> order) {
            transactions().send(INVOICES, order.partition(), order.key(), order.value());
            if (order.value().startsWith("bad")) {
                throw new IllegalArgumentException(order.value());
            }
        }

        @KafkaListener(topics = INVOICES, groupId = "paying", containerFactory = "shared")
        public void pay(ConsumerRecord<String, String> invoice, ShareAcknowledgment ack) {
            if (invoice.value().startsWith("refused")) {
                ack.reject();
            } else if (invoice.value().startsWith("late") && lateOnes.add(invoice.value())) {
                ack.release();
            } else {
                records().send(PAYMENTS, invoice.key(), invoice.value()).join();
                ack.acknowledge();
            }
        }

        private static Map<String, Object> producerSettings() {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", servers);
            settings.put("key.serializer", StringSerializer.class);
            settings.put("value.serializer", StringSerializer.class);
            return settings;
        }

        private static Map<String, Object> consumerSettings() {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", servers);
            settings.put("key.deserializer", StringDeserializer.class);
            settings.put("value.deserializer", StringDeserializer.class);
            return settings;
        }
    }
}
