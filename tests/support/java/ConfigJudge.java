import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;

import kafka.server.KafkaConfig;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Asks Kafka's own classes what they make of configuration values.
 *
 * <p>A line on standard input holds parts in base64, separated by spaces: what to ask, then its
 * parts. The answer is one line in base64: "=" and the value, or "!" and the error's message.
 */
public final class ConfigJudge {
    private static final Map<String, ConfigDef> TABLES = Map.of(
        "topic", LogConfig.configDefCopy(),
        "broker", AbstractKafkaConfig.CONFIG_DEF,
        "group", GroupConfig.CONFIG_DEF,
        "client_metrics", ClientMetricsConfigs.configDef());

    private ConfigJudge() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> parts = Arrays.stream(line.split(" ", -1)).map(ConfigJudge::decode).toList();
            String answer;
            try {
                answer = "=" + ask(parts);
            } catch (Throwable problem) {
                answer = "!" + problem.getMessage();
            }
            System.out.println(
                Base64.getEncoder().encodeToString(answer.getBytes(StandardCharsets.UTF_8)));
            System.out.flush();
        }
    }

    private static String ask(List<String> parts) throws Exception {
        switch (parts.get(0)) {
            case "value":
                return value(TABLES.get(parts.get(1)), parts.get(2), parts.get(3));
            case "topic":
                KafkaConfig broker = node(parts.get(1));
                LogConfig.validate(map(parts.get(2)), map(parts.get(3)), broker.extractLogConfigMap(),
                    broker.remoteLogManagerConfig().isRemoteStorageSystemEnabled());
                return "";
            case "defaults":
                Map<String, Object> defaults = node(parts.get(1)).extractLogConfigMap();
                return ConfigDef.convertToString(
                    defaults.get(parts.get(2)), LogConfig.configType(parts.get(2)).get());
            case "group":
                KafkaConfig owner = node(parts.get(1));
                GroupConfig.validate(
                    map(parts.get(2)), owner.groupCoordinatorConfig(), owner.shareGroupConfig());
                return "";
            case "consumer group times":
                return groupTimes(false, parts.get(1), parts.get(2), parts.get(3));
            case "share group times":
                return groupTimes(true, parts.get(1), parts.get(2), parts.get(3));
            case "client_metrics":
                ClientMetricsConfigs.validate(parts.get(1), map(parts.get(2)));
                return "";
            case "node":
                return description(node(parts.get(1)));
            default:
                throw new IllegalArgumentException("unknown question " + parts.get(0));
        }
    }

    private static String groupTimes(boolean isShare, String file, String dynamic, String own) throws Exception {
        Map<String, String> texts = map(file);
        texts.putAll(map(dynamic));
        KafkaConfig.clampDynamicConfigs(texts);
        KafkaConfig owner = new KafkaConfig(texts, false);
        GroupCoordinatorConfig broker = owner.groupCoordinatorConfig();
        GroupConfig group = new GroupConfig(
            GroupConfig.evaluate(properties(own), "group", broker, owner.shareGroupConfig()));
        if (isShare) {
            return String.join(" ",
                String.valueOf(group.shareSessionTimeoutMs().orElse(broker.shareGroupSessionTimeoutMs())),
                String.valueOf(group.shareHeartbeatIntervalMs().orElse(broker.shareGroupHeartbeatIntervalMs())),
                String.valueOf(group.shareAssignmentIntervalMs().orElse(broker.shareGroupAssignmentIntervalMs())));
        }
        return String.join(" ",
            String.valueOf(group.consumerSessionTimeoutMs()
                .orElse(broker.consumerGroupSessionTimeoutMs())),
            String.valueOf(group.consumerHeartbeatIntervalMs()
                .orElse(broker.consumerGroupHeartbeatIntervalMs())),
            String.valueOf(group.consumerAssignmentIntervalMs()
                .orElse(broker.consumerGroupAssignmentIntervalMs())));
    }

    private static String value(ConfigDef table, String name, String text) {
        ConfigDef.ConfigKey key = table.configKeys().get(name);
        Object value = new ConfigDef().define(key).parse(Map.of(name, text)).get(name);
        if (key.type == ConfigDef.Type.PASSWORD) return text.trim();
        return ConfigDef.convertToString(value, key.type);
    }

    private static String description(KafkaConfig config) {
        return String.join("\n",
            "node " + config.nodeId(),
            "directory " + config.metadataLogDir(),
            "directories " + String.join(",", config.logDirs()),
            "inter-broker " + config.interBrokerListenerName().value(),
            "bound " + endpoints(config.listeners()),
            "controllers " + endpoints(config.effectiveAdvertisedControllerListeners()),
            "brokers " + endpoints(config.effectiveAdvertisedBrokerListeners()));
    }

    private static String endpoints(Seq<Endpoint> endpoints) {
        return CollectionConverters.asJava(endpoints).stream()
            .map(each -> String.join("/", each.listener(), each.securityProtocol().name,
                String.valueOf(each.host()), String.valueOf(each.port())))
            .collect(Collectors.joining(" "));
    }

    private static KafkaConfig node(String text) throws Exception {
        return new KafkaConfig(properties(text), false);
    }

    private static Map<String, String> map(String text) throws Exception {
        Map<String, String> found = new HashMap<>();
        properties(text).forEach((key, value) -> found.put((String) key, (String) value));
        return found;
    }

    private static Properties properties(String text) throws Exception {
        Properties found = new Properties();
        found.load(new StringReader(text));
        return found;
    }

    private static String decode(String part) {
        return new String(Base64.getDecoder().decode(part), StandardCharsets.UTF_8);
    }
}
