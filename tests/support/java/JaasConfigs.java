import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/**
 * Reads texts of sasl.jaas.config: by line, a text in hex of UTF-8; answers the login module, and
 * its options by name, or "!" and the message of the error, each in hex of UTF-8.
 */
public final class JaasConfigs {
    private JaasConfigs() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String text = new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8);
            String answer;
            try {
                answer = read(text).map(JaasConfigs::hex).collect(Collectors.joining(" "));
            } catch (Exception problem) {
                answer = "!" + hex(String.valueOf(problem.getMessage()));
            }
            out.append(answer).append('\n');
        }
        System.out.print(out);
    }

    private static Stream<String> read(String text) {
        JaasContext context = JaasContext.loadClientContext(
            Map.of("sasl.jaas.config", new Password(text)));
        AppConfigurationEntry module = context.configurationEntries().get(0);
        Map<String, String> options = new TreeMap<>();
        // The key of an option that is not a word is null.
        module.getOptions().forEach(
            (key, value) -> options.put(String.valueOf(key), String.valueOf(value)));
        return Stream.concat(
            Stream.of(module.getLoginModuleName()),
            options.entrySet().stream()
                .flatMap(option -> Stream.of(option.getKey(), option.getValue())));
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
