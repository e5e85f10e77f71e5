package org.apache.kafka.storage.internals.log;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.message.AbortedTxn;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Opens logs as a broker does. Lines in: "DIRECTORY START RECOVERY_POINT CLEAN SEGMENT_BYTES POLICY
 * NOW_MS";
 * a line out for each with what was found in the log, or "!" and the name of an error.
 */
public final class LogLoaderOracle {
    private LogLoaderOracle() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = opened(line.split(" "));
            } catch (Exception problem) {
                answer = "!" + problem.getClass().getSimpleName();
            }
            out.append(answer).append('\n');
        }
        System.out.print(out);
    }

    private static String opened(String[] parts) throws Exception {
        Properties settings = new Properties();
        settings.put("internal.segment.bytes", parts[4]);
        settings.put("index.interval.bytes", "100");
        settings.put("cleanup.policy", parts[5]);
        Scheduler none = (Scheduler) Proxy.newProxyInstance(Scheduler.class.getClassLoader(),
            new Class<?>[] {Scheduler.class}, (proxy, method, given) -> null);
        long now = Long.parseLong(parts[6]);
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(),
            new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getReturnType() == long.class ? now : null);
        UnifiedLog log = UnifiedLog.create(
            new File(parts[0]), new LogConfig(settings), Long.parseLong(parts[1]),
            Long.parseLong(parts[2]), none, new BrokerTopicStats(false), time, 900000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE,
            new LogDirFailureChannel(1), Boolean.parseBoolean(parts[3]), Optional.empty());
        return found(log);
    }

    private static String found(UnifiedLog log) throws Exception {
        StringBuilder text = new StringBuilder();
        text.append(log.logStartOffset()).append(' ').append(log.logEndOffset());
        for (LogSegment segment : log.logSegments()) {
            text.append(" segment ").append(segment.baseOffset()).append(' ').append(segment.size());
            for (AbortedTxn aborted : segment.txnIndex().allAbortedTxns()) {
                text.append(" aborted ").append(aborted.producerId()).append(' ')
                    .append(aborted.firstOffset()).append(' ').append(aborted.lastOffset()).append(' ')
                    .append(aborted.lastStableOffset());
            }
        }
        text.append(log.leaderEpochCache().epochEntries().stream()
            .map(entry -> " epoch " + entry.epoch() + " " + entry.startOffset())
            .collect(Collectors.joining()));
        new TreeMap<>(log.producerStateManager().activeProducers()).forEach((id, entry) ->
            text.append(" producer ").append(id).append(' ').append(entry.producerEpoch()).append(' ')
                .append(entry.lastSeq()).append(' ').append(entry.lastDataOffset()).append(' ')
                .append(entry.coordinatorEpoch()).append(' ')
                .append(entry.currentTxnFirstOffset().orElse(-1)));
        return text.toString();
    }
}
