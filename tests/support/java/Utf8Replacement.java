import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.utils.Utils;

/** Reads strings as Kafka does: hex of bytes in, hex of the characters in UTF-16 out, by line. */
public final class Utf8Replacement {
    private Utf8Replacement() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String text = Utils.utf8(HexFormat.of().parseHex(line));
            out.append(HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_16BE))).append('\n');
        }
        System.out.print(out);
    }
}
