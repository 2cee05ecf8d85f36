// Programs after public reports, Y8 to Y12: see REPORTS.md.
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <locale>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using steady = std::chrono::steady_clock;

static steady::time_point end_at;
static bool repaired;

static bool running() { return steady::now() < end_at; }

// ---- Y8 row-reader: the fields of a query's result become numbers ----

namespace pqxx {

template <typename T> static void from_string_float(const char str[], T &obj)
{
    T result{};
    bool ok;
    if (repaired) {
        auto r = std::from_chars(str, str + std::strlen(str), result);
        ok = r.ec == std::errc();
    } else {
        std::stringstream s(str);
        s.imbue(std::locale("C"));
        ok = static_cast<bool>(s >> result);
    }
    if (!ok)
        throw std::runtime_error("could not convert string to number");
    obj = result;
}

struct row {
    std::vector<std::string> fields;
};

} // namespace pqxx

static int row_reader()
{
    std::vector<pqxx::row> result;
    for (int i = 0; i < 1000; i++) {
        pqxx::row r;
        for (int k = 0; k < 8; k++)
            r.fields.push_back(std::to_string(i * 8.25 + k * 1013.125));
        result.push_back(std::move(r));
    }
    unsigned long rows = 0;
    double sum = 0;
    while (running())
        for (auto &r : result) {
            for (auto &f : r.fields) {
                double value;
                pqxx::from_string_float(f.c_str(), value);
                sum += value;
            }
            rows++;
        }
    std::printf("rows %lu, sum %g\n", rows, sum);
    return 0;
}

// ---- Y9 world-update: the maps of a game server ----

class ThreadPool {
public:
    ThreadPool() : m_thread([this] { Work(); }) {}
    ~ThreadPool()
    {
        {
            std::lock_guard<std::mutex> g(m_mutex);
            m_stop = true;
        }
        m_ready.notify_one();
        m_thread.join();
    }
    void Enqueue(std::function<void()> job)
    {
        {
            std::lock_guard<std::mutex> g(m_mutex);
            m_jobs.push_back(std::move(job));
        }
        m_ready.notify_one();
    }
    void Wait()
    {
        std::unique_lock<std::mutex> g(m_mutex);
        m_idle.wait(g, [this] { return m_jobs.empty() && !m_busy; });
    }

private:
    void Work()
    {
        std::unique_lock<std::mutex> g(m_mutex);
        while (true) {
            m_ready.wait(g, [this] { return m_stop || !m_jobs.empty(); });
            if (m_stop)
                return;
            while (!m_jobs.empty()) {
                auto job = std::move(m_jobs.front());
                m_jobs.pop_front();
                m_busy = true;
                g.unlock();
                job();
                g.lock();
                m_busy = false;
            }
            m_idle.notify_all();
        }
    }
    std::mutex m_mutex;
    std::condition_variable m_ready, m_idle;
    std::deque<std::function<void()>> m_jobs;
    bool m_stop = false, m_busy = false;
    std::thread m_thread;
};

struct Unit {
    float x, y, dx, dy;
};

class MapManager {
public:
    MapManager() : m_units(200)
    {
        for (size_t i = 0; i < m_units.size(); i++)
            m_units[i] = {float(i), float(i * 2), 0.25f, 0.5f};
    }
    void Update(unsigned diff)
    {
        if (repaired) {
            m_pool.Enqueue([this] { CreateNewInstancesForPlayers(); });
            UpdateUnits(diff);
            m_pool.Wait();
            return;
        }
        std::thread create([this] { CreateNewInstancesForPlayers(); });
        UpdateUnits(diff);
        create.join();
    }
    unsigned long instances = 0;

private:
    void CreateNewInstancesForPlayers()
    {
        for (auto &p : m_waiting)
            if (p)
                instances++;
    }
    void UpdateUnits(unsigned diff)
    {
        for (auto &u : m_units) {
            u.x += u.dx * diff;
            u.y += u.dy * diff;
            if (u.x > 1000)
                u.x -= 1000;
            if (u.y > 1000)
                u.y -= 1000;
        }
    }
    std::vector<Unit> m_units;
    std::vector<int> m_waiting = {0, 0, 1, 0};
    ThreadPool m_pool;
};

static int world_update()
{
    MapManager maps;
    unsigned long updates = 0;
    while (running()) {
        maps.Update(1);
        updates++;
    }
    std::printf("updates %lu, instances %lu\n", updates, maps.instances);
    return 0;
}

// ---- Y10 block-compare: the blocks of a ledger of a currency node ----

