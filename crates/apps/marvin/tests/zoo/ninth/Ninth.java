// Ninth.java: six small programs for the JVM, chosen by the first argument; each runs for SECONDS
// below FOLDER/CASE and then prints one line.

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InterfaceAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;

public class Ninth {
    static String name;
    static long end;
    static final AtomicLong things = new AtomicLong();

    static boolean over() {
        return System.nanoTime() - end >= 0;
    }

    static void finish() {
        System.out.println(name + ": " + things.get() + " things");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void exitAtEnd() {
        Thread t = new Thread(() -> {
            try {
                Thread.sleep(Math.max(0, (end - System.nanoTime()) / 1_000_000));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            finish();
        }, "deadline");
        t.setDaemon(true);
        t.start();
    }

    // ---- event-bus ----

    static class EventBus {
        private final Map<Class<?>, List<Consumer<Object>>> handlers = new HashMap<>();
        private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

        void register(Class<?> type, Consumer<Object> listener) {
            lock.writeLock().lock();
            try {
                List<Consumer<Object>> list = new ArrayList<>(
                    handlers.getOrDefault(type, List.of()));
                list.add(listener);
                handlers.put(type, list);
            } finally {
                lock.writeLock().unlock();
            }
        }

        void post(Object event) {
            lock.readLock().lock();
            try {
                for (Consumer<Object> h : handlers.getOrDefault(event.getClass(), List.of())) {
                    h.accept(event);
                }
            } finally {
                lock.readLock().unlock();
            }
        }
    }

    static void eventBus() {
        exitAtEnd();
        EventBus bus = new EventBus();
        bus.register(Integer.class, e -> things.incrementAndGet());
        bus.register(Integer.class, e -> {
            if ((Integer) e == 50) {
                bus.register(String.class, s -> things.incrementAndGet());
            }
        });
        for (int i = 0; i < 100; i++) {
            bus.post(i);
        }
        finish();
    }

    // ---- boot-service ----

    static class ServiceStarter {
        private final ExecutorService executor = Executors.newFixedThreadPool(3, r -> {
            Thread t = new Thread(r, "service");
            t.setDaemon(true);
            return t;
        });
        private final CountDownLatch latch;

        ServiceStarter(int services) {
            latch = new CountDownLatch(services);
        }

        void start(String service, Map<String, String> config) {
            executor.submit(() -> {
                int port = Integer.parseInt(config.get(service).trim());
                things.addAndGet(port > 0 ? 1 : 0);
                latch.countDown();
            });
        }

        void awaitServices() throws InterruptedException {
            latch.await();
        }
    }

    static void bootService() throws InterruptedException {
        exitAtEnd();
        Map<String, String> config = new HashMap<>();
        for (int i = 0; i < 20; i++) {
            if (i != 13) {
                config.put("service-" + i, " " + (8000 + i));
            }
        }
        ServiceStarter starter = new ServiceStarter(20);
        for (int i = 0; i < 20; i++) {
            starter.start("service-" + i, config);
        }
        starter.awaitServices();
        finish();
    }

    // ---- dht-node ----

    static class AddressUtils {
        static List<InetAddress> getAvailableGloballyRoutableAddrs() throws SocketException {
            List<InetAddress> out = new ArrayList<>();
            for (NetworkInterface i : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                for (InterfaceAddress a : i.getInterfaceAddresses()) {
                    InetAddress addr = a.getAddress();
                    if (!addr.isLinkLocalAddress() || addr instanceof Inet6Address) {
                        out.add(addr);
                    }
                }
            }
            return out;
        }
    }

    static class ServerManager {
        private List<InetAddress> bound = List.of();

        void doBindChecks() throws SocketException {
            List<InetAddress> now = AddressUtils.getAvailableGloballyRoutableAddrs();
            if (!now.equals(bound)) {
                bound = now;
            }
            things.incrementAndGet();
        }
    }

    static void dhtNode() throws SocketException {
        ServerManager manager = new ServerManager();
        while (!over()) {
            manager.doBindChecks();
        }
        finish();
    }

    // ---- async-func ----

    static class AsyncFunc<X, Y> {
        private final Function<X, Y> func;

        AsyncFunc(Function<X, Y> func) {
            this.func = func;
        }

        Future<Y> apply(X input) {
            FutureTask<Y> task = new FutureTask<>(() -> func.apply(input));
            new Thread(task).start();
            return task;
        }
    }

    static void asyncFunc() throws InterruptedException, ExecutionException {
        AsyncFunc<Integer, Integer> length = new AsyncFunc<>(i -> Integer.toString(i).length());
        long sum = 0;
        for (int i = 0; !over(); i++) {
            sum += length.apply(i).get();
            things.incrementAndGet();
        }
        if (sum == 1) {
            things.incrementAndGet();
        }
        finish();
    }

    // ---- recipe-plugin ----

    static final class ItemStack {
        final String item;
        final int damage;

        ItemStack(String item, int damage) {
            this.item = item;
            this.damage = damage;
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof ItemStack s && s.damage == damage && s.item.equals(item);
        }

        @Override
        public int hashCode() {
            return Objects.hash(item, damage);
        }
    }

    static class AssemblyTableHandler {
        private final List<ItemStack> known = new ArrayList<>();

        void loadRecipes(int count) {
            for (int i = 0; i < count && !over(); i++) {
                ItemStack stack = new ItemStack("block_" + i / 2, i / 2 % 16);
                if (!known.contains(stack)) {
                    known.add(stack);
                }
                things.incrementAndGet();
            }
        }
    }

    static void recipePlugin() {
        while (!over()) {
            new AssemblyTableHandler().loadRecipes(40000);
        }
        finish();
    }

    // ---- doc-copy ----

    static class Run implements Serializable {
        private static final long serialVersionUID = 1;
        String text;
        boolean bold;
        Map<String, String> props = new HashMap<>();
    }

    static class Paragraph implements Serializable {
        private static final long serialVersionUID = 1;
        String style;
        List<Run> runs = new ArrayList<>();
    }

    static class XmlUtils {
        @SuppressWarnings("unchecked")
        static <T extends Serializable> T deepCopy(T value) {
            try {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                    out.writeObject(value);
                }
                try (ObjectInputStream in = new ObjectInputStream(
                        new ByteArrayInputStream(bytes.toByteArray()))) {
                    return (T) in.readObject();
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            } catch (ClassNotFoundException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static void docCopy() {
        Paragraph template = new Paragraph();
        template.style = "Normal";
        for (int i = 0; i < 8; i++) {
            Run run = new Run();
            run.text = "text of run " + i;
            run.bold = i % 2 == 0;
            run.props.put("lang", "en");
            run.props.put("size", "11");
            template.runs.add(run);
        }
        while (!over()) {
            Paragraph p = XmlUtils.deepCopy(template);
            p.runs.get(0).text = "row " + things.incrementAndGet();
        }
        finish();
    }

    static void makeDir(Path dir) throws IOException {
        if (Files.exists(dir)) {
            try (Stream<Path> all = Files.walk(dir)) {
                for (Path p : all.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(p);
                }
            }
        }
        Files.createDirectories(dir);
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            System.exit(2);
        }
        name = args[0];
        makeDir(Path.of(args[2], name));
        end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        switch (name) {
            case "event-bus" -> eventBus();
            case "boot-service" -> bootService();
            case "dht-node" -> dhtNode();
            case "async-func" -> asyncFunc();
            case "recipe-plugin" -> recipePlugin();
            case "doc-copy" -> docCopy();
            default -> System.exit(2);
        }
    }
}
