// Six small programs after public reports: sixth NAME SECONDS FOLDER [fixed]
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

using Clock = std::chrono::steady_clock;

static Clock::time_point end_time;
static bool fixed_form;
static std::string folder;

static bool running()
{
    return Clock::now() < end_time;
}

// ---------------------------------------------------------------- port-runner

class CmdOptions {
public:
    std::vector<std::string> cmd;
};

static rlim_t max_fds;

static pid_t start_child(const CmdOptions &op)
{
    std::vector<char *> argv;
    for (const std::string &word : op.cmd)
        argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (fixed_form)
        syscall(SYS_close_range, 3u, ~0u, 0u);
    else
        for (int i = STDERR_FILENO + 1; i < static_cast<int>(max_fds); i++)
            close(i);
    execv(argv[0], argv.data());
    _exit(127);
}

static void port_runner()
{
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    max_fds = std::min<rlim_t>(limit.rlim_max, 600000);
    CmdOptions op;
    op.cmd = {"/bin/true"};
    long runs = 0;
    while (running()) {
        int status = 0;
        waitpid(start_child(op), &status, 0);
        runs++;
    }
    std::printf("runs %ld\n", runs);
}

// ---------------------------------------------------------------- lp-solver

template <typename T>
static void freeVector(std::vector<T> v)
{
    std::vector<T>().swap(v);
}

template <typename T>
static void freeVectorRef(std::vector<T> &v)
{
    std::vector<T>().swap(v);
}

class Factorise {
public:
    explicit Factorise(int supernodes) : schur_contribution(supernodes) {}

    void processSupernode(int sn)
    {
        assemble(schur_contribution[sn], sn);
        for (int child = 0; child < 8; child++) {
            int node = (sn + child) % static_cast<int>(schur_contribution.size());
            if (fixed_form)
                freeVectorRef(schur_contribution[node]);
            else
                freeVector(schur_contribution[node]);
        }
    }

    double pivots = 0;

private:
    void assemble(std::vector<double> &block, int sn)
    {
        block.assign(100000, 1.0 / (sn + 1));
        for (size_t i = 0; i < block.size(); i += 64)
            pivots += block[i];
    }

    std::vector<std::vector<double>> schur_contribution;
};

static void lp_solver()
{
    Factorise factorise(12);
    long steps = 0;
    while (running())
        factorise.processSupernode(static_cast<int>(steps++ % 12));
    std::printf("supernodes %ld, %g\n", steps, factorise.pivots > 0 ? 1.0 : 0.0);
}

// ---------------------------------------------------------------- gcode-view

class GCodeProcessor {
public:
    void process_gcode_line(const std::string &line)
    {
        lines++;
        if (line.compare(0, 3, "G1 ") == 0)
            process_G1(line);
        else if (line.compare(0, 18, "SET_VELOCITY_LIMIT") == 0)
            process_SET_VELOCITY_LIMIT(line);
    }

    long lines = 0;
    double x = 0, velocity = 0, accel = 0, corner = 0;

private:
    void process_G1(const std::string &line)
    {
        size_t at = line.find('X');
        if (at != std::string::npos)
            x += std::strtod(line.c_str() + at + 1, nullptr);
    }

    void match(const std::string &line, const std::regex &regex, double &value)
    {
        std::smatch matches;
        if (std::regex_search(line, matches, regex))
            value = std::strtod(matches[1].str().c_str(), nullptr);
    }

    void process_SET_VELOCITY_LIMIT(const std::string &line)
    {
        if (fixed_form) {
            static const std::regex pv("\\sVELOCITY\\s*=\\s*([0-9]*\\.?[0-9]*)");
            static const std::regex pa("\\sACCEL\\s*=\\s*([0-9]*\\.?[0-9]*)");
            static const std::regex pc("\\sSQUARE_CORNER_VELOCITY\\s*=\\s*([0-9]*\\.?[0-9]*)");
            match(line, pv, velocity);
            match(line, pa, accel);
            match(line, pc, corner);
            return;
        }
        std::regex pattern("\\sVELOCITY\\s*=\\s*([0-9]*\\.?[0-9]*)");
        match(line, pattern, velocity);
        pattern = std::regex("\\sACCEL\\s*=\\s*([0-9]*\\.?[0-9]*)");
        match(line, pattern, accel);
        pattern = std::regex("\\sSQUARE_CORNER_VELOCITY\\s*=\\s*([0-9]*\\.?[0-9]*)");
        match(line, pattern, corner);
    }
};

static void gcode_view()
{
    std::vector<std::string> program;
    for (int i = 0; i < 120; i++) {
        if (i % 12 == 0)
            program.push_back("SET_VELOCITY_LIMIT VELOCITY=200 ACCEL=5000");
        else
            program.push_back("G1 X" + std::to_string(i * 0.37) + " Y12.5 E0.031");
    }
    GCodeProcessor processor;
    while (running())
        for (const std::string &line : program)
            processor.process_gcode_line(line);
    std::printf("lines %ld, velocity %g\n", processor.lines, processor.velocity);
}

// ---------------------------------------------------------------- monster-sight

struct point {
    int x, y;
    bool operator==(const point &) const = default;
};

