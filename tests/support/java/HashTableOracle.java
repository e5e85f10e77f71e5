import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Plays changes on Java's own HashMap and tells the order of its keys.
 *
 * <p>Lines in, of words with a space between them: "table CAPACITY" begins a new table, and "put KEY", "compute
 * KEY" (computeIfAbsent) and "remove KEY" change it. A key is its hash, a dot, and what it is compared by. Each line is
 * answered by the keys in their order.
 */
public final class HashTableOracle {
    private record Key(int hash, int order) implements Comparable<Key> {
        static Key read(String text) {
            String[] parts = text.split("\\.");
            return new Key(Integer.parseInt(parts[0]), Integer.parseInt(parts[1]));
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public int compareTo(Key other) {
            return Integer.compare(order, other.order);
        }

        @Override
        public String toString() {
            return hash + "." + order;
        }
    }

    private HashTableOracle() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        Map<Key, Boolean> table = new HashMap<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("table")) {
                table = new HashMap<>(Integer.parseInt(words[1]));
            } else {
                change(table, words[0], words[1]);
            }
            answers.append(table.keySet().stream().map(Key::toString).collect(Collectors.joining(","))).append('\n');
        }
        System.out.print(answers);
    }

    private static void change(Map<Key, Boolean> table, String verb, String key) {
        switch (verb) {
            case "put" -> table.put(Key.read(key), true);
            case "compute" -> table.computeIfAbsent(Key.read(key), absent -> true);
            case "remove" -> table.remove(Key.read(key));
            default -> throw new IllegalArgumentException(verb);
        }
    }
}
