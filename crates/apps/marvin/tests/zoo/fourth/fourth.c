/* Programs from public reports, V1..V8 (see REPORTS.md). Build: gcc -O1 -g -w fourth.c -lpthread */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static double secs = 4;
static const char *dir = "/tmp";
static int fixed;
static double t_end;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static char *in_dir(const char *name)
{
    char *p;
    asprintf(&p, "%s/%s", dir, name);
    return p;
}

/* ---- V1: a partitioner that works on one image in several steps ---- */

typedef struct Context {
    char *node;
    int backing_fd;
    unsigned char label[4096];
} Context;

static NOINLINE int context_load_partition_table(Context *c)
{
    int fd;
    char path[64];

    if (c->backing_fd < 0)
        fd = open(c->node, O_RDWR | O_CLOEXEC);
    else {
        snprintf(path, sizeof path, "/proc/self/fd/%d", c->backing_fd);
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX) < 0)
        return -errno;
    pread(fd, c->label, sizeof c->label, 512);
    if (c->backing_fd < 0) {
        if (fixed)
            c->backing_fd = open(c->node, O_RDWR | O_CLOEXEC);
        else
            c->backing_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
    pwrite(fd, c->label, sizeof c->label, 512);
    close(fd);
    return 0;
}

static NOINLINE int context_factory_reset(Context *c)
{
    int r = context_load_partition_table(c);
    if (r < 0)
        return r;
    memset(c->label + 128, 0, 128);
    return 0;
}

static void time_is_over(int s)
{
    _exit(0);
}

static void factory_reset(void)
{
    long n = 0;
    char *img = in_dir("disk.img");
    int fd = open(img, O_RDWR | O_CREAT, 0644);
    ftruncate(fd, 1 << 20);
    close(fd);
    signal(SIGALRM, time_is_over);
    alarm((int)secs);
    while (now() < t_end) {
        Context c = { .node = img, .backing_fd = -1 };
        context_factory_reset(&c);
        context_load_partition_table(&c);
        close(c.backing_fd);
        n++;
        if (n % 1000 == 0)
            usleep(1000);
    }
    printf("resets %ld\n", n);
}

/* ---- V2: a completion server and its client ---- */

static void completion_server(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t l = sizeof a;
    char buf[512];
    int s = socket(AF_INET, SOCK_STREAM, 0);
    bind(s, (struct sockaddr *)&a, sizeof a);
    listen(s, fixed ? 32 : 0);
    getsockname(s, (struct sockaddr *)&a, &l);
    FILE *f = fopen(in_dir("port"), "w");
    fprintf(f, "%d\n", ntohs(a.sin_port));
    fclose(f);
    printf("ready\n");
    fflush(stdout);
    alarm((int)secs);
    for (;;) {
        int c = accept(s, NULL, NULL);
        struct timeval tv = { 1, 0 };
        setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
        if (read(c, buf, sizeof buf) > 0) {
            double e = now() + 0.004;          /* parse and look up */
            volatile unsigned h = 0;
            while (now() < e)
                for (int i = 0; i < 1000; i++)
                    h = h * 31 + i;
            write(c, "identifiers\nwriteln f\n", 22);
        }
        close(c);
    }
}

static int server_port;
static long completions;

static NOINLINE int getConnection(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(server_port) };
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&a, sizeof a) < 0) {
        close(s);
        return -1;
    }
    return s;
}

static pthread_barrier_t key_pressed;

static void *completion_requests(void *arg)
{
    char buf[512];
    for (;;) {
        pthread_barrier_wait(&key_pressed);
        int s = getConnection();
        if (s < 0) {
            usleep(1000);
            continue;
        }
        write(s, "complete file.d 1234\n", 21);
        if (read(s, buf, sizeof buf) > 0)
            __sync_fetch_and_add(&completions, 1);
        close(s);
    }
    return NULL;
}