template <>
struct std::hash<point> {
    size_t operator()(const point &k) const noexcept
    {
        uint64_t v = static_cast<uint64_t>(k.x) << 32 | static_cast<uint32_t>(k.y);
        if (fixed_form) {
            v ^= v >> 32;
            v *= 0xe9846af9b1a615dULL;
            v ^= v >> 32;
            v *= 0xe9846af9b1a615dULL;
            return v ^ v >> 28;
        }
        return static_cast<size_t>(k.x ^ k.y) << 1;
    }
};

template <typename Key, typename Value>
class lru_cache {
public:
    Value get(const Key &key, const Value &absent) const
    {
        auto found = map.find(key);
        return found == map.end() ? absent : found->second;
    }

    void insert(size_t limit, const Key &key, const Value &value)
    {
        if (map.size() >= limit)
            map.clear();
        map[key] = value;
    }

private:
    std::unordered_map<Key, Value> map;
};

class level_map {
public:
    bool has_potential_los(const point &from, const point &to)
    {
        point key{from.x * 12 + to.x / 11, from.y * 12 + to.y / 11};
        int known = seen_cache.get(key, -1);
        if (known < 0) {
            known = (key.x * 31 + key.y * 17) % 5 != 0;
            seen_cache.insert(60000, key, known);
        }
        return known != 0;
    }

private:
    lru_cache<point, int> seen_cache;
};

static void monster_sight()
{
    level_map here;
    unsigned seed = 11;
    long checks = 0, seen = 0;
    while (running()) {
        for (int i = 0; i < 500; i++) {
            seed = seed * 1103515245u + 12345u;
            point from{static_cast<int>(seed >> 8) % 12, static_cast<int>(seed >> 14) % 12};
            seed = seed * 1103515245u + 12345u;
            point to{static_cast<int>(seed >> 8) % 132, static_cast<int>(seed >> 16) % 132};
            seen += here.has_potential_los(from, to);
            checks++;
        }
    }
    std::printf("checks %ld, seen %ld\n", checks, seen);
}

// ---------------------------------------------------------------- switch-sync

class Syncd {
public:
    void flexCounterThread()
    {
        while (running()) {
            if (fixed_form) {
                {
                    std::lock_guard<std::mutex> lock(g_mutex);
                    collectCounters();
                }
                std::this_thread::sleep_for(poll_interval);
                continue;
            }
            std::lock_guard<std::mutex> lock(g_mutex);
            collectCounters();
            std::this_thread::sleep_for(poll_interval);
        }
    }

    void processEvent()
    {
        std::lock_guard<std::mutex> lock(g_mutex);
        for (int i = 0; i < 200; i++)
            attributes[i % 64] += i;
        events++;
    }

    long events = 0;

private:
    void collectCounters()
    {
        for (int port = 0; port < 32; port++)
            for (int i = 0; i < 64; i++)
                counters[port] += attributes[i] ^ port;
    }

    const std::chrono::milliseconds poll_interval{300};
    std::mutex g_mutex;
    long attributes[64] = {};
    long counters[32] = {};
};

static void switch_sync()
{
    Syncd syncd;
    std::thread counter(&Syncd::flexCounterThread, &syncd);
    while (running()) {
        syncd.processEvent();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    counter.join();
    std::printf("events %ld\n", syncd.events);
}

// ---------------------------------------------------------------- transfer-engine

class TicketLock {
public:
    void lock()
    {
        if (fixed_form)
            return mutex.lock();
        int my_ticket = next_ticket.fetch_add(1, std::memory_order_relaxed);
        while (now_serving.load(std::memory_order_acquire) != my_ticket)
            std::this_thread::yield();
    }

    void unlock()
    {
        if (fixed_form)
            return mutex.unlock();
        now_serving.fetch_add(1, std::memory_order_release);
    }

private:
    std::atomic<int> next_ticket{0};
    alignas(64) std::atomic<int> now_serving{0};
    std::mutex mutex;
};

class TransferEngine {
public:
    void submitTransfer(long bytes)
    {
        slot_lock.lock();
        for (int i = 0; i < 16; i++)
            slots[(queued + i) % 64] += bytes;
        queued++;
        slot_lock.unlock();
    }

    long queued = 0;

private:
    TicketLock slot_lock;
    long slots[64] = {};
};

static void transfer_engine()
{
    TransferEngine engine;
    auto submitter = [&engine] {
        while (running())
            for (int i = 0; i < 100; i++)
                engine.submitTransfer(4096 + i);
    };
    std::thread first(submitter), second(submitter);
    first.join();
    second.join();
    std::printf("transfers %ld\n", engine.queued);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    std::string name = argv[1];
    folder = argv[3];
    fixed_form = argc > 4 && std::string(argv[4]) == "fixed";
    end_time = Clock::now() + std::chrono::microseconds(static_cast<long>(atof(argv[2]) * 1e6));
    if (name == "port-runner")
        port_runner();
    else if (name == "lp-solver")
        lp_solver();
    else if (name == "gcode-view")
        gcode_view();
    else if (name == "monster-sight")
        monster_sight();
    else if (name == "switch-sync")
        switch_sync();
    else if (name == "transfer-engine")
        transfer_engine();
    else
        return 2;
    return 0;
}
