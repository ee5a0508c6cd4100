// SPDX-License-Identifier: Apache-2.0
import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Writes the golden vectors with Kafka's own classes: for each message and version the smallest
 * instance, one filled with values that follow from the names of its fields, and for the highest
 * version a third with the other choice of nulls and with unknown tags.
 *
 * Usage: Golden hex|json FIRST CLASS... with classes as request:Name, response:Name, data:Class,
 * key:Class and value:Class; see make_vectors.py.
 */
public class Golden {
    static final HexFormat HEX = HexFormat.of();
    enum Kind { SMALLEST, FILLED, OTHER }

    static final String RECORDS = recordsClass(); // its package differs between releases

    static String recordsClass() {
        for (String p : List.of("record.internal.", "record.")) {
            try {
                return Class.forName("org.apache.kafka.common." + p + "MemoryRecords").getName();
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        throw new IllegalStateException("no MemoryRecords");
    }

    static Kind kind;
    static short version;
    static boolean full;

    static int hash(String path) {
        int h = 0x811c9dc5;
        for (byte b : path.getBytes(StandardCharsets.US_ASCII)) {
            h = (h ^ (b & 0xff)) * 0x01000193;
        }
        return h;
    }

    /** An empty batch; its CRC does not cover the base offset. */
    static ByteBuffer batch(long baseOffset) {
        ByteBuffer b = ByteBuffer.allocate(61);
        b.putLong(0, baseOffset).putInt(8, 49).put(16, (byte) 2);
        java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
        crc.update(b.array(), 21, 40);
        b.putInt(17, (int) crc.getValue());
        return b;
    }

    static boolean isNull(String path, Type type) {
        if (kind == Kind.SMALLEST || !type.isNullable()) {
            return false;
        }
        return ((hash(path) >>> 3) + version + (kind == Kind.OTHER ? 1 : 0)) % 2 != 0;
    }

    static Object scalar(String path, Class<?> target) {
        boolean small = kind == Kind.SMALLEST;
        int h = hash(path);
        long u = h & 0xffffffffL;
        if (target == boolean.class) return !small;
        if (target == byte.class) return small ? (byte) 0 : (byte) (u % 100 + 1);
        if (target == short.class) return small ? (short) 0 : (short) (u % 30000 + 1);
        if (target == double.class) return small ? 0.0 : u / 7.0;
        if (target == long.class) return small ? 0L : (u * 2654435761L & Long.MAX_VALUE) + 1;
        if (target == String.class) return small ? "" : "s" + Long.toHexString(u);
        if (target == Uuid.class) return small ? Uuid.ZERO_UUID : new Uuid(u * 2654435761L, u + 1);
        if (target == byte[].class) return small ? new byte[0] : intBytes(h);
        if (target == ByteBuffer.class) return ByteBuffer.wrap(small ? new byte[0] : intBytes(h));
        throw new IllegalStateException(path + " " + target);
    }

    static byte[] intBytes(int h) {
        return ByteBuffer.allocate(4).putInt(h).array();
    }

    static Object integer(String path, Type type) {
        if (kind == Kind.SMALLEST) return 0;
        long u = hash(path) & 0xffffffffL;
        return (int) (type == Type.UINT16 ? u % 60000 + 1 : u % 2000000000 + 1);
    }

    static Object value(String path, Type type, Class<?> target, java.lang.reflect.Type generic)
            throws Exception {
        if (isNull(path, type)) return null;
        if (type.isArray()) {
            Type element = type.arrayElementType().get();
            Class<?> elementClass;
            Collection<Object> list;
            if (target == List.class) {
                elementClass = (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
                list = new ArrayList<>();
            } else {
                elementClass = (Class<?>) ((ParameterizedType) target.getGenericSuperclass())
                    .getActualTypeArguments()[0];
                @SuppressWarnings("unchecked")
                Collection<Object> made =
                    (Collection<Object>) target.getConstructor(int.class).newInstance(2);
                list = made;
            }
            Class<?> plain = elementClass == Integer.class ? int.class
                : elementClass == Long.class ? long.class
                : elementClass == Short.class ? short.class
                : elementClass == Byte.class ? byte.class : elementClass;
            int count = kind == Kind.SMALLEST ? 1 : 2;
            for (int i = 0; i < count; i++) {
                list.add(value(path + "[" + i + "]", element, plain, null));
            }
            return list;
        }
        if (target == int.class) return integer(path, type);
        if (target.getSimpleName().equals("BaseRecords")) {
            ByteBuffer b = batch(kind == Kind.SMALLEST ? 0 : hash(path) & 0xffffffffL);
            return Class.forName(RECORDS).getMethod("readableRecords", ByteBuffer.class)
                .invoke(null, b);
        }
        if (Message.class.isAssignableFrom(target)) {
            Constructor<?> constructor = target.getConstructor();
            Message inner = (Message) constructor.newInstance();
            fill(path, inner, (Schema) type(type));
            return inner;
        }
        return scalar(path, target);
    }

    static Object type(Type type) throws Exception {
        if (type instanceof Schema) return type;
        for (Class<?> c = type.getClass(); c != null; c = c.getSuperclass()) {
            for (Field f : c.getDeclaredFields()) {
                if (Schema.class.isAssignableFrom(f.getType())) {
                    f.setAccessible(true);
                    return f.get(type);
                }
            }
        }
        throw new IllegalStateException("no schema in " + type);
    }

    @SuppressWarnings("unchecked")
    static java.util.Map<Integer, org.apache.kafka.common.protocol.types.Field> tagsOf(
            TaggedFields tagged) throws Exception {
        Field f = TaggedFields.class.getDeclaredField("fields");
        f.setAccessible(true);
        return (java.util.Map<Integer, org.apache.kafka.common.protocol.types.Field>) f.get(tagged);
    }

    static final java.util.Map<String, Method> SETTERS = new java.util.HashMap<>();

    static Method setter(Class<?> type, String plain) {
        return SETTERS.computeIfAbsent(type.getName() + "." + plain, key -> {
            for (Method m : type.getMethods()) {
                if (m.getParameterCount() == 1 && m.getName().equalsIgnoreCase("set" + plain)) {
                    return m;
                }
            }
            throw new IllegalStateException("no setter " + key);
        });
    }

    static void set(String path, Message message, String name, Type type) throws Exception {
        String plain = name.replace("_", "");
        Method m = setter(message.getClass(), plain);
        String below = (path.isEmpty() ? "" : path + ".") + plain;
        m.invoke(message, value(below, type, m.getParameterTypes()[0],
                                m.getGenericParameterTypes()[0]));
    }

    static void fill(String path, Message message, Schema schema) throws Exception {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                if (kind == Kind.SMALLEST) continue;
                for (var field : new TreeMap<>(tagsOf(tagged)).values()) {
                    set(path, message, field.name, field.type);
                }
                if (kind == Kind.OTHER) {
                    message.unknownTaggedFields().add(
                        new RawTaggedField(1000, intBytes(hash(path + "?"))));
                }
            } else {
                set(path, message, bound.def.name, bound.def.type);
            }
        }
    }

    static byte[] bytes(Message m, short v) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer b = ByteBuffer.allocate(m.size(cache, v));
        m.write(new ByteBufferAccessor(b), cache, v);
        return b.array();
    }

