/* Eight programs after public reports, one of them per run: CASE SECONDS FOLDER [fixed]. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <resolv.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

static double seconds;
static int fixed;
static char folder[800];
static double started;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static int time_left(void) { return now() - started < seconds; }
static void die(const char *what) {
    perror(what);
    exit(1);
}

/* ---- static-server: an event loop with one connection whose client has gone ---- */

enum { SOCK_READING, SOCK_PENDING };
struct st_socket {
    int fd;
    int state;
    int registered;
};
struct st_evloop {
    int ep;
    struct st_socket *pending;
    long rounds, events;
};

static void link_to_poll(struct st_evloop *loop, struct st_socket *sock, uint32_t events) {
    struct epoll_event ev = {.events = events, .data.ptr = sock};
    int op = sock->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(loop->ep, op, sock->fd, &ev) != 0) die("epoll_ctl");
    sock->registered = 1;
}
static KEEP void on_read_request(struct st_evloop *loop, struct st_socket *sock) {
    char buf[2048];
    if (read(sock->fd, buf, sizeof buf) <= 0) return;
    /* the answer comes from the upstream server later: nothing to read or write till then */
    sock->state = SOCK_PENDING;
    loop->pending = sock;
    link_to_poll(loop, sock, 0);
}
static KEEP void evloop_do_proceed(struct st_evloop *loop) {
    struct epoll_event events[256];
    int n = epoll_wait(loop->ep, events, 256, 250);
    for (int i = 0; i < n; i++) {
        struct st_socket *sock = events[i].data.ptr;
        loop->events++;
        if (sock->state == SOCK_READING && (events[i].events & EPOLLIN))
            on_read_request(loop, sock);
        else if (fixed && (events[i].events & (EPOLLHUP | EPOLLERR))) {
            epoll_ctl(loop->ep, EPOLL_CTL_DEL, sock->fd, NULL);
            sock->registered = 0;
        }
    }
    loop->rounds++;
}
static void static_server(void) {
    int lst = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    if (bind(lst, (struct sockaddr *)&a, len) || listen(lst, 16)) die("listen");
    getsockname(lst, (struct sockaddr *)&a, &len);
    pid_t client = fork();
    if (client == 0) {
        int c = socket(AF_INET, SOCK_STREAM, 0);
        struct linger lg = {1, 0};
        if (connect(c, (struct sockaddr *)&a, sizeof a)) _exit(1);
        if (write(c, "GET /report HTTP/1.1\r\n\r\n", 24) != 24) _exit(1);
        usleep(100000);
        setsockopt(c, SOL_SOCKET, SO_LINGER, &lg, sizeof lg);
        close(c);
        _exit(0);
    }
    struct st_socket conn = {.fd = accept(lst, NULL, NULL)};
    struct st_evloop loop = {.ep = epoll_create1(EPOLL_CLOEXEC)};
    link_to_poll(&loop, &conn, EPOLLIN);
    while (time_left()) evloop_do_proceed(&loop);
    waitpid(client, NULL, 0);
    printf("static-server: %ld rounds, %ld events\n", loop.rounds, loop.events);
}

/* ---- form-upload: a file comes as hexadecimal text in a form ---- */

typedef struct {
    size_t size;
    unsigned char *data;
} uw_blob;

static KEEP uw_blob uw_unurlifyBlob(const char *s, size_t len) {
    uw_blob b = {len / 2, malloc(len / 2 + 1)};
    for (size_t i = 0; i + 1 < len; i += 2) {
        unsigned n = 0;
        if (fixed) {
            char two[3] = {s[i], s[i + 1], 0};
            n = strtol(two, NULL, 16);
        } else if (sscanf(s + i, "%02X", &n) != 1) break;
        b.data[i / 2] = n;
        if (i % 2048 == 0 && !time_left()) break;
    }
    return b;
}
static void form_upload(void) {
    size_t len = 1 << 18;
    char *form = malloc(len + 1);
    for (size_t i = 0; i < len; i++) form[i] = "0123456789ABCDEF"[(i * 7 + i / 5) % 16];
    form[len] = 0;
    long done = 0, sum = 0;
    while (time_left()) {
        uw_blob b = uw_unurlifyBlob(form, len);
        sum += b.data[b.size / 3];
        free(b.data);
        if (time_left()) done++;
    }
    printf("form-upload: %ld uploads of %zu kB (%ld)\n", done, len / 1024, sum);
}

/* ---- dns-capture: states of TCP sessions of a capture ---- */

