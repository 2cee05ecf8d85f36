import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/** Five programs after public reports, one of them per run: CASE SECONDS FOLDER [fixed]. */
public class Seventh {
    static long deadline;
    static boolean fixed;
    static Path folder;

    static boolean timeLeft() {
        return System.nanoTime() < deadline;
    }

    static void finishAt(java.util.function.Supplier<String> line) throws Exception {
        long ms = Math.max(1, (deadline - System.nanoTime()) / 1_000_000);
        Thread.sleep(ms);
        System.out.println(line.get());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    // ---- request-spans: each request gets a span with a name of its parts ----

    static class OperationNameProvider {
        String operationName(String method, String classPath, String methodPath) {
            if (fixed) {
                return method + ":" + classPath + "/" + methodPath;
            }
            return String.format("%s:%s/%s", method, classPath, methodPath);
        }
    }

    static class SpanDecorator {
        String url(String scheme, String host, int port, String path) {
            if (fixed) {
                return scheme + "://" + host + ":" + port + path;
            }
            return String.format("%s://%s:%d%s", scheme, host, port, path);
        }
    }

    static void requestSpans() {
        OperationNameProvider names = new OperationNameProvider();
        SpanDecorator decorator = new SpanDecorator();
        String[] methods = {"GET", "POST", "PUT"};
        long spans = 0;
        long size = 0;
        while (timeLeft()) {
            for (int i = 0; i < 200; i++) {
                String name = names.operationName(methods[i % 3], "customers", "{id}");
                String url = decorator.url("http", "localhost", 8080 + i % 2, "/customers/7");
                size += name.length() + url.length();
                spans++;
            }
        }
        System.out.println("request-spans: " + spans + " spans, " + size + " characters");
    }

    // ---- json-query: paths are looked up in documents; some lead nowhere ----

    static class PathNotFoundException extends RuntimeException {
        private static final long serialVersionUID = 1;

        PathNotFoundException(String message) {
            super(message);
        }

        @Override
        public synchronized Throwable fillInStackTrace() {
            return fixed ? this : super.fillInStackTrace();
        }
    }

    static class PropertyPathToken {
        final String property;
        final PropertyPathToken next;

        PropertyPathToken(String property, PropertyPathToken next) {
            this.property = property;
            this.next = next;
        }

        Object evaluate(Object model) {
            if (!(model instanceof Map<?, ?> map) || !map.containsKey(property)) {
                throw new PathNotFoundException(property);
            }
            Object value = map.get(property);
            return next == null ? value : next.evaluate(value);
        }
    }

    static class CompiledPath {
        final PropertyPathToken root;

        CompiledPath(String... properties) {
            PropertyPathToken token = null;
            for (int i = properties.length - 1; i >= 0; i--) {
                token = new PropertyPathToken(properties[i], token);
            }
            root = token;
        }

        Object read(Object document) {
            try {
                return root.evaluate(document);
            } catch (PathNotFoundException e) {
                return null;
            }
        }
    }

    static long readDocuments(CompiledPath[] paths, Object document, int depth) {
        if (depth > 0) {
            return readDocuments(paths, document, depth - 1);
        }
        long found = 0;
        for (CompiledPath path : paths) {
            if (path.read(document) != null) {
                found++;
            }
        }
        return found;
    }

    static void jsonQuery() {
        Map<String, Object> user = new HashMap<>(Map.of("name", "anna", "age", 31));
        Map<String, Object> document = new HashMap<>(Map.of("user", user));
        CompiledPath[] paths = {
            new CompiledPath("user", "name"), new CompiledPath("user", "address", "city"),
            new CompiledPath("user", "address", "zip"), new CompiledPath("user", "phone"),
        };
        long reads = 0;
        long found = 0;
        while (timeLeft()) {
            for (int i = 0; i < 50; i++) {
                found += readDocuments(paths, document, 24);
                reads += paths.length;
            }
        }
        System.out.println("json-query: " + reads + " reads, " + found + " found");
    }

    // ---- task-queue: requests of several users are served in a fair order ----

    static class WFQTask implements Runnable {
        final long virtualTime;
        final Runnable work;

        WFQTask(long virtualTime, Runnable work) {
            this.virtualTime = virtualTime;
            this.work = work;
        }

        @Override
        public void run() {
            work.run();
        }
    }

    static class WFQTaskQueue {
        final Comparator<WFQTask> order = Comparator.comparingLong(t -> t.virtualTime);
        final Queue<WFQTask> queue = new PriorityQueue<>(order);
        final PriorityBlockingQueue<WFQTask> blocking = new PriorityBlockingQueue<>(64, order);

        void add(WFQTask task) {
            if (fixed) {
                blocking.add(task);
                return;
            }
            synchronized (queue) {
                queue.add(task);
            }
        }

        WFQTask getTask() throws InterruptedException {
            if (fixed) {
                return blocking.take();
            }
            synchronized (queue) {
                return queue.poll();
            }
        }
    }

    static class WorkerThread extends Thread {
        final WFQTaskQueue tasks;

        WorkerThread(WFQTaskQueue tasks, int i) {
            super("apiary-worker-" + i);
            this.tasks = tasks;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                while (true) {
                    WFQTask task = tasks.getTask();
                    if (task != null) {
                        task.run();
                    }
                }
            } catch (InterruptedException e) {
                interrupt();
            }
        }
    }

