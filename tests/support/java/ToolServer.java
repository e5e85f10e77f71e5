import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/**
 * Runs the main methods of Kafka's tools one after the other in one virtual machine.
 *
 * <p>A line on standard input holds the class, what the tool shall read from its own standard input,
 * and the arguments: each part in base64, separated by spaces. The answer is one line: the exit
 * code, then standard output and standard error in base64. It ends with its input.
 */
public final class ToolServer {
    /** Takes the place of the end of the process. An Error, so that few tools would catch it. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1L;

        Ended() {
            super("the tool asked to end the process", null, false, false);
        }
    }

    /** A stream whose end can be exchanged: classes that keep System.out still reach the tool at hand. */
    private final class Captured extends OutputStream {
        private ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private boolean ended;

        @Override
        public synchronized void write(int value) {
            if (!ended && isOfTool(Thread.currentThread())) {
                bytes.write(value);
            }
        }

        @Override
        public synchronized void write(byte[] values, int offset, int length) {
            if (!ended && isOfTool(Thread.currentThread())) {
                bytes.write(values, offset, length);
            }
        }

        /** Nothing that is printed from here on would have been printed by a process that ended. */
        synchronized void end() {
            ended = true;
        }

        synchronized byte[] take() {
            byte[] taken = bytes.toByteArray();
            bytes = new ByteArrayOutputStream();
            ended = false;
            return taken;
        }
    }

    private static final long SHUTDOWN_HOOK_MS = 5_000;

    private final Captured out = new Captured();
    private final Captured err = new Captured();
    private final List<Runnable> shutdownHooks = new ArrayList<>();
    /** All threads of the tool at hand; null between two, for those that a former one has left. */
    private volatile ThreadGroup tool;
    private Integer exitCode;

    private ToolServer() {
    }

    /** Serves until standard input ends. */
    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        new ToolServer().serve(requests, answers);
        // Not through Kafka's Exit, which is trapped, and without waiting for a tool's threads.
        Runtime.getRuntime().halt(0);
    }

    private void serve(BufferedReader requests, PrintStream answers) throws IOException {
        trap("setExitProcedure", (proxy, method, values) -> {
            end((Integer) values[0]);
            return null;
        });
        trap("setHaltProcedure", (proxy, method, values) -> {
            end((Integer) values[0]);
            return null;
        });
        trap("setShutdownHookAdder", (proxy, method, values) -> {
            shutdownHooks.add((Runnable) values[1]);
            return null;
        });
        String line = requests.readLine();
        while (line != null) {
            // Anew for each tool: the metadata shell closes System.out when it is done.
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            String[] parts = Arrays.stream(line.split(" ", -1)).map(ToolServer::decoded).toArray(String[]::new);
            System.setIn(new ByteArrayInputStream(parts[1].getBytes(StandardCharsets.UTF_8)));
            int code = runInGroup(parts[0], Arrays.copyOfRange(parts, 2, parts.length));
            shutDown();
            System.out.flush();
            System.err.flush();
            tool = null;
            answers.println(code + " " + encoded(out.take()) + " " + encoded(err.take()));
            answers.flush();
            line = requests.readLine();
        }
    }

    /** Sets a procedure of Kafka's Exit, which has another package since 4.4. */
    private static void trap(String setter, InvocationHandler handler) {
        try {
            for (Method method : exitClass().getMethods()) {
                if (method.getName().equals(setter)) {
                    Class<?> procedure = method.getParameterTypes()[0];
                    ClassLoader loader = procedure.getClassLoader();
                    method.invoke(null, Proxy.newProxyInstance(loader, new Class<?>[] {procedure}, handler));
                    return;
                }
            }
            throw new IllegalStateException("Exit has no " + setter);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Class<?> exitClass() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException error) {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        }
    }

    private synchronized void end(int code) {
        // The first wish counts: a tool may catch the Error and then end with another code.
        if (exitCode == null) {
            exitCode = code;
            System.out.flush();
            System.err.flush();
            out.end();
            err.end();
        }
        throw new Ended();
    }

    /** Returns whether a thread was started by the tool at hand. */
    private boolean isOfTool(Thread thread) {
        ThreadGroup own = tool;
        ThreadGroup group = thread.getThreadGroup();
        return own != null && group != null && (own == group || own.parentOf(group));
    }

    private int runInGroup(String className, String[] arguments) {
        tool = new ThreadGroup(className);
        int[] code = new int[1];
        join(new Thread(tool, () -> code[0] = run(className, arguments), "main"), 0);
        return code[0];
    }

    private int run(String className, String[] arguments) {
        exitCode = null;
        int code = 0;
        try {
            Class.forName(className).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (!(failure.getCause() instanceof Ended)) {
                failure.getCause().printStackTrace();
                code = 1;
            }
        } catch (ReflectiveOperationException failure) {
            failure.printStackTrace();
            code = 1;
        }
        return exitCode == null ? code : exitCode;
    }

    /** Does what the end of the process would set off, so that no producer of a tool goes on. */
    private void shutDown() {
        for (Runnable hook : shutdownHooks) {
            join(new Thread(tool, hook, "shutdown-hook"), SHUTDOWN_HOOK_MS);
        }
        shutdownHooks.clear();
    }

    /** Starts a thread and waits for it; without end where the limit is 0. */
    private static void join(Thread thread, long limitMs) {
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(limitMs);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static String decoded(String part) {
        return new String(Base64.getDecoder().decode(part), StandardCharsets.UTF_8);
    }

    private static String encoded(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