typedef struct tcpstate {
    struct tcpstate *next, *prev, *hnext;
    uint32_t saddr, daddr;
    uint16_t sport, dport;
    time_t last_use;
    uint32_t start, maxdiff;
    uint16_t dnslen;
    char frag[180];
} tcpstate;

static tcpstate *tcpstates_head, *tcpstates_tail;
static tcpstate *tcpstate_hash[65536];

static unsigned tcpstate_key(uint32_t s, uint32_t d, uint16_t sp, uint16_t dp) {
    return ((s * 2654435761u) ^ (d * 40503u) ^ (sp * 31u) ^ dp) >> 3 & 65535;
}
static void tcpstate_link(tcpstate *t) {
    t->prev = NULL;
    t->next = tcpstates_head;
    if (tcpstates_head) tcpstates_head->prev = t;
    else tcpstates_tail = t;
    tcpstates_head = t;
}
static void tcpstate_unlink(tcpstate *t) {
    if (t->prev) t->prev->next = t->next;
    else tcpstates_head = t->next;
    if (t->next) t->next->prev = t->prev;
    else tcpstates_tail = t->prev;
}
static KEEP tcpstate *tcpstate_find(uint32_t s, uint32_t d, uint16_t sp, uint16_t dp, time_t t) {
    tcpstate *ts;
    if (fixed) {
        for (ts = tcpstate_hash[tcpstate_key(s, d, sp, dp)]; ts; ts = ts->hnext)
            if (ts->saddr == s && ts->daddr == d && ts->sport == sp && ts->dport == dp) break;
    } else {
        for (ts = tcpstates_head; ts; ts = ts->next)
            if (ts->saddr == s && ts->daddr == d && ts->sport == sp && ts->dport == dp) break;
    }
    if (!ts) return NULL;
    ts->last_use = t;
    tcpstate_unlink(ts);
    tcpstate_link(ts);
    return ts;
}
static tcpstate *tcpstate_new(uint32_t s, uint32_t d, uint16_t sp, uint16_t dp) {
    tcpstate *t = calloc(1, sizeof *t);
    t->saddr = s, t->daddr = d, t->sport = sp, t->dport = dp;
    tcpstate_link(t);
    unsigned k = tcpstate_key(s, d, sp, dp);
    t->hnext = tcpstate_hash[k];
    tcpstate_hash[k] = t;
    return t;
}
static KEEP long network_pkt(uint32_t n, long *bytes) {
    uint32_t h = n * 2246822519u;
    h ^= h >> 15;
    uint32_t id = h % 12000;
    uint32_t s = 0x0a000000 + id / 7, d = 0xc0a80001;
    uint16_t sp = 1024 + id % 40000, dp = 53;
    tcpstate *t = tcpstate_find(s, d, sp, dp, n / 100000);
    if (!t) t = tcpstate_new(s, d, sp, dp);
    t->dnslen = 40 + n % 80;
    for (int i = 0; i < t->dnslen; i++) t->frag[i] = n + i;
    *bytes += t->dnslen;
    return 1;
}
static void dns_capture(void) {
    long pkts = 0, bytes = 0;
    for (uint32_t id = 0; id < 12000; id++)
        tcpstate_new(0x0a000000 + id / 7, 0xc0a80001, 1024 + id % 40000, 53);
    while (time_left())
        for (int i = 0; i < 100; i++) pkts += network_pkt(pkts, &bytes);
    printf("dns-capture: %ld packets, %ld bytes\n", pkts, bytes);
}

/* ---- process-list: a screen of all processes; desktop-apps are some to look at ---- */

static void desktop_apps(void) {
    for (int k = 0; k < 5; k++) {
        if (fork() != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 60000; i++)
            mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sleep((unsigned)seconds + 1);
        _exit(0);
    }
    usleep(700000);
    puts("ready");
    fflush(stdout);
    sleep((unsigned)seconds);
}

typedef struct {
    int pid;
    char comm[40];
    long rss;
    int usesDeletedLib;
} LinuxProcess;

