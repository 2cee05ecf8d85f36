/* ninth.c: seven small programs in C, chosen by the first argument; each runs for SECONDS
 * below FOLDER/CASE and then prints one line. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static volatile long things;
static char end_line[96];
static char dir_name[512];
static double seconds;

static void on_alarm_flag(int s)
{
    (void)s;
    stop = 1;
}

static void on_alarm_exit(int s)
{
    (void)s;
    ssize_t n = write(1, end_line, strlen(end_line));
    _exit(n < 0);
}

static void set_deadline(void (*f)(int))
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = f;
    sa.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &sa, NULL);
    struct itimerval it = {{0, 0}, {0, 0}};
    it.it_value.tv_sec = (long)seconds;
    it.it_value.tv_usec = (long)((seconds - (long)seconds) * 1e6);
    setitimer(ITIMER_REAL, &it, NULL);
}

/* ---- hotkey-daemon ---- */

static int create_pid_file(const char *path)
{
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    if (fd < 0)
        exit(1);
    flock(fd, LOCK_EX);
    char buf[32];
    int n = snprintf(buf, sizeof buf, "%d\n", getpid());
    if (ftruncate(fd, 0) || write(fd, buf, n) != n)
        exit(1);
    return fd;
}

static void fork_and_exec(const char *arg)
{
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        execlp("sleep", "sleep", arg, (char *)NULL);
        _exit(127);
    }
}

static void hotkey_daemon(void)
{
    char path[600], arg[32];
    snprintf(path, sizeof path, "%s/hotkeys.pid", dir_name);
    snprintf(arg, sizeof arg, "%g", seconds);
    snprintf(end_line, sizeof end_line, "hotkey-daemon: 1 things\n");
    pid_t first = fork();
    if (first == 0) {
        create_pid_file(path);
        fork_and_exec(arg);
        _exit(0);
    }
    waitpid(first, NULL, 0);
    set_deadline(on_alarm_exit);
    int fd = create_pid_file(path);
    things++;
    close(fd);
    printf("hotkey-daemon: %ld things\n", things + 1);
}

/* ---- once-init ---- */

struct task_once {
    int done;
};

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static struct task_once driver_once, codec_once;
static sem_t codec_ready;

static void task_call_once(struct task_once *o, void (*init_routine)(void))
{
    pthread_mutex_lock(&g_lock);
    if (!o->done) {
        init_routine();
        o->done = 1;
    }
    pthread_mutex_unlock(&g_lock);
}

static void init_driver(void)
{
    while (sem_wait(&codec_ready) != 0)
        ;
}

static void init_codec(void)
{
    things++;
}

static void *driver_task(void *arg)
{
    task_call_once(&driver_once, init_driver);
    things++;
    return arg;
}

static void *codec_task(void *arg)
{
    usleep(20000);
    task_call_once(&codec_once, init_codec);
    sem_post(&codec_ready);
    return arg;
}

