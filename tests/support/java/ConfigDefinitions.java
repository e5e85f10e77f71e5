// Prints every configuration definition that Kafka's own classes declare, as one JSON object.
// Run with Kafka's jars on the class path: java -cp 'libs/*' ConfigDefinitions.java
// Facts only (name, type, default, limits, importance, update mode, synonyms); documentation is left behind.

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class ConfigDefinitions {
    public static void main(String[] args) throws Exception {
        List<String> sections = new ArrayList<>();
        sections.add(quote("topic") + ":" + definitions(LogConfig.configDefCopy(), Map.of()));
        sections.add(quote("broker") + ":"
            + definitions(AbstractKafkaConfig.CONFIG_DEF, DynamicBrokerConfig.dynamicConfigUpdateModes()));
        sections.add(quote("broker_dynamic_only") + ":"
            + definitions(QuotaConfig.brokerQuotaConfigs(), DynamicBrokerConfig.dynamicConfigUpdateModes()));
        sections.add(quote("group") + ":" + definitions(GroupConfig.CONFIG_DEF, Map.of()));
        sections.add(quote("client_metrics") + ":" + definitions(ClientMetricsConfigs.configDef(), Map.of()));
        sections.add(quote("topic_synonyms") + ":" + topicSynonyms());
        sections.add(quote("group_synonyms") + ":" + groupSynonyms());
        System.out.println("{" + String.join(",\n", sections) + "}");
    }

    static String definitions(ConfigDef definition, Map<String, String> modes) throws Exception {
        List<String> rows = new ArrayList<>();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            String text = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
            rows.add("{" + String.join(",",
                pair("name", quote(key.name)),
                pair("type", quote(key.type.name())),
                pair("required", Boolean.toString(!key.hasDefault())),
                pair("default", quote(text)),
                pair("validator", validator(key.validator)),
                pair("importance", quote(key.importance.name())),
                pair("internal", Boolean.toString(key.internalConfig)),
                pair("mode", quote(modes.getOrDefault(key.name, "read-only")))) + "}");
        }
        return "[\n" + String.join(",\n", rows) + "]";
    }

    static String validator(ConfigDef.Validator validator) throws Exception {
        if (validator == null) return "null";
        String name = validator.getClass().getSimpleName();
        switch (name) {
            case "Range":
                return list(quote(name), number(field(validator, "min")), number(field(validator, "max")));
            case "ValidString":
                return list(quote(name), strings((Iterable<?>) field(validator, "validStrings")));
            case "CaseInsensitiveValidString":
                return list(quote(name), strings((Iterable<?>) field(validator, "validStrings")));
            case "ValidList":
                Object inner = field(validator, "validString");
                return list(quote(name), strings((Iterable<?>) field(inner, "validStrings")),
                    field(validator, "isEmptyAllowed").toString(),
                    field(validator, "isNullAllowed").toString());
            default:
                return list(quote(name), quote(validator.toString()));
        }
    }

    static String topicSynonyms() {
        TreeMap<String, String> rows = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((topic, synonyms) -> {
            List<String> items = new ArrayList<>();
            for (ConfigSynonym synonym : synonyms) {
                items.add(list(quote(synonym.name()), synonym.converter().apply("1")));
            }
            rows.put(topic, pair(topic, list(items.toArray(new String[0]))));
        });
        return "{" + String.join(",\n", rows.values()) + "}";
    }

    static String groupSynonyms() {
        TreeMap<String, String> rows = new TreeMap<>();
        GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach((group, broker) ->
            rows.put(group, pair(group, quote(((Optional<String>) broker).orElse(null)))));
        return "{" + String.join(",\n", rows.values()) + "}";
    }

    static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    static String number(Object value) {
        return value == null ? "null" : value.toString();
    }

    static String strings(Iterable<?> values) {
        List<String> items = new ArrayList<>();
        for (Object value : values) items.add(quote(value.toString()));
        return list(items.toArray(new String[0]));
    }

    static String list(String... items) {
        return "[" + String.join(",", items) + "]";
    }

    static String pair(String name, String json) {
        return quote(name) + ":" + json;
    }

    static String quote(String text) {
        if (text == null) return "null";
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
