/** A tool whose thread goes on printing after it has ended, as a client that was not closed does. */
public final class LateWords {
    private static final long PAUSE_MS = 1;

    private LateWords() {
    }

    public static void main(String[] arguments) {
        System.err.println("in time");
        Thread thread = new Thread(() -> {
            while (true) {
                System.err.println("late");
                try {
                    Thread.sleep(PAUSE_MS);
                } catch (InterruptedException interrupted) {
                    return;
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