    static byte[] frame(String type, Message body, ApiKeys api) {
        byte[] header;
        if (type.equals("request")) {
            RequestHeaderData h = new RequestHeaderData();
            h.setRequestApiKey(api.id).setRequestApiVersion(version);
            short headerVersion = api.requestHeaderVersion(version);
            if (headerVersion > 0) h.setClientId("");
            header = bytes(h, headerVersion);
        } else {
            header = bytes(new ResponseHeaderData(), api.responseHeaderVersion(version));
        }
        byte[] b = bytes(body, version);
        ByteBuffer all = ByteBuffer.allocate(4 + header.length + b.length);
        all.putInt(header.length + b.length).put(header).put(b);
        return all.array();
    }

    static void one(String mode, String type, String name, Message body, ApiKeys api)
            throws Exception {
        byte[] all;
        if (api != null) {
            all = frame(type, body, api);
        } else if (type.equals("data")) {
            all = bytes(body, version);
        } else {
            short prefix = type.equals("key") ? apiKey(body) : version;
            byte[] b = bytes(body, version);
            all = ByteBuffer.allocate(2 + b.length).putShort(prefix).put(b).array();
        }
        String line = kind.name().toLowerCase() + " " + (api == null ? "data" : type) + " " + name
            + " " + version + " ";
        if (mode.equals("hex")) {
            System.out.println(line + HEX.formatHex(all));
            return;
        }
        // Read back first: values that are not on the wire take their defaults.
        Message again = body.getClass().getConstructor().newInstance();
        again.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes(body, version))), version);
        Class<?> converter = Class.forName(body.getClass().getName() + "JsonConverter");
        JsonNode json = (JsonNode) converter.getMethod("write", body.getClass(), short.class)
            .invoke(null, again, version);
        System.out.println(line + json);
    }

    static Message make(Class<?> type) throws Exception {
        return (Message) type.getConstructor().newInstance();
    }

    static short apiKey(Message message) throws Exception {
        return (Short) message.getClass().getMethod("apiKey").invoke(message);
    }

    static Schema[] schemas(Class<?> type) throws Exception {
        return (Schema[]) type.getField("SCHEMAS").get(null);
    }

    public static void main(String[] args) throws Exception {
        String mode = args[0];
        for (int i = 1; i < args.length; i++) {
            String[] parts = args[i].split("[:=,]"); // type:Name=class,first,last
            Class<?> type = Class.forName(parts[2]);
            short first = Short.parseShort(parts[3]);
            short last = Short.parseShort(parts[4]);
            ApiKeys api = null;
            if (parts[0].equals("request") || parts[0].equals("response")) {
                api = ApiKeys.forId(apiKey(make(type)));
            }
            for (version = first; version <= last; version++) {
                for (Kind k : Kind.values()) {
                    kind = k;
                    if (k == Kind.OTHER && version != last) continue;
                    Message body = make(type);
                    fill("", body, schemas(type)[version]);
                    one(mode, parts[0], parts[1], body, api);
                }
            }
        }
    }
}