static KEEP void LinuxProcess_readMaps(LinuxProcess *p) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/maps", p->pid);
    FILE *f = fopen(path, "r");
    if (!f) return;
    p->usesDeletedLib = 0;
    while (fgets(line, sizeof line, f)) {
        char *perms = strchr(line, ' ');
        if (!perms || perms[3] != 'x') continue;
        if (strstr(line, " (deleted)\n")) p->usesDeletedLib = 1;
    }
    fclose(f);
}
static KEEP void LinuxProcess_readStat(LinuxProcess *p) {
    char path[64], buf[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", p->pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return;
    int n = read(fd, buf, sizeof buf - 1);
    close(fd);
    if (n <= 0) return;
    buf[n] = 0;
    char *b = strchr(buf, '('), *e = strrchr(buf, ')');
    if (b && e) snprintf(p->comm, sizeof p->comm, "%.*s", (int)(e - b - 1), b + 1);
}
static KEEP int ProcessList_scan(void) {
    DIR *d = opendir("/proc");
    struct dirent *e;
    int count = 0;
    while ((e = readdir(d))) {
        if (!isdigit((unsigned char)e->d_name[0])) continue;
        LinuxProcess p = {.pid = atoi(e->d_name)};
        LinuxProcess_readStat(&p);
        if (!fixed) LinuxProcess_readMaps(&p);
        count++;
    }
    closedir(d);
    return count;
}
static void process_list(void) {
    double busy = 0;
    long scans = 0;
    while (time_left()) {
        double t = now();
        ProcessList_scan();
        busy += now() - t;
        scans++;
        usleep(30000);
    }
    printf("process-list: %ld screens, %.1f ms each\n", scans, busy * 1000 / scans);
}

/* ---- proc-table: a line for each process, with the name of its terminal and user ---- */

struct task {
    int pid;
    dev_t tty;
    uid_t uid;
};
static struct {
    dev_t dev;
    char name[64];
} tty_cache[512];
static int tty_cached = -1;

static KEEP void dev_name(dev_t dev, char *out, size_t size) {
    char path[300];
    struct stat st;
    if (fixed && tty_cached >= 0) {
        for (int i = 0; i < tty_cached; i++)
            if (tty_cache[i].dev == dev) {
                snprintf(out, size, "%s", tty_cache[i].name);
                return;
            }
    }
    DIR *d = opendir("/dev");
    struct dirent *e;
    int n = 0;
    snprintf(out, size, "?");
    while ((e = readdir(d))) {
        snprintf(path, sizeof path, "/dev/%s", e->d_name);
        if (stat(path, &st) || !S_ISCHR(st.st_mode)) continue;
        if (n < 512) {
            tty_cache[n].dev = st.st_rdev;
            snprintf(tty_cache[n++].name, 64, "%.60s", e->d_name);
        }
        if (st.st_rdev == dev) {
            snprintf(out, size, "%s", e->d_name);
            if (!fixed) break;
        }
    }
    closedir(d);
    if (fixed) tty_cached = n;
}
static KEEP void user_name(uid_t uid, char *out, size_t size) {
    static uid_t last = -1;
    static char name[40];
    if (uid != last) {
        struct passwd *pw = getpwuid(uid);
        snprintf(name, sizeof name, "%s", pw ? pw->pw_name : "?");
        last = uid;
    }
    snprintf(out, size, "%s", name);
}
static void proc_table(void) {
    struct task tasks[64];
    FILE *out = fopen("/dev/null", "w");
    int n = 0;
    DIR *d = opendir("/dev");
    struct dirent *e;
    struct stat st;
    while ((e = readdir(d)) && n < 64) {
        char path[300];
        snprintf(path, sizeof path, "/dev/%s", e->d_name);
        if (stat(path, &st) == 0 && S_ISCHR(st.st_mode))
            tasks[n] = (struct task){100 + n, st.st_rdev, 0}, n++;
    }
    closedir(d);
    while (n < 64) tasks[n] = (struct task){100 + n, makedev(4, n), 0}, n++;
    long lines = 0;
    while (time_left())
        for (int i = 0; i < 64; i++) {
            char tty[300], user[40];
            dev_name(tasks[i].tty, tty, sizeof tty);
            user_name(tasks[i].uid, user, sizeof user);
            fprintf(out, "%5d %-8s %-6s\n", tasks[i].pid, user, tty);
            lines++;
        }
    fclose(out);
    printf("proc-table: %ld lines\n", lines);
}

/* ---- expert-store: parts of a model come from a file into a few slots ---- */

enum { SLOTS = 12, RECORD = 16 << 10, RECORDS = 2048 };
struct slot {
    int key, busy;
    long used;
    unsigned char *slab;
};
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t loaded;
    int fd;
    long clock, reads, lookups;
    struct slot slot[SLOTS];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .loaded = PTHREAD_COND_INITIALIZER};

