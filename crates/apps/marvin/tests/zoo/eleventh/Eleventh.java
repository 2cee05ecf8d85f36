// Eleventh half, letters AI: six Java programs after public reports. Arguments: CASE SECONDS FOLDER.
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

public class Eleventh {
    static Path folder;
    static long deadline;

    static boolean running() {
        return System.nanoTime() < deadline;
    }

    static long leftMillis() {
        return Math.max(1, (deadline - System.nanoTime()) / 1_000_000);
    }

    // rw-semaphore
    static class Semaphore {
        private int count = 0;

        void access(Runnable evaluate) throws InterruptedException {
            synchronized (this) {
                while (count == -1) wait();
                count += 1;
            }
            evaluate.run();
            synchronized (this) {
                count -= 1;
                notify();
            }
        }

        void isolate(Runnable evaluate) throws InterruptedException {
            synchronized (this) {
                while (count != 0) wait();
                count = -1;
            }
            evaluate.run();
            synchronized (this) {
                count = 0;
                notify();
            }
        }
    }

    interface Part { void run() throws Exception; }

    static void daemon(String name, Part part) {
        Thread t = new Thread(() -> {
            try {
                part.run();
            } catch (Exception e) {
                return;
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }

    static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            return;
        }
    }

    static String readers() throws Exception {
        Semaphore guard = new Semaphore();
        AtomicInteger served = new AtomicInteger();
        daemon("writer", () -> guard.isolate(() -> sleep(200)));
        sleep(50);
        daemon("subscriber", () -> guard.access(() -> sleep(600_000)));
        sleep(50);
        for (int i = 0; i < 8; i++)
            daemon("reader-" + i, () -> guard.access(served::incrementAndGet));
        while (running() && served.get() < 8) sleep(leftMillis());
        return served.get() + " reads";
    }

    // track-client
    static String trackServer() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 8, InetAddress.getLoopbackAddress())) {
            List<Socket> open = new ArrayList<>();
            Files.writeString(folder.resolve("port"), server.getLocalPort() + "\n");
            System.out.println("ready");
            daemon("accept", () -> {
                while (true) open.add(server.accept());
            });
            while (running()) sleep(leftMillis());
            return open.size() + " connections";
        }
    }

    static boolean sendData(String port, String json) throws Exception {
        URL url = new URL("http://127.0.0.1:" + port + "/track");
        HttpURLConnection conn = (HttpURLConnection) url.openConnection();
        conn.setDoOutput(true);
        try (OutputStream out = conn.getOutputStream()) {
            out.write(json.getBytes());
        }
        try (InputStream in = conn.getInputStream()) {
            return in.read() == '1';
        }
    }

    static String deliver() throws Exception {
        Path peer = folder.resolveSibling("track-server").resolve("port");
        String port = Files.readString(peer).trim();
        AtomicInteger sent = new AtomicInteger();
        Thread delivery = new Thread(() -> {
            try {
                for (int i = 0; i < 100; i++) {
                    sendData(port, "[{\"event\":\"open\"}]");
                    sent.incrementAndGet();
                }
            } catch (Exception e) {
                return;
            }
        }, "delivery");
        delivery.setDaemon(true);
        delivery.start();
        delivery.join(leftMillis());
        return sent.get() + " deliveries";
    }

    // ice-checks
    static void startCheckForPair(int port) throws Exception {
        try (Socket s = new Socket(InetAddress.getLoopbackAddress(), port)) {
            s.getOutputStream().write(1);
            s.getInputStream().read();
        }
    }

    static String paceMaker() throws Exception {
        ScheduledExecutorService scheduler = Executors.newSingleThreadScheduledExecutor(r -> {
            Thread t = new Thread(r, "ice4j.PaceMaker");
            t.setDaemon(true);
            return t;
        });
        AtomicInteger checks = new AtomicInteger();
        ServerSocket turn = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        for (int i = 0; i < 40; i++)
            scheduler.scheduleAtFixedRate(checks::incrementAndGet, 20, 20, TimeUnit.MILLISECONDS);
        scheduler.schedule(() -> {
            startCheckForPair(turn.getLocalPort());
            return null;
        }, 100, TimeUnit.MILLISECONDS);
        scheduler.awaitTermination(leftMillis(), TimeUnit.MILLISECONDS);
        turn.close();
        return checks.get() + " checks";
    }

    // process-list
    static List<String> runNative(String... command) throws Exception {
        List<String> lines = new ArrayList<>();
        Process p = new ProcessBuilder(command).redirectErrorStream(true).start();
        try (BufferedReader r = new BufferedReader(new InputStreamReader(p.getInputStream()))) {
            for (String line = r.readLine(); line != null; line = r.readLine()) lines.add(line);
        }
        p.waitFor();
        return lines;
    }

    static String getProcesses() throws Exception {
        int n = 0;
        while (running()) {
            File[] pids = new File("/proc")
                .listFiles(f -> Character.isDigit(f.getName().charAt(0)));
            for (int i = 0; i < pids.length && running(); i++) {
                runNative("readlink", pids[i].getPath() + "/cwd");
                n++;
            }
        }
        return n + " processes";
    }

    // queue-file
    static class QueueStore {
        private final RandomAccessFile file;
        private final byte[] batch = new byte[4096];
        private int used = 0;

        QueueStore(Path path) throws Exception {
            file = new RandomAccessFile(path.toFile(), "rw");
        }

        long getLength() throws Exception {
            return file.length() + used;
        }

        boolean addLast(byte[] item) throws Exception {
            if (getLength() + item.length > 8_000_000) file.setLength(0);
            if (used + item.length > batch.length) {
                file.seek(file.length());
                file.write(batch, 0, used);
                used = 0;
            }
            System.arraycopy(item, 0, batch, used, item.length);
            used += item.length;
            return true;
        }
    }

    static String offerMessages() throws Exception {
        QueueStore store = new QueueStore(folder.resolve("queue-1.qs"));
        byte[] item = new byte[24];
        int n = 0;
        while (running()) {
            for (int i = 0; i < 200; i++) {
                store.addLast(item);
                n++;
            }
        }
        return n + " messages";
    }

    // chrono-index
    static long drain(List<long[]> infoList) {
        long mapped = 0;
        infoList.sort(Comparator.comparingLong(a -> a[0]));
        while (!infoList.isEmpty()) {
            long[] info = infoList.remove(0);
            mapped += info[1];
        }
        return mapped;
    }

    static String indexArticles() {
        long n = 0;
        while (running()) {
            List<long[]> infoList = new ArrayList<>();
            for (int i = 0; i < 100_000; i++) infoList.add(new long[] {i, i % 7});
            if (drain(infoList) > 0) n++;
        }
        return n + " articles";
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) System.exit(2);
        deadline = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        folder = Path.of(args[2]).resolve(args[0]);
        if (Files.exists(folder)) {
            try (Stream<Path> all = Files.walk(folder)) {
                all.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
        Files.createDirectories(folder);
        String text = switch (args[0]) {
            case "rw-semaphore" -> readers();
            case "track-server" -> trackServer();
            case "track-client" -> deliver();
            case "ice-checks" -> paceMaker();
            case "process-list" -> getProcesses();
            case "queue-file" -> offerMessages();
            case "chrono-index" -> indexArticles();
            default -> null;
        };
        if (text == null) System.exit(2);
        System.out.println(args[0] + ": " + text);
        System.exit(0);
    }
}
