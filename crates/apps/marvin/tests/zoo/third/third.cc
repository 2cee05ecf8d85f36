// Programs from public reports (tests/outside/49-third-aside-compiled.md), in C++: each does steadily
// what its report describes, for some seconds: `third NAME SECONDS DIR`. A fourth argument asks for
// the repaired form, to compare with.
// c++ -O1 -g -w third.cc -o third -lpthread
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <csignal>
#include <thread>
#include <unistd.h>
#include <vector>

#define KEEP __attribute__((noinline, noclone))

using Clock = std::chrono::steady_clock;

static Clock::time_point end;
static bool is_repaired;

static bool is_over() { return Clock::now() >= end; }

// T8: an event loop waits for processes that it has started.

struct ProcessHandle {
    pid_t pid = -1;
    int wakes = 0;
};

static ProcessHandle launch_process() {
    ProcessHandle handle;
    handle.pid = fork();
    if (handle.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("sleep", "sleep", "0.6", (char *)nullptr);
        _exit(1);
    }
    return handle;
}

// Called first when the wait begins, and again when the descriptor of the process is ready.
KEEP static bool async_wait_op(ProcessHandle &handle, bool is_ready) {
    int exit_code;
    int flags = is_ready && !is_repaired ? 0 : WNOHANG;
    return ::waitpid(handle.pid, &exit_code, flags) == handle.pid;
}

struct IoContext {
    int poll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    long handled = 0;

    IoContext() {
        itimerspec each = {{0, 20000000}, {0, 20000000}};
        timerfd_settime(timer, 0, &each, nullptr);
        epoll_event event = {EPOLLIN};
        epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
    }

    KEEP void poll_one(ProcessHandle &handle) {
        epoll_event event;
        if (epoll_wait(poll, &event, 1, 1000) == 1) {
            uint64_t ticks;
            if (read(timer, &ticks, sizeof ticks) > 0) handled++;
            if (async_wait_op(handle, true)) handle.pid = -1;
        }
    }
};

static void fiber_launcher(const std::string &dir) {
    IoContext context;
    ProcessHandle handle;
    while (!is_over()) {
        if (handle.pid == -1) {
            handle = launch_process();
            async_wait_op(handle, false);
        }
        context.poll_one(handle);
    }
    if (handle.pid != -1) kill(handle.pid, SIGKILL);
    fprintf(stderr, "%ld ticks handled\n", context.handled);
}

// T9: a pool of threads with a queue of jobs.

class JobQueue {
    std::mutex mutex;
    std::condition_variable condition;
    std::deque<std::packaged_task<int()>> jobs;

public:
    void enqueue(std::packaged_task<int()> job) {
        {
            std::lock_guard<std::mutex> guard(mutex);
            jobs.push_back(std::move(job));
        }
        condition.notify_one();
    }
    std::optional<std::packaged_task<int()>> try_dequeue() {
        std::lock_guard<std::mutex> guard(mutex);
        if (jobs.empty()) return {};
        auto job = std::move(jobs.front());
        jobs.pop_front();
        return job;
    }
    std::optional<std::packaged_task<int()>> dequeue() {
        std::unique_lock<std::mutex> guard(mutex);
        condition.wait_for(guard, std::chrono::seconds(1), [&] { return !jobs.empty(); });
        if (jobs.empty()) return {};
        auto job = std::move(jobs.front());
        jobs.pop_front();
        return job;
    }
};

class ThreadWorker {
    JobQueue &queue;
    std::atomic<bool> &stopping;

public:
    ThreadWorker(JobQueue &queue, std::atomic<bool> &stopping) : queue(queue), stopping(stopping) {}

    KEEP void do_work() {
        while (!stopping) {
            for (int spin = 0; spin < 16; spin++) {
                if (auto job = queue.try_dequeue()) {
                    (*job)();
                    spin = 0;
                } else {
                    std::this_thread::yield();
                }
            }
            if (is_repaired) {
                if (auto job = queue.dequeue()) (*job)();
            } else {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        }
    }
};

KEEP static int parse_message(const std::string &text) {
    int sum = 0;
    for (char c : text) sum = sum * 31 + c;
    return sum;
}

// The other side sends its next message soon after it has the answer to the last.
static void send_messages(int fd) {
    char message = 0;
    while (write(fd, &message, 1) == 1 && read(fd, &message, 1) == 1) usleep(500);
    _exit(0);
}

static void worker_pool(const std::string &dir) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        send_messages(ends[1]);
    }
    close(ends[1]);
    JobQueue queue;
    std::atomic<bool> stopping{false};
    ThreadWorker worker(queue, stopping);
    std::thread first([&] { worker.do_work(); }), second([&] { worker.do_work(); });
    std::string text(20000, 'x');
    long requests = 0;
    char message;
    while (!is_over() && read(ends[0], &message, 1) == 1) {
        std::packaged_task<int()> job([&] { return parse_message(text); });
        auto result = job.get_future();
        queue.enqueue(std::move(job));
        message = result.get();
        write(ends[0], &message, 1);
        requests++;
    }
    stopping = true;
    first.join();
    second.join();
    fprintf(stderr, "%ld requests\n", requests);
}

