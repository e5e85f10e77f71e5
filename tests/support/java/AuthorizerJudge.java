import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.Property;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Asks Kafka's StandardAuthorizer for decisions.
 *
 * <p>Each line on standard input holds words that a tab separates; the first says what it is:
 * a new authorizer ("authorizer", super users, whether all is allowed without entries), an entry
 * of it ("entry"), or a question ("may", "somewhere", "match"), each of which is answered by a line.
 * The answer to "may" has, after a tab, what the authorizer has logged about it.
 */
public final class AuthorizerJudge {
    private record Context(KafkaPrincipal principal, InetAddress clientAddress)
        implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "CONTROLLER";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 3;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "judge";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }

    /** Keeps what was logged last. */
    private static final class LastLine extends AbstractAppender {
        private String text = "";

        LastLine() {
            super("last", null, null, true, Property.EMPTY_ARRAY);
        }

        @Override
        public void append(LogEvent event) {
            text = event.getMessage().getFormattedMessage();
        }
    }

    private static final LastLine LAST_LINE = new LastLine();

    private AuthorizerJudge() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Logger logger = (Logger) LogManager.getLogger("kafka.authorizer.logger");
        Configurator.setLevel(logger.getName(), Level.DEBUG);
        LAST_LINE.start();
        logger.addAppender(LAST_LINE);
        StandardAuthorizer authorizer = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "authorizer" -> authorizer = create(words[1], words[2]);
                case "entry" -> authorizer.addAcl(Uuid.randomUuid(), entry(words));
                case "may" -> answers.println(may(authorizer, words));
                case "somewhere" -> answers.println(somewhere(authorizer, words));
                case "match" -> answers.println(match(authorizer, words));
                default -> throw new IllegalArgumentException(line);
            }
        }
        answers.flush();
    }

    private static StandardAuthorizer create(String superUsers, String allowsWithoutEntries) {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        Map<String, Object> configs = new HashMap<>();
        configs.put(StandardAuthorizer.SUPER_USERS_CONFIG, superUsers);
        configs.put(
            StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, allowsWithoutEntries);
        authorizer.configure(configs);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.completeInitialLoad();
        return authorizer;
    }

    private static byte code(String word) {
        return Byte.parseByte(word);
    }

    private static StandardAcl entry(String[] words) {
        return new StandardAcl(
            ResourceType.fromCode(code(words[1])),
            words[2],
            PatternType.fromCode(code(words[3])),
            words[4],
            words[5],
            AclOperation.fromCode(code(words[6])),
            AclPermissionType.fromCode(code(words[7])));
    }

    private static Context context(String type, String name, String host) throws Exception {
        return new Context(new KafkaPrincipal(type, name), InetAddress.getByName(host));
    }

    private static int answer(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? 1 : 0;
    }

    private static String may(StandardAuthorizer authorizer, String[] words) throws Exception {
        ResourcePattern resource = new ResourcePattern(
            ResourceType.fromCode(code(words[5])), words[6], PatternType.LITERAL);
        Action action = new Action(
            AclOperation.fromCode(code(words[4])), resource, 1, true, true);
        int answer = answer(
            authorizer.authorize(context(words[1], words[2], words[3]), List.of(action)).get(0));
        return answer + "\t" + LAST_LINE.text;
    }

    private static int somewhere(StandardAuthorizer authorizer, String[] words) throws Exception {
        return answer(authorizer.authorizeByResourceType(
            context(words[1], words[2], words[3]),
            AclOperation.fromCode(code(words[4])),
            ResourceType.fromCode(code(words[5]))));
    }

    private static String optional(String word) {
        return word.equals("-") ? null : word;
    }

    private static int match(StandardAuthorizer authorizer, String[] words) {
        AclBindingFilter filter = new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.fromCode(code(words[1])),
                optional(words[2]),
                PatternType.fromCode(code(words[3]))),
            new AccessControlEntryFilter(
                optional(words[4]),
                optional(words[5]),
                AclOperation.fromCode(code(words[6])),
                AclPermissionType.fromCode(code(words[7]))));
        int count = 0;
        for (AclBinding binding : authorizer.acls(filter)) {
            count++;
        }
        return count;
    }
}
