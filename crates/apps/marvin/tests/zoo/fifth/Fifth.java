// Programs after public reports, Y25 to Y30: see REPORTS.md.
import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.text.FieldPosition;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Date;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;

public class Fifth {
    static long endAt;
    static String scratch;
    static boolean repaired;

    static boolean running() {
        return System.nanoTime() < endAt;
    }

    // ---- Y25 request-log: the request log of a web server ----

    static class DateCache {
        private final SimpleDateFormat tzFormat =
                new SimpleDateFormat("dd/MMM/yyyy:HH:mm:ss Z", Locale.US);
        private final Date date = new Date();
        private final StringBuffer text = new StringBuffer();
        private volatile long tickSecond;
        private volatile String tickString;

        DateCache() {
            tzFormat.setTimeZone(TimeZone.getTimeZone("GMT"));
        }

        String format(long inDate) {
            synchronized (this) {
                date.setTime(inDate);
                text.setLength(0);
                return tzFormat.format(date, text, new FieldPosition(0)).toString();
            }
        }

        String formatNow(long now) {
            String s = tickString;
            if (s == null || tickSecond != now / 1000) {
                s = format(now);
                tickString = s;
                tickSecond = now / 1000;
            }
            return s;
        }
    }

    static class AbstractNCSARequestLog {
        final DateCache logDateCache = new DateCache();

        int log(StringBuilder buf, String uri, int status) {
            buf.setLength(0);
            buf.append("127.0.0.1 - - [");
            long time = System.currentTimeMillis();
            buf.append(repaired ? logDateCache.formatNow(time) : logDateCache.format(time));
            buf.append("] \"GET ").append(uri).append(" HTTP/1.1\" ").append(status);
            return buf.length();
        }
    }

