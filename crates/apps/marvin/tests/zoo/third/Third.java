// Programs from public reports (tests/outside/49-third-aside-compiled.md), in Java: each does
// steadily what its report describes, for some seconds: `java -Xmx64m -cp DIR Third NAME SECONDS DIR`.
// A fourth argument asks for the repaired form, to compare with.

import java.lang.reflect.Field;
import java.net.URI;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

public class Third {
    static long end;
    static boolean isRepaired;

    static boolean isOver() {
        return System.nanoTime() - end >= 0;
    }

    static void sleepToEnd() throws InterruptedException {
        Thread.sleep(Math.max(1, (end - System.nanoTime()) / 1000000));
    }

    // T24: threads that answer requests make tokens with the generator of a provider.

    static final class HybridSecureRandom {
        private final SecureRandom base;

        HybridSecureRandom() throws Exception {
            base = SecureRandom.getInstance("NativePRNGNonBlocking");
        }

        private final class EntropyGatherer implements Runnable {
            public void run() {
                base.generateSeed(20);
            }
        }

        // What gathers new entropy runs beside, and has little importance.
        byte[] getEntropy() {
            Thread gatherer = new Thread(new EntropyGatherer());
            gatherer.setDaemon(true);
            gatherer.setPriority(Thread.MIN_PRIORITY);
            gatherer.start();
            byte[] seed = new byte[20];
            base.nextBytes(seed);
            return seed;
        }
    }

    static final class SP800SecureRandom {
        private final HybridSecureRandom source;
        private final byte[] state = new byte[32];
        private int reseedCounter;

        SP800SecureRandom(HybridSecureRandom source) {
            this.source = source;
        }

        private void reseed() {
            byte[] entropy = source.getEntropy();
            for (int i = 0; i < entropy.length; i++) state[i] ^= entropy[i];
        }

        void nextBytes(byte[] bytes) {
            synchronized (this) {
                if (!isRepaired || ++reseedCounter % 100000 == 0) reseed();
                for (int i = 0; i < bytes.length; i++) {
                    state[i % 32] = (byte) (state[i % 32] * 31 + i);
                    bytes[i] = state[i % 32];
                }
            }
        }
    }

    static void issueTokens(Path dir) throws Exception {
        SP800SecureRandom random = new SP800SecureRandom(new HybridSecureRandom());
        AtomicLong tokens = new AtomicLong();
        for (int i = 0; i < 8; i++) {
            Thread executor = new Thread(() -> {
                byte[] token = new byte[16];
                while (!isOver()) {
                    random.nextBytes(token);
                    tokens.incrementAndGet();
                }
            }, "requestExecutor" + (240 + i));
            executor.setDaemon(true);
            executor.start();
        }
        sleepToEnd();
        System.err.println(tokens + " tokens");
    }

    // T25: an agent waits for the messages of its session.

    static final class Session extends Thread {
        final Queue<String> messages =
                isRepaired ? new LinkedBlockingQueue<>() : new ConcurrentLinkedQueue<>();
        volatile boolean running = true;
        long handled;

        Session() {
            super("session");
            setDaemon(true);
        }

        void handleMessage(String message) {
            handled += message.length();
        }

        @Override
        public void run() {
            while (running) {
                String message = null;
                if (messages instanceof LinkedBlockingQueue<String> queue) {
                    try {
                        message = queue.take();
                    } catch (InterruptedException e) {
                        return;
                    }
                } else {
                    message = messages.poll();
                }
                if (message != null) handleMessage(message);
            }
        }
    }

    static void agentSession(Path dir) throws Exception {
        Session session = new Session();
        session.start();
        while (!isOver()) {
            session.messages.add("reflect");
            Thread.sleep(100);
        }
        session.running = false;
        System.err.println(session.handled + " characters");
    }

    // T26: a scanner of sources asks its files for their URI with each issue and measure.

    static final class DefaultIndexedFile {
        private final Path absolutePath;
        private URI cached;

        DefaultIndexedFile(Path path) {
            absolutePath = path;
        }

        URI uri() {
            if (!isRepaired) return absolutePath.toUri();
            if (cached == null) cached = absolutePath.toUri();
            return cached;
        }
    }