    static void taskQueue() throws Exception {
        WFQTaskQueue tasks = new WFQTaskQueue();
        AtomicLong served = new AtomicLong();
        for (int i = 0; i < 2; i++) {
            new WorkerThread(tasks, i).start();
        }
        long sent = 0;
        while (timeLeft()) {
            tasks.add(new WFQTask(sent++, served::incrementAndGet));
            Thread.sleep(20);
        }
        long ms = ProcessHandle.current().info().totalCpuDuration().get().toMillis();
        System.out.println("task-queue: " + served + " served, " + ms + " ms of processor");
    }

    // ---- object-loader: a map is rebuilt from checkpoints; the layout is asked for ----

    static class CorfuRuntime {
        final ExecutorService layoutPool = Executors.newFixedThreadPool(1, r -> {
            Thread t = new Thread(r, "layout");
            t.setDaemon(true);
            return t;
        });

        CompletableFuture<String> fetchLayout(CountDownLatch arrived) {
            CompletableFuture<String> layout = new CompletableFuture<>();
            Executor pool = fixed ? layoutPool : ForkJoinPool.commonPool();
            pool.execute(() -> {
                layout.complete("layout of epoch 4");
                arrived.countDown();
            });
            return layout;
        }

        String invalidateLayout() {
            CountDownLatch arrived = new CountDownLatch(1);
            CompletableFuture<String> layout = fetchLayout(arrived);
            try {
                arrived.await();
                return layout.get();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static class FastObjectLoader {
        final CorfuRuntime runtime = new CorfuRuntime();
        final AtomicLong loaded = new AtomicLong();

        void resurrectCheckpoint(String stream) {
            if (runtime.invalidateLayout().length() > stream.length()) {
                loaded.incrementAndGet();
            }
        }

        void resurrectCheckpoints(List<String> streams) {
            streams.parallelStream().forEach(this::resurrectCheckpoint);
        }
    }

    static void objectLoader() throws Exception {
        FastObjectLoader loader = new FastObjectLoader();
        List<String> streams = new ArrayList<>();
        for (int i = 0; i < 64; i++) {
            streams.add("map" + i);
        }
        Thread load = new Thread(() -> {
            while (true) {
                loader.resurrectCheckpoints(streams);
            }
        }, "loader");
        load.setDaemon(true);
        load.start();
        finishAt(() -> "object-loader: " + loader.loaded + " checkpoints");
    }

    // ---- form-parts: the body of a request is cut into its parts ----

    static class RqMultipart {
        final InputStream body;
        final byte[] boundary;

        RqMultipart(InputStream body, String boundary) {
            this.body = body;
            this.boundary = boundary.getBytes(StandardCharsets.US_ASCII);
        }

        int parts() throws IOException {
            return fixed ? partsOfBlocks() : partsOfStream();
        }

        int partsOfStream() throws IOException {
            int parts = 0;
            int match = 0;
            while (true) {
                int data = body.read();
                if (data < 0) {
                    return parts;
                }
                match = data == boundary[match] ? match + 1 : data == boundary[0] ? 1 : 0;
                if (match == boundary.length) {
                    parts++;
                    match = 0;
                }
            }
        }

        int partsOfBlocks() throws IOException {
            byte[] buf = new byte[8192];
            int parts = 0;
            int match = 0;
            int n;
            while ((n = body.read(buf)) > 0) {
                for (int i = 0; i < n; i++) {
                    int data = buf[i];
                    match = data == boundary[match] ? match + 1 : data == boundary[0] ? 1 : 0;
                    if (match == boundary.length) {
                        parts++;
                        match = 0;
                    }
                }
            }
            return parts;
        }
    }

    static void formParts() throws IOException {
        Path file = folder.resolve("body");
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 40; i++) {
            text.append("--AaB03x\r\nContent-Disposition: form-data; name=\"f").append(i);
            text.append("\"\r\n\r\n").append("some text of a form ".repeat(50)).append("\r\n");
        }
        Files.writeString(file, text);
        long bodies = 0;
        long parts = 0;
        while (timeLeft()) {
            try (InputStream in = new FileInputStream(file.toFile())) {
                parts += new RqMultipart(in, "--AaB03x").parts();
            }
            bodies++;
        }
        System.out.println("form-parts: " + bodies + " bodies, " + parts + " parts");
    }

    interface Case {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            System.err.println("usage: case seconds folder [fixed]");
            System.exit(2);
        }
        deadline = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        folder = Path.of(args[2], args[0]);
        Files.createDirectories(folder);
        fixed = args.length > 3 && args[3].equals("fixed");
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("request-spans", Seventh::requestSpans);
        cases.put("json-query", Seventh::jsonQuery);
        cases.put("task-queue", Seventh::taskQueue);
        cases.put("object-loader", Seventh::objectLoader);
        cases.put("form-parts", Seventh::formParts);
        Case chosen = cases.get(args[0]);
        if (chosen == null) {
            System.err.println("no case " + args[0] + " of " + Arrays.asList(cases.keySet()));
            System.exit(2);
        }
        chosen.run();
    }
}
