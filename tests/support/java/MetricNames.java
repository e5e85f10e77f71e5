import java.lang.management.ManagementFactory;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/** Runs a node of Kafka's and prints what can be measured of it, whenever a line comes in. */
public final class MetricNames {
    private static final String READY = "ready";

    private MetricNames() {
    }

    /**
     * Prints a line for each attribute: the bean's name, the attribute's, its Java type and its value.
     * After that, and before the first line comes in, it prints that it is ready.
     */
    public static void main(String[] arguments) throws Exception {
        KafkaRaftServer server = new KafkaRaftServer(
            KafkaConfig.fromProps(Utils.loadProps(arguments[0]), false), Time.SYSTEM);
        server.startup();
        System.out.println(READY);
        while (System.in.read() >= 0) {
            // What was committed last is counted a moment later.
            Thread.sleep(Long.parseLong(arguments[1]));
            printAll();
            System.out.println(READY);
        }
        server.shutdown();
        server.awaitShutdown();
        System.exit(0);
    }

    private static void printAll() throws JMException {
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        for (ObjectName bean : beans.queryNames(null, null)) {
            if (bean.getDomain().contains("kafka")) {
                for (MBeanAttributeInfo attribute : beans.getMBeanInfo(bean).getAttributes()) {
                    System.out.println(line(beans, bean, attribute));
                }
            }
        }
    }

    private static String line(MBeanServer beans, ObjectName bean, MBeanAttributeInfo attribute) {
        Object value;
        try {
            value = beans.getAttribute(bean, attribute.getName());
        } catch (JMException | RuntimeException error) {
            value = "!" + error.getClass().getSimpleName();
        }
        String kind = value == null ? "null" : value.getClass().getSimpleName();
        return String.join("\t", bean.getCanonicalName(), attribute.getName(), kind, String.valueOf(value));
    }
}