    static void requestLog() throws Exception {
        AbstractNCSARequestLog log = new AbstractNCSARequestLog();
        AtomicLong requests = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            Thread th = new Thread(() -> {
                StringBuilder buf = new StringBuilder();
                long n = 0;
                while (running()) {
                    for (int i = 0; i < 50; i++) {
                        n += log.log(buf, "/item/" + i, 200) > 0 ? 1 : 0;
                    }
                }
                requests.addAndGet(n);
            }, "qtp-" + t);
            th.start();
            threads.add(th);
        }
        for (Thread th : threads) {
            th.join();
        }
        System.out.println("requests " + requests);
    }

    // ---- Y26 message-pack: strings packed into a file ----

    static class MessagePacker {
        private final OutputStream out;
        private final byte[] buffer = new byte[16];
        private int position;

        MessagePacker(OutputStream out) {
            this.out = out;
        }

        private void flushBuffer() throws IOException {
            out.write(buffer, 0, position);
            position = 0;
        }

        private void packRawStringHeader(int len) {
            if (len < 32) {
                buffer[position++] = (byte) (0xa0 | len);
            } else {
                buffer[position++] = (byte) 0xd9;
                buffer[position++] = (byte) len;
            }
        }

        private void writePayload(byte[] payload) throws IOException {
            flushBuffer();
            out.write(payload, 0, payload.length);
        }

        MessagePacker packString(String s) throws IOException {
            byte[] encoded = s.getBytes(StandardCharsets.UTF_8);
            packRawStringHeader(encoded.length);
            writePayload(encoded);
            return this;
        }

        void close() throws IOException {
            out.close();
        }
    }

    static void messagePack() throws IOException {
        long strings = 0;
        long files = 0;
        while (running()) {
            OutputStream file = new FileOutputStream(new File(scratch, "x.bin"));
            MessagePacker packer =
                    new MessagePacker(repaired ? new BufferedOutputStream(file) : file);
            for (int i = 0; i < 500000 && (i % 1000 != 0 || running()); i++) {
                packer.packString("0123456789");
                strings++;
            }
            packer.close();
            files++;
        }
        System.out.println("strings " + strings + ", files " + files);
    }

    // ---- Y27 class-resolver: which jar has the classes of an import ----

    static class TypesLoadingVisitor {
        private final List<File> classPath;
        private final Map<File, List<String>> cache = new HashMap<>();

        TypesLoadingVisitor(List<File> classPath) {
            this.classPath = classPath;
        }

        private List<String> scanJar(File jar) throws IOException {
            List<String> names = new ArrayList<>();
            try (JarFile file = new JarFile(jar)) {
                for (Enumeration<JarEntry> e = file.entries(); e.hasMoreElements(); ) {
                    String name = e.nextElement().getName();
                    if (name.endsWith(".class")) {
                        names.add(name.substring(0, name.length() - 6).replace('/', '.'));
                    }
                }
            }
            return names;
        }

        private List<String> classNames(File jar) throws IOException {
            if (!repaired) {
                return scanJar(jar);
            }
            List<String> names = cache.get(jar);
            if (names == null) {
                names = scanJar(jar);
                cache.put(jar, names);
            }
            return names;
        }

        int loadClassesFromPackage(String packageName) throws IOException {
            int n = 0;
            for (File jar : classPath) {
                for (String name : classNames(jar)) {
                    if (name.startsWith(packageName)
                            && name.lastIndexOf('.') == packageName.length()) {
                        n++;
                    }
                }
            }
            return n;
        }
    }

    static void classResolver() throws Exception {
        List<File> jars = new ArrayList<>();
        for (int j = 0; j < 80; j++) {
            File jar = new File(scratch, "library" + j + ".jar");
            try (JarOutputStream out = new JarOutputStream(
                    new BufferedOutputStream(new FileOutputStream(jar)))) {
                for (int i = 0; i < 24; i++) {
                    out.putNextEntry(new JarEntry("org/library" + j + "/p" + i % 4 + "/Type" + i
                            + ".class"));
                    out.write(new byte[16]);
                    out.closeEntry();
                }
            }
            jars.add(jar);
        }
        TypesLoadingVisitor visitor = new TypesLoadingVisitor(jars);
        long imports = 0;
        long types = 0;
        while (running()) {
            types += visitor.loadClassesFromPackage(
                    "org.library" + imports % 80 + ".p" + imports % 4);
            imports++;
        }
        System.out.println("imports " + imports + ", types " + types);
    }

    // ---- Y28 event-loop: an executor with one thread ----

    static class SingleThreadEventExecutor extends AbstractExecutorService {
        private final LinkedBlockingQueue<Runnable> taskQueue = new LinkedBlockingQueue<>();
        private final Thread thread = new Thread(this::runAllTasks, "eventExecutor-1");

        SingleThreadEventExecutor() {
            thread.setDaemon(true);
            thread.start();
        }

        private void runAllTasks() {
            try {
                while (true) {
                    taskQueue.take().run();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        boolean inEventLoop() {
            return Thread.currentThread() == thread;
        }

        @Override
        public void execute(Runnable task) {
            if (repaired && inEventLoop()) {
                task.run();
            } else {
                taskQueue.add(task);
            }
        }

        @Override
        public void shutdown() {
            thread.interrupt();
        }

        @Override
        public List<Runnable> shutdownNow() {
            shutdown();
            return new ArrayList<>(taskQueue);
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return false;
        }
    }

    static long handleRequest(SingleThreadEventExecutor executor, int n) throws Exception {
        List<Callable<Integer>> parts = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int k = i;
            parts.add(() -> n * 4 + k);
        }
        long sum = 0;
        for (Future<Integer> f : executor.invokeAll(parts)) {
            sum += f.get();
        }
        return sum;
    }

    static void eventLoop() throws Exception {
        SingleThreadEventExecutor executor = new SingleThreadEventExecutor();
        AtomicLong answered = new AtomicLong();
        int sent = 0;
        while (running()) {
            int n = sent++;
            executor.submit(() -> {
                handleRequest(executor, n);
                return answered.incrementAndGet();
            });
            Thread.sleep(100);
        }
        System.out.println("requests " + sent + ", answered " + answered);
    }

    // ---- Y29 payload-alloc: buffers for the payloads of a network library ----

    static class BufferAllocator {
        private final Object unsafe;
        private final Method invokeCleaner;
        private final ConcurrentLinkedQueue<ByteBuffer> pool = new ConcurrentLinkedQueue<>();

        BufferAllocator() throws Exception {
            Class<?> c = Class.forName("sun.misc.Unsafe");
            Field f = c.getDeclaredField("theUnsafe");
            f.setAccessible(true);
            unsafe = f.get(null);
            invokeCleaner = c.getMethod("invokeCleaner", ByteBuffer.class);
        }

        ByteBuffer newDirectBuffer(int size) {
            if (repaired) {
                ByteBuffer b = pool.poll();
                if (b != null) {
                    b.clear();
                    return b;
                }
            }
            return ByteBuffer.allocateDirect(size);
        }

        void release(ByteBuffer b) throws Exception {
            if (repaired) {
                pool.add(b);
            } else {
                invokeCleaner.invoke(unsafe, b);
            }
        }
    }

    static void payloadAlloc() throws Exception {
        BufferAllocator allocator = new BufferAllocator();
        byte[] header = new byte[64];
        long payloads = 0;
        long sum = 0;
        while (running()) {
            for (int i = 0; i < 100; i++) {
                ByteBuffer b = allocator.newDirectBuffer(16 * 1024);
                b.put(header);
                b.putLong(payloads);
                b.flip();
                sum += b.remaining();
                allocator.release(b);
                payloads++;
            }
        }
        System.out.println("payloads " + payloads + ", bytes " + sum);
    }

    // ---- Y30 rpc-server: a server with event loops and few calls ----

    static class EventLoop extends Thread {
        final Selector selector;
        final ConcurrentLinkedQueue<SocketChannel> arriving = new ConcurrentLinkedQueue<>();
        final AtomicLong calls;

        EventLoop(int n, AtomicLong calls) throws IOException {
            super("rpc-default-worker-ELG-" + n);
            this.selector = Selector.open();
            this.calls = calls;
            setDaemon(true);
        }

        @Override
        public void run() {
            ByteBuffer buf = ByteBuffer.allocate(1024);
            try {
                while (true) {
                    selector.select();
                    for (SocketChannel c; (c = arriving.poll()) != null; ) {
                        c.configureBlocking(false);
                        c.register(selector, SelectionKey.OP_READ);
                    }
                    Iterator<SelectionKey> it = selector.selectedKeys().iterator();
                    while (it.hasNext()) {
                        SelectionKey key = it.next();
                        it.remove();
                        SocketChannel c = (SocketChannel) key.channel();
                        buf.clear();
                        if (c.read(buf) < 0) {
                            c.close();
                            continue;
                        }
                        buf.flip();
                        c.write(buf);
                        calls.incrementAndGet();
                    }
                }
            } catch (IOException e) {
                throw new RuntimeException(e);
            }
        }
    }

    static void rpcServer() throws Exception {
        AtomicLong calls = new AtomicLong();
        EventLoop[] loops = new EventLoop[4];
        for (int i = 0; i < loops.length; i++) {
            loops[i] = new EventLoop(i + 1, calls);
            loops[i].start();
        }
        ServerSocketChannel server = ServerSocketChannel.open();
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        int port = server.socket().getLocalPort();
        Thread boss = new Thread(() -> {
            try {
                for (int i = 0; ; i++) {
                    SocketChannel c = server.accept();
                    EventLoop loop = loops[i % loops.length];
                    loop.arriving.add(c);
                    loop.selector.wakeup();
                }
            } catch (IOException e) {
                throw new RuntimeException(e);
            }
        }, "rpc-default-boss-ELG-1");
        boss.setDaemon(true);
        boss.start();
        Socket[] clients = new Socket[4];
        for (int i = 0; i < clients.length; i++) {
            clients[i] = new Socket(InetAddress.getLoopbackAddress(), port);
        }
        byte[] call = new byte[64];
        for (int i = 0; running(); i++) {
            Socket s = clients[i % clients.length];
            s.getOutputStream().write(call);
            s.getInputStream().readNBytes(call, 0, call.length);
            Thread.sleep(100);
        }
        System.out.println("calls " + calls);
    }

    public static void main(String[] args) throws Exception {
        endAt = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        scratch = args[2];
        repaired = args.length > 3 && args[3].equals("fixed");
        switch (args[0]) {
            case "request-log": requestLog(); break;
            case "message-pack": messagePack(); break;
            case "class-resolver": classResolver(); break;
            case "event-loop": eventLoop(); break;
            case "payload-alloc": payloadAlloc(); break;
            case "rpc-server": rpcServer(); break;
            default: System.exit(2);
        }
    }
}