static void completion_client(void)
{
    pthread_t t[5];
    FILE *f = fopen(in_dir("port"), "r");
    fscanf(f, "%d", &server_port);
    fclose(f);
    pthread_barrier_init(&key_pressed, NULL, 5);
    for (int i = 0; i < 5; i++)
        pthread_create(&t[i], NULL, completion_requests, NULL);
    while (now() < t_end)
        usleep(100000);
    printf("completions %ld\n", completions);
    exit(0);
}

/* ---- V3: generators on their own stacks ---- */

typedef struct Generator {
    ucontext_t ctx, caller;
    jmp_buf jctx, jcaller;
    int started;
    long value;
    char *stack;
} Generator;

static Generator *g_cur;

static NOINLINE void generator_yield(Generator *g, long v)
{
    g->value = v;
    if (fixed) {
        if (!_setjmp(g->jctx))
            _longjmp(g->jcaller, 1);
    } else
        swapcontext(&g->ctx, &g->caller);
}

static void generator_entry(void)
{
    Generator *g = g_cur;
    long a = 0, b = 1;
    for (;;) {
        generator_yield(g, a);
        long t = (a + b) % 1000003;
        a = b;
        b = t;
    }
}

static NOINLINE long generator_next(Generator *g)
{
    g_cur = g;
    if (fixed) {
        if (!_setjmp(g->jcaller)) {
            if (g->started)
                _longjmp(g->jctx, 1);
            g->started = 1;
            setcontext(&g->ctx);
        }
    } else
        swapcontext(&g->caller, &g->ctx);
    return g->value;
}

static void generator_switching(void)
{
    Generator g[8];
    long n = 0, sum = 0;
    memset(g, 0, sizeof g);
    for (int i = 0; i < 8; i++) {
        getcontext(&g[i].ctx);
        g[i].stack = malloc(65536);
        g[i].ctx.uc_stack.ss_sp = g[i].stack;
        g[i].ctx.uc_stack.ss_size = 65536;
        makecontext(&g[i].ctx, generator_entry, 0);
    }
    while (now() < t_end)
        for (int k = 0; k < 1000; k++)
            for (int i = 0; i < 8; i++) {
                sum += generator_next(&g[i]);
                n++;
            }
    printf("switches %ld (%ld)\n", n, sum);
}

/* ---- V4: welding of a map's vertices over a hash table ---- */

typedef struct HashTableEntry {
    struct HashTableEntry *next;
    long key[3];
    int value;
} HashTableEntry;

typedef struct HashTable {
    size_t capacity, count;
    HashTableEntry **elements;
} HashTable;

static NOINLINE size_t HashTable_hash(const long *k)
{
    size_t h = 14695981039346656037ul;
    for (int i = 0; i < 3; i++)
        h = (h ^ (size_t)k[i]) * 1099511628211ul;
    return h ^ (h >> 29);
}

static NOINLINE HashTableEntry *HashTable_get(const HashTable *t, const long *k)
{
    HashTableEntry *e;
    for (e = t->elements[HashTable_hash(k) % t->capacity]; e; e = e->next)
        if (e->key[0] == k[0] && e->key[1] == k[1] && e->key[2] == k[2])
            return e;
    return NULL;
}

static void HashTable_resize(HashTable *t, size_t capacity)
{
    HashTableEntry **b = calloc(capacity, sizeof *b);
    for (size_t i = 0; i < t->capacity; i++)
        for (HashTableEntry *e = t->elements[i], *n; e; e = n) {
            n = e->next;
            size_t x = HashTable_hash(e->key) % capacity;
            e->next = b[x];
            b[x] = e;
        }
    free(t->elements);
    t->elements = b;
    t->capacity = capacity;
}

static NOINLINE void HashTable_set(HashTable *t, const long *k, int v)
{
    HashTableEntry *e = HashTable_get(t, k);
    if (!e) {
        if (fixed && t->count * 4 >= t->capacity * 3)
            HashTable_resize(t, t->capacity * 2);
        size_t x = HashTable_hash(k) % t->capacity;
        e = malloc(sizeof *e);
        memcpy(e->key, k, sizeof e->key);
        e->next = t->elements[x];
        t->elements[x] = e;
        t->count++;
    }
    e->value = v;
}

