package org.apache.kafka.storage.internals.log;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestException;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * A log of Kafka's that is filled, cleaned and cut by its own classes. Lines in: "new KEY=VALUE...", "time MS",
 * "append HEX", "roll", "watermark OFFSET", "start OFFSET", "clean MEMORY", "choose", "checkpoint
 * OFFSET", "modified MS" (of the active segment), "retain" and "dump". A line out for each.
 */
public final class CleanerOracle {
    private static long now;
    private static UnifiedLog log;
    private static Path root;
    private static Optional<Long> checkpoint;

    private CleanerOracle() {
    }

    public static void main(String[] arguments) throws Exception {
        root = Path.of(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.append(answer(line.split(" "))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String[] parts) throws Exception {
        switch (parts[0]) {
            case "new":
                log = newLog(parts);
                checkpoint = Optional.empty();
                return "ok";
            case "time":
                now = Long.parseLong(parts[1]);
                return "ok";
            case "append":
                ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(parts[1]));
                log.appendAsFollower(MemoryRecords.readableRecords(buffer), Integer.MAX_VALUE);
                return "ok";
            case "roll":
                log.roll();
                return "ok";
            case "watermark":
                log.updateHighWatermark(Long.parseLong(parts[1]));
                return "ok " + log.lastStableOffset();
            case "start":
                log.maybeIncrementLogStartOffset(Long.parseLong(parts[1]),
                    LogStartOffsetIncrementReason.ClientRecordDeletion);
                return "ok";
            case "checkpoint":
                checkpoint = Optional.of(Long.parseLong(parts[1]));
                return "ok";
            case "modified":
                log.activeSegment().log().file().setLastModified(Long.parseLong(parts[1]));
                return "ok";
            case "clean":
                return clean(Integer.parseInt(parts[1]));
            case "choose":
                return choose();
            case "retain":
                return "deleted " + log.deleteOldSegments() + " " + log.logStartOffset() + " " + log.logEndOffset();
            default:
                return dump();
        }
    }

    private static UnifiedLog newLog(String[] parts) throws IOException {
        Properties settings = new Properties();
        for (int index = 1; index < parts.length; index++) {
            String[] pair = parts[index].split("=");
            settings.put(pair[0], pair[1]);
        }
        File directory = new File(Files.createTempDirectory(root, "log").toFile(), "topic-0");
        Files.createDirectories(directory.toPath());
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getName().equals("milliseconds") ? now
                : method.getReturnType() == long.class ? now : null);
        Scheduler none = (Scheduler) Proxy.newProxyInstance(Scheduler.class.getClassLoader(),
            new Class<?>[] {Scheduler.class}, (proxy, method, given) -> null);
        return UnifiedLog.create(directory, new LogConfig(settings), 0, 0, none, new BrokerTopicStats(false), time,
            900000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE,
            new LogDirFailureChannel(1), true, Optional.empty());
    }

    private static LogToClean toClean() throws IOException {
        LogCleanerManager.OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, now);
        return new LogToClean(log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
    }

    private static String choose() throws IOException, ReflectiveOperationException {
        LogCleanerManager.OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, now);
        LogToClean found = toClean();
        var delay = LogCleanerManager.class.getDeclaredMethod("maxCompactionDelay", UnifiedLog.class, long.class,
            long.class);
        delay.setAccessible(true);
        return offsets.firstDirtyOffset() + " " + offsets.forceUpdateCheckpoint() + " "
            + found.firstUncleanableOffset() + " " + found.cleanBytes() + " " + found.cleanableBytes() + " "
            + delay.invoke(null, log, offsets.firstDirtyOffset(), now);
    }

    private static String clean(int memory)
            throws IOException, DigestException, NoSuchAlgorithmException {
        LogToClean found = toClean();
        if (found.cleanableBytes() == 0) {
            return "nothing";
        }
        Throttler throttler = new Throttler(Double.MAX_VALUE, 1000, "throttler", "entries", Time.SYSTEM);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(memory), 65536, 65536, 0.9, throttler, Time.SYSTEM,
            partition -> { });
        Map.Entry<Long, CleanerStats> done = cleaner.doClean(found, now);
        checkpoint = Optional.of(done.getKey());
        return "cleaned " + done.getKey();
    }

    private static String dump() throws IOException {
        log.flush(true);
        StringBuilder text = new StringBuilder();
        File[] files = log.dir().listFiles();
        Arrays.sort(files);
        long active = log.activeSegment().baseOffset();
        for (File file : files) {
            String name = file.getName();
            boolean isIndex = name.endsWith(".index") || name.endsWith(".timeindex");
            boolean isActive = name.startsWith(LogFileUtils.filenamePrefixFromOffset(active));
            if (name.endsWith(".log") || name.endsWith(".txnindex") || isIndex && !isActive) {
                text.append(name).append('=').append(HexFormat.of().formatHex(Files.readAllBytes(file.toPath())))
                    .append(' ');
            }
        }
        return text.toString().trim();
    }
}
