// Six programs after public reports, one of them per run: CASE SECONDS FOLDER [fixed].
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
static Clock::time_point deadline;
static bool fixed_form;
static std::string folder;
static double run_seconds;

static bool time_left() { return Clock::now() < deadline; }

// ---- expansion-groups: which variables of a linear program belong to which criterion ----

namespace expansion {

struct Variable {
    std::string name;
    int index;
};
struct SensitivityCriterion {
    std::regex pattern;
    std::string text;
    std::vector<int> columns;
};

class VariablesGroup {
  public:
    VariablesGroup(const std::vector<Variable>& variables,
                   std::vector<SensitivityCriterion>& criteria)
        : variables_(variables), criteria_(criteria) {}
    long Search() {
        long found = 0;
        for (const auto& v : variables_) {
            for (auto& c : criteria_) {
                bool hit = fixed_form ? v.name.find(c.text) != std::string::npos
                                      : std::regex_search(v.name, c.pattern);
                if (hit) {
                    c.columns.push_back(v.index);
                    found++;
                }
            }
            if (!time_left()) break;
        }
        for (auto& c : criteria_) c.columns.clear();
        return found;
    }

  private:
    const std::vector<Variable>& variables_;
    std::vector<SensitivityCriterion>& criteria_;
};

static void run() {
    std::vector<Variable> variables;
    const char* kinds[] = {"PositiveUnsuppliedEnergy", "NTCDirect", "HydProd", "ThermalProd"};
    for (int i = 0; i < 20000; i++) {
        std::ostringstream name;
        name << kinds[i % 4] << "::area<area" << i % 60 << ">::hour<" << i / 60 << ">";
        variables.push_back({name.str(), i});
    }
    std::vector<SensitivityCriterion> criteria;
    for (int i = 0; i < 66; i++) {
        std::string text = "PositiveUnsuppliedEnergy::area<area" + std::to_string(i) + ">";
        criteria.push_back({std::regex("(^" + text + ")"), text, {}});
    }
    long found = 0, searches = 0;
    while (time_left()) {
        VariablesGroup group(variables, criteria);
        found += group.Search();
        searches++;
    }
    std::printf("expansion-groups: %ld searches, %ld columns\n", searches, found);
}

}  // namespace expansion

// ---- index-query: a language server; its query thread waits on several queues ----

namespace langserver {

struct BaseThreadQueue {
    virtual bool IsEmpty() = 0;
    virtual ~BaseThreadQueue() = default;
};

struct MultiQueueWaiter {
    std::mutex m;
    std::condition_variable cv;