static NOINLINE int WeldVertex(HashTable *t, const long *p)
{
    int best = -1;
    for (int x = -1; x <= 1; x++)
        for (int y = -1; y <= 1; y++)
            for (int z = -1; z <= 1; z++) {
                long k[3] = { p[0] + x, p[1] + y, p[2] + z };
                HashTableEntry *e = HashTable_get(t, k);
                if (e && best < 0)
                    best = e->value;
            }
    return best;
}

static void map_compile(void)
{
    HashTable t = { 16, 0, calloc(16, sizeof(HashTableEntry *)) };
    long n = 0, welded = 0;
    unsigned r = 1;
    for (int i = 0; i < 12000; i++) {
        r = r * 1664525 + 1013904223;
        long k[3] = { r >> 20, (r >> 8) & 0xfff, i };
        HashTable_set(&t, k, i);
    }
    while (now() < t_end) {
        r = r * 1664525 + 1013904223;
        long p[3] = { r >> 20, (r >> 8) & 0xfff, n % 12000 };
        if (WeldVertex(&t, p) >= 0)
            welded++;
        n++;
    }
    printf("vertices %ld welded %ld\n", n, welded);
}

/* ---- V5: a parser of escaped strings ---- */

static NOINLINE void cv_str_unescape(char *str)
{
    int i, j = 0;
    if (fixed) {
        size_t len = strlen(str);
        for (i = 0; i < len; i++)
            if (str[i] != '\\')
                str[j++] = str[i];
        for (; j < len; j++)
            str[j] = '\0';
        return;
    }
    for (i = 0; i < strlen(str); i++)
        if (str[i] != '\\')
            str[j++] = str[i];
    for (; j < strlen(str); j++)
        str[j] = '\0';
}

static void config_load(void)
{
    size_t len = 96 * 1024;
    char *text = malloc(len + 1), *copy = malloc(len + 1);
    long n = 0;
    for (size_t i = 0; i < len; i++)
        text[i] = i % 97 == 96 ? '\\' : 'a' + i % 26;
    text[len] = 0;
    while (now() < t_end) {
        memcpy(copy, text, len + 1);
        cv_str_unescape(copy);
        n++;
    }
    printf("values %ld\n", n);
}

/* ---- V6: a file manager's detail line under a moving cursor ---- */

static char status_line[4096];

static NOINLINE char *getpwname(uid_t uid)
{
    static uid_t last = -1;
    static char name[64];
    if (fixed && last == uid)
        return name;
    struct passwd *pw = getpwuid(uid);
    last = uid;
    snprintf(name, sizeof name, "%s", pw ? pw->pw_name : "?");
    return name;
}

static NOINLINE char *getgrname(gid_t gid)
{
    static gid_t last = -1;
    static char name[64];
    if (fixed && last == gid)
        return name;
    struct group *gr = getgrgid(gid);
    last = gid;
    snprintf(name, sizeof name, "%s", gr ? gr->gr_name : "?");
    return name;
}

static NOINLINE void statusbar(const char *name, const struct stat *sb)
{
    char date[64];
    struct tm tm;
    localtime_r(&sb->st_mtime, &tm);
    strftime(date, sizeof date, "%F %R", &tm);
    snprintf(status_line, sizeof status_line, "%s %o %s:%s %lld %s", date, sb->st_mode & 07777, getpwname(sb->st_uid), getgrname(sb->st_gid),
             (long long)sb->st_size, name);
}

