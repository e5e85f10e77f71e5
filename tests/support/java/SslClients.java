import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.SslAuthenticationException;

/**
 * Asks clusters for their id with Kafka's own client: by line, the client's properties file in hex
 * of UTF-8; answers "works", or "refused" where one side does not trust the other.
 */
public final class SslClients {
    private SslClients() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties settings = new Properties();
            settings.load(new StringReader(
                new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8)));
            System.out.println(answer(settings));
        }
    }

    private static String answer(Properties settings) throws Exception {
        try (Admin admin = Admin.create(settings)) {
            admin.describeCluster().clusterId().get();
            return "works";
        } catch (ExecutionException problem) {
            if (problem.getCause() instanceof SslAuthenticationException) return "refused";
            throw problem;
        }
    }
}
