// Programs from public reports, V25..V30 (see REPORTS.md). Build: javac -d DIR Fourth.java; run: java -Xmx64m -cp DIR Fourth CASE SECONDS FOLDER [fixed]
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.text.ParsePosition;
import java.text.SimpleDateFormat;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public class Fourth {
    static double secs = 4;
    static String dir = "/tmp";
    static boolean fixed;
    static long end;

    static boolean going() {
        return System.nanoTime() < end;
    }

    // ---- V25: reports of a hospital over a resource pool ----

    static final class Connection implements AutoCloseable {
        final BasicResourcePool pool;

        Connection(BasicResourcePool pool) {
            this.pool = pool;
        }

        int[] query() throws InterruptedException {
            Thread.sleep(3); // the database
            return new int[200];
        }

        @Override
        public void close() {
            pool.checkinResource(this);
        }
    }

    static final class BasicResourcePool {
        private final ArrayDeque<Connection> unused = new ArrayDeque<>();

        BasicResourcePool(int max) {
            for (int i = 0; i < max; i++) {
                unused.add(new Connection(this));
            }
        }

        synchronized Connection checkoutResource() throws InterruptedException {
            while (unused.isEmpty()) {
                awaitAvailable();
            }
            return unused.removeFirst();
        }

        private void awaitAvailable() throws InterruptedException {
            wait();
        }

        synchronized void checkinResource(Connection c) {
            unused.addLast(c);
            notifyAll();
        }
    }

    static int generateJasperReport(BasicResourcePool pool) throws InterruptedException {
        Connection c = pool.checkoutResource();
        int n = 0;
        for (int x : c.query()) {
            n += x;
        }
        if (fixed) {
            c.close();
        }
        return n;
    }

    static void hospitalReports() throws Exception {
        BasicResourcePool pool = new BasicResourcePool(15);
        AtomicLong reports = new AtomicLong();
        for (int i = 0; i < 6; i++) {
            Thread t = new Thread(() -> {
                try {
                    while (going()) {
                        generateJasperReport(pool);
                        reports.incrementAndGet();
                        Thread.sleep(10);
                    }
                } catch (InterruptedException e) {
                    return;
                }
            }, "report-" + i);
            t.setDaemon(true);
            t.start();
        }
        Thread.sleep((long) (secs * 1000));
        System.out.println("reports " + reports.get());
    }

    // ---- V26: a reader of binary records ----

    static long readRecords(File f) throws IOException {
        long sum = 0;
        long n = f.length() / 4;
        if (fixed) {
            try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(f)))) {
                for (long i = 0; i < n; i++) {
                    sum += in.readInt();
                }
            }
            return sum;
        }
        try (RandomAccessFile in = new RandomAccessFile(f, "r")) {
            for (long i = 0; i < n && going(); i++) {
                sum += in.readInt();
            }
        }
        return sum;
    }

    static void recordReader() throws IOException {
        File f = new File(dir, "records.bin");
        try (FileOutputStream out = new FileOutputStream(f)) {
            out.write(new byte[1 << 20]);
        }
        long files = 0;
        long sum = 0;
        while (going()) {
            sum += readRecords(f);
            files++;
        }
        System.out.println("files " + files + " (" + sum + ")");
    }

    // ---- V27: an accountant of the memory of queries ----

    static final class PerQueryCPUMemAccountant implements Runnable {
        final Map<Integer, List<byte[]>> queries = new HashMap<>();
        final AtomicLong panics = new AtomicLong();

        void triggeredActions() {
            Runtime r = Runtime.getRuntime();
            double used = (r.totalMemory() - r.freeMemory()) / (double) r.maxMemory();
            if (used > 0.25) {
                panicMode();
            }
        }

        void panicMode() {
            panics.incrementAndGet();
            if (!fixed) {
                System.gc();
            }
        }

        @Override
        public void run() {
            while (going()) {
                triggeredActions();
                try {
                    Thread.sleep(20);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
    }

    static long executeQuery(int n, List<Map<String, Integer>> segments) {
        long sum = 0;
        Map<String, Integer> groups = new HashMap<>();
        for (int i = 0; i < 2000; i++) {
            groups.merge("g" + (n * 31 + i) % 500, i, Integer::sum);
        }
        for (int v : groups.values()) {
            sum += v;
        }
        return sum + segments.get(n % segments.size()).size();
    }

    static void queryServer() throws Exception {
        List<Map<String, Integer>> segments = new ArrayList<>();
        for (int s = 0; s < 9; s++) {
            Map<String, Integer> m = new HashMap<>();
            for (int i = 0; i < 20000; i++) {
                m.put("segment" + s + "row" + i, i);
            }
            segments.add(m);
        }
        PerQueryCPUMemAccountant a = new PerQueryCPUMemAccountant();
        Thread t = new Thread(a, "CPUMemThreadAccountant");
        t.setDaemon(true);
        t.start();
        long n = 0;
        long sum = 0;
        while (going()) {
            sum += executeQuery((int) (n++ % 100000), segments);
        }
        System.out.println("queries " + n + ", panics " + a.panics.get() + " (" + sum + ")");
    }

    // ---- V28: a comparison of two lists of lines ----

    static final class MyersDiff {
        static int buildPath(List<String> orig, List<String> rev) {
            int n = orig.size();
            int m = rev.size();
            int max = n + m + 1;
            int[] v = new int[2 * max + 1];
            for (int d = 0; d < max; d++) {
                for (int k = -d; k <= d; k += 2) {
                    int i = k == -d || (k != d && v[max + k - 1] < v[max + k + 1]) ? v[max + k + 1] : v[max + k - 1] + 1;
                    int j = i - k;
                    while (i < n && j < m && orig.get(i).equals(rev.get(j))) {
                        i++;
                        j++;
                        if ((i & 255) == 0 && !going()) {
                            return -1;
                        }
                    }
                    v[max + k] = i;
                    if (i >= n && j >= m) {
                        return d;
                    }
                }
            }
            return -1;
        }
    }

    static void diffLines() {
        List<String> a = new LinkedList<>();
        List<String> b = new LinkedList<>();
        for (int i = 0; i < 20000; i++) {
            a.add("line number " + i);
            b.add(i % 9000 == 8999 ? "changed " + i : "line number " + i);
        }
        long n = 0;
        while (going()) {
            if (fixed) {
                MyersDiff.buildPath(new ArrayList<>(a), new ArrayList<>(b));
            } else {
                MyersDiff.buildPath(a, b);
            }
            if (going()) {
                n++;
            }
        }
        System.out.println("comparisons " + n);
    }

    // ---- V29: the date fields of mails ----

    static final class DateTimeFieldLenientImpl {
        static final String[] PATTERNS = {"EEE, dd MMM yy HH:mm:ss ZZZZ", "dd MMM yy HH:mm:ss ZZZZ", "EEE, dd MMM yy HH:mm:ss", "EEE, dd MMM yy HH:mm ZZZZ",
            "EEE, dd MMM yyyy HH:mm:ss Z"};
        static final DateTimeFormatter[] FORMATTERS = {DateTimeFormatter.RFC_1123_DATE_TIME};

        static Date parse(String body) {
            if (fixed) {
                for (DateTimeFormatter f : FORMATTERS) {
                    try {
                        return Date.from(ZonedDateTime.parse(body, f).toInstant());
                    } catch (DateTimeParseException e) {
                        continue;
                    }
                }
                return null;
            }
            for (int i = PATTERNS.length - 1; i >= 0; i--) {
                Date d = tryPattern(body, PATTERNS[PATTERNS.length - 1 - i]);
                if (d != null && i == 0) {
                    return d;
                }
            }
            return null;
        }

        private static Date tryPattern(String body, String pattern) {
            SimpleDateFormat f = new SimpleDateFormat(pattern, Locale.US);
            f.setTimeZone(TimeZone.getTimeZone("GMT"));
            f.setLenient(true);
            return f.parse(body, new ParsePosition(0));
        }
    }

    static void mailDates() {
        String[] bodies = new String[64];
        for (int i = 0; i < bodies.length; i++) {
            bodies[i] = String.format(Locale.US, "Wed, 16 Jul 2008 %02d:%02d:33 +0200", i % 24, i % 60);
        }
        long n = 0;
        long sum = 0;
        while (going()) {
            for (String b : bodies) {
                Date d = DateTimeFieldLenientImpl.parse(b);
                sum += d == null ? 0 : d.getTime() % 1000;
                n++;
            }
        }
        System.out.println("fields " + n + " (" + sum + ")");
    }

    // ---- V30: a runner of commands ----

    static int execUnsafe(String... cmd) throws Exception {
        Process p = new ProcessBuilder(cmd).redirectErrorStream(true).start();
        running = p;
        if (fixed) {
            Thread t = new Thread(() -> {
                try {
                    p.getInputStream().readAllBytes();
                } catch (IOException e) {
                    return;
                }
            });
            t.start();
        }
        p.waitFor(Long.MAX_VALUE, TimeUnit.MILLISECONDS);
        InputStream in = p.getInputStream();
        return fixed ? p.exitValue() : in.readAllBytes().length;
    }

    static volatile Process running;

    static void commandRunner() throws Exception {
        Thread t = new Thread(() -> {
            try {
                Thread.sleep((long) (secs * 1000));
            } catch (InterruptedException e) {
                return;
            }
            System.out.println("commands " + commands.get());
            System.out.flush();
            if (running != null) {
                running.toHandle().destroyForcibly();
            }
            Runtime.getRuntime().halt(0);
        }, "time");
        t.setDaemon(true);
        t.start();
        while (going()) {
            execUnsafe("seq", "1", "50000");
            commands.incrementAndGet();
        }
        t.join();
    }

    static final AtomicLong commands = new AtomicLong();

    public static void main(String[] args) throws Exception {
        if (args.length > 1) {
            secs = Double.parseDouble(args[1]);
        }
        if (args.length > 2) {
            dir = args[2];
        }
        fixed = args.length > 3 && args[3].equals("fixed");
        end = System.nanoTime() + (long) (secs * 1e9);
        switch (args.length > 0 ? args[0] : "") {
            case "hospital-reports": hospitalReports(); break;
            case "record-reader": recordReader(); break;
            case "query-server": queryServer(); break;
            case "diff-lines": diffLines(); break;
            case "mail-dates": mailDates(); break;
            case "command-runner": commandRunner(); break;
            default: System.exit(2);
        }
    }
}
