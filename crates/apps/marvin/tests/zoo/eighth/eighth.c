/* Seven programs after public reports, C. Usage: eighth CASE SECONDS FOLDER */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

static double deadline;
static char folder[400];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void path_in(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s/%s", folder, name);
}

/* cron-job */

KEEP static void child_process(const char *command)
{
    int fd, fdmax = getdtablesize();
    for (fd = STDERR_FILENO + 1; fd < fdmax; fd++)
        close(fd);
    execl(command, command, (char *)NULL);
    _exit(127);
}

static long cron_job(void)
{
    long jobs = 0;
    struct rlimit rl = {1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_NOFILE, &rl) != 0 && getrlimit(RLIMIT_NOFILE, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    while (now() < deadline) {
        pid_t pid = fork();
        if (pid == 0)
            child_process("/bin/true");
        if (pid > 0)
            waitpid(pid, NULL, 0);
        jobs++;
    }
    return jobs;
}

/* mux-popup */

struct grid_line {
    char *cells;
    size_t size;
};

struct grid {
    struct grid_line *lines;
    int count;
};

KEEP static struct grid *grid_create(int lines, size_t size)
{
    struct grid *gd = malloc(sizeof *gd);
    gd->lines = calloc((size_t)lines, sizeof *gd->lines);
    gd->count = lines;
    for (int i = 0; i < lines; i++) {
        gd->lines[i].cells = malloc(size);
        gd->lines[i].size = size;
        memset(gd->lines[i].cells, ' ', size);
    }
    return gd;
}

KEEP static void grid_free_lines(struct grid *gd, int step)
{
    for (int i = 0; i < gd->count; i += step) {
        free(gd->lines[i].cells);
        gd->lines[i].cells = NULL;
    }
    malloc_trim(0);
}

KEEP static void grid_destroy(struct grid *gd)
{
    grid_free_lines(gd, 1);
    free(gd->lines);
    free(gd);
}

KEEP static void format_draw(int width)
{
    struct grid *gd = grid_create(2, (size_t)width);
    for (int i = 0; i < gd->count; i++)
        snprintf(gd->lines[i].cells, gd->lines[i].size, "[%d] window %d", width, i);
    grid_destroy(gd);
}

static long mux_popup(void)
{
    long draws = 0;
    struct grid *history = grid_create(12000, 12000);
    grid_free_lines(history, 2);
    while (now() < deadline) {
        format_draw(200);
        draws++;
    }
    return draws;
}

/* sudo-run */

static volatile sig_atomic_t got_sigchld;

static void signal_cb(int sig)
{
    (void)sig;
    got_sigchld = 1;
}

KEEP static int exec_nopty(void)
{
    sigset_t block, old;
    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    usleep(20000);
    sigprocmask(SIG_BLOCK, &block, &old);
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = signal_cb;
    sigaction(SIGCHLD, &sa, NULL);
    while (!got_sigchld) {
        double left = deadline - now();
        if (left <= 0)
            return 0;
        struct timespec ts = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        ppoll(NULL, 0, &ts, &old);
    }
    return waitpid(pid, NULL, 0) == pid;
}

static long sudo_run(void)
{
    long commands = 0;
    signal(SIGCHLD, SIG_IGN);
    while (now() < deadline) {
        commands += exec_nopty();
        got_sigchld = 0;
    }
    return commands;
}

/* can-transmit */

KEEP static uint16_t crc_add_byte(uint16_t crc, uint8_t byte)
{
    uint16_t out = crc ^ (uint16_t)(byte << 8);
    for (int i = 0; i < 8; i++)
        out = (out & 0x8000) ? (uint16_t)((uint16_t)(out << 1) ^ 0x1021) : (uint16_t)(out << 1);
    return out;
}

KEEP static uint16_t crc_add(uint16_t crc, size_t size, const uint8_t *data)
{
    while (size-- > 0)
        crc = crc_add_byte(crc, *data++);
    return crc;
}

KEEP static size_t push_frames(uint8_t *queue, const uint8_t *payload, size_t size)
{
    size_t frames = 0;
    uint16_t crc = crc_add(0xFFFF, size, payload);
    for (size_t at = 0; at < size; at += 63) {
        size_t part = size - at < 63 ? size - at : 63;
        memcpy(queue + frames * 64, payload + at, part);
        queue[frames * 64 + part] = (uint8_t)(0xA0 | (frames & 31));
        frames++;
    }
    queue[frames * 64] = (uint8_t)(crc >> 8);
    queue[frames * 64 + 1] = (uint8_t)crc;
    return frames;
}

static long can_transmit(void)
{
    long transfers = 0;
    static uint8_t payload[1300], queue[64 * 32];
    while (now() < deadline) {
        for (int i = 0; i < 100; i++) {
            payload[i] = (uint8_t)(transfers + i);
            push_frames(queue, payload, sizeof payload);
            transfers++;
        }
    }
    return transfers;
}

/* range-sort */

typedef int (*order_fn)(const double *, const double *);

KEEP static int order_lt(const double *a, const double *b)
{
    return *a < *b;
}

KEEP static int sort_part(double *a, int lo, int hi, order_fn by)
{
    double pivot = a[hi], swap;
    int i = lo;
    for (int j = lo; j < hi; j++) {
        if (by(&a[j], &pivot)) {
            swap = a[i];
            a[i] = a[j];
            a[j] = swap;
            i++;
        }
    }
    swap = a[i];
    a[i] = a[hi];
    a[hi] = swap;
    return i;
}

KEEP static void sort_help(double *a, int lo, int hi, order_fn by)
{
    if (lo < hi) {
        int at = sort_part(a, lo, hi, by);
        sort_help(a, lo, at - 1, by);
        sort_help(a, at + 1, hi, by);
    }
}

static long range_sort(void)
{
    long sorts = 0;
    int n = 10000;
    double *range = malloc(sizeof(double) * (size_t)n);
    while (now() < deadline) {
        for (int i = 0; i < n; i++)
            range[i] = i;
        sort_help(range, 0, n - 1, order_lt);
        sorts++;
    }
    return sorts;
}

/* gpu-share */

struct shared_region {
    sem_t sem;
    pid_t owner_pid;
    long used[16];
};

KEEP static int lock_shrreg(struct shared_region *region)
{
    for (;;) {
        double left = deadline - now();
        struct timespec ts;
        if (left <= 0)
            return 0;
        clock_gettime(CLOCK_REALTIME, &ts);
        left = (left < 10 ? left : 10) + (double)ts.tv_nsec / 1e9;
        ts.tv_sec += (time_t)left;
        ts.tv_nsec = (long)((left - (double)(time_t)left) * 1e9);
        if (sem_timedwait(&region->sem, &ts) == 0) {
            region->owner_pid = getpid();
            return 1;
        }
    }
}

KEEP static void unlock_shrreg(struct shared_region *region)
{
    region->owner_pid = 0;
    sem_post(&region->sem);
}

static struct shared_region *try_create_shrreg(void)
{
    char name[500];
    path_in(name, sizeof name, "region.cache");
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared_region)) != 0)
        exit(1);
    struct shared_region *region = mmap(NULL, sizeof *region, PROT_READ | PROT_WRITE,
                                        MAP_SHARED, fd, 0);
    if (region == MAP_FAILED)
        exit(1);
    close(fd);
    sem_init(&region->sem, 1, 1);
    return region;
}

