import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Five small programs after public reports: Sixth NAME SECONDS FOLDER [fixed]. */
public class Sixth {
    static long endTime;
    static boolean fixed;
    static Path folder;

    static boolean running() {
        return System.nanoTime() < endTime;
    }

    static void runThreads(int count, Runnable body) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(body, "http-worker-" + i);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    // ------------------------------------------------------------ dev-server

    static class FileWatcher {
        private final Path path;
        private final Executor executor;
        private volatile long changes;

        FileWatcher(Path path, Executor executor) {
            this.path = path;
            this.executor = executor;
        }

        void start() {
            executor.execute(this::watch);
        }

        private void watch() {
            try {
                long last = Files.getLastModifiedTime(path).toMillis();
                while (running()) {
                    Thread.sleep(250);
                    long modified = Files.getLastModifiedTime(path).toMillis();
                    if (modified != last) {
                        changes++;
                    }
                    last = modified;
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static class BundleHandler {
        int handleRequest(int number) throws Exception {
            CompletableFuture<Integer> stats = new CompletableFuture<>();
            ForkJoinPool.commonPool().execute(() -> stats.complete(loadStats(number)));
            return stats.get(30, TimeUnit.SECONDS);
        }

        private int loadStats(int number) {
            int sum = 0;
            for (int i = 0; i < 20000; i++) {
                sum += (i ^ number) % 7;
            }
            return sum;
        }
    }

    static void devServer() throws Exception {
        ExecutorService own = Executors.newCachedThreadPool(Sixth::daemon);
        Executor executor = fixed ? own : ForkJoinPool.commonPool();
        int folders = Runtime.getRuntime().availableProcessors() + 2;
        for (int i = 0; i < folders; i++) {
            new FileWatcher(folder, executor).start();
        }
        AtomicInteger served = new AtomicInteger();
        Thread server = daemon(() -> {
            BundleHandler handler = new BundleHandler();
            try {
                while (running()) {
                    handler.handleRequest(served.get());
                    served.incrementAndGet();
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        server.setName("http-worker");
        server.start();
        while (running()) {
            server.join(Math.max(1, (endTime - System.nanoTime()) / 1000000));
        }
        System.out.println("served " + served);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static Thread daemon(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        return thread;
    }

    // ------------------------------------------------------------ risk-sampler

    record Pair<K, V>(K key, V value) {}

    static class EnumeratedDistribution<T> {
        private final List<T> singletons;
        private final double[] probabilities;

        EnumeratedDistribution(List<Pair<T, Double>> pmf) {
            singletons = new ArrayList<>(pmf.size());
            probabilities = new double[pmf.size()];
            if (fixed) {
                int at = 0;
                for (Pair<T, Double> sample : pmf) {
                    singletons.add(sample.key());
                    probabilities[at++] = sample.value();
                }
                return;
            }
            for (int i = 0; i < pmf.size(); i++) {
                Pair<T, Double> sample = pmf.get(i);
                singletons.add(sample.key());
                probabilities[i] = sample.value();
            }
        }

        double total() {
            double sum = 0;
            for (double p : probabilities) {
                sum += p;
            }
            return sum;
        }
    }

    static void riskSampler() {
        List<Pair<Integer, Double>> pmf = new LinkedList<>();
        for (int i = 0; i < 8000; i++) {
            pmf.add(new Pair<>(i, 1.0 / 8000));
        }
        long built = 0;
        double total = 0;
        while (running()) {
            total += new EnumeratedDistribution<>(pmf).total();
            built++;
        }
        System.out.println("distributions " + built + " " + Math.round(total / built));
    }

    // ------------------------------------------------------------ session-cache

    static class StatefulConnection {
        private final GenericObjectPool pool;
        private final Map<String, String> values = new HashMap<>();

        StatefulConnection(GenericObjectPool pool) {
            this.pool = pool;
        }

        String get(String key) {
            return values.computeIfAbsent(key, k -> "value of " + k);
        }

        void close() {
            if (pool != null) {
                pool.returnObject(this);
            }
        }
    }

    static class GenericObjectPool {
        private final LinkedBlockingDeque<StatefulConnection> idle = new LinkedBlockingDeque<>();
        private final AtomicInteger created = new AtomicInteger();
        private final int maxTotal = 8;

        StatefulConnection borrowObject(long borrowMaxWaitMillis) throws InterruptedException {
            StatefulConnection connection = idle.pollFirst();
            if (connection == null && created.get() < maxTotal) {
                if (created.incrementAndGet() <= maxTotal) {
                    return new StatefulConnection(fixed ? this : null);
                }
            }
            if (connection == null) {
                connection = idle.pollFirst(borrowMaxWaitMillis, TimeUnit.MILLISECONDS);
            }
            if (connection == null) {
                throw new NoSuchElementException("Timeout waiting for idle object");
            }
            return connection;
        }

        void returnObject(StatefulConnection connection) {
            idle.addFirst(connection);
        }
    }

    static void sessionCache() throws InterruptedException {
        GenericObjectPool pool = new GenericObjectPool();
        AtomicLong lookups = new AtomicLong();
        AtomicLong failed = new AtomicLong();
        runThreads(6, () -> {
            while (running()) {
                try {
                    StatefulConnection connection = pool.borrowObject(1000);
                    connection.get("session:" + lookups.get() % 50);
                    connection.close();
                    lookups.incrementAndGet();
                } catch (NoSuchElementException e) {
                    failed.incrementAndGet();
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        System.out.println("lookups " + lookups + " failed " + failed);
    }

    // ------------------------------------------------------------ order-export

    interface Converter {
        int marshal(int value);
    }

    static class DefaultConverterLookup {
        private final Map<Class<?>, Converter> typeToConverterMap =
                fixed
                        ? new ConcurrentHashMap<>()
                        : Collections.synchronizedMap(new HashMap<>());

        Converter lookupConverterForType(Class<?> type) {
            Converter cached = typeToConverterMap.get(type);
            if (cached != null) {
                return cached;
            }
            int weight = type.getName().length();
            Converter converter = value -> value * 31 + weight;
            typeToConverterMap.put(type, converter);
            return converter;
        }
    }

    static class TreeMarshaller {
        private final DefaultConverterLookup converterLookup;
        private int out;

        TreeMarshaller(DefaultConverterLookup converterLookup) {
            this.converterLookup = converterLookup;
        }

        void convertAnother(Class<?> type, int value) {
            out += converterLookup.lookupConverterForType(type).marshal(value);
        }
    }

    static void orderExport() throws InterruptedException {
        DefaultConverterLookup lookup = new DefaultConverterLookup();
        Class<?>[] types = {
            String.class, Integer.class, ArrayList.class, HashMap.class, Long.class, Path.class
        };
        AtomicLong fields = new AtomicLong();
        AtomicLong sum = new AtomicLong();
        runThreads(8, () -> {
            TreeMarshaller marshaller = new TreeMarshaller(lookup);
            long done = 0;
            while (running()) {
                for (int i = 0; i < 100; i++) {
                    marshaller.convertAnother(types[i % types.length], i);
                }
                done += 100;
            }
            fields.addAndGet(done);
            sum.addAndGet(marshaller.out);
        });
        System.out.println("fields " + fields + " " + (sum.get() != 0));
    }

    // ------------------------------------------------------------ project-watcher

    static class DefaultWatcher {
        private final WatchService watchService;
        private long events;

        DefaultWatcher(Path root) throws Exception {
            watchService = FileSystems.getDefault().newWatchService();
            root.register(watchService, StandardWatchEventKinds.ENTRY_CREATE);
        }

        void eventLoop() throws InterruptedException {
            while (running()) {
                WatchKey key = fixed ? watchService.take() : watchService.poll();
                if (key == null) {
                    continue;
                }
                events += key.pollEvents().size();
                key.reset();
            }
        }
    }

    static void projectWatcher() throws Exception {
        Path root = Files.createDirectories(folder.resolve("project"));
        DefaultWatcher watcher = new DefaultWatcher(root);
        Thread thread = daemon(() -> {
            try {
                watcher.eventLoop();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        thread.setName("file-watcher");
        thread.start();
        int saved = 0;
        while (running()) {
            Path file = root.resolve("Main" + saved++ + ".enso");
            Files.writeString(file, "main = 1");
            Thread.sleep(200);
            Files.delete(file);
        }
        System.out.println("saved " + saved + " events " + watcher.events);
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            System.exit(2);
        }
        endTime = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        folder = Path.of(args[2]);
        fixed = args.length > 3 && args[3].equals("fixed");
        switch (args[0]) {
            case "dev-server" -> devServer();
            case "risk-sampler" -> riskSampler();
            case "session-cache" -> sessionCache();
            case "order-export" -> orderExport();
            case "project-watcher" -> projectWatcher();
            default -> System.exit(2);
        }
    }
}
