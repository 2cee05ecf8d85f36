// The late half of the programs from public reports (tests/outside/49-put-aside.md), in C: each
// does steadily what its report describes, for some seconds: `late NAME SECONDS DIR`.
// gcc -O1 -g -w -pthread late.c -o late
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

// A name of resolv.h that hides a field of link.h.
#undef p_type

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

static void pause_for(long microseconds) { usleep(microseconds); }

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

// R5: a catalogue of 10 MB is parsed item by item.
struct item { unsigned long hash; long price; double weight; };

static char *write_catalogue(int entries) {
    char *text = malloc(entries * 170L + 1), *at = text;
    for (int n = 0; n < entries; n++)
        at += sprintf(at,
            "{\"key\":\"WP_ITEM_%08x_t0_v%d\",\"price\":%d,\"statName\":\"CHAR_KIT_%05d\","
            "\"storageType\":\"BITFIELD\",\"bitShift\":7,\"bitSize\":1,\"weight\":%d.25,"
            "\"category\":[\"CATEGORY_%d\"]},\n",
            n * 2654435761u, n % 4, n % 9000, n, n % 90, n % 40);
    return text;
}

KEEP static const char *parse_long(const char *at, long *value) {
    int used = 0;
    sscanf(at, "%ld%n", value, &used);
    return at + used;
}

KEEP static const char *parse_double(const char *at, double *value) {
    int used = 0;
    sscanf(at, "%lf%n", value, &used);
    return at + used;
}

KEEP static int is_known(struct item *items, int count, unsigned long hash) {
    for (int n = 0; n < count; n++)
        if (items[n].hash == hash) return 1;
    return 0;
}

static int load_items(const char *text) {
    struct item *items = malloc(63000 * sizeof *items);
    int count = 0;
    const char *at = text;
    while (!is_over() && (at = strstr(at, "\"key\":\""))) {
        struct item item = {.hash = 5381};
        for (at += 7; *at != '"'; at++) item.hash = item.hash * 33 + *at;
        at = parse_long(strstr(at, "\"price\":") + 8, &item.price);
        at = parse_double(strstr(at, "\"weight\":") + 9, &item.weight);
        if (!is_known(items, count, item.hash)) items[count++] = item;
    }
    free(items);
    return count;
}

static void item_loader(void) {
    char *text = write_catalogue(63000);
    long all = 0;
    while (!is_over()) all += load_items(text);
    fprintf(stderr, "%ld items of a text of %zu bytes\n", all, strlen(text));
}

// R13: an allocator of extents that purges each freed one.
#define EXTENT (1 << 20)
static char *extent;

