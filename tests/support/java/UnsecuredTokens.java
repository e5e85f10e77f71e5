package org.apache.kafka.common.security.oauthbearer.internals.unsecured;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;
import org.apache.kafka.common.utils.Time;

/**
 * Validates unsecured tokens as a broker does.
 *
 * <p>Arguments: the time in milliseconds since 1970; the names of the claims of the principal and of
 * the scope, the required scope and the allowed skew of clocks. By line: a token in hex of UTF-8.
 * Answers the principal, in hex of UTF-8, and the end of the token; "?" and the required scope of a
 * token that is refused, in hex; or "!" where the validation fails.
 */
public final class UnsecuredTokens {
    private UnsecuredTokens() {
    }

    public static void main(String[] arguments) throws Exception {
        OAuthBearerUnsecuredValidatorCallbackHandler handler = handler(arguments);
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String token = new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8);
            out.append(answer(handler, token)).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(
            OAuthBearerUnsecuredValidatorCallbackHandler handler, String token) {
        try {
            OAuthBearerValidatorCallback asked = new OAuthBearerValidatorCallback(token);
            handler.handle(new Callback[] {asked});
            if (asked.token() == null) {
                return "?" + hex(asked.errorScope() == null ? "" : asked.errorScope());
            }
            return hex(asked.token().principalName()) + " " + asked.token().lifetimeMs();
        } catch (Exception problem) {
            return "!";
        }
    }

    private static OAuthBearerUnsecuredValidatorCallbackHandler handler(String[] arguments) {
        long now = Long.parseLong(arguments[0]);
        OAuthBearerUnsecuredValidatorCallbackHandler handler =
            new OAuthBearerUnsecuredValidatorCallbackHandler();
        handler.time((Time) Proxy.newProxyInstance(
            Time.class.getClassLoader(),
            new Class<?>[] {Time.class},
            (proxy, method, given) -> now));
        Map<String, String> options = Map.of(
            "unsecuredValidatorPrincipalClaimName", arguments[1],
            "unsecuredValidatorScopeClaimName", arguments[2],
            "unsecuredValidatorRequiredScope", arguments[3],
            "unsecuredValidatorAllowableClockSkewMs", arguments[4]);
        handler.configure(Map.of(), "OAUTHBEARER", List.of(new AppConfigurationEntry(
            OAuthBearerLoginModule.class.getName(), LoginModuleControlFlag.REQUIRED, options)));
        return handler;
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
