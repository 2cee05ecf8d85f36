// The second late half of the programs from public reports (tests/outside/49-second-aside.md), for
// the JVM: each does steadily what its report describes, for some seconds:
// Second NAME SECONDS DIR.

import java.io.File;
import java.util.*;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;

public class Second {
    static long end;
    // A fourth argument asks for the repaired form, to compare with.
    static boolean isRepaired;
    static final AtomicLong done = new AtomicLong();

    static boolean isOver() {
        return System.nanoTime() >= end;
    }

    static void join(List<Thread> threads) throws Exception {
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
    }

    // S6: each event takes a random identifier.
    static UUID createEventId() {
        if (isRepaired) {
            ThreadLocalRandom random = ThreadLocalRandom.current();
            return new UUID(random.nextLong(), random.nextLong());
        }
        return UUID.randomUUID();
    }

    static void postEvents(File dir) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 16; n++) {
            threads.add(new Thread(() -> {
                long bits = 0;
                while (!isOver()) {
                    bits ^= createEventId().getLeastSignificantBits();
                    done.incrementAndGet();
                }
                if (bits == 1) System.err.println(bits);
            }, "event-client-" + n));
        }
        join(threads);
    }

    // S25: an interpreter returns from functions and loops by exceptions.
    static class ReturnException extends RuntimeException {
        final int value;

        ReturnException(int value) {
            super(null, null, false, !isRepaired);
            this.value = value;
        }
    }

    static int evaluate(int depth, int value) {
        if (depth == 0) throw new ReturnException(value + 1);
        return evaluate(depth - 1, value) + 1;
    }

    static int applyClosure(int value) {
        try {
            return evaluate(60, value);
        } catch (ReturnException returned) {
            return returned.value;
        }
    }

    static void interpret(File dir) {
        int value = 0;
        while (!isOver()) {
            value = applyClosure(value);
            done.incrementAndGet();
        }
    }

    // S35: the heap is all but full of what is still used, and the little that is free is collected
    // again and again.
    static final List<byte[]> inventory = new ArrayList<>();

    static int handleRequest(int number) {
        List<byte[]> answer = new ArrayList<>();
        for (int n = 0; n < 20; n++) answer.add(new byte[2000 + number % 7]);
        return answer.get(number % 20).length;
    }

    static void networkConsole(File dir) {
        long most = Runtime.getRuntime().maxMemory() - (isRepaired ? 40 << 20 : 7 << 20);
        while (Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory() < most) {
            inventory.add(new byte[1000]);
        }
        int sum = 0;
        while (!isOver()) {
            sum += handleRequest(sum & 1023);
            done.incrementAndGet();
        }
    }

    // S39: the hash of a variable is start * 31 + end, and all variables are equally long: it is
    // the same number modulo 32, and more so if they stand at even distances.
    static final class Variable {
        final int sourceStart;
        final int sourceEnd;

        Variable(int sourceStart, int length) {
            this.sourceStart = sourceStart;
            this.sourceEnd = sourceStart + length;
        }

        @Override
        public int hashCode() {
            if (isRepaired) return (sourceStart * 0x9E3779B9) >>> 12;
            return 31 * sourceStart + sourceEnd;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Variable that && that.sourceStart == sourceStart
                && that.sourceEnd == sourceEnd;
        }
    }

    /** A table of the compiler's own, which takes the next free place. */
    static final class SimpleSet {
        final Object[] values = new Object[8192];

        boolean add(Object value) {
            int index = value.hashCode() & values.length - 1;
            while (values[index] != null) {
                if (values[index].equals(value)) return false;
                index = index + 1 & values.length - 1;
            }
            values[index] = value;
            return true;
        }
    }

    static int inferTypes(Variable[] variables) {
        SimpleSet bounds = new SimpleSet();
        int found = 0;
        for (Variable variable : variables) if (bounds.add(variable)) found++;
        return found;
    }

    static void compileSource(File dir) {
        Variable[] variables = new Variable[3000];
        for (int n = 0; n < variables.length; n++) variables[n] = new Variable(n * 64, 14);
        while (!isOver()) done.addAndGet(inferTypes(variables) / 3000);
    }

    // S55: log lines are put together with regular expressions.
    static String formatString(String format, Object... values) {
        if (isRepaired) {
            StringBuilder text = new StringBuilder();
            int from = 0;
            for (Object value : values) {
                int at = format.indexOf("{}", from);
                text.append(format, from, at).append(value);
                from = at + 2;
            }
            return text.append(format.substring(from)).toString();
        }
        for (Object value : values) {
            String text = value.toString().replaceAll("\\$", "\\\\\\$");
            format = format.replaceFirst("\\{}", text);
        }
        return format;
    }

    static void sinkRecords(File dir) {
        long size = 0;
        while (!isOver()) {
            size += formatString("channel {} of table {}: offset {} of {} rows flushed by {}",
                done.get() % 16, "EVENTS$RAW", done.get(), 1000, "task-0").length();
            done.incrementAndGet();
        }
    }

    public static void main(String[] arguments) throws Exception {
        end = System.nanoTime() + (long) (Double.parseDouble(arguments[1]) * 1e9);
        isRepaired = arguments.length > 3;
        File dir = new File(arguments[2]);
        switch (arguments[0]) {
            case "post-events" -> postEvents(dir);
            case "interpret" -> interpret(dir);
            case "network-console" -> networkConsole(dir);
            case "compile-source" -> compileSource(dir);
            case "sink-records" -> sinkRecords(dir);
            default -> System.exit(2);
        }
        System.err.println(done + " done");
        System.exit(0);
    }
}
