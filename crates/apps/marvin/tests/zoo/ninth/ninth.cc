// ninth.cc: six small programs in C++, chosen by the first argument; each runs for SECONDS
// below FOLDER/CASE and then prints one line.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

volatile std::sig_atomic_t stop_flag;
long things;
char end_line[96];
double seconds;

void on_alarm_flag(int) { stop_flag = 1; }

void on_alarm_exit(int) {
    ssize_t n = write(1, end_line, strlen(end_line));
    _exit(n < 0);
}

void set_deadline(void (*f)(int)) {
    struct sigaction sa {};
    sa.sa_handler = f;
    sa.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &sa, nullptr);
    itimerval it{};
    it.it_value.tv_sec = static_cast<long>(seconds);
    it.it_value.tv_usec = static_cast<long>((seconds - it.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &it, nullptr);
}

// ---- notify-queue ----

class Event {
  public:
    void set() {
        std::lock_guard<std::mutex> g(_mutex);
        _state = true;
        _cond.notify_one();
    }
    void wait() {
        std::unique_lock<std::mutex> g(_mutex);
        _cond.wait(g, [this] { return _state; });
    }

  private:
    std::mutex _mutex;
    std::condition_variable _cond;
    bool _state = false;
};

class NotificationQueue {
  public:
    void enqueueNotification(int n) {
        std::lock_guard<std::mutex> g(_mutex);
        if (_waitQueue.empty()) {
            _nfQueue.push_back(n);
        } else {
            WaitInfo *w = _waitQueue.front();
            _waitQueue.pop_front();
            w->nf = n;
            w->nfAvailable.set();
        }
    }
    int waitDequeueNotification() {
        WaitInfo w;
        {
            std::lock_guard<std::mutex> g(_mutex);
            if (!_nfQueue.empty()) {
                int n = _nfQueue.front();
                _nfQueue.pop_front();
                return n;
            }
            _waitQueue.push_back(&w);
        }
        w.nfAvailable.wait();
        return w.nf;
    }
    void wakeUpAll() {
        std::lock_guard<std::mutex> g(_mutex);
        for (WaitInfo *w : _waitQueue)
            w->nfAvailable.set();
        _waitQueue.clear();
    }

  private:
    struct WaitInfo {
        int nf = 0;
        Event nfAvailable;
    };
    std::mutex _mutex;
    std::deque<int> _nfQueue;
    std::deque<WaitInfo *> _waitQueue;
};

class Worker {
  public:
    Worker(NotificationQueue &q, int ms) : _queue(q), _ms(ms) {}
    void start() { _thread = std::thread([this] { run(); }); }
    void run() {
        while (!_stopped) {
            reload_settings();
            if (_queue.waitDequeueNotification())
                ++_handled;
        }
    }
    void reload_settings() { std::this_thread::sleep_for(std::chrono::milliseconds(_ms)); }
    void stop() { _stopped = true; }
    void join() { _thread.join(); }
    int handled() const { return _handled; }

  private:
    NotificationQueue &_queue;
    int _ms;
    std::atomic<bool> _stopped{false};
    int _handled = 0;
    std::thread _thread;
};

