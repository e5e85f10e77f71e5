import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Prints what Kafka's compiled message classes say of themselves: a JSON object per line.
 *
 * <p>The argument is a file with a class name per line. A class gives its schemas by version, the
 * defaults of its fields and of its structs' fields, and what each version refuses to write; after
 * the classes come the APIs and the error codes.
 */
public final class SchemaFacts {
    private static final ObjectMapper JSON = new ObjectMapper();

    private SchemaFacts() { }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String name : Files.readAllLines(Path.of(arguments[0]))) {
            Class<?> kind = Class.forName(name);
            ObjectNode facts = JSON.createObjectNode();
            facts.put("class", name);
            facts.set("schemas", schemas(kind));
            facts.set("structs", structs(kind));
            facts.set("refusals", refusals(kind));
            out.println(JSON.writeValueAsString(facts));
        }
        for (ApiMessageType api : ApiMessageType.values()) {
            out.println(JSON.writeValueAsString(api(api)));
        }
        for (Errors error : Errors.values()) {
            ObjectNode facts = JSON.createObjectNode().put("error", error.code());
            facts.put("name", error.name());
            facts.put("message", error.exception() == null ? null : error.exception().getMessage());
            out.println(JSON.writeValueAsString(facts));
        }
        out.flush();
    }

    // -- APIs --------------------------------------------------------------------------------

    private static ObjectNode api(ApiMessageType api) {
        ObjectNode facts = JSON.createObjectNode();
        facts.put("api", api.apiKey()).put("name", api.name);
        facts.put("lowest", api.lowestSupportedVersion());
        facts.put("highest", api.highestSupportedVersion(true));
        facts.put("unstable", api.latestVersionUnstable());
        ArrayNode listeners = facts.putArray("listeners");
        api.listeners().forEach(listener -> listeners.add(listener.name()));
        ArrayNode headers = facts.putArray("headers");
        for (short v = api.lowestSupportedVersion(); v <= api.highestSupportedVersion(true); v++) {
            headers.addArray().add(api.requestHeaderVersion(v)).add(api.responseHeaderVersion(v));
        }
        return facts;
    }

    // -- schemas -----------------------------------------------------------------------------

    private static ObjectNode schemas(Class<?> kind) throws Exception {
        ObjectNode found = JSON.createObjectNode();
        Schema[] schemas = (Schema[]) kind.getField("SCHEMAS").get(null);
        for (short v = lowest(kind); v <= highest(kind); v++) {
            found.set(String.valueOf(v), schema(schemas[v]));
        }
        return found;
    }

    private static short lowest(Class<?> kind) throws Exception {
        return kind.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
    }

    private static short highest(Class<?> kind) throws Exception {
        return kind.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    private static ArrayNode schema(Schema schema) {
        ArrayNode found = JSON.createArrayNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                ObjectNode section = found.addObject();
                new TreeMap<>(tagged.fields()).forEach((tag, def) ->
                    section.set(String.valueOf(tag), field(def)));
            } else {
                found.add(field(bound.def));
            }
        }
        return found;
    }

    private static ArrayNode field(org.apache.kafka.common.protocol.types.Field def) {
        ArrayNode found = JSON.createArrayNode().add(def.name);
        describe(def.type, found);
        return found;
    }

    private static void describe(org.apache.kafka.common.protocol.types.Type type, ArrayNode found) {
        if (type.isArray()) {
            String compact = type.getClass().getSimpleName().startsWith("Compact") ? "COMPACT_" : "";
            found.add(compact + (type.isNullable() ? "NULLABLE_ARRAY" : "ARRAY"));
            describe(type.arrayElementType().get(), found);
        } else if (type instanceof Schema inner) {
            found.add(type.isNullable() ? "NULLABLE_STRUCT" : "STRUCT").add(schema(inner));
        } else {
            found.add(type.toString());
        }
    }

    // -- defaults ----------------------------------------------------------------------------

    private static ObjectNode structs(Class<?> kind) throws Exception {
        ObjectNode found = JSON.createObjectNode();
        found.set("", defaults(kind));
        for (Class<?> inner : kind.getDeclaredClasses()) {
            if (Message.class.isAssignableFrom(inner)) {
                found.set(inner.getSimpleName(), defaults(inner));
            }
        }
        return found;
    }

    /** Each field with its default, and whether it is a list, a keyed list or neither. */
    private static ObjectNode defaults(Class<?> kind) throws Exception {
        ObjectNode found = JSON.createObjectNode();
        Object made = kind.getConstructor().newInstance();
        for (Field field : fields(kind)) {
            ArrayNode facts = found.putArray(field.getName());
            facts.addPOJO(plainDefault(field.get(made)));
            boolean isKeyed = Collection.class.isAssignableFrom(field.getType());
            facts.add(field.getType() == List.class ? "list" : isKeyed ? "keyed list" : "");
        }
        return found;
    }

    private static Object plainDefault(Object value) {
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        if (value instanceof ByteBuffer buffer) {
            return HexFormat.of().formatHex(buffer.array());
        }
        if (value instanceof Uuid) {
            return value.toString();
        }
        if (value instanceof Collection<?> collection) {
            return collection.size();
        }
        return value instanceof Message ? "struct" : value;
    }

    private static List<Field> fields(Class<?> kind) {
        List<Field> found = new ArrayList<>();
        for (Field field : kind.getDeclaredFields()) {
            boolean isOwn = !field.getName().equals("_unknownTaggedFields")
                && !field.getName().equals("next") && !field.getName().equals("prev");
            if (isOwn && !Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                found.add(field);
            }
        }
        return found;
    }

    // -- refusals ----------------------------------------------------------------------------

    /** By path and version: what is said when only the field at that path has no default. */
    private static ObjectNode refusals(Class<?> kind) throws Exception {
        ObjectNode found = JSON.createObjectNode();
        for (List<Field> path : paths(kind)) {
            List<String> names = path.stream().map(Field::getName).toList();
            ObjectNode byVersion = JSON.createObjectNode();
            for (short version = lowest(kind); version <= highest(kind); version++) {
                String refusal = refusal(kind, path, version);
                if (refusal != null) {
                    byVersion.put(String.valueOf(version), refusal);
                }
            }
            if (!byVersion.isEmpty()) {
                found.set(String.join(".", names), byVersion);
            }
        }
        return found;
    }

    private static List<List<Field>> paths(Class<?> kind) {
        List<List<Field>> found = new ArrayList<>();
        for (Field field : fields(kind)) {
            Class<?> inner = element(field);
            found.add(List.of(field));
            if (Message.class.isAssignableFrom(inner)) {
                for (List<Field> rest : paths(inner)) {
                    List<Field> path = new ArrayList<>(List.of(field));
                    path.addAll(rest);
                    found.add(path);
                }
            }
        }
        return found;
    }

    private static String refusal(Class<?> kind, List<Field> path, short version) throws Exception {
        Message message = (Message) kind.getConstructor().newInstance();
        Object owner = message;
        for (Field step : path.subList(0, path.size() - 1)) {
            Object inner = element(step).getConstructor().newInstance();
            step.set(owner, collected(step, inner));
            owner = inner;
        }
        Field last = path.get(path.size() - 1);
        last.set(owner, collected(last, other(element(last), last.get(owner))));
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return null;
        } catch (NullPointerException refusal) {
            return "null";
        } catch (RuntimeException refusal) {
            return refusal.getMessage();
        }
    }

    /** The class of a field, or of its elements. */
    private static Class<?> element(Field field) {
        boolean isList = field.getType() == List.class;
        boolean isKeyed = Collection.class.isAssignableFrom(field.getType());
        if (!isList && !isKeyed) {
            return field.getType();
        }
        Type owner = isList ? field.getGenericType() : field.getType().getGenericSuperclass();
        Type argument = ((ParameterizedType) owner).getActualTypeArguments()[0];
        return (Class<?>) argument;
    }

    @SuppressWarnings("unchecked")
    private static Object collected(Field field, Object element) throws Exception {
        if (!Collection.class.isAssignableFrom(field.getType())) {
            return element;
        }
        Collection<Object> made = field.getType() == List.class
            ? new ArrayList<>() : (Collection<Object>) field.getType().getConstructor().newInstance();
        made.add(element);
        return made;
    }

    /** A value that is not the default. */
    private static Object other(Class<?> kind, Object value) throws Exception {
        if (Message.class.isAssignableFrom(kind)) {
            return kind.getConstructor().newInstance();
        }
        Map<Class<?>, Object> small = Map.of(
            byte.class, (byte) 1, short.class, (short) 1, int.class, 1, long.class, 1L,
            Byte.class, (byte) 1, Short.class, (short) 1, Integer.class, 1, Long.class, 1L);
        Map<Class<?>, Object> others = Map.of(
            double.class, 1.5, Double.class, 1.5, String.class, "x", Uuid.class, new Uuid(1, 1),
            byte[].class, new byte[] {1}, ByteBuffer.class, ByteBuffer.wrap(new byte[] {1}),
            BaseRecords.class, MemoryRecords.readableRecords(ByteBuffer.wrap(new byte[] {1})));
        if (kind == boolean.class) {
            return !(Boolean) value;
        }
        if (small.containsKey(kind)) {
            Object one = small.get(kind);
            return one.equals(value) ? two(kind) : one;
        }
        return others.get(kind);
    }

    private static Object two(Class<?> kind) {
        if (kind == byte.class) {
            return (byte) 2;
        }
        if (kind == short.class) {
            return (short) 2;
        }
        return kind == int.class ? (Object) 2 : (Object) 2L;
    }
}
