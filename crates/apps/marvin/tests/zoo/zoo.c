/* Programs that are slow for one known reason each, and some with nothing wrong: `zoo NAME SECONDS FOLDER`.
 * The test explains.rs has what `marvin explain` has to say of each. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double until;
static const char *folder;
static volatile uint64_t sink;
static long all_records;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
static int going(void) { return now() < until; }

static void in_threads(int count, void *(*body)(void *))
{
	pthread_t threads[64];
	for (intptr_t i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, body, (void *)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

__attribute__((noinline)) static void spin_loop(int rounds)
{
	uint64_t x = 1;
	for (int i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink += x;
}

/* As ebizzy: blocks that are copied and searched. */
__attribute__((noinline)) static void *search_mem(void *unused)
{
	static char source[512 << 10];
	long records = 0;
	while (going()) {
		for (int i = 0; i < 20; i++) {
			char *block = malloc(sizeof source);
			memcpy(block, source, sizeof source);
			sink += block[1000];
			free(block);
			records++;
		}
	}
	__atomic_add_fetch(&all_records, records, __ATOMIC_RELAXED);
	return NULL;
}
__attribute__((noinline)) static void *small_blocks(void *unused)
{
	while (going())
		for (int i = 0; i < 1000; i++) {
			char *block = malloc(64);
			block[0] = 1;
			sink += block[0];
			free(block);
		}
	return NULL;
}

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold[16];
static void *hot_mutex_body(void *unused)
{
	while (going()) {
		pthread_mutex_lock(&hot);
		spin_loop(200000);
		pthread_mutex_unlock(&hot);
	}
	return NULL;
}
static void *sleeping_holder_body(void *unused)
{
	while (going()) {
		pthread_mutex_lock(&hot);
		usleep(2000);
		pthread_mutex_unlock(&hot);
	}
	return NULL;
}
static void *many_locks_body(void *number)
{
	unsigned seed = (intptr_t)number * 7 + 1;
	while (going()) {
		/* Three threads share a lock that is held while its holder sleeps. */
		pthread_mutex_t *lock = &cold[((intptr_t)number / 3) % 16];
		pthread_mutex_lock(lock);
		usleep(1000 + rand_r(&seed) % 1000);
		pthread_mutex_unlock(lock);
	}
	return NULL;
}

static void *spin_body(void *unused)
{
	long records = 0;
	for (; going(); records++)
		spin_loop(100000);
	__atomic_add_fetch(&all_records, records, __ATOMIC_RELAXED);
	return NULL;
}
static void affinity(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof set, &set);
	in_threads(3, spin_body);
}

