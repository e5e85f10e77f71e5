import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Loads stores as a node does: by line, a properties file in hex of UTF-8; answers "=" or "!" and
 * the messages of the error and its causes, between " <- ", in hex of UTF-8.
 */
public final class SslStores {
    private SslStores() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer = "=";
            try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
                factory.configure(parsed(line));
            } catch (Throwable problem) {
                answer = "!" + messages(problem);
            }
            out.append(HexFormat.of().formatHex(answer.getBytes(StandardCharsets.UTF_8))).append('\n');
        }
        System.out.print(out);
    }

    private static Map<String, Object> parsed(String line) throws Exception {
        ConfigDef table = new ConfigDef().withClientSslSupport();
        Properties given = new Properties();
        given.load(new StringReader(
            new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8)));
        Map<String, Object> found = new HashMap<>(table.parse(given));
        return found;
    }

    private static String messages(Throwable problem) {
        StringBuilder found = new StringBuilder();
        for (Throwable each = problem; each != null; each = each.getCause()) {
            if (found.length() > 0) found.append(" <- ");
            found.append(each.getMessage());
        }
        return found.toString();
    }
}
