// Programs from public reports, V9..V13 (see REPORTS.md). Build: g++ -O1 -g -w fourth.cc -lpthread
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

static double secs = 4;
static std::string dir = "/tmp";
static bool fixed_ = false;
static std::chrono::steady_clock::time_point t_end;

static bool going() { return std::chrono::steady_clock::now() < t_end; }

// ---- V9: a network measurement whose name look-ups go to a slow name server ----

static void name_server() {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t l = sizeof a;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    bind(s, (sockaddr *)&a, sizeof a);
    getsockname(s, (sockaddr *)&a, &l);
    std::ofstream(dir + "/dns") << ntohs(a.sin_port) << "\n";
    printf("ready\n");
    fflush(stdout);
    alarm((unsigned)secs);
    struct Answer { std::chrono::steady_clock::time_point due; sockaddr_in to; char q[64]; ssize_t n; };
    std::deque<Answer> waiting;
    for (;;) {
        timeval tv{0, 2000};
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
        Answer x{};
        l = sizeof x.to;
        x.n = recvfrom(s, x.q, sizeof x.q, 0, (sockaddr *)&x.to, &l);
        auto t = std::chrono::steady_clock::now();
        if (x.n > 0) {
            x.due = t + std::chrono::milliseconds(150);
            waiting.push_back(x);
        }
        while (!waiting.empty() && waiting.front().due <= t) {
            sendto(s, waiting.front().q, waiting.front().n, 0, (sockaddr *)&waiting.front().to, sizeof(sockaddr_in));
            waiting.pop_front();
        }
    }
}

struct Reactor {
    std::mutex m;
    std::deque<std::function<void()>> calls;
    void call_soon(std::function<void()> f) {
        std::lock_guard<std::mutex> g(m);
        calls.push_back(std::move(f));
    }
    NOINLINE void loop() {
        while (going()) {
            std::function<void()> f;
            {
                std::lock_guard<std::mutex> g(m);
                if (!calls.empty()) {
                    f = std::move(calls.front());
                    calls.pop_front();
                }
            }
            if (f)
                f();
            else
                usleep(1000);
        }
    }
};

static Reactor reactor;
static int dns_port;
static long lookups;
static std::vector<std::future<void>> kept;

static NOINLINE std::string resolve_hostname(const std::string &name) {
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(dns_port);
    connect(s, (sockaddr *)&a, sizeof a);
    send(s, name.data(), name.size(), 0);
    char b[64];
    timeval tv{2, 0};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    ssize_t n = recv(s, b, sizeof b, 0);
    close(s);
    return std::string(b, n > 0 ? n : 0);
}

static NOINLINE void query_async(std::string name, std::function<void(std::string)> cb) {
    auto work = [name, cb] {
        std::string r = resolve_hostname(name);
        reactor.call_soon([cb, r] { cb(r); });
    };
    if (fixed_)
        kept.push_back(std::async(std::launch::async, work));
    else
        std::async(std::launch::async, work);
}

static void web_connectivity_test(int test, int n) {
    query_async("host" + std::to_string(n) + ".test" + std::to_string(test), [=](std::string) {
        lookups++;
        web_connectivity_test(test, n + 1);
    });
}

static void web_connectivity() {
    std::ifstream(dir + "/dns") >> dns_port;
    for (int i = 0; i < 8; i++)
        reactor.call_soon([i] { web_connectivity_test(i, 0); });
    reactor.loop();
    printf("look-ups %ld\n", lookups);
    fflush(stdout);
    _exit(0);
}

// ---- V10: a laser profile read in chunks ----

static NOINLINE void read_data_t_chunk(const std::string &file, long t_begin, long t_end_, long step, std::vector<double> &e) {
    std::ifstream inp(file, std::ios::binary);
    std::streamsize skip_amount = t_begin * step * (std::streamsize)sizeof(double);
    if (fixed_)
        inp.seekg(skip_amount);
    else
        inp.ignore(skip_amount);
    e.resize((t_end_ - t_begin) * step);
    inp.read((char *)e.data(), e.size() * sizeof(double));
}

static void laser_file() {
    const long nt = 1200, nxy = 16384;          // 157 MB
    std::string file = dir + "/laser.txye";
    close(open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644));
    truncate(file.c_str(), nt * nxy * sizeof(double));
    t_end = std::chrono::steady_clock::now() + std::chrono::microseconds((long)(secs * 1e6));
    std::vector<double> e;
    long steps = 0;
    double sum = 0;
    while (going())
        for (long t = 300; t + 12 <= nt && going(); t += 12) {
            read_data_t_chunk(file, t, t + 12, nxy, e);
            sum += e[7];
            steps++;
        }
    printf("chunks %ld (%g)\n", steps, sum);
    unlink(file.c_str());
}

// ---- V11: a worker thread of a key-value server ----

struct Connection {
    int fd = -1;
    std::string out;
    size_t pos = 0;
};

static bool would_block(ssize_t n) { return n < 0 && errno == EAGAIN; }

struct WorkerThread {
    int ep = epoll_create1(0);
    long rounds = 0, served = 0;
    Connection conn;

