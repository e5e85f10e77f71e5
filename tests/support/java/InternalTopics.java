import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.serialization.BytesApiMessageSerde;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogSegmentMetadataSnapshot;
import org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataJsonConverters;
import org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;
import org.apache.kafka.server.share.fetch.RecordState;

/**
 * Lets Kafka's own serdes of internal topics judge ours.
 *
 * <pre>
 * InternalTopics facts    the types of records, and the states that they hold, as one JSON object
 * InternalTopics remote   a record of each type of __remote_log_metadata, made by Kafka's serde
 * InternalTopics echo     reads records, answers with what Kafka makes of them
 * </pre>
 *
 * A record is a line: topic, key and value; an answer is a line: key, value and JSON, or "!" and the
 * reason why Kafka refuses the record. Bytes are hexadecimal, empty ones are ".", null is "-".
 */
public final class InternalTopics {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final String REMOTE = "__remote_log_metadata";
    private static final Map<String, CoordinatorRecordSerde> SERDES = Map.of(
        "__consumer_offsets", new GroupCoordinatorRecordSerde(),
        "__share_group_state", new ShareCoordinatorRecordSerde(),
        "__transaction_state", new TransactionCoordinatorRecordSerde());
    private static final BytesApiMessageSerde REMOTE_MESSAGES = new BytesApiMessageSerde() {
        @Override
        public ApiMessage apiMessageFor(short type) {
            return MetadataRecordType.fromId(type).newMetadataRecord();
        }
    };