static void browse_files(void)
{
    enum { N = 400 };
    char *names[N];
    struct stat st[N];
    long n = 0;
    for (int i = 0; i < N; i++) {
        char b[64];
        snprintf(b, sizeof b, "entry%03d", i);
        names[i] = strdup(b);
        char *p = in_dir(b);
        close(open(p, O_CREAT | O_WRONLY, 0644));
        stat(p, &st[i]);
        free(p);
    }
    while (now() < t_end)
        for (int i = 0; i < N; i++) {
            statusbar(names[i], &st[i]);
            n++;
        }
    printf("moves %ld\n", n);
}

/* ---- V7: a service starter with an input file ---- */

static NOINLINE int redirect_input(const char *input_file)
{
    int fd = open(input_file, O_RDONLY | (fixed ? O_NONBLOCK : 0));
    if (fd >= 0)
        dup2(fd, 0);
    return fd;
}

static NOINLINE pid_t start_stop_daemon(const char *input_file)
{
    pid_t p = fork();
    if (p == 0) {
        alarm((int)secs > 0 ? (int)secs : 1);
        redirect_input(input_file);
        if (fork() == 0) {                 /* the service itself */
            usleep(1000);
            _exit(0);
        }
        _exit(0);
    }
    return p;
}

static void service_start(void)
{
    char *fifo = in_dir("stdin.pipe");
    long n = 0;
    mkfifo(fifo, 0644);
    while (now() < t_end) {
        int st;
        pid_t p = start_stop_daemon(fifo);
        while (waitpid(p, &st, 0) < 0 && errno == EINTR)
            ;
        if (WIFEXITED(st))
            n++;
        usleep(5000);
    }
    printf("starts %ld\n", n);
}

/* ---- V8: a box keeper that watches the time of a program ---- */

static pid_t box_pid;
static volatile sig_atomic_t timer_tick;

static void signal_alarm(int s)
{
    timer_tick = 1;
}

static NOINLINE void solve(void)
{
    unsigned long best = 0;
    for (unsigned long n = 1; now() < t_end; n += 1000)
        for (unsigned long k = n; k < n + 1000; k++) {
            unsigned long x = k, c = 0;
            while (x != 1) {
                x = x & 1 ? 3 * x + 1 : x / 2;
                c++;
            }
            if (c > best)
                best = c;
        }
    exit(best == 0);
}

static NOINLINE double check_timeout(void)
{
    char path[64], buf[1024], *x;
    unsigned long ut = 0, st = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", box_pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    int n = read(fd, buf, sizeof buf - 1);
    close(fd);
    if (n <= 0)
        return 0;
    buf[n] = 0;
    x = strrchr(buf, ')');
    if (x)
        sscanf(x + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &ut, &st);
    return (ut + st) / (double)sysconf(_SC_CLK_TCK);
}

static void judge_run(void)
{
    struct sigaction sa;
    struct itimerval iv = { { 0, 10000 }, { 0, 10000 } };
    int stat;
    long checks = 0;
    double used = 0;
    box_pid = fork();
    if (box_pid == 0)
        solve();
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = signal_alarm;
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &iv, NULL);
    for (;;) {
        pid_t p = wait4(box_pid, &stat, 0, NULL);
        if (p == box_pid)
            break;
        if (timer_tick) {
            timer_tick = 0;
            used = check_timeout();
            checks++;
            if (used > 3600)
                kill(box_pid, SIGKILL);
        }
    }
    printf("checks %ld, used %.2f s\n", checks, used);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*f)(void); } cases[] = {
        { "factory-reset", factory_reset }, { "completion-server", completion_server }, { "completion-client", completion_client },
        { "generator-switching", generator_switching }, { "map-compile", map_compile }, { "config-load", config_load },
        { "browse-files", browse_files }, { "service-start", service_start }, { "judge-run", judge_run },
    };
    if (argc < 2)
        return 2;
    if (argc > 2)
        secs = atof(argv[2]);
    if (argc > 3)
        dir = argv[3];
    fixed = argc > 4 && !strcmp(argv[4], "fixed");
    t_end = now() + secs;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].f();
            return 0;
        }
    fprintf(stderr, "unknown case\n");
    return 2;
}