KEEP static void *extent_alloc(void) {
    if (!extent)
        extent = mmap(NULL, EXTENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return extent;
}

KEEP static void extent_dalloc(void *memory) {
    if (!is_repaired) madvise(memory, EXTENT, MADV_DONTNEED);
}

KEEP static long collect_rows(char *rows, long round) {
    memset(rows, round, EXTENT);
    return rows[round % EXTENT];
}

static void vector_rows(void) {
    long rounds = 0, sum = 0;
    for (; !is_over(); rounds++) {
        char *rows = extent_alloc();
        sum += collect_rows(rows, rounds);
        extent_dalloc(rows);
    }
    fprintf(stderr, "%ld rounds\n", rounds);
}

// R25: readers of a read-only map announce themselves in a record each.
struct thread_record { _Atomic long access_control; _Atomic int is_inside; };
static struct thread_record *records;
static unsigned shared_map[4096];
static _Atomic long accesses;

KEEP static void access_lock(struct thread_record *record) {
    atomic_store_explicit(&record->access_control,
        atomic_load_explicit(&record->access_control, memory_order_relaxed) + 1,
        memory_order_relaxed);
    atomic_store_explicit(&record->is_inside, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

KEEP static void access_unlock(struct thread_record *record) {
    atomic_store_explicit(&record->is_inside, 0, memory_order_release);
    atomic_store_explicit(&record->access_control,
        atomic_load_explicit(&record->access_control, memory_order_relaxed) + 1,
        memory_order_release);
}

static void *map_reader(void *argument) {
    struct thread_record *record = argument;
    unsigned key = (uintptr_t)argument, found = 0;
    long count = 0;
    for (; count % 4096 || !is_over(); count++) {
        access_lock(record);
        key = key * 1664525 + 1013904223;
        found += shared_map[key >> 20];
        access_unlock(record);
    }
    atomic_fetch_add(&accesses, count);
    return (void *)(uintptr_t)found;
}

static void map_readers(void) {
    int step = is_repaired ? 16 : 1;
    records = aligned_alloc(256, 4096);
    memset(records, 0, 4096);
    pthread_t other = start(map_reader, &records[step]);
    map_reader(&records[0]);
    pthread_join(other, NULL);
    fprintf(stderr, "%ld accesses\n", accesses);
}

// R31: threads that list directories and keep several strings for each entry.
static void *scan_entries(void *argument) {
    unsigned seed = (uintptr_t)argument;
    char *strings[20];
    long count = 0;
    for (; count % 64 || !is_over(); count++) {
        for (int n = 0; n < 20; n++) {
            seed = seed * 1664525 + 1013904223;
            size_t size = 30 + (seed >> 8) % 270;
            strings[n] = malloc(size);
            memcpy(strings[n], &seed, sizeof seed);
        }
        for (int n = 0; n < 20; n++) free(strings[(n * 7) % 20]);
    }
    atomic_fetch_add(&accesses, count);
    return NULL;
}

static void find_entries(void) {
    pthread_t others[4];
    for (long n = 0; n < 4; n++) others[n] = start(scan_entries, (void *)(n + 1));
    for (int n = 0; n < 4; n++) pthread_join(others[n], NULL);
    fprintf(stderr, "%ld entries\n", accesses);
}

// R49: one open-addressing table is merged into another of the same hash, in its own order.
struct map { unsigned *slots; int bits; unsigned count; };

static struct map map_new(int bits) {
    return (struct map){calloc(1u << bits, sizeof(unsigned)), bits, 0};
}

static unsigned map_hash(unsigned key) {
    key ^= key >> 16;
    key *= 0x85ebca6b;
    key ^= key >> 13;
    key *= 0xc2b2ae35;
    return key ^ key >> 16;
}

KEEP static void map_insert(struct map *map, unsigned key) {
    if (map->count >= 0.9 * (1u << map->bits)) {
        struct map larger = map_new(map->bits + 1);
        for (unsigned n = 0; n < 1u << map->bits; n++)
            if (map->slots[n]) map_insert(&larger, map->slots[n]);
        free(map->slots);
        *map = larger;
    }
    unsigned mask = (1u << map->bits) - 1, at = map_hash(key) >> (32 - map->bits);
    while (map->slots[at] && map->slots[at] != key) at = at + 1 & mask;
    map->count += !map->slots[at];
    map->slots[at] = key;
}

KEEP static void map_merge(struct map *into, struct map *from) {
    unsigned size = 1u << from->bits;
    // The repaired form goes through the slots in another order.
    for (unsigned n = 0; n < size && (n % 64 || !is_over()); n++) {
        unsigned key = from->slots[is_repaired ? n * 2654435761u & size - 1 : n];
        if (key) map_insert(into, key);
    }
}

static void merge_sets(void) {
    int rounds = 0;
    struct map b = map_new(20);
    for (unsigned n = 900001; n <= 1800000; n++) map_insert(&b, n);
    for (; !is_over(); rounds++) {
        struct map a = map_new(20);
        for (unsigned n = 1; n <= 900000; n++) map_insert(&a, n);
        map_merge(&a, &b);
        free(a.slots);
    }
    fprintf(stderr, "%d merges begun\n", rounds);
}

// R55: threads match short texts against one shared automaton whose cache has a reader lock.
static pthread_rwlock_t cache_mutex = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t own_mutexes[64] = {[0 ... 63] = PTHREAD_RWLOCK_INITIALIZER};
static unsigned char transitions[8][256];

KEEP static int search_automaton(const unsigned char *text, int length, pthread_rwlock_t *mutex) {
    int state = 0;
    pthread_rwlock_rdlock(mutex);
    for (int n = 0; n < length; n++) state = transitions[state][text[n]];
    pthread_rwlock_unlock(mutex);
    return state == 7;
}

static void *match_lines(void *argument) {
    unsigned char text[20];
    long count = 0, found = 0;
    pthread_rwlock_t *mutex =
        is_repaired ? &own_mutexes[16 * (uintptr_t)argument] : &cache_mutex;
    for (; count % 1024 || !is_over(); count++) {
        memset(text, 'a' + count % 20, sizeof text);
        found += search_automaton(text, sizeof text, mutex);
    }
    atomic_fetch_add(&accesses, count);
    return (void *)found;
}

static void match_texts(void) {
    pthread_t others[3];
    for (int n = 0; n < 2048; n++) transitions[n / 256][n % 256] = n * 31 % 8;
    for (long n = 0; n < 3; n++) others[n] = start(match_lines, (void *)n);
    for (int n = 0; n < 3; n++) pthread_join(others[n], NULL);
    fprintf(stderr, "%ld matches\n", accesses);
}

// R58: threads unwind; for each frame the object that contains it is looked for.
struct frame_search { uintptr_t address; const char *object; };

static int visit_object(struct dl_phdr_info *info, size_t size, void *argument) {
    struct frame_search *search = argument;
    for (int n = 0; n < info->dlpi_phnum; n++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[n];
        if (p->p_type == PT_LOAD && search->address - info->dlpi_addr - p->p_vaddr < p->p_memsz)
            search->object = info->dlpi_name;
    }
    return 0;
}

KEEP static const char *find_frame(uintptr_t address) {
    struct frame_search search = {address};
    dl_iterate_phdr(visit_object, &search);
    return search.object;
}

KEEP static void throw_through(uintptr_t *frames, int depth) {
    for (int n = 0; n < depth; n++)
        if (!find_frame(frames[n])) abort();
}

static void *run_requests(void *argument) {
    uintptr_t frames[10];
    for (int n = 0; n < 10; n++) frames[n] = n % 2 ? (uintptr_t)run_requests : (uintptr_t)puts;
    long count = 0;
    for (; count % 64 || !is_over(); count++) throw_through(frames, 10);
    atomic_fetch_add(&accesses, count);
    return NULL;
}

static void request_errors(void) {
    static const char *const names[] = {"libm.so.6", "libresolv.so.2", "librt.so.1", "libdl.so.2",
        "libutil.so.1", "libanl.so.1", "libnsl.so.1", "libnss_dns.so.2", "libnss_compat.so.2",
        "libBrokenLocale.so.1", "libthread_db.so.1", "libgcc_s.so.1", "libstdc++.so.6",
        "libz.so.1", "libcrypt.so.1", "libselinux.so.1", "libcrypto.so.3", "libssl.so.3"};
    for (int n = 0; n < 18; n++) dlopen(names[n], RTLD_NOW);
    pthread_t others[4];
    for (int n = 0; n < 4; n++) others[n] = start(run_requests, NULL);
    for (int n = 0; n < 4; n++) pthread_join(others[n], NULL);
    fprintf(stderr, "%ld unwound\n", accesses);
}

// R69 and R70: a linear algebra library whose threads wait for pieces of work.
struct blas_queue { _Atomic int is_assigned; int first, last; };
static struct blas_queue queues[2];
static double matrix_a[300][300], matrix_b[300][300], matrix_c[300][300];
static double yield_seconds;
static _Atomic long yields;
static pthread_mutex_t server_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wakeup = PTHREAD_COND_INITIALIZER;

KEEP static void dgemm_kernel(int first, int last, int columns) {
    for (int i = first; i < last; i++)
        for (int k = 0; k < columns; k++)
            for (int j = 0; j < columns; j++) matrix_c[i][j] += matrix_a[i][k] * matrix_b[k][j];
}

KEEP static void *blas_thread_server(void *argument) {
    struct blas_queue *queue = argument;
    int columns = yield_seconds ? 300 : 8;
    while (!is_over()) {
        double last = now();
        while (!atomic_load(&queue->is_assigned) && !is_over()) {
            sched_yield();
            ++yields;
            if (!yield_seconds || now() - last < yield_seconds) continue;
            pthread_mutex_lock(&server_lock);
            while (!atomic_load(&queue->is_assigned) && !is_over())
                pthread_cond_wait(&wakeup, &server_lock);
            pthread_mutex_unlock(&server_lock);
        }
        dgemm_kernel(queue->first, queue->last, columns);
        atomic_store(&queue->is_assigned, 0);
    }
    return NULL;
}

KEEP static void exec_blas(int rows, int columns) {
    int part = rows / 3;
    pthread_mutex_lock(&server_lock);
    for (int n = 0; n < 2; n++) {
        queues[n].first = part * n;
        queues[n].last = part * (n + 1);
        atomic_store(&queues[n].is_assigned, 1);
    }
    if (yield_seconds) pthread_cond_broadcast(&wakeup);
    pthread_mutex_unlock(&server_lock);
    dgemm_kernel(part * 2, rows, columns);
    for (int n = 0; n < 2; n++)
        while (atomic_load(&queues[n].is_assigned) && !is_over()) {
            sched_yield();
            ++yields;
        }
}

static void fit_models(void) {
    int count = 0;
    for (int n = 0; n < 2 && !is_repaired; n++) start(blas_thread_server, &queues[n]);
    for (; !is_over(); count++) is_repaired ? dgemm_kernel(0, 18, 8) : exec_blas(18, 8);
    fprintf(stderr, "%d products, %ld yields\n", count, yields);
}

static void serve_models(void) {
    int count = 0;
    yield_seconds = is_repaired ? 1e-6 : 0.2;
    for (int n = 0; n < 2; n++) start(blas_thread_server, &queues[n]);
    for (; !is_over(); count++) {
        exec_blas(150, 300);
        pause_for(100000);
    }
    fprintf(stderr, "%d products, %ld yields\n", count, yields);
}

// R73: threads map and unmap without touching, while main starts further threads.
static void *map_regions(void *argument) {
    long count = 0;
    for (; !is_over(); count++) {
        void *region = mmap(NULL, 128 << 20, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(region, 128 << 20);
    }
    atomic_fetch_add(&accesses, count);
    return NULL;
}

static void *end_at_once(void *argument) { return NULL; }

static void start_workers(void) {
    pthread_t others[8];
    long started = 0;
    pthread_attr_t large;
    pthread_attr_init(&large);
    // Larger than what glibc keeps of ended threads' stacks: each start maps one.
    pthread_attr_setstacksize(&large, 64 << 20);
    for (int n = 0; n < 8; n++) others[n] = start(map_regions, NULL);
    for (pthread_t one; !is_over(); started++) {
        pthread_create(&one, &large, end_at_once, NULL);
        pthread_join(one, NULL);
    }
    for (int n = 0; n < 8; n++) pthread_join(others[n], NULL);
    fprintf(stderr, "%ld maps, %ld threads started\n", accesses, started);
}

// R81: a worker of 160 MB starts short tasks, while its threads write to their memory.
static char *heap;
enum { HEAP = 160 << 20 };

static void *keep_results(void *argument) {
    unsigned seed = (uintptr_t)argument;
    while (!is_over()) {
        for (int n = 0; n < 50; n++) {
            seed = seed * 1664525 + 1013904223;
            heap[seed % HEAP]++;
        }
        pause_for(200);
    }
    return NULL;
}

KEEP static void start_task(void) {
    pid_t child = is_repaired ? vfork() : fork();
    if (child == 0) {
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

static void run_tasks(void) {
    long count = 0;
    heap = mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(heap, HEAP, MADV_NOHUGEPAGE);
    memset(heap, 1, HEAP);
    for (long n = 0; n < 2; n++) start(keep_results, (void *)(n + 1));
    for (; !is_over(); count++) start_task();
    fprintf(stderr, "%ld tasks\n", count);
}

// R95: for each reference of the remote, whether its object is here as a file of its own.
KEEP static int has_loose_object(const unsigned *hash) {
    char path[128];
    struct stat found;
    int at = sprintf(path, "fetch.git/objects/%02x/", hash[0] & 255);
    for (int n = 0; n < 5; n++) at += sprintf(path + at, "%08x", hash[n]);
    return lstat(path, &found) == 0;
}

KEEP static int mark_complete(unsigned *refs, int count) {
    int complete = 0;
    for (int n = 0; n < count && !is_over(); n++) complete += has_loose_object(refs + 5 * n);
    return complete;
}

static void fetch_refs(void) {
    unsigned *refs = malloc(100000 * 20L);
    for (int n = 0; n < 500000; n++) refs[n] = n * 2654435761u ^ n >> 3;
    mkdir("fetch.git", 0755);
    mkdir("fetch.git/objects", 0755);
    for (int n = 0; n < 256; n++) {
        char path[64];
        sprintf(path, "fetch.git/objects/%02x", n);
        mkdir(path, 0755);
    }
    long rounds = 0;
    for (; !is_over(); rounds++) mark_complete(refs, 100000);
    fprintf(stderr, "%ld rounds of 100000\n", rounds);
}

#include "late_servers.h"

static const struct { const char *name; void (*run)(void); } programs[] = {
    {"item-loader", item_loader}, {"vector-rows", vector_rows}, {"map-readers", map_readers},
    {"backends", name_server}, {"call-service", call_service}, {"find-entries", find_entries},
    {"merge-sets", merge_sets}, {"match-texts", match_texts}, {"request-errors", request_errors},
    {"vector-index", vector_index}, {"key-server", key_server}, {"key-clients", key_clients},
    {"fit-models", fit_models}, {"serve-models", serve_models}, {"start-workers", start_workers},
    {"count-results", count_results}, {"run-tasks", run_tasks}, {"fetch-refs", fetch_refs},
    {"front-server", front_server}, {"front-clients", front_clients}, {"guard", open_guard},
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
