import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

/** Programs of the JVM from public reports: `Foreign NAME SECONDS FOLDER`; `cases.txt` has the reports. */
class Foreign {
    static long until;
    static volatile long sink;
    static boolean going() { return System.nanoTime() < until; }

    /** R78: all threads of a pool wait for results that the same pool would compute. */
    static void poolStarved() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        for (int n = 0; n < 50; n++)
            pool.submit(() -> pool.submit(() -> 1).get());
        Thread.sleep(4000);
        System.exit(0);
    }

    /** R43: workers hold one connection and wait for a second one. */
    static void connectionsNested() throws Exception {
        Semaphore connections = new Semaphore(5);
        for (int n = 0; n < 20; n++) {
            Thread thread = new Thread(() -> {
                while (going())
                    try {
                        connections.acquire();
                        Thread.sleep(5);
                        if (connections.tryAcquire(500, TimeUnit.MILLISECONDS)) connections.release();
                        connections.release();
                    } catch (InterruptedException e) { return; }
            });
            thread.start();
        }
    }

    /** A monitor that a thread holds while it computes. */
    static final Object monitor = new Object();
    static void hotMonitor() {
        for (int n = 0; n < 8; n++)
            new Thread(() -> {
                while (going())
                    synchronized (monitor) {
                        for (int i = 0; i < 3000000; i++) sink += i;
                    }
            }).start();
    }

    /** A heap that is nearly full is collected again and again (-Xmx64m). */
    static void smallHeap() {
        Map<Integer, byte[]> kept = new HashMap<>();
        for (int n = 0; n < 400; n++) kept.put(n, new byte[100_000]);
        int n = 0;
        while (going()) kept.put(n++ % 400, new byte[100_000]);
    }

    /** A pool that is idle beside one thread that computes. */
    static void idlePool() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(16);
        for (int n = 0; n < 16; n++) pool.submit(() -> 1).get();
        while (going()) sink += Long.hashCode(sink);
        pool.shutdown();
    }

    /** R111: headers and body in two writes. */
    static void twoWrites() throws Exception {
        ServerSocket listener = new ServerSocket(7441, 10, InetAddress.getLoopbackAddress());
        Thread server = new Thread(() -> {
            try (Socket client = listener.accept()) {
                InputStream in = client.getInputStream();
                OutputStream out = client.getOutputStream();
                byte[] request = new byte[100];
                while (in.read(request) > 0) {
                    out.write("HTTP/1.1 200 OK\r\n\r\n".getBytes());
                    out.write("body".getBytes());
                }
            } catch (IOException e) { }
        });
        server.start();
        Socket client = new Socket(InetAddress.getLoopbackAddress(), 7441);
        InputStream in = client.getInputStream();
        byte[] answer = new byte[100];
        while (going()) {
            client.getOutputStream().write("GET".getBytes());
            int have = 0;
            while (have < 23) have += in.read(answer);
        }
        System.exit(0);
    }

    public static void main(String[] words) throws Exception {
        until = System.nanoTime() + (long) (1e9 * Double.parseDouble(words[1]));
        switch (words[0]) {
            case "pool-starved" -> poolStarved();
            case "connections-nested" -> connectionsNested();
            case "hot-monitor" -> hotMonitor();
            case "small-heap" -> smallHeap();
            case "idle-pool" -> idlePool();
            case "two-writes" -> twoWrites();
            default -> System.exit(2);
        }
    }
}