static long gpu_share(void)
{
    long allocations = 0;
    struct shared_region *region = try_create_shrreg();
    pid_t pid = fork();
    if (pid == 0) {
        lock_shrreg(region);
        region->used[1] += 4096;
        region->owner_pid = 0;
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, NULL, 0);
    while (now() < deadline) {
        if (!lock_shrreg(region))
            break;
        region->used[0] += 4096;
        unlock_shrreg(region);
        allocations++;
        usleep(1000);
    }
    return allocations;
}

/* world-load */

KEEP static int vfgetd(FILE *f)
{
    unsigned char b[4];
    if (fread(b, 1, 4, f) != 4)
        return 0;
    return b[0] | b[1] << 8 | b[2] << 16;
}

KEEP static int load_robot(FILE *f, long entry)
{
    fseek(f, 4096 + entry * 8, SEEK_SET);
    int size = vfgetd(f);
    fseek(f, 4000000 + entry * 3000 % 8000000, SEEK_SET);
    return size + vfgetd(f);
}

static long world_load(void)
{
    char name[500];
    static char vbuf[32768];
    long robots = 0, sum = 0;
    path_in(name, sizeof name, "caverns.mzx");
    FILE *f = fopen(name, "w+b");
    if (f == NULL)
        exit(1);
    char *block = calloc(1, 1 << 20);
    for (int i = 0; i < 16; i++)
        fwrite(block, 1, 1 << 20, f);
    fflush(f);
    fclose(f);
    f = fopen(name, "rb");
    setvbuf(f, vbuf, _IOFBF, sizeof vbuf);
    while (now() < deadline) {
        for (long i = 0; i < 100; i++)
            sum += load_robot(f, (robots + i) % 2000);
        robots += 100;
    }
    fclose(f);
    return robots + (sum ? 0 : 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *things;
        long (*run)(void);
    } cases[] = {
        {"cron-job", "jobs", cron_job},       {"mux-popup", "draws", mux_popup},
        {"sudo-run", "commands", sudo_run},   {"can-transmit", "transfers", can_transmit},
        {"range-sort", "sorts", range_sort},  {"gpu-share", "allocations", gpu_share},
        {"world-load", "robots", world_load},
    };
    char old[500];
    if (argc < 4)
        return 2;
    snprintf(folder, sizeof folder, "%s/%s", argv[3], argv[1]);
    path_in(old, sizeof old, "region.cache");
    unlink(old);
    path_in(old, sizeof old, "caverns.mzx");
    unlink(old);
    rmdir(folder);
    mkdir(folder, 0700);
    deadline = now() + atof(argv[2]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            long n = cases[i].run();
            printf("%s: %ld %s\n", argv[1], n, cases[i].things);
            return 0;
        }
    }
    return 2;
}
