package kafka.server.share;

import com.yammer.metrics.core.Meter;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.TreeSet;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ShareFetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.share.CachedSharePartition;
import org.apache.kafka.server.share.ShareGroupListener;
import org.apache.kafka.server.share.context.ShareFetchContext;
import org.apache.kafka.server.share.context.ShareSessionContext;
import org.apache.kafka.server.share.session.ShareSession;
import org.apache.kafka.server.share.session.ShareSessionCache;
import org.apache.kafka.server.share.session.ShareSessionKey;

/**
 * Drives the share sessions of Kafka's SharePartitionManager. A line in is a step, a line out is what came of it: the
 * result, what the listener heard, and all sessions.
 */
public final class ShareSessionOracle {
    private static final String NONE = "none";

    private final ShareSessionCache cache;
    private final SharePartitionManager manager;
    private final List<ShareFetchContext> contexts = new ArrayList<>();
    private final List<String> heard = new ArrayList<>();
    private final TreeSet<String> members = new TreeSet<>();
    private final long evictionsBefore;

    private ShareSessionOracle(int sessionsMax) {
        cache = new ShareSessionCache(sessionsMax);
        // The meter is that of all caches of the process.
        evictionsBefore = evictionCount();
        manager = new SharePartitionManager(null, null, null, null, null, cache, null, 0, null, 0, 0, 0L, null, null, null,
            null, null, null);
        cache.registerShareGroupListener(new ShareGroupListener() {
            @Override
            public void onMemberLeave(String groupId, String memberId) {
                heard.add("leaves:" + groupId + "/" + memberId);
            }

            @Override
            public void onGroupEmpty(String groupId) {
                heard.add("empty:" + groupId);
            }
        });
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        ShareSessionOracle oracle = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            if (parts[0].equals("new")) {
                oracle = new ShareSessionOracle(Integer.parseInt(parts[1]));
                out.println("ok");
                continue;
            }
            oracle.heard.clear();
            String result;
            try {
                result = oracle.step(parts);
            } catch (RuntimeException refused) {
                result = "error " + Errors.forException(refused).code();
            }
            out.println(result + " | " + String.join(" ", oracle.heard) + " | " + oracle.described());
        }
    }

    private String step(String[] parts) {
        switch (parts[0]) {
            case "fetch":
                members.add(parts[1] + "/" + parts[2]);
                ShareFetchContext context = manager.newContext(parts[1], partitions(parts[6]), partitions(parts[7]), parts[2],
                    Integer.parseInt(parts[3]), parts[5].equals("1"), parts[4]);
                contexts.add(context);
                return "context " + contexts.size() + " " + text(context);
            case "respond":
                return responded(contexts.get(Integer.parseInt(parts[1])), Short.parseShort(parts[2]), parts[3]);
            case "throttle":
                return hex(contexts.get(Integer.parseInt(parts[1])).throttleResponse(Integer.parseInt(parts[2])).data(),
                    (short) 1);
            case "acknowledge":
                manager.acknowledgeSessionUpdate(parts[1], parts[2], Integer.parseInt(parts[3]));
                return "ok";
            case "epoch":
                ShareSession aged = cache.get(new ShareSessionKey(parts[1], parts[2]));
                if (aged != null) {
                    aged.epoch = Integer.parseInt(parts[3]);
                }
                return "ok";
            case "remove":
                return cache.remove(new ShareSessionKey(parts[1], parts[2])) == null ? "ok" : "removed";
            case "remove-all":
                cache.removeAllSessions();
                return "ok";
            case "disconnect":
                cache.connectionDisconnectListener().onDisconnect(parts[1]);
                return "ok";
            default:
                throw new IllegalArgumentException(parts[0]);
        }
    }

    private static List<TopicIdPartition> partitions(String text) {
        List<TopicIdPartition> partitions = new ArrayList<>();
        if (!text.equals(NONE)) {
            for (String one : text.split(",")) {
                partitions.add(partition(one));
            }
        }
        return partitions;
    }

    /** Reads the number of a topic, a partition, and the name of the topic unless it is unknown. */
    private static TopicIdPartition partition(String text) {
        String[] values = text.split(":");
        TopicPartition named = new TopicPartition(values.length > 2 ? values[2] : null, Integer.parseInt(values[1]));
        return new TopicIdPartition(new Uuid(0, Long.parseLong(values[0])), named);
    }

    private static String text(ShareFetchContext context) {
        List<String> unknown = new ArrayList<>();
        context.getErroneousAndValidTopicIdPartitions().erroneous().keySet().forEach(one -> unknown.add(text(one)));
        unknown.sort(null);
        List<String> known = new ArrayList<>();
        context.getErroneousAndValidTopicIdPartitions().validTopicIdPartitions().forEach(one -> known.add(text(one)));
        boolean isSubsequent = context instanceof ShareSessionContext session && session.isSubsequent();
        return context.getClass().getSimpleName() + (isSubsequent ? "+" : "") + " " + unknown + " " + known;
    }

    private static String text(TopicIdPartition partition) {
        return partition.topicId().getLeastSignificantBits() + ":" + partition.partition();
    }

    private static String responded(ShareFetchContext context, short version, String text) {
        LinkedHashMap<TopicIdPartition, ShareFetchResponseData.PartitionData> read = new LinkedHashMap<>();
        if (!text.equals(NONE)) {
            for (String one : text.split(",")) {
                String[] values = one.split("/");
                TopicIdPartition partition = partition(values[0]);
                read.put(partition, new ShareFetchResponseData.PartitionData().setPartitionIndex(partition.partition())
                    .setErrorCode(Short.parseShort(values[1]))
                    .setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate(Integer.parseInt(values[2])))));
            }
        }
        int size = context.responseSize(read, version);
        return size + " " + hex(context.updateAndGenerateResponseData("", "", read).data(), version);
    }

    private static String hex(ShareFetchResponseData response, short version) {
        return HexFormat.of().formatHex(Utils.toArray(MessageUtil.toByteBufferAccessor(response, version).buffer()));
    }

    private String described() {
        StringBuilder text = new StringBuilder(cache.size() + " sessions " + cache.totalPartitions() + " partitions "
            + (evictionCount() - evictionsBefore) + " evicted");
        for (String member : members) {
            String[] names = member.split("/");
            ShareSession session = cache.get(new ShareSessionKey(names[0], names[1]));
            if (session == null) {
                continue;
            }
            text.append(' ').append(member).append('@').append(session.epoch()).append('[');
            for (CachedSharePartition one : session.partitionMap()) {
                text.append(one.topicId().getLeastSignificantBits()).append(':').append(one.partition()).append(',');
            }
            text.append(']');
        }
        return text.toString();
    }

    private long evictionCount() {
        try {
            Method evictions = ShareSessionCache.class.getDeclaredMethod("evictionsMeter");
            evictions.setAccessible(true);
            return ((Meter) evictions.invoke(cache)).count();
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