namespace rai {

enum class block_type : uint8_t { send, receive, open, change, state };

class block {
public:
    virtual ~block() {}
    virtual block_type type() const = 0;
    virtual bool operator==(block const &) const = 0;
};

template <typename T> static bool blocks_equal(T const &first, block const &second)
{
    if (repaired)
        return first.type() == second.type() && static_cast<T const &>(second) == first;
    auto other = dynamic_cast<T const *>(&second);
    return other != nullptr && *other == first;
}

#define RAI_BLOCK(name)                                                                    \
    class name##_block : public block {                                                    \
    public:                                                                                \
        uint64_t hash[4];                                                                  \
        explicit name##_block(uint64_t n) : hash{n, ~n, n * 3, n * 5} {}                   \
        block_type type() const override { return block_type::name; }                      \
        bool operator==(name##_block const &o) const                                       \
        {                                                                                  \
            return !std::memcmp(hash, o.hash, sizeof hash);                                \
        }                                                                                  \
        bool operator==(block const &o) const override { return blocks_equal(*this, o); }  \
    };

RAI_BLOCK(send)
RAI_BLOCK(receive)
RAI_BLOCK(open)
RAI_BLOCK(change)
RAI_BLOCK(state)

static std::unique_ptr<block> make(uint64_t n)
{
    switch (n % 5) {
    case 0: return std::make_unique<send_block>(n);
    case 1: return std::make_unique<receive_block>(n);
    case 2: return std::make_unique<open_block>(n);
    case 3: return std::make_unique<change_block>(n);
    default: return std::make_unique<state_block>(n);
    }
}

static size_t tally_find(std::vector<std::unique_ptr<block>> const &votes, block const &b)
{
    for (size_t i = 0; i < votes.size(); i++)
        if (b == *votes[i])
            return i;
    return votes.size();
}

} // namespace rai

static int block_compare()
{
    std::vector<std::unique_ptr<rai::block>> votes, arriving;
    for (uint64_t i = 0; i < 400; i++) {
        votes.push_back(rai::make(i * 7 + 3));
        arriving.push_back(rai::make(i * 7 + (i % 3 ? 3 : 4)));
    }
    unsigned long found = 0, blocks = 0;
    while (running())
        for (auto &b : arriving) {
            found += rai::tally_find(votes, *b) != votes.size();
            blocks++;
        }
    std::printf("blocks %lu, found %lu\n", blocks, found);
    return 0;
}

// ---- Y11 intel-publish: messages wait in the buffer of an observable ----

struct data_message {
    std::string topic;
    std::shared_ptr<std::vector<int>> content;
};

template <template <typename...> class Buffer> class buffered_observable_impl {
public:
    void append_to_buf(data_message m) { buf_.push_back(std::move(m)); }
    template <typename F> void try_push(size_t demand, F output)
    {
        size_t n = std::min(demand, buf_.size());
        for (size_t i = 0; i < n; i++)
            output(buf_[i]);
        buf_.erase(buf_.begin(), buf_.begin() + n);
    }
    size_t size() const { return buf_.size(); }

private:
    Buffer<data_message> buf_;
};

template <template <typename...> class Buffer> static int publish()
{
    buffered_observable_impl<Buffer> observable;
    auto content = std::make_shared<std::vector<int>>(8, 1);
    unsigned long published = 0, sum = 0;
    for (int i = 0; i < 60000; i++)
        observable.append_to_buf({"zeek/intel/item", content});
    while (running()) {
        observable.try_push(8, [&](data_message const &m) {
            sum += m.topic.size() + m.content->size();
            published++;
        });
        while (observable.size() < 60000)
            observable.append_to_buf({"zeek/intel/item", content});
    }
    std::printf("published %lu (%lu)\n", published, sum);
    return 0;
}

static int intel_publish()
{
    return repaired ? publish<std::deque>() : publish<std::vector>();
}

// ---- Y12 result-waiter: a thread waits for the answer of a coroutine ----

struct StdContext {};

template <typename Context> class Awaiter {
public:
    bool suspend(uint64_t timeout = -1)
    {
        std::unique_lock<std::mutex> lock(mtx);
        if (repaired && timeout > 1000000000000ull)
            timeout = 1000000000000ull;
        return cond.wait_for(lock, std::chrono::microseconds(timeout), [&] { return got; });
    }
    void resume()
    {
        std::lock_guard<std::mutex> lock(mtx);
        got = true;
        cond.notify_one();
    }

private:
    std::mutex mtx;
    std::condition_variable cond;
    bool got = false;
};

class WorkPool {
public:
    WorkPool() : m_thread([this] { work(); }) {}
    ~WorkPool()
    {
        m_stop = true;
        m_thread.join();
    }
    void call(Awaiter<StdContext> *a) { m_call = a; }

private:
    void work()
    {
        while (!m_stop) {
            std::this_thread::sleep_for(std::chrono::milliseconds(40));
            if (auto *a = m_call.exchange(nullptr))
                a->resume();
        }
    }
    std::atomic<bool> m_stop{false};
    std::atomic<Awaiter<StdContext> *> m_call{nullptr};
    std::thread m_thread;
};

static int result_waiter()
{
    WorkPool pool;
    unsigned long answers = 0, suspends = 0;
    while (running()) {
        Awaiter<StdContext> awaiter;
        pool.call(&awaiter);
        do
            suspends++;
        while (!awaiter.suspend());
        answers++;
    }
    std::printf("answers %lu, suspends %lu\n", answers, suspends);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    end_at = steady::now() + std::chrono::milliseconds(int(std::atof(argv[2]) * 1000));
    repaired = argc > 4 && !std::strcmp(argv[4], "fixed");
    std::string name = argv[1];
    if (name == "row-reader")
        return row_reader();
    if (name == "world-update")
        return world_update();
    if (name == "block-compare")
        return block_compare();
    if (name == "intel-publish")
        return intel_publish();
    if (name == "result-waiter")
        return result_waiter();
    return 2;
}
