// The late half of the programs from public reports (tests/outside/49-put-aside.md), for the JVM:
// each does steadily what its report describes, for some seconds: Late NAME SECONDS DIR.

import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.*;
import java.util.concurrent.atomic.AtomicLong;

public class Late {
    static long end;
    static final AtomicLong done = new AtomicLong();

    static boolean isOver() {
        return System.nanoTime() >= end;
    }

    static void join(List<Thread> threads) throws Exception {
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
    }

    // R8: session keys take their seed from a source that gives a few bytes a second.
    static void startSessions(File dir) throws Exception {
        while (!isOver()) {
            createSessionIdGenerator();
            done.incrementAndGet();
        }
    }

    static void createSessionIdGenerator() {
        SecureRandom random = new SecureRandom();
        random.setSeed(random.generateSeed(8));
        random.nextInt();
    }

    // R11: a service answers headers and body with two writes over a connection that is kept.
    static void callService(File dir) throws Exception {
        byte[] body = "x".repeat(100).getBytes(StandardCharsets.UTF_8);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        URL url = new URL("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        while (!isOver()) {
            URLConnection connection = url.openConnection();
            try (InputStream answer = connection.getInputStream()) {
                answer.readAllBytes();
            }
            done.incrementAndGet();
        }
        server.stop(0);
    }

    // R18: tools are started from a process that has many files open.
    static void spawnTools(File dir) throws Exception {
        List<FileInputStream> open = new ArrayList<>();
        try {
            for (int n = 0; n < 15000; n++) open.add(new FileInputStream("/dev/null"));
        } catch (IOException full) {
            for (int n = 0; n < 50; n++) open.remove(open.size() - 1).close();
        }
        System.err.print(open.size() + " open files, ");
        while (!isOver()) {
            Runtime.getRuntime().exec(new String[] {"/bin/true"}).waitFor();
            done.incrementAndGet();
        }
    }

    // R75: request threads write a line each through one appender.
    static class OutputStreamManager {
        final RandomAccessFile file;

        OutputStreamManager(File path) throws IOException {
            // Each write goes to the disk.
            file = new RandomAccessFile(path, "rwd");
        }

        synchronized void writeBytes(byte[] bytes) throws IOException {
            file.write(bytes);
        }
    }

    static long handleRequest(long value) {
        long until = System.nanoTime() + 100_000;
        while (System.nanoTime() < until) value = value * 31 + 7;
        return value;
    }

    static void logRequests(File dir) throws Exception {
        File path = new File(dir, "requests.log");
        OutputStreamManager manager = new OutputStreamManager(path);
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 40; n++) {
            threads.add(new Thread(() -> {
                long value = 1;
                try {
                    while (!isOver()) {
                        value = handleRequest(value);
                        manager.writeBytes(("request " + value + "\n").getBytes());
                        done.incrementAndGet();
                    }
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }, "exec-" + n));
        }
        join(threads);
        path.delete();
    }

    // R76: exceptions are logged with what each frame's class is, which its loader is asked for.
    static int describeThrowable(Throwable error, ClassLoader loader, StringBuilder line) {
        int found = 0;
        for (StackTraceElement frame : error.getStackTrace()) {
            try {
                Class<?> of = loader.loadClass(frame.getClassName());
                line.append(frame.getMethodName()).append('[').append(of.getName()).append(']');
                found++;
            } catch (ClassNotFoundException unknown) {
                line.append('?');
            }
        }
        return found;
    }

    static int handleAction(int depth, ClassLoader loader, StringBuilder line) {
        if (depth > 0) return handleAction(depth - 1, loader, line);
        return describeThrowable(new IllegalStateException("rejected"), loader, line);
    }

    static void logErrors(File dir) throws Exception {
        ClassLoader loader = Late.class.getClassLoader();
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 16; n++) {
            threads.add(new Thread(() -> {
                StringBuilder line = new StringBuilder();
                while (!isOver()) {
                    line.setLength(0);
                    handleAction(60, loader, line);
                    done.incrementAndGet();
                }
            }, "transport_worker-" + n));
        }
        join(threads);
    }

    public static void main(String[] arguments) throws Exception {
        end = System.nanoTime() + (long) (Double.parseDouble(arguments[1]) * 1e9);
        File dir = new File(arguments[2]);
        switch (arguments[0]) {
            case "start-sessions" -> startSessions(dir);
            case "call-service" -> callService(dir);
            case "spawn-tools" -> spawnTools(dir);
            case "log-requests" -> logRequests(dir);
            case "log-errors" -> logErrors(dir);
            default -> System.exit(2);
        }
        System.err.println(done + " done");
        System.exit(0);
    }
}