    static void scanProject(Path dir) throws Exception {
        Path sources = Files.createDirectories(dir.resolve("project/src/main/php/service/controller"));
        List<DefaultIndexedFile> files = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            Path file = sources.resolve("File" + i + ".php");
            Files.writeString(file, "<?php\n");
            files.add(new DefaultIndexedFile(file.toAbsolutePath()));
        }
        Map<URI, Integer> issues = new HashMap<>();
        long measures = 0;
        while (!isOver()) {
            for (DefaultIndexedFile file : files) {
                for (int rule = 0; rule < 20; rule++) issues.merge(file.uri(), 1, Integer::sum);
                measures += 20;
            }
        }
        System.err.println(measures + " measures " + issues.size());
    }

    // T27: a store of preferences keeps its entries in a mapped file.

    static final class SafeBoxBlobStore {
        private final MappedByteBuffer buffer;
        private final Map<String, Integer> entries = new HashMap<>();
        private int next;

        SafeBoxBlobStore(Path path) throws Exception {
            try (FileChannel channel = FileChannel.open(path, StandardOpenOption.CREATE,
                    StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                buffer = channel.map(FileChannel.MapMode.READ_WRITE, 0, 1 << 16);
            }
        }

        void write(String key, byte[] value, boolean isLast) {
            Integer offset = entries.get(key);
            if (offset == null) {
                offset = next;
                next += 64;
                entries.put(key, offset);
            }
            buffer.position(offset);
            buffer.put(value);
            if (!isRepaired || isLast) buffer.force();
        }
    }

    static void savePreferences(Path dir) throws Exception {
        SafeBoxBlobStore store = new SafeBoxBlobStore(dir.resolve("preferences.bin"));
        long edits = 0;
        while (!isOver()) {
            for (int i = 0; i < 100 && !isOver(); i++) {
                byte[] value = ("value " + i + " of edit " + edits).getBytes(StandardCharsets.UTF_8);
                store.write("key" + i, value, i == 99);
            }
            edits++;
        }
        System.err.println(edits + " edits");
    }

    // T28: a viewer of heap dumps looks up threads by their serial number.

    static final class LongHashMap {
        private long[] table = new long[64];
        private int size;

        private static int hash(long x, int length) {
            int h = (int) (x ^ (x >>> 32));
            h ^= (h >>> 20) ^ (h >>> 12);
            h ^= (h >>> 7) ^ (h >>> 4);
            return h & (length - 2);
        }

        void put(long key, long value) {
            if (4 * ++size > 3 * table.length / 2) resize();
            insert(table, key, value);
        }

        private static void insert(long[] table, long key, long value) {
            int i = hash(key, table.length);
            while (table[i] != 0 && table[i] != key) i = i + 2 < table.length ? i + 2 : 0;
            table[i] = key;
            table[i + 1] = value;
        }

        private void resize() {
            long[] larger = new long[2 * table.length];
            for (int i = 0; i < table.length; i += 2)
                if (table[i] != 0) insert(larger, table[i], table[i + 1]);
            table = larger;
        }

        long get(long key) {
            long[] table = this.table;
            int i = hash(key, table.length);
            while (true) {
                if (table[i] == key) return table[i + 1];
                if (table[i] == 0) return -1;
                i = i + 2 < table.length ? i + 2 : 0;
            }
        }
    }

    static final class HprofGCRoots {
        final LongHashMap threadSerialMap = new LongHashMap();

        private static long keyOf(int serial) {
            return isRepaired ? 2L * serial : serial;
        }

        HprofGCRoots(int threads) {
            for (int i = 1; i <= threads; i++) threadSerialMap.put(keyOf(i), i);
        }

        long getThreadGCRoot(int threadSerialNumber) {
            return threadSerialMap.get(keyOf(threadSerialNumber));
        }
    }

    static void viewHeap(Path dir) {
        HprofGCRoots roots = new HprofGCRoots(40000);
        long frames = 0, sum = 0;
        int serial = 1;
        while (!isOver()) {
            for (int i = 0; i < 100; i++) {
                sum += roots.getThreadGCRoot(serial);
                serial = serial % 40000 + 1;
            }
            frames += 100;
        }
        System.err.println(frames + " frames " + sum);
    }

    // T29: a debugger reads fields of objects that its probes have named.

    static class Processor {
        protected String id = "grok";
    }

    static class SynchronousProcessor extends Processor {}

    static class GrokProcessor extends SynchronousProcessor {}

    static final class ReflectiveFieldValueResolver {
        static Field getField(Class<?> container, String name) {
            while (container != null) {
                if (isRepaired) {
                    for (Field field : container.getDeclaredFields())
                        if (field.getName().equals(name)) return field;
                } else {
                    try {
                        return container.getDeclaredField(name);
                    } catch (NoSuchFieldException e) {
                        // It can be in the class above.
                    }
                }
                container = container.getSuperclass();
            }
            return null;
        }

        static Object resolve(Object target, String name) throws Exception {
            Field field = getField(target.getClass(), name);
            field.setAccessible(true);
            return field.get(target);
        }
    }

    static long captureSnapshot(Object target, int depth) throws Exception {
        // The probe is in a method of the program, below its frames.
        if (depth > 0) return captureSnapshot(target, depth - 1) + 1;
        return ((String) ReflectiveFieldValueResolver.resolve(target, "id")).length();
    }

    static void readFields(Path dir) throws Exception {
        GrokProcessor processor = new GrokProcessor();
        long snapshots = 0, sum = 0;
        while (!isOver()) {
            sum += captureSnapshot(processor, 20);
            snapshots++;
        }
        System.err.println(snapshots + " snapshots " + sum);
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 3) System.exit(2);
        end = System.nanoTime() + (long) (Double.parseDouble(arguments[1]) * 1e9);
        isRepaired = arguments.length > 3;
        Path dir = Path.of(arguments[2]);
        switch (arguments[0]) {
            case "issue-tokens" -> issueTokens(dir);
            case "agent-session" -> agentSession(dir);
            case "scan-project" -> scanProject(dir);
            case "save-preferences" -> savePreferences(dir);
            case "view-heap" -> viewHeap(dir);
            case "read-fields" -> readFields(dir);
            default -> System.exit(2);
        }
    }
}