void notify_queue() {
    snprintf(end_line, sizeof end_line, "notify-queue: 4 things\n");
    set_deadline(on_alarm_exit);
    NotificationQueue queue;
    Worker mailer(queue, 1), indexer(queue, 100);
    mailer.start();
    indexer.start();
    for (int i = 1; i <= 4; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        queue.enqueueNotification(i);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    mailer.stop();
    indexer.stop();
    queue.wakeUpAll();
    mailer.join();
    indexer.join();
    printf("notify-queue: %d things\n", mailer.handled() + indexer.handled());
}

// ---- image-tiles ----

class thread_pool {
  public:
    explicit thread_pool(int n) {
        for (int i = 0; i < n; i++)
            m_threads.emplace_back([this] { worker(); });
    }
    std::future<void> push(std::function<void()> f) {
        auto task = std::make_shared<std::packaged_task<void()>>(std::move(f));
        auto result = task->get_future();
        {
            std::lock_guard<std::mutex> g(m_mutex);
            m_queue.push([task] { (*task)(); });
        }
        m_cond.notify_one();
        return result;
    }

  private:
    void worker() {
        for (;;) {
            std::function<void()> f;
            {
                std::unique_lock<std::mutex> g(m_mutex);
                m_cond.wait(g, [this] { return !m_queue.empty(); });
                f = std::move(m_queue.front());
                m_queue.pop();
            }
            f();
        }
    }
    std::vector<std::thread> m_threads;
    std::queue<std::function<void()>> m_queue;
    std::mutex m_mutex;
    std::condition_variable m_cond;
};

class task_set {
  public:
    void push(std::future<void> f) { m_futures.push_back(std::move(f)); }
    void wait() {
        for (auto &f : m_futures)
            f.wait();
    }

  private:
    std::vector<std::future<void>> m_futures;
};

std::vector<float> pixels(1 << 16);

void resize_rows(int begin, int end) {
    for (int i = begin; i < end; i++)
        pixels[i] = pixels[i] * 0.5f + static_cast<float>(i);
}

void parallel_for_chunked(thread_pool &pool, int begin, int end, int chunk,
                          const std::function<void(int, int)> &f) {
    task_set ts;
    for (int i = begin; i < end; i += chunk)
        ts.push(pool.push([=, &f] { f(i, std::min(end, i + chunk)); }));
    ts.wait();
}

void image_tiles() {
    snprintf(end_line, sizeof end_line, "image-tiles: 6 things\n");
    set_deadline(on_alarm_exit);
    thread_pool pool(3);
    parallel_for_chunked(pool, 0, 6, 1, [&](int tile, int) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        parallel_for_chunked(pool, tile * 8192, tile * 8192 + 8192, 1024, resize_rows);
    });
    printf("image-tiles: 6 things\n");
    fflush(stdout);
    _exit(0);
}

// ---- exit-registry ----

struct AtExitEntry {
    void (*method)(void *);
    void *parameter;
    void *dso_handle;
};

AtExitEntry *atexit_entries;
size_t atexit_entry_count;
const size_t atexit_region_size = 4096;
std::mutex atexit_mutex;

void lock_atexit_handlers() {
    if (mprotect(atexit_entries, atexit_region_size, PROT_READ) < 0)
        exit(1);
}

void unlock_atexit_handlers() {
    if (mprotect(atexit_entries, atexit_region_size, PROT_READ | PROT_WRITE) < 0)
        exit(1);
}

int register_at_exit(void (*method)(void *), void *parameter, void *dso_handle) {
    std::lock_guard<std::mutex> g(atexit_mutex);
    unlock_atexit_handlers();
    size_t max = atexit_region_size / sizeof(AtExitEntry);
    atexit_entries[atexit_entry_count++ % max] = {method, parameter, dso_handle};
    lock_atexit_handlers();
    return 0;
}

struct Singleton {
    std::string name;
    int value;
};

void destroy_singleton(void *p) { delete static_cast<Singleton *>(p); }

void initialize_singletons() {
    static Singleton objects[64];
    for (int i = 0; i < 64 && !stop_flag; i++) {
        objects[i].name = "global-" + std::to_string(i);
        objects[i].value += i;
        register_at_exit(destroy_singleton, &objects[i], nullptr);
        things++;
    }
}

