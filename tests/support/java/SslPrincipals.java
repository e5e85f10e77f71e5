import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Names the users of certificates: by line, a question and its parts in hex of UTF-8; answers "="
 * and the value, or "!" and the message, in hex of UTF-8.
 */
public final class SslPrincipals {
    private SslPrincipals() { }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = "=" + answer(line.split(" ", -1));
            } catch (Exception problem) {
                answer = "!" + problem.getMessage();
            }
            out.append(HexFormat.of().formatHex(answer.getBytes(StandardCharsets.UTF_8))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String[] parts) throws IOException {
        if (parts[0].equals("name"))
            return new X500Principal(HexFormat.of().parseHex(parts[1])).getName();
        return SslPrincipalMapper.fromRules(text(parts[1])).getName(text(parts[2]));
    }

    private static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }
}