    static bool HasState(const std::vector<BaseThreadQueue*>& queues) {
        for (auto* q : queues)
            if (!q->IsEmpty()) return true;
        return false;
    }
    void Wait(const std::vector<BaseThreadQueue*>& queues) {
        if (fixed_form) {
            std::unique_lock<std::mutex> l(m);
            cv.wait(l, [&] { return HasState(queues); });
            return;
        }
        while (!HasState(queues)) {
            std::unique_lock<std::mutex> l(m);
            cv.wait_for(l, std::chrono::seconds(5));
        }
    }
};

template <class T>
struct ThreadedQueue : BaseThreadQueue {
    explicit ThreadedQueue(MultiQueueWaiter* w) : waiter(w) {}
    void Enqueue(T t) {
        {
            std::lock_guard<std::mutex> g(mutex);
            items.push_back(std::move(t));
        }
        if (fixed_form) {
            std::lock_guard<std::mutex> g(waiter->m);
        }
        waiter->cv.notify_all();
    }
    bool TryDequeue(T* t) {
        std::lock_guard<std::mutex> g(mutex);
        if (items.empty()) return false;
        *t = std::move(items.front());
        items.pop_front();
        return true;
    }
    bool IsEmpty() override {
        std::lock_guard<std::mutex> g(mutex);
        return items.size() <= kept;
    }
    MultiQueueWaiter* waiter;
    std::mutex mutex;
    std::deque<T> items;
    size_t kept = 0;  // entries that stay for the report of progress
};

struct Message {
    int id = 0;
    std::string text;
};

static MultiQueueWaiter querydb_waiter, stdout_waiter;
static ThreadedQueue<Message> for_stdin(&querydb_waiter), on_indexed(&querydb_waiter),
    do_id_map(&querydb_waiter), load_done(&querydb_waiter), for_stdout(&stdout_waiter);
static std::atomic<long> answers{0}, pending_bytes{0};

static long FindSymbols(const std::string& text) {
    long h = 0;
    for (int i = 0; i < 40; i++)
        for (char c : text) h = h * 131 + c;
    return h;
}

static bool QueryDbMainLoop() {
    Message msg;
    bool did_work = false;
    while (for_stdin.TryDequeue(&msg)) {
        did_work = true;
        for_stdout.Enqueue({msg.id, std::to_string(FindSymbols(msg.text))});
    }
    while (on_indexed.TryDequeue(&msg)) did_work = true;
    while (do_id_map.TryDequeue(&msg)) did_work = true;
    return did_work;
}
// Tells now and then how much has been loaded.
static void ReportProgress() {
    pthread_setname_np(pthread_self(), "progress");
    for (;;) {
        size_t bytes = 0;
        {
            std::lock_guard<std::mutex> g(load_done.mutex);
            for (int i = 0; i < 100; i++)
                for (const auto& item : load_done.items) bytes += item.text.size() + item.id;
            pending_bytes = bytes;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}
static void RunQueryDbThread() {
    pthread_setname_np(pthread_self(), "querydb");
    std::vector<BaseThreadQueue*> queues{&for_stdin, &on_indexed, &do_id_map, &load_done};
    for (;;)
        if (!QueryDbMainLoop()) querydb_waiter.Wait(queues);
}
static std::string ReadJsonRpcContent(int id) {
    static std::string content(60000, 'x');
    size_t length = unsigned(id) * 2654435761u % content.size();
    unsigned sum = 0;
    for (size_t i = 0; i < length; i++) sum = sum * 31 + content[i];
    return "textDocument/completion " + std::to_string(sum);
}
static void LaunchStdinLoop() {
    pthread_setname_np(pthread_self(), "stdin");
    for (int id = 1;; id++) {
        for_stdin.Enqueue({id, ReadJsonRpcContent(id)});
        Message reply;
        std::unique_lock<std::mutex> l(stdout_waiter.m);
        stdout_waiter.cv.wait(l, [&] { return !for_stdout.IsEmpty(); });
        for_stdout.TryDequeue(&reply);
        answers++;
    }
}
static void run() {
    for (int i = 0; i < 4000; i++) load_done.items.push_back({i, "src/file.cc.json"});
    load_done.kept = load_done.items.size();
    std::thread(RunQueryDbThread).detach();
    std::thread(ReportProgress).detach();
    std::thread(LaunchStdinLoop).detach();
    std::this_thread::sleep_until(deadline);
    std::printf("index-query: %ld answers\n", answers.load());
    std::fflush(stdout);
    _exit(0);
}

}  // namespace langserver

// ---- crib-camera: motion of a picture is amplified, band by band ----

namespace crib {

class WorkerThread {
  public:
    WorkerThread() : thread_([this] { Loop(); }) {}
    ~WorkerThread() {
        Push(nullptr);
        thread_.join();
    }
    std::future<void> Push(std::function<void()> f) {
        auto task = std::make_shared<std::packaged_task<void()>>(f ? f : [] {});
        auto result = task->get_future();
        {
            std::lock_guard<std::mutex> g(mutex_);
            queue_.push({f != nullptr, task});
        }
        cv_.notify_one();
        return result;
    }

  private:
    void Loop() {
        for (;;) {
            std::unique_lock<std::mutex> l(mutex_);
            cv_.wait(l, [&] { return !queue_.empty(); });
            auto [more, task] = queue_.front();
            queue_.pop();
            l.unlock();
            (*task)();
            if (!more) return;
        }
    }
    std::mutex mutex_;
    std::condition_variable cv_;
    std::queue<std::pair<bool, std::shared_ptr<std::packaged_task<void()>>>> queue_;
    std::thread thread_;
};

struct RieszPyramidLevel {
    std::vector<float> phase, result;
    RieszPyramidLevel() : phase(320, 0.1f), result(320) {}
    void Amplify(float alpha) {
        for (size_t i = 1; i + 1 < phase.size(); i++)
            result[i] = phase[i] * 0.9f + alpha * 0.05f * (phase[i - 1] + phase[i + 1]);
        phase.swap(result);
    }
};

class RieszTransform {
  public:
    RieszTransform() : levels_(6) {
        if (fixed_form)
            for (int i = 0; i < 2; i++) workers_.push_back(std::make_unique<WorkerThread>());
    }
    void Transform(float alpha) {
        std::vector<std::future<void>> done;
        for (size_t i = 0; i < levels_.size(); i++) {
            auto job = [this, i, alpha] { levels_[i].Amplify(alpha); };
            if (fixed_form) done.push_back(workers_[i % 2]->Push(job));
            else done.push_back(std::async(std::launch::async, job));
        }
        for (auto& d : done) d.get();
    }
    float Level(int i) const { return levels_[i].phase[9]; }

  private:
    std::vector<RieszPyramidLevel> levels_;
    std::vector<std::unique_ptr<WorkerThread>> workers_;
};

static void run() {
    RieszTransform riesz;
    long frames = 0;
    while (time_left()) {
        riesz.Transform(0.98f);
        frames++;
    }
    std::printf("crib-camera: %ld frames (%g)\n", frames, riesz.Level(2));
}

}  // namespace crib

// ---- photo-metadata: the chunks of PNG pictures are read for their metadata ----

namespace photo {

class FileIo {
  public:
    explicit FileIo(std::string path)
        : path_(std::move(path)), fp_(std::fopen(path_.c_str(), "rb")) {}
    ~FileIo() { std::fclose(fp_); }
    size_t size() {
        if (fixed_form && size_) return size_;
        struct stat st;
        if (::stat(path_.c_str(), &st) != 0) return 0;
        return size_ = st.st_size;
    }
    size_t read(unsigned char* buf, size_t n) {
        size_t got = std::fread(buf, 1, n, fp_);
        pos_ += got;
        return got;
    }
    size_t tell() const { return pos_; }

  private:
    std::string path_;
    FILE* fp_;
    size_t size_ = 0, pos_ = 0;
};

class PngImage {
  public:
    explicit PngImage(FileIo& io) : io_(io) {}
    long readMetadata() {
        unsigned char head[8], data[256], crc[4];
        long texts = 0;
        if (io_.read(head, 8) != 8) return 0;
        while (io_.tell() < io_.size()) {
            if (io_.read(head, 8) != 8) break;
            size_t length = head[2] << 8 | head[3];
            if (length > sizeof data || io_.tell() + length > io_.size()) break;
            io_.read(data, length);
            if (io_.tell() + 4 > io_.size()) break;
            io_.read(crc, 4);
            if (!std::memcmp(head + 4, "tEXt", 4)) texts += data[0] != 0;
        }
        return texts;
    }

  private:
    FileIo& io_;
};

static void run() {
    std::string path = folder + "/sample-big.png";
    FILE* f = std::fopen(path.c_str(), "wb");
    std::fwrite("\x89PNG\r\n\x1a\n", 1, 8, f);
    for (int i = 0; i < 2500; i++) {
        unsigned char chunk[8 + 32 + 4] = {0, 0, 0, 32};
        std::memcpy(chunk + 4, i % 50 ? "IDAT" : "tEXt", 4);
        std::memset(chunk + 8, 'a' + i % 26, 32);
        std::fwrite(chunk, 1, sizeof chunk, f);
    }
    std::fclose(f);
    long pictures = 0, texts = 0;
    while (time_left()) {
        FileIo io(path);
        texts += PngImage(io).readMetadata();
        pictures++;
    }
    std::printf("photo-metadata: %ld pictures, %ld texts\n", pictures, texts);
}

}  // namespace photo

// ---- map-editor: solids of a level are built from planes; some cannot be ----

namespace editor {

static std::string GetStackTrace() {
    void* frames[48];
    int n = backtrace(frames, 48);
    char** names = backtrace_symbols(frames, n);
    std::string out;
    for (int i = 0; i < n; i++) out.append(names[i]).append("\n");
    std::free(names);
    return out;
}

class Exception {
  public:
    explicit Exception(const std::string& message) : message_(message) {
        if (!fixed_form) stack_trace_ = GetStackTrace();
    }
    const std::string& what() const { return message_; }

  private:
    std::string message_, stack_trace_;
};
class GeometryException : public Exception {
  public:
    using Exception::Exception;
};

struct Plane {
    double a, b, c, d;
};

static double Determinant(const Plane& p, const Plane& q, const Plane& r) {
    return p.a * (q.b * r.c - q.c * r.b) - p.b * (q.a * r.c - q.c * r.a) +
           p.c * (q.a * r.b - q.b * r.a);
}
[[gnu::noinline]] static double AddFace(const std::vector<Plane>& planes, size_t depth) {
    if (depth + 2 < planes.size())
        return AddFace(planes, depth + 1) +
               std::fabs(Determinant(planes[depth], planes[depth + 1], planes[depth + 2]));
    if (planes.back().d < 0) throw GeometryException("Brush is empty");
    return planes.back().d;
}
static double CreateBrush(const std::vector<Plane>& planes) { return AddFace(planes, 0); }

static void run() {
    std::vector<Plane> planes(14);
    long brushes = 0, invalid = 0;
    double volume = 0;
    while (time_left()) {
        for (size_t i = 0; i < planes.size(); i++) {
            double t = double((brushes * 7 + long(i) * 13) % 97) / 97;
            planes[i] = {t, 1 - t, t * t, brushes % 2 ? -t - 0.1 : t};
        }
        try {
            volume += CreateBrush(planes);
        } catch (const GeometryException& e) {
            invalid += !e.what().empty();
        }
        brushes++;
    }
    std::printf("map-editor: %ld brushes, %ld invalid (%g)\n", brushes, invalid, volume);
}

}  // namespace editor

// ---- night-map: maps are drawn on each position; in a tunnel the style has to change ----

namespace night {

class Latch {
  public:
    Latch() {
        pthread_rwlockattr_t attr;
        pthread_rwlockattr_init(&attr);
        if (fixed_form)
            pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        pthread_rwlock_init(&lock_, &attr);
    }
    void lock() { pthread_rwlock_wrlock(&lock_); }
    void unlock() { pthread_rwlock_unlock(&lock_); }
    void lock_shared() { pthread_rwlock_rdlock(&lock_); }
    void unlock_shared() { pthread_rwlock_unlock(&lock_); }

  private:
    pthread_rwlock_t lock_;
};

class DBThread {
  public:
    explicit DBThread(const std::string& path) : fd_(open(path.c_str(), O_RDONLY)) {}
    void RunReadJob(long job) {
        latch_.lock_shared();
        char tile[4096];
        for (int i = 0; i < 20; i++) {
            off_t at = (job * 31 + i * 7) % 256 * 4096;
            if (pread(fd_, tile, sizeof tile, at) > 0) tiles += tile[i] == 'x';
            std::this_thread::sleep_for(std::chrono::microseconds(600));
        }
        latch_.unlock_shared();
    }
    void LoadStyle(bool daylight) {
        latch_.lock();
        daylight_ = daylight;
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        latch_.unlock();
    }
    std::atomic<long> tiles{0};

  private:
    int fd_;
    bool daylight_ = true;
    Latch latch_;
};

static void run() {
    std::string path = folder + "/map.db";
    FILE* f = std::fopen(path.c_str(), "wb");
    for (int i = 0; i < 256 * 4096; i++) std::fputc('x', f);
    std::fclose(f);
    static DBThread db(path);
    static std::atomic<long> jobs{0}, styles{0};
    static const char* names[] = {"MapRenderer", "Navigation", "PoiService", "Routing"};
    for (const char* name : names)
        std::thread([name] {
            pthread_setname_np(pthread_self(), name);
            for (;;) {
                db.RunReadJob(jobs++);
                std::this_thread::sleep_for(std::chrono::microseconds(300));
            }
        }).detach();
    std::thread([] {
        pthread_setname_np(pthread_self(), "StyleLoader");
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        for (bool day = false;; day = !day) {
            db.LoadStyle(day);
            styles++;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }).detach();
    std::this_thread::sleep_until(deadline);
    std::printf("night-map: %ld jobs, %ld changes of style\n", jobs.load(), styles.load());
    std::fflush(stdout);
    _exit(0);
}

}  // namespace night

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s case seconds folder [fixed]\n", argv[0]);
        return 2;
    }
    std::string name = argv[1];
    run_seconds = std::atof(argv[2]);
    fixed_form = argc > 4 && !std::strcmp(argv[4], "fixed");
    folder = std::string(argv[3]) + "/" + name;
    std::filesystem::create_directories(folder);
    deadline = Clock::now() + std::chrono::milliseconds(long(run_seconds * 1000));
    const std::map<std::string, void (*)()> cases{
        {"expansion-groups", expansion::run}, {"index-query", langserver::run},
        {"crib-camera", crib::run},           {"photo-metadata", photo::run},
        {"map-editor", editor::run},          {"night-map", night::run},
    };
    auto found = cases.find(name);
    if (found == cases.end()) {
        std::fprintf(stderr, "no case %s\n", argv[1]);
        return 2;
    }
    found->second();
    return 0;
}