    void mod_event(unsigned ev) {
        epoll_event e{};
        e.events = ev;
        epoll_ctl(ep, EPOLL_CTL_MOD, conn.fd, &e);
    }
    NOINLINE void send_reply() {
        while (conn.pos < conn.out.size()) {
            ssize_t n = write(conn.fd, conn.out.data() + conn.pos, conn.out.size() - conn.pos);
            if (would_block(n)) {
                mod_event(EPOLLIN | EPOLLOUT);
                return;
            }
            if (n <= 0)
                return;
            conn.pos += n;
        }
        if (conn.pos) {
            conn.pos = 0;
            conn.out.clear();
            served++;
            if (fixed_)
                mod_event(EPOLLIN);
        }
    }
    NOINLINE void get_request() {
        char b[256];
        ssize_t n = read(conn.fd, b, sizeof b);
        if (n <= 0)
            return;
        conn.out.append(b[0] == 'L' ? 4u << 20 : 64, 'v');
        send_reply();
    }
    NOINLINE void thread_main() {
        epoll_event ev[64];
        while (going()) {
            int n = epoll_wait(ep, ev, 64, 100);
            rounds++;
            for (int i = 0; i < n; i++) {
                if (ev[i].events & EPOLLOUT)
                    send_reply();
                if (ev[i].events & EPOLLIN)
                    get_request();
            }
        }
    }
};

static void kv_client(int fd) {
    std::vector<char> b(65536);
    auto read_n = [&](size_t want) {
        while (want) {
            ssize_t n = read(fd, b.data(), std::min(want, b.size()));
            if (n <= 0)
                return;
            want -= n;
        }
    };
    if (write(fd, "LRANGE", 6) == 6) {
        usleep(30000);
        read_n(4u << 20);
    }
    while (going()) {
        if (write(fd, "GET k", 5) != 5)
            break;
        read_n(64);
        usleep(100000);
    }
}

static void kv_server() {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t l = sizeof a;
    bind(s, (sockaddr *)&a, sizeof a);
    listen(s, 8);
    getsockname(s, (sockaddr *)&a, &l);
    int c = socket(AF_INET, SOCK_STREAM, 0);
    connect(c, (sockaddr *)&a, sizeof a);
    WorkerThread w;
    w.conn.fd = accept4(s, nullptr, nullptr, SOCK_NONBLOCK);
    epoll_event e{};
    e.events = EPOLLIN;
    epoll_ctl(w.ep, EPOLL_CTL_ADD, w.conn.fd, &e);
    std::thread client(kv_client, c), worker([&] { w.thread_main(); });
    worker.join();
    printf("rounds %ld, requests %ld\n", w.rounds, w.served);
    fflush(stdout);
    _exit(0);
}

// ---- V12: state transfer over a page store ----

struct ResPage { uint64_t checkpoint; std::string digest; std::shared_ptr<std::vector<char>> page; };

class InMemoryDataStore {
    std::map<uint32_t, ResPage> pages_;

  public:
    explicit InMemoryDataStore(uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
            pages_[i] = ResPage{i % 150, std::string(32, char('a' + i % 26)), std::make_shared<std::vector<char>>(64)};
    }
    const std::map<uint32_t, ResPage> &pages() const { return pages_; }
};

class BCStateTran {
    InMemoryDataStore store_{8000};

  public:
    NOINLINE uint64_t getResPage(uint32_t id) {
        if (fixed_) {
            auto &pages = store_.pages();
            auto i = pages.find(id);
            return i == pages.end() ? 0 : i->second.checkpoint;
        }
        auto pages = store_.pages();
        auto i = pages.find(id);
        return i == pages.end() ? 0 : i->second.checkpoint;
    }
};

static void state_transfer() {
    BCStateTran st;
    long n = 0;
    uint64_t sum = 0;
    while (going()) {
        sum += st.getResPage(n % 8000);
        n++;
    }
    printf("pages %ld (%lu)\n", n, (unsigned long)sum);
}

// ---- V13: sparse tables from a scalable allocator ----

static NOINLINE void *allocateLargeObject(size_t n) {
    void *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
}

static NOINLINE void *scalable_calloc(size_t nobj, size_t size) {
    size_t n = nobj * size;
    void *p = allocateLargeObject(n);
    if (p && !fixed_)
        memset(p, 0, n);
    return p;
}

static NOINLINE void scalable_free(void *p, size_t n) { munmap(p, n); }

static void sparse_tables() {
    const size_t n = 64u << 20;
    long tables = 0;
    while (going()) {
        char *p = (char *)scalable_calloc(1, n);
        if (!p)
            break;
        p[1234] = (char)tables;
        p[n / 2] = 1;
        scalable_free(p, n);
        tables++;
    }
    printf("tables %ld\n", tables);
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*f)(); } cases[] = {
        {"name-server", name_server}, {"web-connectivity", web_connectivity}, {"laser-file", laser_file},
        {"kv-server", kv_server}, {"state-transfer", state_transfer}, {"sparse-tables", sparse_tables},
    };
    if (argc < 2)
        return 2;
    if (argc > 2)
        secs = atof(argv[2]);
    if (argc > 3)
        dir = argv[3];
    fixed_ = argc > 4 && !strcmp(argv[4], "fixed");
    t_end = std::chrono::steady_clock::now() + std::chrono::microseconds((long)(secs * 1e6));
    for (auto &c : cases)
        if (!strcmp(argv[1], c.name)) {
            c.f();
            return 0;
        }
    return 2;
}