static KEEP void st_read_at_streaming(int key, unsigned char *slab) {
    if (pread(state.fd, slab, RECORD, (off_t)key * RECORD) != RECORD) die("pread");
}
static KEEP unsigned expert_store_lookup(int key) {
    pthread_mutex_lock(&state.mutex);
    state.lookups++;
    struct slot *victim = NULL;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &state.slot[i];
        if (s->key == key && !s->busy) {
            s->used = ++state.clock;
            unsigned v = s->slab[key];
            pthread_mutex_unlock(&state.mutex);
            return v;
        }
        if (!s->busy && (!victim || s->used < victim->used)) victim = s;
    }
    victim->key = key;
    victim->used = ++state.clock;
    if (fixed) {
        victim->busy = 1;
        pthread_mutex_unlock(&state.mutex);
        st_read_at_streaming(key, victim->slab);
        pthread_mutex_lock(&state.mutex);
        victim->busy = 0;
    } else st_read_at_streaming(key, victim->slab);
    state.reads++;
    unsigned v = victim->slab[key];
    pthread_mutex_unlock(&state.mutex);
    return v;
}
static void *loader_lane(void *arg) {
    unsigned r = (unsigned)(intptr_t)arg * 977 + 5;
    long sum = 0;
    while (time_left()) {
        r = r * 1103515245 + 12345;
        sum += expert_store_lookup((r >> 16) % RECORDS);
    }
    return (void *)(intptr_t)sum;
}
static void expert_store(void) {
    char path[1000];
    snprintf(path, sizeof path, "%s/experts.bin", folder);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    unsigned char *rec = malloc(RECORD);
    for (int i = 0; i < RECORDS; i++) {
        memset(rec, i, RECORD);
        if (write(fd, rec, RECORD) != RECORD) die("write");
    }
    fsync(fd);
    close(fd);
    free(rec);
    state.fd = open(path, O_RDONLY | O_DIRECT);
    if (state.fd < 0) state.fd = open(path, O_RDONLY);
    for (int i = 0; i < SLOTS; i++) {
        state.slot[i].key = -1;
        if (posix_memalign((void **)&state.slot[i].slab, 4096, RECORD)) die("memory");
    }
    started = now();
    pthread_t lane[6];
    for (int i = 0; i < 6; i++) pthread_create(&lane[i], NULL, loader_lane, (void *)(intptr_t)i);
    for (int i = 0; i < 6; i++) pthread_join(lane[i], NULL);
    unlink(path);
    printf("expert-store: %ld lookups, %ld records read\n", state.lookups, state.reads);
}

/* ---- broker-connect: a client of a message broker; name-server is the name server ---- */

static void port_file(const char *mode, int *port) {
    char path[1000];
    snprintf(path, sizeof path, "%s/../name-server.port", folder);
    FILE *f = fopen(path, mode);
    if (!f) die(path);
    if (*mode == 'w') fprintf(f, "%d\n", *port);
    else if (fscanf(f, "%d", port) != 1) die(path);
    fclose(f);
}
static void name_server(void) {
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    if (bind(s, (struct sockaddr *)&a, len)) die("bind");
    getsockname(s, (struct sockaddr *)&a, &len);
    int port = ntohs(a.sin_port);
    port_file("w", &port);
    puts("ready");
    fflush(stdout);
    struct timeval tv = {0, 200000};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    while (time_left()) {
        unsigned char q[600];
        len = sizeof a;
        int n = recvfrom(s, q, 512, 0, (struct sockaddr *)&a, &len);
        if (n < 16) continue;
        int p = 12;
        while (p < n && q[p]) p += q[p] + 1;
        int type = q[p + 1] << 8 | q[p + 2];
        if (type != 1) continue;
        static const unsigned char rr[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1};
        n = p + 5;
        q[2] = 0x81, q[3] = 0x80;
        q[6] = 0, q[7] = 1, q[8] = q[9] = q[10] = q[11] = 0;
        memcpy(q + n, rr, sizeof rr);
        sendto(s, q, n + sizeof rr, 0, (struct sockaddr *)&a, len);
    }
}
static long connects;
static void finish_connects(int sig) {
    (void)sig;
    char line[80];
    int n = snprintf(line, sizeof line, "broker-connect: %ld names found\n", connects);
    if (write(1, line, n) < 0) _exit(1);
    _exit(0);
}
static KEEP int mbus_socket_resolve(res_state rs, const char *host) {
    unsigned char ans[1024];
    int found = res_nquery(rs, host, ns_c_in, ns_t_a, ans, sizeof ans) > 0;
    if (!fixed) found += res_nquery(rs, host, ns_c_in, ns_t_aaaa, ans, sizeof ans) > 0;
    return found;
}
static void broker_connect(void) {
    int port = 0;
    port_file("r", &port);
    signal(SIGALRM, finish_connects);
    struct itimerval it = {.it_value = {(time_t)seconds, 0}};
    setitimer(ITIMER_REAL, &it, NULL);
    static struct __res_state rs;
    if (res_ninit(&rs)) die("res_ninit");
    rs.nscount = 1;
    rs.nsaddr_list[0].sin_family = AF_INET;
    rs.nsaddr_list[0].sin_port = htons(port);
    rs.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rs.retrans = 5;
    rs.retry = 2;
    for (;;) {
        connects += mbus_socket_resolve(&rs, "broker.mbus.example");
        usleep(2000);
    }
}

