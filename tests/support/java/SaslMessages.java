import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerClientInitialResponse;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ClientFinalMessage;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ClientFirstMessage;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ServerFinalMessage;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ServerFirstMessage;

/**
 * Reads messages of SASL as Kafka's nodes and clients do.
 *
 * <p>Arguments: a user of PLAIN and its password. By line: the kind of a message and its bytes in
 * hex. Answers the fields that were read, or "!" and the message of the error, each in hex of UTF-8.
 */
public final class SaslMessages {
    private SaslMessages() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            byte[] message = HexFormat.of().parseHex(parts[1]);
            String answer;
            try {
                answer = fields(parts[0], message, arguments)
                    .map(field -> hex(String.valueOf(field)))
                    .collect(Collectors.joining(" "));
            } catch (Exception problem) {
                answer = "!" + hex(String.valueOf(problem.getMessage()));
            }
            out.append(answer).append('\n');
        }
        System.out.print(out);
    }

    private static Stream<?> fields(String kind, byte[] message, String[] user) throws Exception {
        switch (kind) {
            case "client-first": {
                ClientFirstMessage read = new ClientFirstMessage(message);
                Map<String, String> extensions = read.extensions().map();
                // Several extensions are in an order that is another one in each process.
                String signed = extensions.size() < 2 ? read.clientFirstMessageBare() : "";
                return Stream.of(
                    read.authorizationId(),
                    read.saslName(),
                    read.nonce(),
                    new TreeMap<>(extensions),
                    signed);
            }
            case "client-final": {
                ClientFinalMessage read = new ClientFinalMessage(message);
                return Stream.of(
                    HexFormat.of().formatHex(read.channelBinding()),
                    read.nonce(),
                    HexFormat.of().formatHex(read.proof()));
            }
            case "server-first": {
                ServerFirstMessage read = new ServerFirstMessage(message);
                return Stream.of(
                    read.nonce(), HexFormat.of().formatHex(read.salt()), read.iterations());
            }
            case "server-final": {
                ServerFinalMessage read = new ServerFinalMessage(message);
                byte[] signature = read.serverSignature();
                return Stream.of(
                    String.valueOf(read.error()),
                    signature == null ? "" : HexFormat.of().formatHex(signature));
            }
            case "oauth-bearer": {
                OAuthBearerClientInitialResponse read =
                    new OAuthBearerClientInitialResponse(message);
                return Stream.of(read.authorizationId(), read.tokenValue());
            }
            default: {
                PlainSaslServer server = new PlainSaslServer(callbacks -> answer(callbacks, user));
                server.evaluateResponse(message);
                return Stream.of(server.getAuthorizationID());
            }
        }
    }

    private static void answer(Callback[] callbacks, String[] user) {
        String name = null;
        for (Callback callback : callbacks) {
            if (callback instanceof NameCallback named) {
                name = named.getDefaultName();
            } else {
                PlainAuthenticateCallback asked = (PlainAuthenticateCallback) callback;
                asked.authenticated(user[0].equals(name)
                    && Arrays.equals(user[1].toCharArray(), asked.password()));
            }
        }
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
