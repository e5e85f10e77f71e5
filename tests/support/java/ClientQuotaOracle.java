import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.Sanitizer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientRequestQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Asks Kafka's managers of client quotas. Lines in: "new KIND SAMPLES SECONDS", "quota USER CLIENT BOUND",
 * "record TIME USER CLIENT VALUE", "unrecord TIME USER CLIENT VALUE" and "most USER CLIENT". Of an entity "-" is no
 * part and "*" the default, of a client "-" is no client id; without a quota BOUND is "-". A line out: the answer.
 */
public final class ClientQuotaOracle {
    private ClientQuotaOracle() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        ClientQuotaManager manager = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            if (parts[0].equals("new")) {
                if (manager != null) {
                    manager.initiateShutdown();
                }
                manager = newManager(parts);
                out.println("ok");
            } else if (parts[0].equals("quota")) {
                Optional<Quota> quota = parts[3].equals("-")
                    ? Optional.empty() : Optional.of(new Quota(Double.parseDouble(parts[3]), true));
                manager.updateQuota(user(parts[1]), client(parts[2]), quota);
                out.println("ok");
            } else if (parts[0].equals("record")) {
                out.println(manager.maybeRecordAndGetThrottleTimeMs(
                    session(parts[2]), clientId(parts[3]), Double.parseDouble(parts[4]), Long.parseLong(parts[1])));
            } else if (parts[0].equals("unrecord")) {
                manager.unrecordQuotaSensor(
                    session(parts[2]), clientId(parts[3]), Double.parseDouble(parts[4]), Long.parseLong(parts[1]));
                out.println("ok");
            } else {
                out.println(manager.maxValueInQuotaWindow(session(parts[1]), clientId(parts[2])));
            }
        }
        out.flush();
        System.exit(0);
    }

    private static ClientQuotaManager newManager(String[] parts) {
        ClientQuotaManagerConfig config =
            new ClientQuotaManagerConfig(Integer.parseInt(parts[2]), Integer.parseInt(parts[3]));
        if (parts[1].equals("request")) {
            return new ClientRequestQuotaManager(config, new Metrics(), Time.SYSTEM, "", Optional.empty());
        }
        return new ClientQuotaManager(config, new Metrics(), QuotaType.PRODUCE, Time.SYSTEM, "");
    }

    private static Session session(String user) throws Exception {
        return new Session(new KafkaPrincipal("User", user), InetAddress.getLoopbackAddress());
    }

    private static String clientId(String text) {
        return text.equals("-") ? "" : text;
    }

    private static Optional<ConfigEntity> user(String text) {
        if (text.equals("-")) {
            return Optional.empty();
        }
        return Optional.of(text.equals("*")
            ? ClientQuotaManager.DEFAULT_USER_ENTITY : new ClientQuotaManager.UserEntity(Sanitizer.sanitize(text)));
    }

    private static Optional<ConfigEntity> client(String text) {
        if (text.equals("-")) {
            return Optional.empty();
        }
        return Optional.of(text.equals("*")
            ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID : new ClientQuotaManager.ClientIdEntity(text));
    }
}
