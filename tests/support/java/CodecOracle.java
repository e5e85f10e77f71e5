import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Lets Kafka's generated message classes judge ours.
 *
 * <pre>
 * CodecOracle random CLASSES SEED COUNT   COUNT random messages of every class and version
 * CodecOracle echo CLASSES                reads messages, answers with what Kafka makes of them
 * </pre>
 *
 * CLASSES is a file with a class name per line. A message on either stream is: int32 line of its
 * class in that file, int16 version, int32 length and bytes; an answer goes on with int32 length
 * and the JSON form. A message that Kafka refuses has length -1 and the reason instead of the JSON.
 */
public final class CodecOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int FIRST_UNKNOWN_TAG = 1000;

    private final List<Class<?>> classes = new ArrayList<>();
    private final Map<Class<?>, Method> converters = new HashMap<>();
    private final Map<Class<?>, Map<String, Field>> fields = new HashMap<>();
    private final DataOutputStream out =
        new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
    private final Random random;

    private CodecOracle(Path names, long seed) throws Exception {
        random = new Random(seed);
        for (String name : Files.readAllLines(names)) {
            Class<?> found = Class.forName(name);
            classes.add(found);
            converters.put(
                found, Class.forName(name + "JsonConverter").getMethod("write", found, short.class));
        }
    }

    public static void main(String[] arguments) throws Exception {
        long seed = arguments[0].equals("random") ? Long.parseLong(arguments[2]) : 0;
        CodecOracle oracle = new CodecOracle(Path.of(arguments[1]), seed);
        if (arguments[0].equals("random")) {
            oracle.makeAll(Integer.parseInt(arguments[3]));
        } else {
            oracle.echoAll(new DataInputStream(new BufferedInputStream(System.in, 1 << 20)));
        }
        oracle.out.flush();
    }

    // -- random ------------------------------------------------------------------------------

    private void makeAll(int count) throws Exception {
        for (int index = 0; index < classes.size(); index++) {
            Class<?> kind = classes.get(index);
            Schema[] schemas = (Schema[]) kind.getField("SCHEMAS").get(null);
            short highest = kind.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            for (short v = kind.getField("LOWEST_SUPPORTED_VERSION").getShort(null); v <= highest; v++) {
                for (int i = 0; i < count; i++) {
                    Object message = make(kind, schemas[v], 0);
                    answer(index, v, (Message) message);
                }
            }
        }
    }

    private Object make(Class<?> kind, Schema schema, int depth) throws Exception {
        Object made = kind.getConstructor().newInstance();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (org.apache.kafka.common.protocol.types.Field def : tagged.fields().values()) {
                    if (random.nextInt(3) > 0) {
                        set(made, def, depth);
                    }
                }
                if (random.nextInt(8) == 0) {
                    addUnknownTags(made);
                }
            } else {
                set(made, bound.def, depth);
            }
        }
        return made;
    }

    private void set(Object owner, org.apache.kafka.common.protocol.types.Field def, int depth)
        throws Exception {
        Field field = fieldsOf(owner.getClass()).get(plain(def.name));
        field.set(owner, value(def.type, field.getType(), field.getGenericType(), depth));
    }

    @SuppressWarnings("unchecked")
    private void addUnknownTags(Object owner) throws Exception {
        List<RawTaggedField> tags =
            (List<RawTaggedField>) owner.getClass().getMethod("unknownTaggedFields").invoke(owner);
        int tag = FIRST_UNKNOWN_TAG;
        for (int i = random.nextInt(3); i >= 0; i--) {
            tag += 1 + random.nextInt(1 << random.nextInt(28));
            tags.add(new RawTaggedField(tag, blob()));
        }
    }

    private Object value(
        org.apache.kafka.common.protocol.types.Type type, Class<?> kind, Type generic, int depth)
        throws Exception {
        if (type.isNullable() && random.nextInt(4) == 0) {
            return null;
        }
        if (type.isArray()) {
            return array(type.arrayElementType().get(), kind, generic, depth);
        }
        if (type instanceof Schema schema) {
            return make(kind, schema, depth + 1);
        }
        return switch (type.toString()) {
            case "BOOLEAN" -> random.nextBoolean();
            case "INT8" -> (byte) number(8);
            case "INT16" -> (short) number(16);
            case "UINT16" -> (int) (number(16) & 0xFFFF);
            case "INT32" -> (int) number(32);
            case "UINT32", "UNSIGNED_INT32" -> number(32) & 0xFFFF_FFFFL;
            case "INT64" -> number(64);
            case "FLOAT64" -> random.nextInt(3) == 0 ? random.nextInt(100) : random.nextGaussian() * 1e9;
            case "UUID" -> random.nextInt(4) == 0 ? Uuid.ZERO_UUID
                : new Uuid(random.nextLong(), random.nextLong());
            case "STRING", "COMPACT_STRING", "NULLABLE_STRING", "COMPACT_NULLABLE_STRING" -> text();
            case "BYTES", "COMPACT_BYTES", "NULLABLE_BYTES", "COMPACT_NULLABLE_BYTES" ->
                kind == ByteBuffer.class ? ByteBuffer.wrap(blob()) : blob();
            case "RECORDS", "COMPACT_RECORDS", "NULLABLE_RECORDS", "COMPACT_NULLABLE_RECORDS" ->
                MemoryRecords.readableRecords(ByteBuffer.wrap(blob()));
            default -> throw new IllegalStateException("no random value of type " + type);
        };
    }

    @SuppressWarnings("unchecked")
    private Object array(
        org.apache.kafka.common.protocol.types.Type element, Class<?> kind, Type generic, int depth)
        throws Exception {
        boolean isList = kind == List.class;
        Type owner = isList ? generic : kind.getGenericSuperclass();
        Class<?> inner = (Class<?>) ((ParameterizedType) owner).getActualTypeArguments()[0];
        Collection<Object> made =
            isList ? new ArrayList<>() : (Collection<Object>) kind.getConstructor().newInstance();
        for (int i = length(element instanceof Schema, depth); i > 0; i--) {
            made.add(value(element, inner, inner, depth));
        }
        return made;
    }

    private int length(boolean isOfStructs, int depth) {
        if (isOfStructs) {
            int most = depth == 0 ? 3 : 2;
            return depth == 0 && random.nextInt(200) == 0 ? 130 : random.nextInt(most + 1);
        }
        return switch (random.nextInt(50)) {
            case 0 -> 120 + random.nextInt(20);
            case 1, 2 -> 14 + random.nextInt(6);
            default -> random.nextInt(4);
        };
    }

    /** Small, large and extreme numbers alike. */
    private long number(int bits) {
        return switch (random.nextInt(6)) {
            case 0 -> -1;
            case 1 -> random.nextInt(100);
            case 2 -> 1L << (bits - 1);
            case 3 -> (1L << (bits - 1)) - 1;
            default -> random.nextLong();
        };
    }

    private String text() {
        int length = switch (random.nextInt(30)) {
            case 0 -> 0;
            case 1 -> 120 + random.nextInt(20);
            case 2 -> random.nextInt(5000);
            default -> 1 + random.nextInt(12);
        };
        StringBuilder made = new StringBuilder();
        int highest = random.nextInt(5) == 0 ? 0x1FFFF : 0x7F;
        while (made.length() < length) {
            int character = random.nextInt(highest);
            if (character < Character.MIN_SURROGATE || character > Character.MAX_SURROGATE) {
                made.appendCodePoint(character);
            }
        }
        return made.toString();
    }

    private byte[] blob() {
        byte[] made = new byte[random.nextInt(20) == 0 ? random.nextInt(3000) : random.nextInt(20)];
        random.nextBytes(made);
        return made;
    }

    // -- echo --------------------------------------------------------------------------------

    private void echoAll(DataInputStream in) throws Exception {
        while (true) {
            int index;
            try {
                index = in.readInt();
            } catch (EOFException end) {
                return;
            }
            short version = in.readShort();
            byte[] data = in.readNBytes(in.readInt());
            try {
                ByteBufferAccessor reader = new ByteBufferAccessor(ByteBuffer.wrap(data));
                Message message = (Message) classes.get(index).getConstructor().newInstance();
                message.read(reader, version);
                if (reader.remaining() > 0) {
                    throw new IllegalStateException(reader.remaining() + " bytes are left");
                }
                answer(index, version, message);
            } catch (RuntimeException refusal) {
                out.writeInt(index);
                out.writeShort(version);
                out.writeInt(-1);
                writeText(String.valueOf(refusal).getBytes("UTF-8"));
            }
        }
    }

    // -- both --------------------------------------------------------------------------------

    private void answer(int index, short version, Message message) throws Exception {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(message + " is smaller than its size");
        }
        out.writeInt(index);
        out.writeShort(version);
        writeText(buffer.array());
        writeText(json(message, version));
    }

    private byte[] json(Message message, short version) throws Exception {
        try {
            Object node = converters.get(message.getClass()).invoke(null, message, version);
            return JSON.writeValueAsBytes((JsonNode) node);
        } catch (InvocationTargetException refusal) {
            throw new IllegalStateException(refusal.getCause());
        }
    }

    private void writeText(byte[] data) throws IOException {
        out.writeInt(data.length);
        out.write(data);
    }

    private Map<String, Field> fieldsOf(Class<?> kind) {
        return fields.computeIfAbsent(kind, key -> {
            Map<String, Field> found = new HashMap<>();
            for (Field field : key.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    found.put(plain(field.getName()), field);
                }
            }
            return found;
        });
    }

    /** The schema spells a name with underscores, the class with capitals. */
    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }
}