void exit_registry() {
    void *p = mmap(nullptr, atexit_region_size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    atexit_entries = static_cast<AtExitEntry *>(p);
    set_deadline(on_alarm_flag);
    while (!stop_flag)
        initialize_singletons();
    printf("exit-registry: %ld things\n", things);
}

// ---- io-buffers ----

class IOBufferAllocator {
  public:
    void *alloc_void(size_t size) {
        void *p = nullptr;
        if (posix_memalign(&p, 4096, size))
            exit(1);
        ats_madvise(p, size, MADV_DONTDUMP);
        return p;
    }
    void free_void(void *p, size_t size) {
        ats_madvise(p, size, MADV_DODUMP);
        free(p);
    }

  private:
    static int ats_madvise(void *p, size_t size, int flags) { return madvise(p, size, flags); }
};

unsigned fill_block(unsigned char *p, unsigned tag) {
    unsigned sum = tag;
    for (int i = 0; i < 256; i++) {
        p[i] = static_cast<unsigned char>(tag + i);
        sum += p[i];
    }
    return sum;
}

unsigned http_transaction(IOBufferAllocator &a, unsigned id) {
    void *blocks[4];
    unsigned sum = 0;
    for (auto &b : blocks) {
        b = a.alloc_void(8192);
        sum += fill_block(static_cast<unsigned char *>(b), id);
    }
    for (auto b : blocks)
        a.free_void(b, 8192);
    return sum;
}

void io_buffers() {
    IOBufferAllocator allocator;
    unsigned sum = 0;
    set_deadline(on_alarm_flag);
    while (!stop_flag)
        sum += http_transaction(allocator, static_cast<unsigned>(things++));
    printf("io-buffers: %ld things\n", things + (sum == 1));
}

// ---- calc-rows ----

struct ReturnSignal {
    long row;
};

class Instruction {
  public:
    virtual ~Instruction() = default;
    virtual void exec(long &pc, long *regs) const = 0;
};

class MoveInstruction : public Instruction {
  public:
    void exec(long &pc, long *regs) const override {
        regs[1] = regs[0] + 1;
        pc++;
    }
};

class ReturnInstruction : public Instruction {
  public:
    void exec(long &, long *regs) const override { throw ReturnSignal{regs[1]}; }
};

class Calculator {
  public:
    Calculator() {
        program.push_back(std::make_unique<MoveInstruction>());
        program.push_back(std::make_unique<ReturnInstruction>());
    }
    long exec(long input) {
        long pc = 0, regs[2] = {input, 0};
        try {
            for (;;)
                program[pc]->exec(pc, regs);
        } catch (const ReturnSignal &r) {
            return r.row;
        }
    }

  private:
    std::vector<std::unique_ptr<Instruction>> program;
};

void calc_rows() {
    Calculator calc;
    long sum = 0;
    set_deadline(on_alarm_flag);
    while (!stop_flag)
        sum += calc.exec(things++);
    printf("calc-rows: %ld things\n", things + (sum == 1));
}

// ---- skin-list ----

struct Skin {
    std::string name;
    int width = 0, height = 0;
    bool operator<(const Skin &o) const { return name < o.name; }
};

class Skins {
  public:
    void load_skin(std::string name, int n) {
        Skin skin;
        skin.name = std::move(name);
        skin.width = 256 + n % 3;
        skin.height = 128;
        m_skins.push_back(std::move(skin));
        std::sort(m_skins.begin(), m_skins.end());
    }
    void clear() { m_skins.clear(); }

  private:
    std::vector<Skin> m_skins;
};

void skin_list() {
    Skins skins;
    unsigned seed = 7;
    set_deadline(on_alarm_flag);
    while (!stop_flag) {
        skins.clear();
        for (int i = 0; i < 3000 && !stop_flag; i++) {
            seed = seed * 1664525u + 1013904223u;
            skins.load_skin("skin_of_player_" + std::to_string(seed >> 8), i);
            things++;
        }
    }
    printf("skin-list: %ld things\n", things);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    const std::string name = argv[1];
    const std::vector<std::pair<std::string, void (*)()>> cases = {
        {"notify-queue", notify_queue}, {"image-tiles", image_tiles},
        {"exit-registry", exit_registry}, {"io-buffers", io_buffers},
        {"calc-rows", calc_rows}, {"skin-list", skin_list},
    };
    seconds = atof(argv[2]);
    for (const auto &[n, run] : cases)
        if (n == name) {
            const auto dir = std::filesystem::path(argv[3]) / name;
            std::filesystem::remove_all(dir);
            std::filesystem::create_directories(dir);
            run();
            return 0;
        }
    return 2;
}
