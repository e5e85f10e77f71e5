import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints every error code with the class that Kafka's clients raise, and whether they try again. */
public final class ErrorNames {
    private ErrorNames() {
    }

    /** Prints one line for each code but that of success. */
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            if (error.exception() != null) {
                boolean retriable = error.exception() instanceof RetriableException;
                System.out.println(error.code() + " " + error.exception().getClass().getName() + " " + retriable);
            }
        }
    }
}