// T10: a name server gives each query a stack of its own.

class StackAllocator {
    static constexpr size_t guard = 4096;
    static std::vector<char *> cache;

public:
    KEEP static char *allocate(size_t size) {
        if (is_repaired && !cache.empty()) {
            char *stack = cache.back();
            cache.pop_back();
            return stack;
        }
        void *p = mmap(nullptr, size + 2 * guard, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        mprotect(p, guard, PROT_NONE);
        mprotect((char *)p + guard + size, guard, PROT_NONE);
        return (char *)p + guard;
    }
    KEEP static void deallocate(char *stack, size_t size) {
        if (is_repaired) cache.push_back(stack);
        else munmap(stack - guard, size + 2 * guard);
    }
};

std::vector<char *> StackAllocator::cache;

KEEP static unsigned answer_question(char *stack, size_t size, unsigned id) {
    // The resolver uses the upper part of its stack.
    char *frame = stack + size - 24000;
    for (int i = 0; i < 24000; i += 64) frame[i] = id;
    unsigned hash = id;
    for (int i = 0; i < 24000; i += 64) hash = hash * 16777619 ^ frame[i];
    return hash;
}

static void recursor(const std::string &dir) {
    const size_t stack_size = 200000;
    const size_t rounded = (stack_size + 4095) & ~size_t(4095);
    long queries = 0;
    unsigned sum = 0;
    std::deque<char *> running;
    while (!is_over()) {
        running.push_back(StackAllocator::allocate(rounded));
        sum += answer_question(running.back(), rounded, queries++);
        if (running.size() > 32) {
            StackAllocator::deallocate(running.front(), rounded);
            running.pop_front();
        }
    }
    fprintf(stderr, "%ld queries %u\n", queries, sum);
}

// T11: a compiler looks which lines of a source start an import or a preprocessor directive.

KEEP static bool starts_with_import(const std::string &line) {
    if (is_repaired) {
        size_t at = line.find_first_not_of(" \t");
        return at != std::string::npos &&
               (line.compare(at, 7, "import ") == 0 || line.compare(at, 7, "module ") == 0);
    }
    static const std::regex pattern(R"(^\s*(export\s+)?(import|module)\s+[\w.:]+\s*;)");
    return std::regex_search(line, pattern);
}

KEEP static bool is_preprocessor(const std::string &line) {
    if (is_repaired) {
        size_t at = line.find_first_not_of(" \t");
        return at != std::string::npos && line[at] == '#';
    }
    static const std::regex pattern(R"(^\s*#\s*([a-z]+)(.*)$)");
    return std::regex_search(line, pattern);
}

KEEP static int read_source(const std::vector<std::string> &lines) {
    int braces = 0, directives = 0;
    for (const auto &line : lines) {
        if (is_preprocessor(line) || starts_with_import(line)) directives++;
        for (char c : line) braces += (c == '{') - (c == '}');
    }
    return braces + directives;
}

static void lower_cpp(const std::string &dir) {
    std::vector<std::string> lines;
    for (int i = 0; i < 400; i++) {
        lines.push_back("#  pragma region " + std::to_string(i));
        lines.push_back("        template <typename _Tp, typename _Up> inline constexpr auto f" +
                        std::to_string(i) + "(_Tp&& __t, _Up&& __u) noexcept(true) {");
        lines.push_back("            return std::forward<_Tp>(__t) < std::forward<_Up>(__u); }");
        lines.push_back("");
    }
    long files = 0, sum = 0;
    while (!is_over()) {
        sum += read_source(lines);
        files++;
    }
    fprintf(stderr, "%ld files %ld\n", files, sum);
}

static const struct {
    const char *name;
    void (*run)(const std::string &);
} programs[] = {
    {"fiber-launcher", fiber_launcher}, {"worker-pool", worker_pool}, {"recursor", recursor},
    {"lower-cpp", lower_cpp},
};

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    end = Clock::now() + std::chrono::milliseconds(long(atof(argv[2]) * 1000));
    is_repaired = argc > 4;
    for (auto &program : programs)
        if (!strcmp(program.name, argv[1])) {
            program.run(argv[3]);
            return 0;
        }
    return 2;
}