/* ---- wallet-check: passwords of a list are tried on the key of a wallet ---- */

static const uint64_t K[80] = {
#define C(a) a##ull
    C(0x428a2f98d728ae22), C(0x7137449123ef65cd), C(0xb5c0fbcfec4d3b2f), C(0xe9b5dba58189dbbc),
    C(0x3956c25bf348b538), C(0x59f111f1b605d019), C(0x923f82a4af194f9b), C(0xab1c5ed5da6d8118),
    C(0xd807aa98a3030242), C(0x12835b0145706fbe), C(0x243185be4ee4b28c), C(0x550c7dc3d5ffb4e2),
    C(0x72be5d74f27b896f), C(0x80deb1fe3b1696b1), C(0x9bdc06a725c71235), C(0xc19bf174cf692694),
    C(0xe49b69c19ef14ad2), C(0xefbe4786384f25e3), C(0x0fc19dc68b8cd5b5), C(0x240ca1cc77ac9c65),
    C(0x2de92c6f592b0275), C(0x4a7484aa6ea6e483), C(0x5cb0a9dcbd41fbd4), C(0x76f988da831153b5),
};
#define ROR(x, n) ((x) >> (n) | (x) << (64 - (n)))

static KEEP void sha512_transform(uint64_t h[8], const uint64_t block[16]) {
    uint64_t w[80], s[8];
    memcpy(w, block, 128);
    for (int i = 16; i < 80; i++) {
        uint64_t a = ROR(w[i - 15], 1) ^ ROR(w[i - 15], 8) ^ w[i - 15] >> 7;
        uint64_t b = ROR(w[i - 2], 19) ^ ROR(w[i - 2], 61) ^ w[i - 2] >> 6;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, h, 64);
    for (int i = 0; i < 80; i++) {
        uint64_t e = ROR(s[4], 14) ^ ROR(s[4], 18) ^ ROR(s[4], 41);
        uint64_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + (K[i % 24] + i) + w[i];
        uint64_t a = ROR(s[0], 28) ^ ROR(s[0], 34) ^ ROR(s[0], 39);
        uint64_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (int k = 7; k > 0; k--) s[k] = s[k - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h[i] += s[i];
}
static KEEP uint64_t bytes_to_key_sha512(const char *password, const char *salt, int rounds) {
    uint64_t h[8] = {0}, block[16] = {0};
    strncpy((char *)block, password, 64);
    memcpy(block + 8, salt, 8);
    for (int i = 0; i < rounds; i++) {
        sha512_transform(h, block);
        memcpy(block, h, 64);
    }
    return h[0];
}
static void wallet_check(void) {
    long tried = 0;
    uint64_t best = 0;
    while (time_left()) {
        char password[40];
        snprintf(password, sizeof password, "summer%ld", tried++);
        uint64_t k = bytes_to_key_sha512(password, "8f1c3a77", 25000);
        if (k > best) best = k;
    }
    printf("wallet-check: %ld passwords (%" PRIx64 ")\n", tried, best);
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: %s case seconds folder [fixed]\n", argv[0]), 2;
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"static-server", static_server}, {"form-upload", form_upload},
        {"dns-capture", dns_capture},     {"desktop-apps", desktop_apps},
        {"process-list", process_list},   {"proc-table", proc_table},
        {"expert-store", expert_store},   {"name-server", name_server},
        {"broker-connect", broker_connect}, {"wallet-check", wallet_check},
    };
    seconds = atof(argv[2]);
    fixed = argc > 4 && !strcmp(argv[4], "fixed");
    snprintf(folder, sizeof folder, "%.500s/%.200s", argv[3], argv[1]);
    mkdir(folder, 0755);
    started = now();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    return fprintf(stderr, "no case %s\n", argv[1]), 2;
}