    private InternalTopics() {
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "facts" -> facts();
            case "remote" -> remote();
            default -> echoAll();
        }
        OUT.flush();
    }

    // -- facts -------------------------------------------------------------------------------

    private static void facts() {
        ObjectNode found = JSON.createObjectNode();
        ObjectNode group = found.putObject("__consumer_offsets");
        for (var type : org.apache.kafka.coordinator.group.generated.CoordinatorRecordType.values()) {
            group.put(String.valueOf(type.id()), type.name());
        }
        ObjectNode share = found.putObject("__share_group_state");
        for (var type : org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.values()) {
            share.put(String.valueOf(type.id()), type.name());
        }
        ObjectNode transaction = found.putObject("__transaction_state");
        for (var type : org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType.values()) {
            transaction.put(String.valueOf(type.id()), type.name());
        }
        ObjectNode remote = found.putObject(REMOTE);
        for (var type : MetadataRecordType.values()) {
            remote.put(String.valueOf(type.id()), type.name());
        }
        states(found);
        OUT.println(found);
    }

    private static void states(ObjectNode found) {
        ObjectNode transaction = found.putObject("TransactionState");
        for (var state : TransactionState.values()) {
            transaction.put(String.valueOf(state.id()), state.stateName());
        }
        ObjectNode delivery = found.putObject("RecordState");
        for (var state : RecordState.values()) {
            delivery.put(String.valueOf(state.id()), state.name());
        }
        ObjectNode member = found.putObject("MemberState");
        for (var state : org.apache.kafka.coordinator.group.modern.MemberState.values()) {
            member.put(String.valueOf(state.value()), state.name());
        }
        ObjectNode streams = found.putObject("StreamsMemberState");
        for (var state : org.apache.kafka.coordinator.group.streams.MemberState.values()) {
            streams.put(String.valueOf(state.value()), state.name());
        }
        ObjectNode segment = found.putObject("RemoteLogSegmentState");
        for (var state : RemoteLogSegmentState.values()) {
            segment.put(String.valueOf(state.id()), state.name());
        }
        ObjectNode partition = found.putObject("RemotePartitionDeleteState");
        for (var state : RemotePartitionDeleteState.values()) {
            partition.put(String.valueOf(state.id()), state.name());
        }
    }

    // -- remote ------------------------------------------------------------------------------

    private static void remote() {
        RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
        Uuid topic = new Uuid(1, 2);
        Uuid segment = new Uuid(3, 4);
        TopicIdPartition partition = new TopicIdPartition(topic, new TopicPartition("orders", 7));
        RemoteLogSegmentId id = new RemoteLogSegmentId(partition, segment);
        Map<Integer, Long> epochs = new TreeMap<>(Map.of(0, 100L, 3, 150L));
        Optional<CustomMetadata> custom = Optional.of(new CustomMetadata(new byte[] {1, 2}));
        RemoteLogMetadata[] records = {
            new RemoteLogSegmentMetadata(
                id, 100, 199, 1_700_000_000_001L, 11, 1_700_000_000_002L, 4096, custom,
                RemoteLogSegmentState.COPY_SEGMENT_STARTED, epochs, true),
            new RemoteLogSegmentMetadataUpdate(
                id, 1_700_000_000_003L, custom, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED, 12),
            new RemotePartitionDeleteMetadata(
                partition, RemotePartitionDeleteState.DELETE_PARTITION_STARTED, 1_700_000_000_004L, 13),
            new RemoteLogSegmentMetadataSnapshot(
                segment, 100, 199, 1_700_000_000_005L, 14, 1_700_000_000_006L, 4096, custom,
                RemoteLogSegmentState.COPY_SEGMENT_FINISHED, epochs, false),
        };
        for (RemoteLogMetadata record : records) {
            OUT.println(HexFormat.of().formatHex(serde.serialize(record)));
        }
    }

    // -- echo --------------------------------------------------------------------------------

    private static void echoAll() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                OUT.println(
                    words[0].equals(REMOTE) ? remoteEcho(bytes(words[2]))
                        : coordinatorEcho(words[0], bytes(words[1]), bytes(words[2])));
            } catch (RuntimeException refusal) {
                OUT.println("! " + String.valueOf(refusal).replace("\n", " "));
            }
        }
    }

    private static String remoteEcho(byte[] value) throws Exception {
        ApiMessageAndVersion read = REMOTE_MESSAGES.deserialize(value);
        ObjectNode found = JSON.createObjectNode();
        found.put("type", MetadataRecordType.fromId(read.message().apiKey()).name());
        found.put("version", read.version());
        found.set("value", MetadataJsonConverters.writeJson(read.message(), read.version()));
        return "- " + text(REMOTE_MESSAGES.serialize(read)) + " " + JSON.writeValueAsString(found);
    }

    private static String coordinatorEcho(String topic, byte[] key, byte[] value) throws Exception {
        CoordinatorRecordSerde serde = SERDES.get(topic);
        CoordinatorRecord record =
            serde.deserialize(ByteBuffer.wrap(key), value == null ? null : ByteBuffer.wrap(value));
        ObjectNode found = JSON.createObjectNode();
        found.put("type", record.key().apiKey());
        found.set("key", keyJson(topic, record.key()));
        if (record.value() != null) {
            found.put("version", record.value().version());
            found.set("value", valueJson(topic, record.value()));
        }
        byte[] written = serde.serializeValue(record);
        return text(serde.serializeKey(record)) + " " + text(written) + " " + JSON.writeValueAsString(found);
    }

    private static JsonNode keyJson(String topic, ApiMessage key) {
        return switch (topic) {
            case "__consumer_offsets" ->
                org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters
                    .writeRecordKeyAsJson(key);
            case "__share_group_state" ->
                org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters
                    .writeRecordKeyAsJson(key);
            default ->
                org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordJsonConverters
                    .writeRecordKeyAsJson(key);
        };
    }

    private static JsonNode valueJson(String topic, ApiMessageAndVersion value) {
        return switch (topic) {
            case "__consumer_offsets" ->
                org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters
                    .writeRecordValueAsJson(value.message(), value.version());
            case "__share_group_state" ->
                org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters
                    .writeRecordValueAsJson(value.message(), value.version());
            default ->
                org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordJsonConverters
                    .writeRecordValueAsJson(value.message(), value.version());
        };
    }

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : text.equals(".") ? new byte[0] : HexFormat.of().parseHex(text);
    }

    private static String text(byte[] data) {
        return data == null ? "-" : data.length == 0 ? "." : HexFormat.of().formatHex(data);
    }
}
