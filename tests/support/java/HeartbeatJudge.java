package org.apache.kafka.coordinator.group;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.stream.Collectors;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.ApiError;
import sun.misc.Unsafe;

/**
 * Asks Kafka's GroupCoordinatorService what it makes of heartbeats of consumer groups.
 *
 * <p>A line has the assignors between commas, the version and the request in hex. The answer is "="
 * for a request that goes on to its group, or the code of the error and its message.
 */
public final class HeartbeatJudge {
    private HeartbeatJudge() { }

    public static void main(String[] arguments) throws Exception {
        Method check = GroupCoordinatorService.class.getDeclaredMethod(
            "throwIfConsumerGroupHeartbeatRequestIsInvalid",
            ConsumerGroupHeartbeatRequestData.class, int.class);
        check.setAccessible(true);
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            short version = Short.parseShort(parts[1]);
            String answer = "=";
            try {
                check.invoke(service(parts[0]), request(parts[2], version), (int) version);
            } catch (InvocationTargetException problem) {
                ApiError error = ApiError.fromThrowable(problem.getCause());
                answer = error.error().code() + " " + error.message();
            }
            out.append(answer).append('\n');
        }
        System.out.print(out);
    }

    /** Returns a service of which nothing is made but the names of its assignors. */
    private static GroupCoordinatorService service(String assignors) throws Exception {
        Field only = Unsafe.class.getDeclaredField("theUnsafe");
        only.setAccessible(true);
        Object made = ((Unsafe) only.get(null)).allocateInstance(GroupCoordinatorService.class);
        Field names = GroupCoordinatorService.class.getDeclaredField("consumerGroupAssignors");
        names.setAccessible(true);
        names.set(made, Arrays.stream(assignors.split(",")).collect(Collectors.toSet()));
        return (GroupCoordinatorService) made;
    }

    private static ConsumerGroupHeartbeatRequestData request(String hex, short version) {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        return new ConsumerGroupHeartbeatRequestData(new ByteBufferAccessor(bytes), version);
    }
}