static void once_init(void)
{
    pthread_t a, b;
    snprintf(end_line, sizeof end_line, "once-init: 2 things\n");
    set_deadline(on_alarm_exit);
    sem_init(&codec_ready, 0, 0);
    pthread_create(&a, NULL, driver_task, NULL);
    pthread_create(&b, NULL, codec_task, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("once-init: %ld things\n", things);
}

/* ---- safe-reader ---- */

static sigjmp_buf read_buf;

static void on_segv(int s)
{
    (void)s;
    siglongjmp(read_buf, 1);
}

static int safe_read(const volatile uint64_t *base, uint64_t *out)
{
    if (sigsetjmp(read_buf, 1) != 0)
        return 0;
    *out = *base;
    return 1;
}

static uint64_t scan_for_pointers(uint64_t *mem, size_t n)
{
    uint64_t found = 0, v;
    for (size_t i = 0; i < n && !stop; i++) {
        if (safe_read(mem + i, &v) && v >= (uint64_t)(uintptr_t)mem
            && v < (uint64_t)(uintptr_t)(mem + n))
            found++;
        things++;
    }
    return found;
}

static void safe_reader(void)
{
    size_t n = 1 << 16;
    uint64_t *mem = malloc(n * sizeof *mem), found = 0;
    for (size_t i = 0; i < n; i++)
        mem[i] = i % 7 ? i : (uint64_t)(uintptr_t)(mem + i);
    signal(SIGSEGV, on_segv);
    set_deadline(on_alarm_flag);
    while (!stop)
        found += scan_for_pointers(mem, n);
    free(mem);
    printf("safe-reader: %ld things\n", things + (found == 1));
}

/* ---- stat-collector ---- */

#define STAT "/proc/stat"

struct sample {
    unsigned long long cpu[8][8], ctxt, processes, blocked;
    int nr_cpu;
};

static void read_stat_cpu(struct sample *s)
{
    char line[8192];
    FILE *fp = fopen(STAT, "r");
    if (!fp)
        return;
    while (fgets(line, sizeof line, fp)) {
        int k = -1;
        if (!strncmp(line, "cpu ", 4))
            k = 0;
        else if (!strncmp(line, "cpu", 3))
            k = 1 + atoi(line + 3);
        if (k >= 0 && k < 8) {
            unsigned long long *c = s->cpu[k];
            sscanf(strchr(line, ' '), "%llu %llu %llu %llu", c, c + 1, c + 2, c + 3);
        }
    }
    fclose(fp);
}

static void read_stat_pcsw(struct sample *s)
{
    char line[8192];
    FILE *fp = fopen(STAT, "r");
    if (!fp)
        return;
    while (fgets(line, sizeof line, fp)) {
        if (!strncmp(line, "ctxt ", 5))
            sscanf(line + 5, "%llu", &s->ctxt);
        else if (!strncmp(line, "processes ", 10))
            sscanf(line + 10, "%llu", &s->processes);
    }
    fclose(fp);
}

static void read_loadavg(struct sample *s)
{
    char line[8192];
    FILE *fp = fopen(STAT, "r");
    if (!fp)
        return;
    while (fgets(line, sizeof line, fp))
        if (!strncmp(line, "procs_blocked ", 14))
            sscanf(line + 14, "%llu", &s->blocked);
    fclose(fp);
}

static void get_online_cpu_list(struct sample *s)
{
    char line[8192];
    FILE *fp = fopen(STAT, "r");
    if (!fp)
        return;
    s->nr_cpu = 0;
    while (fgets(line, sizeof line, fp))
        if (!strncmp(line, "cpu", 3) && line[3] != ' ')
            s->nr_cpu++;
    fclose(fp);
}

static void stat_collector(void)
{
    struct sample s;
    set_deadline(on_alarm_flag);
    while (!stop) {
        memset(&s, 0, sizeof s);
        get_online_cpu_list(&s);
        read_stat_cpu(&s);
        read_stat_pcsw(&s);
        read_loadavg(&s);
        things++;
    }
    printf("stat-collector: %ld things\n", things);
}

/* ---- server-log ---- */

static char log_name[600];

static void server_log_raw(int level, const char *msg)
{
    const char *c = ".-*#";
    FILE *fp = fopen(log_name, "a");
    char buf[64];
    struct timeval tv;
    struct tm tm;
    if (!fp)
        return;
    gettimeofday(&tv, NULL);
    gmtime_r(&tv.tv_sec, &tm);
    int off = snprintf(buf, sizeof buf, "%02d:%02d:%02d.", tm.tm_hour, tm.tm_min, tm.tm_sec);
    snprintf(buf + off, sizeof buf - off, "%03d", (int)tv.tv_usec / 1000);
    fprintf(fp, "%s %c %s\n", buf, c[level & 3], msg);
    fclose(fp);
}

static void server_log(const char *msg, long id)
{
    char text[128];
    snprintf(text, sizeof text, "%s client id=%ld", msg, id);
    server_log_raw(id & 3, text);
}

static void server_log_case(void)
{
    snprintf(log_name, sizeof log_name, "%s/server.log", dir_name);
    set_deadline(on_alarm_flag);
    while (!stop) {
        server_log("Accepted", things);
        if (++things % 100000 == 0 && truncate(log_name, 0))
            break;
    }
    printf("server-log: %ld things\n", things);
}

/* ---- mr-register ---- */

static int fi_log_level = 1;
static char log_buf[512];

static int fi_log_enabled(int level)
{
    return level <= fi_log_level;
}

static void gnix_log(int level, const char *func, const char *fmt, ...)
{
    va_list ap;
    char text[256];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(log_buf, sizeof log_buf, "[%ld:%s] %s", (long)level, func, text);
    if (fi_log_enabled(level))
        fputs(log_buf, stderr);
}

struct mr_entry {
    uint64_t addr, len;
    int refs;
};

static struct mr_entry mr_cache[1024];

static struct mr_entry *mr_cache_search(uint64_t addr)
{
    return &mr_cache[(addr >> 12) & 1023];
}

static int gnix_mr_reg(uint64_t addr, uint64_t len)
{
    gnix_log(3, __func__, "reg: buf=%p len=%lu access=0x%x\n", (void *)addr, len, 3);
    struct mr_entry *e = mr_cache_search(addr);
    gnix_log(3, __func__, "entry %p refs=%d key.address=%llx\n", (void *)e, e->refs,
             (unsigned long long)e->addr);
    e->addr = addr;
    e->len = len;
    return ++e->refs;
}

static void mr_register(void)
{
    uint64_t addr = 0x7f0000000000ull;
    set_deadline(on_alarm_flag);
    while (!stop) {
        addr = addr * 6364136223846793005ull + 1442695040888963407ull;
        gnix_mr_reg(addr >> 16, 4096);
        things++;
    }
    printf("mr-register: %ld things\n", things);
}

/* ---- ion-encode ---- */

#define PAGE_BYTES 65536

struct ion_page {
    struct ion_page *next;
    unsigned char data[PAGE_BYTES - sizeof(void *)];
};

static struct ion_page *ion_alloc_page(void)
{
    struct ion_page *p = malloc(sizeof *p);
    if (!p)
        exit(1);
    memset(p, 0, sizeof *p);
    return p;
}

static size_t ion_write_int(unsigned char *out, uint64_t v)
{
    size_t n = 0;
    while (v) {
        out[1 + n++] = (unsigned char)v;
        v >>= 8;
    }
    out[0] = (unsigned char)(0x20 | n);
    return n + 1;
}

static uint64_t ion_encode_record(uint64_t id)
{
    struct ion_page *values = ion_alloc_page(), *symbols = ion_alloc_page();
    size_t at = 0;
    values->next = symbols;
    for (int i = 0; i < 12; i++)
        at += ion_write_int(values->data + at, id * 31 + i);
    symbols->data[0] = (unsigned char)at;
    uint64_t sum = values->data[1] + symbols->data[0];
    free(symbols);
    free(values);
    return sum;
}

static void ion_encode(void)
{
    uint64_t sum = 0;
    set_deadline(on_alarm_flag);
    while (!stop)
        sum += ion_encode_record(things++);
    printf("ion-encode: %ld things\n", things + (sum == 1));
}

static void make_dir(const char *folder, const char *name)
{
    char cmd[1200];
    snprintf(dir_name, sizeof dir_name, "%s/%s", folder, name);
    snprintf(cmd, sizeof cmd, "rm -rf '%s'; mkdir -p '%s'", dir_name, dir_name);
    if (system(cmd))
        exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"hotkey-daemon", hotkey_daemon}, {"once-init", once_init},
        {"safe-reader", safe_reader},     {"stat-collector", stat_collector},
        {"server-log", server_log_case},  {"mr-register", mr_register},
        {"ion-encode", ion_encode},
    };
    seconds = atof(argv[2]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            make_dir(argv[3], argv[1]);
            cases[i].run();
            return 0;
        }
    return 2;
}
