// Six small programs from public reports, written anew. Usage: tenth CASE SECONDS FOLDER
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

static double seconds;
static std::string folder;
static Clock::time_point stop_at;

static bool running() { return Clock::now() < stop_at; }

// ---- object-download ----

struct Repository {
    std::mutex lock;
    std::vector<std::string> stored;

    std::string fetch(int number) {
        std::this_thread::sleep_for(70ms);
        return std::string(2000, char('a' + number % 26));
    }

    void store(int number) {
        std::string data = fetch(number);
        std::ofstream(folder + "/object" + std::to_string(number % 50)) << data;
        std::lock_guard guard(lock);
        stored.push_back(std::move(data));
    }
};

static void download_object(Repository& repository, int number) {
    (void)std::async(std::launch::async, [&repository, number] { repository.store(number); });
}

static long object_download() {
    Repository repository;
    for (int number = 0; running(); number++) download_object(repository, number);
    std::lock_guard guard(repository.lock);
    return long(repository.stored.size());
}

// ---- socket-table ----

struct SocketTable {
    std::mutex global_mutex;
    std::vector<int> active;

    void set_blocking(int fd, bool blocking) {
        int flags = fcntl(fd, F_GETFL);
        fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
    }

    int connect_to(int port) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(uint16_t(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return -1;
        linger option{1, 1};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, sizeof option);
        set_blocking(fd, false);
        std::lock_guard guard(global_mutex);
        active.push_back(fd);
        return fd;
    }

    void close_socket(int fd) {
        std::lock_guard guard(global_mutex);
        std::erase(active, fd);
        set_blocking(fd, true);
        close(fd);
    }

    bool has_socket(int fd) {
        std::lock_guard guard(global_mutex);
        for (int each : active)
            if (each == fd) return true;
        return false;
    }
};

static long socket_table() {
    SocketTable table;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int small = 4096;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0) return 0;
    listen(listener, 64);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    int port = ntohs(address.sin_port);
    int terminal = table.connect_to(port);
    std::atomic<long> keystrokes{0};
    std::vector<std::thread> sessions;
    for (int i = 0; i < 3; i++)
        sessions.emplace_back([&] {
            while (running()) {
                if (table.has_socket(terminal)) keystrokes++;
                std::this_thread::sleep_for(1ms);
            }
        });
    std::vector<char> screen(512 * 1024, 'x');
    while (running()) {
        int fd = table.connect_to(port);
        if (send(fd, screen.data(), screen.size(), MSG_DONTWAIT) < 0) break;
        table.close_socket(fd);
    }
    for (auto& session : sessions) session.join();
    return keystrokes;
}

// ---- test-picker ----

struct Storage {
    std::vector<uint64_t> messages;

    uint64_t uniform(uint64_t below) {
        auto time = std::chrono::system_clock::now().time_since_epoch().count();
        std::mt19937_64 generator(static_cast<uint64_t>(time));
        return std::uniform_int_distribution<uint64_t>(0, below - 1)(generator);
    }

    uint64_t pick_message() { return messages[uniform(messages.size())]; }
};

static long test_picker() {
    Storage storage;
    for (uint64_t i = 0; i < 100000; i++) storage.messages.push_back(i * 31);
    long tests = 0;
    uint64_t sum = 0;
    while (running())
        for (int i = 0; i < 100; i++, tests++) sum += storage.pick_message();
    return sum ? tests : 0;
}

// ---- work-set ----

class IdSet {
public:
    explicit IdSet(size_t slots) : slots_(slots, kEmpty) {}

    void insert(uint32_t id) {
        size_t at = (id * 2654435761u) & (slots_.size() - 1);
        while (slots_[at] != kEmpty && slots_[at] != kDeleted)
            at = (at + 1) & (slots_.size() - 1);
        slots_[at] = id;
        size_++;
    }

    size_t begin() const { return advance(0); }
    uint32_t at(size_t position) const { return slots_[position]; }
    bool empty() const { return size_ == 0; }

    void erase(size_t position) {
        slots_[position] = kDeleted;
        size_--;
    }

private:
    static constexpr uint32_t kEmpty = 0xffffffff, kDeleted = 0xfffffffe;

