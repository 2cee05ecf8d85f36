// Seven small programs after public reports: sixth NAME SECONDS FOLDER [fixed]
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double end_time;
static int fixed;
static const char *folder;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int running(void)
{
    return now() < end_time;
}

// ---------------------------------------------------------------- report-builder

struct subprocess_s {
    pid_t child;
    FILE *stdout_file;
    int return_status;
};

static volatile pid_t current_child;

static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (current_child > 0)
        kill(current_child, SIGKILL);
}

static int subprocess_create(char *const command_line[], struct subprocess_s *out)
{
    int fds[2];
    if (pipe(fds) != 0)
        return -1;
    pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        execvp(command_line[0], command_line);
        _exit(127);
    }
    close(fds[1]);
    out->stdout_file = fdopen(fds[0], "rb");
    out->child = child;
    current_child = child;
    return 0;
}

static int subprocess_join(struct subprocess_s *process, int *return_code)
{
    int status;
    while (waitpid(process->child, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    current_child = 0;
    *return_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return 0;
}

static size_t subprocess_read_stdout(struct subprocess_s *process, char *buffer, size_t size)
{
    return fread(buffer, 1, size, process->stdout_file);
}

static void report_builder(double seconds)
{
    char *command_line[] = {"dd", "if=/dev/zero", "bs=1k", "count=96", NULL};
    static char buffer[256 * 1024];
    long reports = 0;
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(seconds + 0.5));
    while (running()) {
        struct subprocess_s process;
        int code = 0;
        size_t got = 0;
        if (subprocess_create(command_line, &process) != 0)
            exit(1);
        if (fixed)
            got = subprocess_read_stdout(&process, buffer, sizeof buffer);
        subprocess_join(&process, &code);
        if (!fixed)
            got = subprocess_read_stdout(&process, buffer, sizeof buffer);
        fclose(process.stdout_file);
        if (code == 0 && got >= 96 * 1024)
            reports++;
    }
    printf("reports %ld\n", reports);
}

// ---------------------------------------------------------------- volume-bar

static void volume_bar(void)
{
    int fds[2];
    if (pipe(fds) != 0)
        exit(1);
    pid_t mixer = fork();
    if (mixer == 0) {
        close(fds[0]);
        for (int i = 0; i < 5; i++) {
            dprintf(fds[1], "%d\n", 20 + i * 10);
            usleep(20000);
        }
        _exit(0);
    }
    close(fds[1]);
    waitpid(mixer, NULL, 0);
    struct pollfd input = {.fd = fds[0], .events = POLLIN};
    long turns = 0;
    int percentage = 0;
    char line[128];
    while (running()) {
        int left = (int)((end_time - now()) * 1000) + 1;
        int ready = poll(&input, 1, left);
        turns++;
        if (ready <= 0)
            continue;
        if (input.revents & POLLIN) {
            ssize_t n = read(input.fd, line, sizeof line - 1);
            if (n > 0) {
                line[n] = 0;
                percentage = atoi(line);
            }
        } else if (fixed && (input.revents & (POLLHUP | POLLERR))) {
            input.fd = -1;
        }
    }
    printf("turns %ld, last %d\n", turns, percentage);
}

// ---------------------------------------------------------------- switch-agent

struct of_message {
    size_t length;
    uint8_t *data;
};

static struct of_message of_message_new(size_t length, uint32_t xid)
{
    struct of_message m;
    m.length = length;
    m.data = malloc(64 * 1024);
    memset(m.data, 0, 64 * 1024);
    memcpy(m.data + 4, &xid, sizeof xid);
    return m;
}

static void ind_cxn_write(int fd, struct of_message *queue, int count)
{
    for (int i = 0; i < count; i++) {
        if (write(fd, queue[i].data, queue[i].length) < 0)
            exit(1);
    }
}

static void ind_soc_run_once(int fd, uint32_t *xid)
{
    struct of_message queue[16];
    for (int i = 0; i < 16; i++)
        queue[i] = of_message_new(128, (*xid)++);
    ind_cxn_write(fd, queue, 16);
    for (int i = 15; i >= 0; i--)
        free(queue[i].data);
}

static void switch_agent(void)
{
    int pair[2];
    if (fixed)
        mallopt(M_TRIM_THRESHOLD, 2 * 1024 * 1024);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        exit(1);
    pid_t controller = fork();
    if (controller == 0) {
        static char sink[65536];
        close(pair[0]);
        while (read(pair[1], sink, sizeof sink) > 0) {
        }
        _exit(0);
    }
    close(pair[1]);
    uint32_t xid = 1;
    while (running())
        ind_soc_run_once(pair[0], &xid);
    close(pair[0]);
    waitpid(controller, NULL, 0);
    printf("messages %u\n", xid - 1);
}

// ---------------------------------------------------------------- subtitle-cache

typedef struct {
    void *font;
    double size;
    unsigned glyph;
    unsigned outline, flags;
} GlyphKey;

typedef struct cache_item {
    struct cache_item *next;
    GlyphKey key;
    int advance;
} CacheItem;

typedef struct {
    unsigned (*hash_func)(const GlyphKey *key);
    int (*compare_func)(const GlyphKey *a, const GlyphKey *b);
} CacheDesc;

typedef struct {
    unsigned buckets;
    CacheItem **map;
    const CacheDesc *desc;
    long items;
} Cache;

static unsigned fnv_32a_buf(const void *buf, size_t len, unsigned hval)
{
    const unsigned char *p = buf;
    while (len--) {
        hval ^= *p++;
        hval *= 0x01000193u;
    }
    return hval;
}

static unsigned glyph_hash(const GlyphKey *key)
{
    unsigned hval = 0x811c9dc5u;
    hval = fnv_32a_buf(&key->font, sizeof key->font, hval);
    hval = fnv_32a_buf(&key->size, sizeof key->size, hval);
    if (fixed)
        hval = fnv_32a_buf(&key->glyph, sizeof key->glyph, hval);
    return hval;
}

static int glyph_compare(const GlyphKey *a, const GlyphKey *b)
{
    return a->font == b->font && a->size == b->size && a->glyph == b->glyph &&
           a->outline == b->outline && a->flags == b->flags;
}

static const CacheDesc glyph_cache_desc = {glyph_hash, glyph_compare};

static int ass_cache_get(Cache *cache, const GlyphKey *key)
{
    const CacheDesc *desc = cache->desc;
    unsigned bucket = desc->hash_func(key) % cache->buckets;
    CacheItem *item = cache->map[bucket];
    while (item) {
        if (desc->compare_func(key, &item->key))
            return item->advance;
        item = item->next;
    }
    item = malloc(sizeof *item);
    item->key = *key;
    item->advance = (int)(key->glyph % 40 + 5);
    item->next = cache->map[bucket];
    cache->map[bucket] = item;
    cache->items++;
    return item->advance;
}

static int ass_render_event(Cache *cache, unsigned *seed)
{
    static char fonts[2];
    int width = 0;
    for (int i = 0; i < 40; i++) {
        *seed = *seed * 1103515245u + 12345u;
        GlyphKey key;
        memset(&key, 0, sizeof key);
        key.font = &fonts[(*seed >> 8) & 1];
        key.size = 36.0;
        key.glyph = 0x4e00 + (*seed >> 10) % 3000;
        width += ass_cache_get(cache, &key);
    }
    return width;
}

static void subtitle_cache(void)
{
    Cache cache = {.buckets = 4096, .desc = &glyph_cache_desc};
    cache.map = calloc(cache.buckets, sizeof *cache.map);
    unsigned seed = 7;
    long events = 0, width = 0;
    while (running()) {
        for (int i = 0; i < 20; i++) {
            width += ass_render_event(&cache, &seed);
            events++;
        }
    }
    printf("events %ld, items %ld, width %ld\n", events, cache.items, width);
}

// ---------------------------------------------------------------- sampled-values

static void sampled_values_address(struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s/sv.sock", folder);
}

static void sv_publisher(void)
{
    struct sockaddr_un to;
    sampled_values_address(&to);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    puts("ready");
    fflush(stdout);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    double frame[8] = {0};
    while (running()) {
        next.tv_nsec += 250000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        frame[0] = now();
        sendto(fd, frame, sizeof frame, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to);
    }
}

static void Thread_sleep(int millies)
{
    usleep((useconds_t)millies * 1000);
}

struct SVReceiver {
    int socket;
    long packets;
    double latency;
};

static int SVReceiver_tick(struct SVReceiver *self)
{
    double frame[8];
    ssize_t n = recv(self->socket, frame, sizeof frame, fixed ? 0 : MSG_DONTWAIT);
    if (n != (ssize_t)sizeof frame)
        return 0;
    self->latency += now() - frame[0];
    self->packets++;
    return 1;
}

static void svReceiverLoop(struct SVReceiver *self)
{
    while (running()) {
        if (!SVReceiver_tick(self) && !fixed)
            Thread_sleep(1);
    }
}

static void sampled_values(void)
{
    struct sockaddr_un me;
    sampled_values_address(&me);
    unlink(me.sun_path);
    struct SVReceiver receiver = {.socket = socket(AF_UNIX, SOCK_DGRAM, 0)};
    if (bind(receiver.socket, (struct sockaddr *)&me, sizeof me) != 0)
        exit(1);
    struct timeval limit = {.tv_usec = 200000};
    setsockopt(receiver.socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    svReceiverLoop(&receiver);
    unlink(me.sun_path);
    printf("packets %ld, mean latency %.0f us\n", receiver.packets,
           receiver.packets ? receiver.latency / receiver.packets * 1e6 : 0.0);
}

// ---------------------------------------------------------------- modem-storage

enum { SECTOR_SIZE = 512, SECTORS = 4096 };

static int storage_open(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/modem_fs1", folder);
    int fd = open(path, O_RDWR | O_CREAT | (fixed ? 0 : O_SYNC), 0600);
    if (fd < 0 || ftruncate(fd, SECTOR_SIZE * SECTORS) != 0)
        exit(1);
    return fd;
}

static void rmtfs_iovec(int fd, const char *memory, unsigned sector, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        off_t offset = (off_t)((sector + i) % SECTORS) * SECTOR_SIZE;
        if (pwrite(fd, memory + i * SECTOR_SIZE, SECTOR_SIZE, offset) != SECTOR_SIZE)
            exit(1);
    }
    if (fixed)
        fdatasync(fd);
}

static void modem_storage(void)
{
    static char memory[64 * SECTOR_SIZE];
    int fd = storage_open();
    long sectors = 0;
    while (running()) {
        memset(memory, (int)(sectors & 255), sizeof memory);
        rmtfs_iovec(fd, memory, (unsigned)(sectors % SECTORS), 64);
        sectors += 64;
    }
    printf("sectors %ld\n", sectors);
}

// ---------------------------------------------------------------- proxy-log

static void get_localtime(const time_t when, struct tm *tm)
{
    static __thread time_t last_hour = -1;
    static __thread struct tm last;
    if (fixed && when / 3600 == last_hour) {
        *tm = last;
        tm->tm_min = (int)(when / 60 % 60);
        tm->tm_sec = (int)(when % 60);
        return;
    }
    localtime_r(&when, tm);
    last = *tm;
    last_hour = when / 3600;
}

static int sess_build_logline(char *line, size_t size, unsigned session)
{
    static const char *months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm accept, request;
    time_t when = time(NULL);
    get_localtime(when - 1, &accept);
    get_localtime(when, &request);
    (void)size;
    char *p = line;
    *p++ = (char)('0' + accept.tm_mday / 10);
    *p++ = (char)('0' + accept.tm_mday % 10);
    memcpy(p, months + 3 * accept.tm_mon, 3);
    p += 3;
    *p++ = (char)('0' + request.tm_hour / 10);
    *p++ = (char)('0' + request.tm_hour % 10);
    for (int i = 0; i < 24; i++) {
        session = session * 1664525u + 1013904223u;
        *p++ = (char)('a' + (session >> 24) % 26);
    }
    *p = 0;
    return (int)(p - line);
}

static long log_lines;

static void *run_thread_poll_loop(void *argument)
{
    unsigned session = (unsigned)(uintptr_t)argument;
    char line[256];
    long bytes = 0, lines = 0;
    while (running()) {
        for (int i = 0; i < 200; i++) {
            bytes += sess_build_logline(line, sizeof line, session++);
            lines++;
        }
    }
    __atomic_add_fetch(&log_lines, bytes > 0 ? lines : 0, __ATOMIC_RELAXED);
    return NULL;
}

static void proxy_log(void)
{
    pthread_t threads[8];
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, run_thread_poll_loop, (void *)(i * 1000));
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    printf("lines %ld\n", log_lines);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *name = argv[1];
    double seconds = atof(argv[2]);
    folder = argv[3];
    fixed = argc > 4 && strcmp(argv[4], "fixed") == 0;
    end_time = now() + seconds;
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(name, "report-builder") == 0)
        report_builder(seconds);
    else if (strcmp(name, "volume-bar") == 0)
        volume_bar();
    else if (strcmp(name, "switch-agent") == 0)
        switch_agent();
    else if (strcmp(name, "subtitle-cache") == 0)
        subtitle_cache();
    else if (strcmp(name, "sv-publisher") == 0)
        sv_publisher();
    else if (strcmp(name, "sampled-values") == 0)
        sampled_values();
    else if (strcmp(name, "modem-storage") == 0)
        modem_storage();
    else if (strcmp(name, "proxy-log") == 0)
        proxy_log();
    else
        return 2;
    return 0;
}
