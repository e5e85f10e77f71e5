import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Collectors;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.shell.command.CommandUtils;
import org.apache.kafka.shell.command.Commands;
import org.apache.kafka.shell.node.RootShellNode;
import org.apache.kafka.shell.state.MetadataShellState;
import org.jline.reader.Candidate;
import org.jline.reader.LineReader;
import org.jline.reader.LineReaderBuilder;
import org.jline.reader.Parser;
import org.jline.reader.impl.DefaultExpander;
import org.jline.reader.impl.DefaultParser;
import org.jline.terminal.impl.DumbTerminal;

/**
 * Asks the classes of Kafka's metadata shell, and of its line reader, what they make of something.
 *
 * <p>A line on standard input holds parts in base64, separated by spaces: what to ask, then its
 * parts. The answer is one line in base64: "=" and the value, or "!" and the error's message behind
 * what was printed before it.
 */
public final class ShellJudge {
    private final MetadataShellState state = new MetadataShellState();

    private ShellJudge() { }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        ShellJudge judge = new ShellJudge();
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> parts = Arrays.stream(line.split(" ", -1)).map(ShellJudge::decode).toList();
            StringWriter printed = new StringWriter();
            String answer;
            try {
                judge.answer(parts, printed);
                answer = "=" + printed;
            } catch (Throwable problem) {
                answer = "!" + printed + problem.getMessage();
            }
            answers.println(
                Base64.getEncoder().encodeToString(answer.getBytes(StandardCharsets.UTF_8)));
            answers.flush();
        }
    }

    private void answer(List<String> parts, StringWriter printed) throws Throwable {
        List<String> others = parts.subList(1, parts.size());
        switch (parts.get(0)) {
            case "load":
                state.setRoot(new RootShellNode(image(new File(others.get(0)))));
                state.setWorkingDirectory("/");
                return;
            case "command":
                run(new Commands(false), others, printed);
                return;
            case "shell":
                run(new Commands(true), others, printed);
                return;
            case "columns":
                columns(Integer.parseInt(others.get(0)), others.subList(1, others.size()), printed);
                return;
            case "split":
                List<String> words = new DefaultParser().parse(
                    others.get(0), others.get(0).length(), Parser.ParseContext.ACCEPT_LINE).words();
                printed.append(String.join("\n", words));
                return;
            case "history":
                history(others, printed);
                return;
            case "complete":
                complete(others, printed);
                return;
            default:
                throw new IllegalArgumentException("unknown question " + parts.get(0));
        }
    }

    private static MetadataImage image(File file) throws Exception {
        MetadataImage image = MetadataImage.EMPTY;
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                if (batch.isControlBatch()) continue;
                MetadataDelta delta = new MetadataDelta.Builder().setImage(image)
                    .setSupportedConfigChecker((type, name) -> true).build();
                for (Record record : batch) {
                    delta.replay(MetadataRecordSerde.INSTANCE.read(
                        new ByteBufferAccessor(record.value()), record.valueSize()).message());
                }
                image = delta.apply(new MetadataProvenance(
                    batch.lastOffset(), batch.partitionLeaderEpoch(), batch.maxTimestamp(), true));
            }
        }
        return image;
    }

    /** Runs a command; what it prints past its writer, a help screen, comes first as in the shell. */
    private void run(Commands commands, List<String> words, StringWriter printed) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream past = new ByteArrayOutputStream();
        System.setOut(new PrintStream(past, true, StandardCharsets.UTF_8));
        PrintWriter writer = new PrintWriter(printed);
        try {
            commands.parseCommand(words).run(Optional.empty(), writer, state);
        } finally {
            writer.flush();
            System.out.flush();
            System.setOut(before);
            printed.append(past.toString(StandardCharsets.UTF_8));
        }
    }

    private static void columns(int width, List<String> names, StringWriter printed) throws Throwable {
        Method method = Class.forName("org.apache.kafka.shell.command.LsCommandHandler")
            .getDeclaredMethod("printEntries", PrintWriter.class, String.class, OptionalInt.class, List.class);
        method.setAccessible(true);
        PrintWriter writer = new PrintWriter(printed);
        try {
            method.invoke(null, writer, "", OptionalInt.of(width), names);
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
        writer.flush();
    }

    /** Prints what becomes of the last line behind the others, and the lines that are kept then. */
    private static void history(List<String> lines, StringWriter printed) throws Exception {
        LineReader reader = LineReaderBuilder.builder().terminal(new DumbTerminal(
            new ByteArrayInputStream(new byte[0]), new ByteArrayOutputStream())).build();
        reader.getHistory().attach(reader);
        for (String line : lines) {
            String expanded = line;
            try {
                expanded = new DefaultExpander().expandHistory(reader.getHistory(), line);
            } catch (IllegalArgumentException none) {
                // The reader goes on with the line as it is.
            }
            if (!expanded.isEmpty()) reader.getHistory().add(expanded);
            printed.append(expanded).append('\n');
        }
        reader.getHistory().forEach(
            entry -> printed.append(String.format("%d %s%n", entry.index(), entry.line())));
    }

    private void complete(List<String> words, StringWriter printed) throws Exception {
        List<Candidate> candidates = new ArrayList<>();
        if (words.size() == 1) {
            CommandUtils.completeCommand(words.get(0), candidates);
        } else {
            Commands.Type type = Commands.TYPES.get(words.get(0));
            if (type != null) type.completeNext(state, words.subList(1, words.size()), candidates);
        }
        printed.append(candidates.stream()
            .map(candidate -> (candidate.complete() ? "+" : "-") + candidate.value())
            .collect(Collectors.joining("\n")));
    }

    private static String decode(String part) {
        return new String(Base64.getDecoder().decode(part), StandardCharsets.UTF_8);
    }
}
