// Six programs after public reports, Java 17. Usage: java Eighth CASE SECONDS FOLDER
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public class Eighth {
    static long deadline;
    static File folder;

    static boolean working() {
        return System.nanoTime() < deadline;
    }

    static long left() {
        return Math.max(0, deadline - System.nanoTime());
    }

    static Thread daemon(Runnable work, String name) {
        Thread t = new Thread(work, name);
        t.setDaemon(true);
        t.start();
        return t;
    }

    // event-capture

    record LoggingEvent(String level, String message, long time) { }

    static class TestLogger {
        private final List<LoggingEvent> allLoggingEvents = new CopyOnWriteArrayList<>();

        void info(String message) {
            addLoggingEvent(new LoggingEvent("INFO", message, System.nanoTime()));
        }

        private void addLoggingEvent(LoggingEvent event) {
            allLoggingEvents.add(event);
        }
    }

    static long eventCapture() {
        long events = 0;
        while (working()) {
            TestLogger logger = new TestLogger();
            for (int i = 0; i < 60000 && working(); i++) {
                logger.info("cache entry written");
                events++;
            }
        }
        return events;
    }

    // war-unpack

    static class ZipUtils {
        static boolean validateFile(File targetDirectory, File targetFile) throws IOException {
            return targetFile.getCanonicalPath().startsWith(
                targetDirectory.getCanonicalPath() + File.separator);
        }

        static int unzip(List<String> entries, File target) throws IOException {
            int valid = 0;
            for (String entry : entries) {
                if (validateFile(target, new File(target, entry))) {
                    valid++;
                }
            }
            return valid;
        }
    }

    static long warUnpack() throws IOException {
        File target = new File(folder, "apps/expanded/shop.war/WEB-INF/classes");
        target.mkdirs();
        List<String> entries = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            entries.add("com/shop/view/part" + i % 20 + "/Page" + i + ".class");
        }
        for (int i = 0; i < 20; i++) {
            new File(target, "com/shop/view/part" + i).mkdirs();
        }
        long files = 0;
        while (working()) {
            files += ZipUtils.unzip(entries, target);
        }
        return files;
    }

    // thread-metrics

    static class HotThreadsMonitor {
        private final ThreadMXBean threadMXBean = ManagementFactory.getThreadMXBean();

        Map<Long, String> detect() {
            Map<Long, String> reports = new HashMap<>();
            for (long id : threadMXBean.getAllThreadIds()) {
                ThreadInfo info = threadMXBean.getThreadInfo(id, 50);
                if (info != null) {
                    reports.put(id, info.getThreadName() + info.getThreadState());
                }
            }
            return reports;
        }
    }

    static void filterWorker(CountDownLatch stop, int depth) throws InterruptedException {
        if (depth > 0) {
            filterWorker(stop, depth - 1);
        } else {
            stop.await();
        }
    }

    static long threadMetrics() {
        CountDownLatch stop = new CountDownLatch(1);
        for (int i = 0; i < 200; i++) {
            daemon(() -> {
                try {
                    filterWorker(stop, 40);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }, "pipeline-worker-" + i);
        }
        HotThreadsMonitor monitor = new HotThreadsMonitor();
        long polls = 0;
        while (working()) {
            monitor.detect();
            polls++;
        }
        stop.countDown();
        return polls;
    }

    // byte-store

    static class FileBytes {
        private final RandomAccessFile file;

        FileBytes(File path) throws IOException {
            file = new RandomAccessFile(path, "rw");
        }

        FileBytes write(long position, byte[] bytes) throws IOException {
            file.seek(position);
            for (byte b : bytes) {
                file.write(b);
            }
            return this;
        }
    }

    static long byteStore() throws IOException {
        FileBytes log = new FileBytes(new File(folder, "segment.log"));
        byte[] entry = new byte[256];
        long entries = 0;
        while (working()) {
            log.write(entries % 4096 * entry.length, entry);
            entries++;
        }
        return entries;
    }

    // kernel-executor

    static class TornadoExecutor {
        private final ExecutorService executor = Executors.newFixedThreadPool(4, r -> {
            Thread t = new Thread(r, "TornadoExecutorThread");
            t.setDaemon(true);
            return t;
        });

        <T> Future<T> submit(Callable<T> task) {
            return executor.submit(task);
        }

        int compile(int graph) throws Exception {
            Future<Integer> code = submit(() -> graph * 31);
            return code.get();
        }
    }

    static long kernelExecutor() throws InterruptedException {
        TornadoExecutor executor = new TornadoExecutor();
        AtomicLong kernels = new AtomicLong();
        Thread client = daemon(() -> {
            for (int round = 1; working(); round++) {
                List<Future<Integer>> graphs = new ArrayList<>();
                for (int i = 0; i < Math.min(round, 16); i++) {
                    int graph = i;
                    graphs.add(executor.submit(() -> {
                        Thread.sleep(2);
                        return executor.compile(graph);
                    }));
                }
                for (Future<Integer> graph : graphs) {
                    try {
                        graph.get();
                        kernels.incrementAndGet();
                    } catch (Exception e) {
                        return;
                    }
                }
            }
        }, "execution-plan");
        client.join(left() / 1000000 + 1);
        return kernels.get();
    }

    // dataset-annotate

    static class SameAsRetriever {
        private final Semaphore cacheSemaphore = new Semaphore(3);
        private final Map<String, String> uris = new HashMap<>();

        String retrieveSameURIs(String uri) throws InterruptedException {
            cacheSemaphore.acquire();
            String domain = extractDomain(uri);
            String same;
            synchronized (uris) {
                same = uris.computeIfAbsent(uri, u -> "http://" + domain + "/same");
            }
            cacheSemaphore.release();
            return same;
        }

        private String extractDomain(String uri) {
            int start = uri.indexOf("//");
            return uri.substring(start + 2, uri.indexOf('/', start + 2));
        }
    }

    static long datasetAnnotate() throws InterruptedException {
        SameAsRetriever retriever = new SameAsRetriever();
        AtomicLong documents = new AtomicLong();
        List<Thread> workers = new ArrayList<>();
        for (int w = 0; w < 6; w++) {
            int worker = w;
            workers.add(daemon(() -> {
                for (int i = 0; working(); i++) {
                    String path = (i + worker * 97) % 300 == 299 ? "" : "/resource/" + i % 200;
                    try {
                        retriever.retrieveSameURIs("http://dbpedia.org" + path);
                        documents.incrementAndGet();
                        Thread.sleep(0, 100000);
                    } catch (StringIndexOutOfBoundsException e) {
                        continue;
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }, "annotator-" + w));
        }
        for (Thread worker : workers) {
            worker.join(left() / 1000000 + 1);
        }
        return documents.get();
    }

    static void clear(File file) throws IOException {
        File[] inside = file.listFiles();
        if (inside != null) {
            for (File f : inside) {
                clear(f);
            }
        }
        Files.deleteIfExists(file.toPath());
    }

    public static void main(String[] args) throws Exception {
        folder = new File(args[2], args[0]);
        clear(folder);
        folder.mkdirs();
        double seconds = Double.parseDouble(args[1]);
        deadline = System.nanoTime() + (long) (seconds * TimeUnit.SECONDS.toNanos(1));
        String line = switch (args[0]) {
            case "event-capture" -> eventCapture() + " events";
            case "war-unpack" -> warUnpack() + " files";
            case "thread-metrics" -> threadMetrics() + " polls";
            case "byte-store" -> byteStore() + " entries";
            case "kernel-executor" -> kernelExecutor() + " kernels";
            case "dataset-annotate" -> datasetAnnotate() + " documents";
            default -> throw new IllegalArgumentException(args[0]);
        };
        System.out.println(args[0] + ": " + line);
        System.exit(0);
    }
}