    __attribute__((noinline)) size_t advance(size_t position) const {
        while (position < slots_.size() && slots_[position] >= kDeleted) position++;
        return position;
    }

    std::vector<uint32_t> slots_;
    size_t size_ = 0;
};

static long work_set() {
    IdSet pending(1 << 21);
    for (uint32_t id = 0; id < 1000000; id++) pending.insert(id);
    long done = 0;
    uint64_t sum = 0;
    while (!pending.empty()) {
        auto first = pending.begin();
        sum += pending.at(first);
        pending.erase(first);
        if (++done % 64 == 0 && !running()) break;
    }
    return sum ? done : 0;
}

// ---- container-menu ----

struct Item {
    std::string name;
    std::vector<Item> contents;
    int volume = 0;
};

static Item make_pocket(int depth, int width) {
    Item item;
    item.name = "container of depth " + std::to_string(depth) + ", made of leather";
    item.volume = depth * 7 + width;
    if (depth > 0)
        for (int i = 0; i < width; i++) item.contents.push_back(make_pocket(depth - 1, width));
    return item;
}

static long container_menu() {
    Item character = make_pocket(7, 4);
    long entries = 0;
    std::function<int(Item, int)> find_containers = [&](const Item& item, int needed) {
        int found = item.volume >= needed ? 1 : 0;
        for (const Item& inner : item.contents) {
            if (!running()) break;
            found += find_containers(inner, needed);
        }
        entries++;
        return found;
    };
    long menus = 0, found = 0;
    while (running()) {
        found += find_containers(character, int(menus % 40));
        menus++;
    }
    return found >= 0 ? entries : 0;
}

// ---- guard-engine ----

class GuardEngine {
public:
    void start() {
        worker_ = std::thread([this] { drain(); });
    }

    void post(int event) {
        std::lock_guard guard(mutex_);
        outbox_.push_back(event);
        wake_.notify_one();
    }

    void stop() {
        std::unique_lock guard(mutex_);
        stopping_ = true;
        wake_.notify_one();
        worker_.join();
        outbox_.clear();
    }

    std::atomic<long> sent{0};

private:
    void drain() {
        for (;;) {
            std::vector<int> batch;
            {
                std::unique_lock guard(mutex_);
                wake_.wait(guard, [this] { return stopping_ || !outbox_.empty(); });
                if (stopping_) return;
                batch.swap(outbox_);
            }
            sent += long(batch.size());
            std::this_thread::sleep_for(1ms);
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<int> outbox_;
    std::thread worker_;
    bool stopping_ = false;
};

static GuardEngine engine;

static void on_deadline(int) {
    char line[80];
    int n = snprintf(line, sizeof line, "guard-engine: %ld events\n", engine.sent.load());
    if (write(1, line, size_t(n)) != n) _exit(1);
    _exit(0);
}

static long guard_engine() {
    itimerval timer{};
    timer.it_value.tv_sec = long(seconds);
    signal(SIGALRM, on_deadline);
    setitimer(ITIMER_REAL, &timer, nullptr);
    engine.start();
    for (int i = 0; i < 100; i++) {
        engine.post(i);
        std::this_thread::sleep_for(1ms);
    }
    engine.stop();
    return engine.sent;
}

int main(int argc, char** argv) {
    struct {
        const char* name;
        long (*run)();
        const char* things;
    } cases[] = {
        {"object-download", object_download, "objects"}, {"socket-table", socket_table, "keys"},
        {"test-picker", test_picker, "tests"},           {"work-set", work_set, "ids"},
        {"container-menu", container_menu, "entries"},   {"guard-engine", guard_engine, "events"},
    };
    if (argc < 4) return 2;
    seconds = atof(argv[2]);
    folder = std::string(argv[3]) + "/" + argv[1];
    for (auto& each : cases) {
        if (strcmp(each.name, argv[1]) != 0) continue;
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder);
        auto length = std::chrono::duration<double>(seconds);
        stop_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(length);
        printf("%s: %ld %s\n", each.name, each.run(), each.things);
        return 0;
    }
    return 2;
}