static void sleeper(void)
{
	while (going()) {
		usleep(5000);
		spin_loop(1000);
	}
}
__attribute__((noinline)) static void write_tiny(int file)
{
	for (int i = 0; i < 1000; i++)
		if (write(file, "x", 1) < 0)
			abort();
}
static int file_of(const char *name, int flags)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int file = open(path, flags | O_CREAT, 0600);
	if (file < 0) {
		perror(path);
		exit(3);
	}
	return file;
}
static void tiny_writes(void)
{
	int file = file_of("tiny", O_RDWR | O_TRUNC);
	while (going()) {
		write_tiny(file);
		if (lseek(file, 0, SEEK_SET))
			abort();
	}
}
static void tiny_reads(void)
{
	int file = file_of("tiny", O_RDWR | O_TRUNC);
	char byte = 0;
	write_tiny(file);
	while (going()) {
		lseek(file, 0, SEEK_SET);
		for (int i = 0; i < 1000; i++)
			sink += read(file, &byte, 1);
	}
}
static void eagain_storm(void)
{
	int ends[2];
	char byte;
	if (pipe2(ends, O_NONBLOCK))
		abort();
	while (going())
		for (int i = 0; i < 1000; i++)
			sink += read(ends[0], &byte, 1);
}
static void fsync_each(void)
{
	int file = file_of("log", O_WRONLY | O_TRUNC);
	char record[256] = "record";
	while (going())
		if (write(file, record, sizeof record) < 0 || fsync(file))
			abort();
}
static void random_reads(void)
{
	const size_t size = 64 << 20;
	int file = file_of("data", O_RDWR);
	static char block[1 << 20];
	unsigned seed = 1;
	if (lseek(file, 0, SEEK_END) < (off_t)size) {
		memset(block, 7, sizeof block);
		for (size_t at = 0; at < size; at += sizeof block)
			if (pwrite(file, block, sizeof block, at) < 0)
				abort();
		fsync(file);
	}
	posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
	while (going()) {
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		for (int i = 0; i < 2000 && going(); i++) {
			off_t at = ((size_t)rand_r(&seed) * 4096) % size;
			sink += pread(file, block, 4096, at);
		}
	}
}
/* Touches new memory all the time, and keeps it. */
__attribute__((noinline)) static void touch_new(char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += 4096)
		memory[at] = 1;
}
static void fault_storm(void)
{
	/* At most 2 GiB: then it starts again. */
	const size_t size = 16 << 20;
	char *blocks[128];
	while (going()) {
		int count = 0;
		for (; count < 128 && going(); count++) {
			blocks[count] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise(blocks[count], size, MADV_NOHUGEPAGE);
			touch_new(blocks[count], size);
		}
		while (count > 0)
			munmap(blocks[--count], size);
	}
}
static void refaulting(void)
{
	const size_t size = 8 << 20;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, size, MADV_NOHUGEPAGE);
	while (going()) {
		touch_new(memory, size);
		madvise(memory, size, MADV_DONTNEED);
	}
}
/* More memory than its cgroup may have, again and again: the rest is on swap. */
static void swapping(void)
{
	const size_t size = 160 << 20;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, size, MADV_NOHUGEPAGE);
	while (going())
		for (size_t at = 0; at < size && (at % (1 << 20) || going()); at += 4096, all_records++)
			memory[at]++;
}
/* Writes faster than the device may have dirty pages. */
static void dirty(void)
{
	static char block[1 << 20];
	int file = file_of("dirty", O_WRONLY | O_TRUNC);
	for (int i = 0; going(); i++, all_records++)
		if (pwrite(file, block, sizeof block, (off_t)(i % 256) << 20) < 0)
			abort();
}
static void thp_splitting(void)
{
	const size_t huge = 2 << 20, size = 32 << 20;
	char *memory = mmap(NULL, size + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory = (char *)(((uintptr_t)memory + huge - 1) & ~(huge - 1));
	madvise(memory, size, MADV_HUGEPAGE);
	for (; going(); all_records++) {
		for (size_t at = 0; at < size; at += huge)
			memory[at] = 1;
		/* One page of each huge page: it is split. */
		for (size_t at = 0; at < size; at += huge)
			madvise(memory + at + 4096, 4096, MADV_DONTNEED);
		for (size_t at = 0; at < size; at += huge)
			memory[at + 4096] = 1;
		madvise(memory, size, MADV_DONTNEED);
	}
}

static struct { volatile uint64_t one, other; } shared_line;
__attribute__((noinline)) static void *false_sharing_body(void *number)
{
	volatile uint64_t *word = number ? &shared_line.other : &shared_line.one;
	while (going())
		for (int i = 0; i < 100000; i++)
			(*word)++;
	return NULL;
}

static pthread_mutex_t herd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t herd_condition = PTHREAD_COND_INITIALIZER;
static int is_over;
static void *herd_body(void *number)
{
	if (!number) {
		while (going()) {
			usleep(300);
			pthread_cond_broadcast(&herd_condition);
		}
		pthread_mutex_lock(&herd_lock);
		is_over = 1;
		pthread_cond_broadcast(&herd_condition);
		pthread_mutex_unlock(&herd_lock);
		return NULL;
	}
	pthread_mutex_lock(&herd_lock);
	while (!is_over)
		pthread_cond_wait(&herd_condition, &herd_lock);
	pthread_mutex_unlock(&herd_lock);
	return NULL;
}

/* A process that is no descendant of this one: 0 in it. */
static pid_t apart(void)
{
	pid_t child = fork();
	if (child) {
		waitpid(child, NULL, 0);
		return child;
	}
	if (fork())
		_exit(0);
	return 0;
}
static void slow_reader(void)
{
	int ends[2];
	static char block[65536];
	if (pipe(ends))
		abort();
	if (!apart()) {
		close(ends[1]);
		while (read(ends[0], block, 4096) > 0)
			usleep(3000);
		_exit(0);
	}
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	while (going())
		if (write(ends[1], block, sizeof block) < 0)
			break;
	close(ends[1]);
}
static void name_server(void)
{
	/* A server that never answers: each lookup waits for its timeout. */
	int silent = socket(AF_INET, SOCK_DGRAM, 0), asker = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	struct timeval timeout = { .tv_usec = 300000 };
	char answer[512];
	bind(silent, (struct sockaddr *)&address, sizeof address);
	getsockname(silent, (struct sockaddr *)&address, &size);
	setsockopt(asker, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	connect(asker, (struct sockaddr *)&address, sizeof address);
	while (going()) {
		sink += send(asker, "who", 3, 0);
		sink += recv(asker, answer, sizeof answer, 0);
	}
}
static void fork_storm(void)
{
	while (going()) {
		pid_t child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}
static void exec_storm(void)
{
	while (going()) {
		pid_t child = vfork();
		if (!child) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
}
static void *mmap_writer_body(void *unused)
{
	while (going())
		for (int i = 0; i < 100; i++) {
			char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			munmap(memory, 4096);
		}
	return NULL;
}
static void rcu_waiter(void)
{
	while (going())
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}
static void poller(void)
{
	int ends[2];
	char byte = 0;
	if (pipe(ends))
		abort();
	if (!apart()) {
		while (going()) {
			usleep(20000);
			if (write(ends[1], &byte, 1) < 0)
				break;
		}
		_exit(0);
	}
	close(ends[1]);
	while (going()) {
		struct pollfd wanted = { .fd = ends[0], .events = POLLIN };
		if (poll(&wanted, 1, 100) > 0)
			sink += read(ends[0], &byte, 1);
	}
}
static void stat_storm(void)
{
	while (going())
		for (int i = 0; i < 100; i++)
			access("/usr/share/doc", R_OK);
}

static void no_files(void)
{
	struct rlimit limit = { 64, 64 };
	setrlimit(RLIMIT_NOFILE, &limit);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	while (going())
		for (int i = 0; i < 100; i++)
			sink += socket(AF_UNIX, SOCK_STREAM, 0);
}

/* Nothing is wrong with these. */
#define PART(name, expression)                                       \
	__attribute__((noinline)) static void name(uint64_t *data, int size) \
	{                                                                \
		uint64_t x = 1;                                              \
		for (int round = 0; round < 4; round++)                      \
			for (int i = 0; i < size; i++)                           \
				x += (expression);                                   \
		sink += x;                                                   \
	}
PART(part_sum, data[i] + x)
PART(part_hash, (data[i] ^ x) * 1099511628211u)
PART(part_shift, (data[i] << 3) ^ (x >> 5))
PART(part_mix, (data[i] * 31) ^ (x << 7))
PART(part_count, (data[i] & x) + (data[i] | 7))
static void balanced(void)
{
	static uint64_t data[4096];
	while (going()) {
		part_sum(data, 4096);
		part_hash(data, 4096);
		part_shift(data, 4096);
		part_mix(data, 4096);
		part_count(data, 4096);
	}
}
static void *balanced_body(void *unused)
{
	balanced();
	return NULL;
}
static void mixed(void)
{
	/* A third each: computing, the kernel, sleeping. */
	static uint64_t data[4096];
	while (going()) {
		double start = now();
		while (now() - start < 0.004) {
			part_sum(data, 4096);
			part_mix(data, 4096);
			part_shift(data, 4096);
		}
		start = now();
		while (now() - start < 0.002) {
			getppid();
			access("/usr", R_OK);
			sched_yield();
			lseek(0, 0, SEEK_CUR);
			getpgid(0);
		}
		usleep(1000);
	}
}
static void large_copies(void)
{
	static uint64_t data[1 << 17];
	int file = file_of("large", O_RDWR | O_TRUNC);
	while (going()) {
		sink += pwrite(file, data, sizeof data, 0);
		part_sum(data, 1 << 17);
		part_mix(data, 1 << 16);
		sink += pread(file, data, sizeof data, 0);
		part_hash(data, 1 << 15);
		part_count(data, 1 << 16);
	}
}
static void idle_pool(void)
{
	/* A pool that waits for work which never comes, beside a balanced worker. */
	pthread_t thread;
	for (intptr_t i = 1; i <= 4; i++)
		pthread_create(&thread, NULL, herd_body, (void *)i);
	balanced();
}

int main(int count, char **words)
{
	if (count < 4)
		return 2;
	const char *name = words[1];
	until = now() + atof(words[2]);
	folder = words[3];
	for (int i = 0; i < 16; i++)
		pthread_mutex_init(&cold[i], NULL);
#define THREADS(wanted, number, body) \
	if (!strcmp(name, wanted)) { in_threads(number, body); printf("%.1f rec/s\n", all_records / atof(words[2])); return 0; }
#define ALONE(wanted, body) \
	if (!strcmp(name, wanted)) { body(); printf("%.1f rec/s\n", all_records / atof(words[2])); return 0; }
	THREADS("debug-allocator", 4, search_mem)
	THREADS("debug-allocator-small", 2, small_blocks)
	THREADS("trimming", 1, search_mem)
	THREADS("hot-mutex", 4, hot_mutex_body)
	THREADS("sleeping-holder", 6, sleeping_holder_body)
	THREADS("many-locks", 24, many_locks_body)
	THREADS("oversubscription", 8, spin_body)
	THREADS("quota", 1, spin_body)
	ALONE("affinity", affinity)
	ALONE("sleep", sleeper)
	ALONE("tiny-writes", tiny_writes)
	ALONE("tiny-reads", tiny_reads)
	ALONE("eagain", eagain_storm)
	ALONE("fsync", fsync_each)
	ALONE("random-reads", random_reads)
	ALONE("fault-storm", fault_storm)
	ALONE("refaulting", refaulting)
	ALONE("swapping", swapping)
	ALONE("dirty", dirty)
	ALONE("thp-splitting", thp_splitting)
	THREADS("false-sharing", 2, false_sharing_body)
	THREADS("false-wakeups", 9, herd_body)
	ALONE("slow-reader", slow_reader)
	ALONE("name-server", name_server)
	ALONE("fork-storm", fork_storm)
	ALONE("exec-storm", exec_storm)
	THREADS("mmap-writers", 2, mmap_writer_body)
	ALONE("rcu", rcu_waiter)
	THREADS("user-loop", 1, spin_body)
	ALONE("poll", poller)
	ALONE("no-files", no_files)
	ALONE("one-call", stat_storm)
	ALONE("balanced", balanced)
	THREADS("balanced-threads", 2, balanced_body)
	ALONE("mixed", mixed)
	ALONE("large-copies", large_copies)
	ALONE("idle-pool", idle_pool)
	return 2;
}
