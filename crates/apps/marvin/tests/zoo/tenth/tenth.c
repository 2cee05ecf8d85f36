/* Six small programs from public reports, written anew. Usage: tenth CASE SECONDS FOLDER */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static double seconds;
static char folder[512];
static double stop_at;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void make_folder(const char *base, const char *name)
{
    char command[1200];
    snprintf(folder, sizeof folder, "%s/%s", base, name);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", folder, folder);
    if (system(command) != 0)
        exit(2);
}

/* ---- attach-terminal ---- */

static void on_alarm(int sig)
{
    (void)sig;
}

static int attach_shell(int terminal)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct termios settings;
        setpgid(0, 0);
        tcgetattr(terminal, &settings);
        settings.c_lflag &= ~(ICANON | ECHO);
        tcsetattr(terminal, TCSAFLUSH, &settings);
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) == pid)
        return 1;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return 0;
}

static long attach_terminal(void)
{
    struct sigaction action = { .sa_handler = on_alarm };
    struct itimerval timer = { .it_value = { .tv_sec = (time_t)seconds } };
    sigaction(SIGALRM, &action, NULL);
    if (setsid() < 0) {
        pid_t pid = fork();
        if (pid > 0) {
            int status;
            waitpid(pid, &status, 0);
            return 0;
        }
        setsid();
    }
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(master);
    unlockpt(master);
    int terminal = open(ptsname(master), O_RDWR);
    signal(SIGHUP, SIG_IGN);
    setitimer(ITIMER_REAL, &timer, NULL);
    long attached = 0;
    while (now() < stop_at)
        attached += attach_shell(terminal);
    return attached;
}

/* ---- cpu-share ---- */

struct usage {
    clock_t last_busy;
    double last_time, sum;
};

static double process_share(struct usage *u)
{
    struct tms t;
    times(&t);
    double time_now = now();
    double ticks = sysconf(_SC_CLK_TCK);
    double busy = (t.tms_utime + t.tms_stime - u->last_busy) / ticks;
    double share = busy / (time_now - u->last_time + 1e-9) / sysconf(_SC_NPROCESSORS_ONLN);
    u->last_busy = t.tms_utime + t.tms_stime;
    u->last_time = time_now;
    return share;
}

static long cpu_share(void)
{
    struct usage u = { 0 };
    long samples = 0;
    while (now() < stop_at) {
        u.sum += process_share(&u);
        samples++;
    }
    return samples;
}

/* ---- config-store ---- */

struct store {
    pthread_mutex_t main_lock;
    char values[256][64];
    long version;
};

static int store_set(struct store *s, int key, const char *value, double until)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    double left = until - now();
    deadline.tv_sec += (time_t)left;
    deadline.tv_nsec += (long)((left - (time_t)left) * 1e9);
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    if (pthread_mutex_timedlock(&s->main_lock, &deadline) != 0)
        return 0;
    snprintf(s->values[key % 256], 64, "%s", value);
    s->version++;
    pthread_mutex_unlock(&s->main_lock);
    return 1;
}

static void plugin_session(struct store *s)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&s->main_lock);
        snprintf(s->values[i], 64, "plugin %d", i);
        s->version++;
        if (i == 49)
            kill(getpid(), SIGKILL);
        pthread_mutex_unlock(&s->main_lock);
    }
    _exit(0);
}

static long config_store(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/store.shm", folder);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, sizeof(struct store)) != 0)
        return 0;
    struct store *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&s->main_lock, &attributes);
    long done = 0;
    for (int i = 0; i < 1000; i++)
        done += store_set(s, i, "start", stop_at);
    pid_t pid = fork();
    if (pid == 0)
        plugin_session(s);
    waitpid(pid, NULL, 0);
    while (now() < stop_at)
        done += store_set(s, (int)done, "running", stop_at);
    return done;
}

/* ---- watch-trace ---- */

static void append_trace(int trace, const char *name, uint32_t mask)
{
    char line[400];
    int n = snprintf(line, sizeof line, "{\"file\":\"%s\",\"events\":%u}\n", name, mask);
    if (lseek(trace, 0, SEEK_END) > (16 << 20) && ftruncate(trace, 0) != 0)
        return;
    if (write(trace, line, n) != n)
        return;
}

