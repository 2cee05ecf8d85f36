// The second late half of the programs from public reports (tests/outside/49-second-aside.md), in
// C: each does steadily what its report describes, for some seconds: `second NAME SECONDS DIR`.
// gcc -O1 -g -w second.c -o second -lpthread
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static double end;
// A fourth argument asks for the repaired form, to compare with.
static int is_repaired;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int is_over(void) { return now() >= end; }

// Tells who started this that it is ready.
static void tell_ready(void) {
    puts("ready");
    fflush(stdout);
}

static pthread_t start(void *(*function)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, argument);
    return thread;
}

static pid_t fork_child(void) {
    pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

// S1: each access is logged with the local time.

KEEP static int format_access(char *text, long number) {
    char date[64];
    time_t seconds = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S %z", localtime(&seconds));
    return snprintf(text, 256, "%s proxy: fragment %ld served\n", date, number);
}

static void proxy_log(void) {
    if (is_repaired) setenv("TZ", ":/etc/localtime", 1);
    int file = open("proxy.log", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    char *buffer = malloc(1 << 16);
    int used = 0;
    long count = 0;
    for (; !is_over(); count++) {
        used += format_access(buffer + used, count);
        if (used > (1 << 16) - 512) {
            pwrite(file, buffer, used, 0);
            used = 0;
        }
    }
    fprintf(stderr, "%ld lines\n", count);
}

// S2: a queue of tasks whose threads all sleep on one condition variable.
#define TASKQ_THREADS 48

static pthread_mutex_t taskq_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t taskq_cv = PTHREAD_COND_INITIALIZER, done_cv = PTHREAD_COND_INITIALIZER;
static int tasks, completed;
static atomic_long wakeups;

static void *taskq_thread(void *unused) {
    pthread_mutex_lock(&taskq_mutex);
    for (;;) {
        while (tasks == 0) {
            pthread_cond_wait(&taskq_cv, &taskq_mutex);
            wakeups++;
        }
        tasks--;
        completed++;
        pthread_cond_signal(&done_cv);
    }
}

KEEP static void taskq_dispatch(void) {
    pthread_mutex_lock(&taskq_mutex);
    tasks++;
    if (is_repaired)
        pthread_cond_signal(&taskq_cv);
    else
        pthread_cond_broadcast(&taskq_cv);
    while (!completed) pthread_cond_wait(&done_cv, &taskq_mutex);
    completed = 0;
    pthread_mutex_unlock(&taskq_mutex);
}

static void task_queue(void) {
    long count = 0;
    for (int n = 0; n < TASKQ_THREADS; n++) start(taskq_thread, NULL);
    for (; !is_over(); count++) taskq_dispatch();
    fprintf(stderr, "%ld tasks, %ld wakeups\n", count, (long)wakeups);
}

// S18: a DHCP client whose next timeout is cut off to an int.
static long long lease_ms = (1LL << 32) * 3;

static int next_timeout(void) {
    return is_repaired ? 100 : (int)lease_ms;
}

KEEP static void run_client(int poller) {
    struct epoll_event events[4];
    long rounds = 0, packets = 0;
    while (!is_over()) {
        int count = epoll_wait(poller, events, 4, next_timeout());
        rounds++;
        for (int n = 0; n < count; n++) packets++;
    }
    fprintf(stderr, "%ld rounds for %ld packets\n", rounds, packets);
}

static void dhcp_client(void) {
    int ends[2], poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    pipe(ends);
    epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &event);
    run_client(poller);
}

// S20: the pool of segments is put into a free list when the database starts.
#define ZONE (96 << 20)

struct descriptor { struct descriptor *next; char rest[4088]; };

KEEP static struct descriptor *make_zone(char *zone) {
    struct descriptor *free_list = NULL;
    for (long at = 0; at < ZONE; at += sizeof(struct descriptor)) {
        struct descriptor *one = (void *)(zone + at);
        one->next = free_list;
        free_list = one;
    }
    return free_list;
}

static void start_shard(void) {
    long starts = 0;
    for (; !is_over(); starts++) {
        char *zone =
            mmap(NULL, ZONE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(zone, ZONE, MADV_NOHUGEPAGE);
        if (!is_repaired) make_zone(zone);
        // The shard takes a few segments, and is done.
        for (int n = 0; n < 8; n++) zone[n * 4096L] = n;
        munmap(zone, ZONE);
    }
    fprintf(stderr, "%ld starts\n", starts);
}

// S21: a list of the recorded games says how long each is.
static void make_replays(void) {
    char header[502] = "bZrp";
    mkdir("recordings", 0755);
    for (int n = 0; n < 5000; n++) {
        char path[64];
        sprintf(path, "recordings/game-%05d.rec", n);
        int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
        write(file, header, sizeof header);
        close(file);
    }
    tell_ready();
}

KEEP static double read_duration(const char *path) {
    uint32_t magic = 0, seconds = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    fread(&magic, sizeof magic, 1, file);
    fseek(file, 24, SEEK_SET);
    fread(&seconds, sizeof seconds, 1, file);
    fclose(file);
    return seconds;
}

KEEP static double list_replays(void) {
    double all = 0;
    DIR *folder = opendir("recordings");
    struct dirent *entry;
    while ((entry = readdir(folder)) && !is_over()) {
        char path[300];
        if (entry->d_name[0] == '.') continue;
        sprintf(path, "recordings/%s", entry->d_name);
        all += read_duration(path);
    }
    closedir(folder);
    return all;
}

static void replay_list(void) {
    long lists = 0;
    for (; !is_over(); lists++) list_replays();
    fprintf(stderr, "%ld lists of 5000\n", lists);
}

// S22: whether an address may be written is looked up in the map of the process.
KEEP static int guest_writable(uint64_t address, uint32_t size) {
    char text[512], permissions[8];
    unsigned long long from, to;
    int is_found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (!is_found && fgets(text, sizeof text, maps))
        if (sscanf(text, "%llx-%llx %4s", &from, &to, permissions) == 3)
            is_found = from <= address && address + size <= to && permissions[1] == 'w';
    fclose(maps);
    return is_found;
}

KEEP static long submit_frame(char **buffers, int count) {
    long written = 0;
    for (int n = 0; n < count; n++)
        if (is_repaired || guest_writable((uint64_t)buffers[n], 64)) {
            memset(buffers[n], n, 64);
            written++;
        }
    return written;
}

static void render_frames(void) {
    char *buffers[64];
    long frames = 0;
    // A process with many mappings.
    for (int n = 0; n < 200; n++) {
        int protection = n % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
        char *part = mmap(NULL, 8192, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (n < 128 && n % 2 == 0) buffers[n / 2] = part;
    }
    for (; !is_over(); frames++) submit_frame(buffers, 64);
    fprintf(stderr, "%ld frames\n", frames);
}

// S23: the scheduler of fibers pins the main thread first, and then starts its workers.
static atomic_long fibers;

KEEP static double run_fiber(double seed) {
    double x = seed;
    for (int n = 0; n < 200000; n++) x = x * 0.999 + 1.0 / (1.0 + x * x);
    return x;
}

static void *fiber_thread(void *seed) {
    double x = (long)seed;
    while (!is_over()) {
        x = run_fiber(x);
        fibers++;
    }
    return x > 1e300 ? seed : NULL;
}

static void fiber_tasks(void) {
    pthread_t threads[4];
    cpu_set_t first;
    sched_getaffinity(0, sizeof first, &first);
    int processor = 0;
    while (!CPU_ISSET(processor, &first)) processor++;
    CPU_ZERO(&first);
    CPU_SET(processor, &first);
    if (!is_repaired) sched_setaffinity(0, sizeof first, &first);
    for (long n = 0; n < 4; n++) threads[n] = start(fiber_thread, (void *)n);
    for (int n = 0; n < 4; n++) pthread_join(threads[n], NULL);
    fprintf(stderr, "%ld fibers\n", (long)fibers);
}

// S12: the result of another thread is polled for, with the shortest sleep there is.
static atomic_int event_count;

static void *run_script(void *unused) {
    while (!is_over()) {
        usleep(20000);
        event_count++;
    }
    return NULL;
}

KEEP static int events_poll(int seen) {
    while (event_count == seen && !is_over()) usleep(1);
    return event_count;
}

static void poll_events(void) {
    int seen = 0;
    for (int n = 0; n < 2; n++) start(run_script, NULL);
    while (!is_over()) seen = events_poll(seen);
    fprintf(stderr, "%d events\n", seen);
}

// S32: the threads at the edges of the grid have more to do, and the others meet them at a barrier.
#define SURFACE_THREADS 3

static pthread_barrier_t team;
static long iterations;

KEEP static double sweep_surfaces(int surfaces) {
    double x = 1;
    for (int n = 0; n < surfaces * 3000; n++) x = x * 0.9999 + 0.1 / x;
    return x;
}

// The flag is looked at by one thread only, so that all leave at the same barrier.
static volatile int is_converged;

static void *evolve(void *place) {
    int is_edge = (long)place == 0;
    double x = 0;
    for (;;) {
        x += sweep_surfaces(is_edge && !is_repaired ? 400 : 40);
        pthread_barrier_wait(&team);
        if (is_edge) {
            iterations++;
            is_converged = is_over();
        }
        pthread_barrier_wait(&team);
        if (is_converged) return x < 0 ? place : NULL;
    }
}

static void equilibrium(void) {
    pthread_t threads[SURFACE_THREADS];
    pthread_barrier_init(&team, NULL, SURFACE_THREADS);
    for (long n = 0; n < SURFACE_THREADS; n++) threads[n] = start(evolve, (void *)n);
    for (int n = 0; n < SURFACE_THREADS; n++) pthread_join(threads[n], NULL);
    fprintf(stderr, "%ld iterations\n", iterations);
}

// S53: lines of the log are written to the standard error under a lock; who started the program
// reads them slowly.
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_long logged;
static int log_pipe;

KEEP static void message_handler(const char *text, int size) {
    pthread_mutex_lock(&log_mutex);
    write(log_pipe, text, size);
    pthread_mutex_unlock(&log_mutex);
    logged++;
}

static void *receive_samples(void *place) {
    char text[200];
    while (!is_over()) {
        int size = snprintf(text, sizeof text, "[%10.3f] debug: receiver %ld: %-100s\n", now(),
                            (long)place, "meters updated");
        message_handler(text, size);
        usleep(500);
    }
    return NULL;
}

static void read_slowly(int from) {
    char text[1024];
    while (read(from, text, sizeof text) > 0) usleep(50000);
    _exit(0);
}

static void radio(void) {
    int ends[2];
    pipe(ends);
    if (fork_child() == 0) {
        close(ends[1]);
        read_slowly(ends[0]);
    }
    close(ends[0]);
    log_pipe = ends[1];
    for (long n = 0; n < 5; n++) start(receive_samples, (void *)n);
    while (!is_over()) {
        message_handler("tick\n", 5);
        usleep(1000);
    }
    fprintf(stderr, "%ld lines\n", (long)logged);
    _exit(0);
}

static const struct { const char *name; void (*run)(void); } programs[] = {
    {"proxy-log", proxy_log}, {"task-queue", task_queue}, {"dhcp-client", dhcp_client},
    {"start-shard", start_shard}, {"make-replays", make_replays}, {"replay-list", replay_list},
    {"render-frames", render_frames}, {"fiber-tasks", fiber_tasks}, {"poll-events", poll_events},
    {"equilibrium", equilibrium}, {"radio", radio},
};

int main(int count, char **arguments) {
    if (count < 4 || chdir(arguments[3])) return 2;
    end = now() + atof(arguments[2]);
    is_repaired = count > 4;
    for (int n = 0; n < sizeof programs / sizeof *programs; n++)
        if (strcmp(programs[n].name, arguments[1]) == 0) {
            programs[n].run();
            return 0;
        }
    return 2;
}