static long watch_cycle(int watcher, int trace)
{
    char buffer[4096] __attribute__((aligned(8)));
    ssize_t n = read(watcher, buffer, sizeof buffer);
    long events = 0;
    for (char *p = buffer; n > 0 && p < buffer + n;) {
        struct inotify_event *event = (struct inotify_event *)p;
        append_trace(trace, event->len ? event->name : ".", event->mask);
        p += sizeof *event + event->len;
        events++;
    }
    return events;
}

static long watch_trace(void)
{
    char path[600];
    int watcher = inotify_init1(IN_CLOEXEC);
    inotify_add_watch(watcher, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    snprintf(path, sizeof path, "%s/trace.log", folder);
    int trace = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    snprintf(path, sizeof path, "%s/page.html", folder);
    int page = open(path, O_WRONLY | O_CREAT, 0600);
    if (write(page, "<p>", 3) != 3)
        return 0;
    long events = 0;
    while (now() < stop_at)
        events += watch_cycle(watcher, trace);
    return events;
}

/* ---- process-table ---- */

#define MAX_CMDLINE 16384

struct process {
    int pid;
    char comm[32];
    char cmdline[MAX_CMDLINE + 1];
    unsigned long hash;
};

static void read_process(struct process *p, int pid, int round)
{
    p->pid = pid;
    snprintf(p->comm, sizeof p->comm, "worker/%d:%d", pid, round & 7);
    strncpy(p->cmdline, p->comm, MAX_CMDLINE);
    unsigned long h = 5381;
    for (const char *c = p->cmdline; *c; c++)
        h = h * 33 + (unsigned char)*c;
    p->hash = h;
}

static long process_table(void)
{
    int count = 300;
    struct process *table = calloc(count, sizeof *table);
    long read = 0;
    for (int round = 0; now() < stop_at; round++)
        for (int i = 0; i < count; i++, read++)
            read_process(&table[i], 100 + i, round);
    unsigned long sum = 0;
    for (int i = 0; i < count; i++)
        sum += table[i].hash;
    return sum ? read : 0;
}

/* ---- write-watch ---- */

static char *heap_start;
static size_t heap_size = 16 << 20;
static unsigned char *card_table;

static void on_card(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    char *address = info->si_addr;
    if (address < heap_start || address >= heap_start + heap_size)
        _exit(3);
    size_t card = (address - heap_start) / 4096;
    card_table[card] = 1;
    mprotect(heap_start + card * 4096, 4096, PROT_READ | PROT_WRITE);
}

static long background_mark(void)
{
    long found = 0;
    for (size_t i = 0; i < heap_size / 4096; i++) {
        found += card_table[i];
        card_table[i] = 0;
    }
    mprotect(heap_start, heap_size, PROT_READ);
    return found;
}

static void mutate(long round)
{
    size_t cards = heap_size / 4096;
    for (size_t i = 0; i < cards; i++) {
        size_t at = (i * 769 + (size_t)round) % cards;
        for (int k = 0; k < 16; k++)
            ((long *)(heap_start + at * 4096))[k * 32] += round + k;
    }
}

static long write_watch(void)
{
    struct sigaction action = { .sa_sigaction = on_card, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);
    card_table = calloc(heap_size / 4096, 1);
    heap_start = mmap(NULL, heap_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    memset(heap_start, 1, heap_size);
    long found = 0;
    for (long round = 0; now() < stop_at; round++) {
        found += background_mark();
        mutate(round);
    }
    return found;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        long (*run)(void);
        const char *things;
    } cases[] = {
        { "attach-terminal", attach_terminal, "attached shells" },
        { "cpu-share", cpu_share, "samples" },
        { "config-store", config_store, "changes" },
        { "watch-trace", watch_trace, "events" },
        { "process-table", process_table, "processes" },
        { "write-watch", write_watch, "cards" },
    };
    if (argc < 4)
        return 2;
    seconds = atof(argv[2]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        make_folder(argv[3], argv[1]);
        stop_at = now() + seconds;
        long things = cases[i].run();
        printf("%s: %ld %s\n", argv[1], things, cases[i].things);
        return 0;
    }
    return 2;
}
