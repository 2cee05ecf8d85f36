/* Programs from public reports, each slow for the reason that was established there, written anew:
 * `foreign NAME SECONDS FOLDER`. `cases.txt` has the reports, and what an answer has to name. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double until;
static const char *folder;
static volatile uint64_t sink;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
static int going(void) { return now() < until; }
static char *path(const char *name)
{
	static __thread char text[512];
	snprintf(text, sizeof text, "%s/%s", folder, name);
	return text;
}
static void in_threads(int count, void *(*body)(void *))
{
	pthread_t threads[64];
	for (intptr_t i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, body, (void *)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}
__attribute__((noinline)) static void compute_us(double us)
{
	double end = now() + us / 1e6;
	while (now() < end)
		for (int i = 0; i < 1000; i++)
			sink += i * sink + 1;
}

/* R3: a child closes each descriptor up to the limit. */
__attribute__((noinline)) static void close_all_descriptors(void)
{
	for (int i = 3; i < 1000000; i++)
		close(i);
}
static void close_fds(void)
{
	struct rlimit limit = { 1048576, 1048576 };
	setrlimit(RLIMIT_NOFILE, &limit);
	while (going()) {
		if (!fork()) {
			close_all_descriptors();
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		wait(NULL);
	}
}

/* R9: one thread answers, and forks a snapshot of a large heap. R80: fork and exec of a large process. */
static char *large_heap(size_t bytes)
{
	char *heap = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(heap, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += 4096)
		heap[i] = 1;
	return heap;
}
__attribute__((noinline)) static void start_program(void)
{
	if (!fork()) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	wait(NULL);
}
static void fork_large(void)
{
	large_heap(700ul << 20);
	until = now() + 3;
	while (going())
		start_program();
}

/* R23: all workers wake up for each connection. */
static void herd_worker(int listener)
{
	int events = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	epoll_ctl(events, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		epoll_wait(events, &event, 1, -1);
		int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		if (client >= 0) {
			send(client, "x", 1, MSG_NOSIGNAL);
			close(client);
		}
	}
}
static int listen_at(int port)
{
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (void *)&at, sizeof at) || listen(listener, 128)) {
		perror("listen");
		exit(1);
	}
	return listener;
}
static int connect_to(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	while (connect(client, (void *)&at, sizeof at))
		usleep(20000);
	return client;
}
static void herd(void)
{
	int listener = listen_at(7423);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 32; i++)
		if (!fork())
			herd_worker(listener);
	while (going()) {
		char byte;
		int client = connect_to(7423);
		read(client, &byte, 1);
		close(client);
	}
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
}

/* R27, R26: counters of threads in one line of memory. */
static struct { volatile uint64_t value; } counters[16];
__attribute__((noinline)) static void *count_own(void *which)
{
	while (going())
		for (int i = 0; i < 100000; i++)
			__atomic_add_fetch(&counters[(intptr_t)which].value, 1, __ATOMIC_RELAXED);
	return NULL;
}
static void counters_unpadded(void) { in_threads(2, count_own); }

/* R56: a lock around one read. */
static pthread_rwlock_t short_lock = PTHREAD_RWLOCK_INITIALIZER;
__attribute__((noinline)) static void *find_zone(void *unused)
{
	while (going())
		for (int i = 0; i < 1000; i++) {
			pthread_rwlock_rdlock(&short_lock);
			sink = counters[0].value;
			pthread_rwlock_unlock(&short_lock);
		}
	return NULL;
}
static void shared_mutex(void) { in_threads(2, find_zone); }

/* R38: each append looks for the end again. */
__attribute__((noinline)) static void append_all(char *text, int count)
{
	text[0] = 0;
	for (int i = 0; i < count; i++)
		strcat(text, "x");
}
static void quadratic_append(void)
{
	char *text = malloc(300000);
	while (going())
		append_all(text, 100000);
}

/* R62: one lock of processes in shared memory, a sleeping word for each. */
struct shared { sem_t sems[32]; volatile int queue[32], head, tail; volatile int locked; int guard; };
static void spin(int *guard) { while (__atomic_exchange_n(guard, 1, __ATOMIC_ACQUIRE)) sched_yield(); }
static void unspin(int *guard) { __atomic_store_n(guard, 0, __ATOMIC_RELEASE); }
__attribute__((noinline)) static void LWLockAcquire(struct shared *shared, int own)
{
	spin(&shared->guard);
	if (!shared->locked) {
		shared->locked = 1;
		unspin(&shared->guard);
		return;
	}
	shared->queue[shared->tail++ % 32] = own;
	unspin(&shared->guard);
	sem_wait(&shared->sems[own]);
}
__attribute__((noinline)) static void LWLockRelease(struct shared *shared)
{
	spin(&shared->guard);
	int next = -1;
	if (shared->head != shared->tail)
		next = shared->queue[shared->head++ % 32];
	else
		shared->locked = 0;
	unspin(&shared->guard);
	if (next >= 0)
		sem_post(&shared->sems[next]);
}
__attribute__((noinline)) static void store_statistics(struct shared *shared, int own)
{
	LWLockAcquire(shared, own);
	usleep(300);
	LWLockRelease(shared);
}
static void shared_memory_lock(void)
{
	struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 32; i++)
		sem_init(&shared->sems[i], 1, 0);
	for (int i = 0; i < 16; i++)
		if (!fork()) {
			while (going()) {
				compute_us(50);
				store_statistics(shared, i);
			}
			_exit(0);
		}
	usleep(100000 + 1e6 * (until - now()));
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
}

/* R68: the reader of the log is stopped. */
static void log_reader(void)
{
	mkfifo(path("log"), 0600);
	/* The writer comes when this one is ready. */
	int end = open(path("log"), O_RDONLY | O_NONBLOCK);
	write(1, "ready\n", 6);
	(void)end;
	raise(SIGSTOP);
}
__attribute__((noinline)) static void write_log(int end)
{
	static char line[200];
	memset(line, 'x', sizeof line);
	write(end, line, sizeof line);
}
static void log_writer(void)
{
	int end = open(path("log"), O_WRONLY);
	signal(SIGALRM, _exit);
	alarm(4);
	for (;;)
		write_log(end);
}

/* R72: a slow tracer. The traced program is what the answer is about. */
static void traced(void)
{
	while (going())
		for (int i = 0; i < 100; i++)
			syscall(SYS_getppid);
}
static void trace_slowly(int process)
{
	if (ptrace(PTRACE_SEIZE, process, 0, 0))
		exit(1);
	ptrace(PTRACE_INTERRUPT, process, 0, 0);
	for (;;) {
		int status;
		if (waitpid(process, &status, __WALL) < 0 || WIFEXITED(status))
			exit(0);
		usleep(1000);
		ptrace(PTRACE_SYSCALL, process, 0, 0);
	}
}

/* R74: threads take the first touch of pages of one mapping. */
static char *fresh;
static const size_t fresh_bytes = 512ul << 20;
__attribute__((noinline)) static void *touch_fresh(void *which)
{
	unsigned int seed = (intptr_t)which;
	while (going()) {
		for (int i = 0; i < 20000; i++)
			fresh[(rand_r(&seed) % (fresh_bytes >> 12)) << 12] = 1;
		madvise(fresh, fresh_bytes, MADV_DONTNEED);
	}
	return NULL;
}
static void fault_contention(void)
{
	fresh = mmap(NULL, fresh_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(fresh, fresh_bytes, MADV_NOHUGEPAGE);
	in_threads(2, touch_fresh);
}

/* R92, R93: one byte each read. */
__attribute__((noinline)) static long read_char_by_char(int file)
{
	char byte;
	long count = 0;
	while (going() && read(file, &byte, 1) == 1)
		count++;
	return count;
}
static void bytewise(void)
{
	int file = open("/dev/zero", O_RDONLY);
	sink = read_char_by_char(file);
}
static void bytewise_stdin(void)
{
	setvbuf(stdin, NULL, _IONBF, 0);
	while (going())
		sink += fgetc(stdin);
}

/* R100, R112: a lock of a file, and who holds it. */
static void flock_holder(const char *what)
{
	int file = open(path("lock"), O_CREAT | O_RDWR, 0600);
	flock(file, LOCK_EX);
	write(1, "ready\n", 6);
	if (!strcmp(what, "computes"))
		for (;;)
			compute_us(1000);
	for (;;)
		pause();
}
__attribute__((noinline)) static void build(void)
{
	int file = open(path("lock"), O_CREAT | O_RDWR, 0600);
	flock(file, LOCK_EX);
}
static void flock_waiter(void)
{
	signal(SIGALRM, _exit);
	alarm(4);
	build();
}
static void fcntl_holder(void)
{
	int file = open(path("lock"), O_CREAT | O_RDWR, 0600);
	struct flock lock = { .l_type = F_WRLCK };
	fcntl(file, F_SETLKW, &lock);
	write(1, "ready\n", 6);
	for (;;)
		sleep(1);
}
static void fcntl_waiter(void)
{
	struct flock lock = { .l_type = F_WRLCK };
	int file = open(path("lock"), O_CREAT | O_RDWR, 0600);
	signal(SIGALRM, _exit);
	alarm(4);
	fcntl(file, F_SETLKW, &lock);
}

/* R102: the event loop waits for a child. */
__attribute__((noinline)) static void purge(void) { system("sleep 0.2"); }
static void loop_runs_command(void)
{
	int timer[2], events = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	pipe(timer);
	write(timer[1], "x", 1);
	epoll_ctl(events, EPOLL_CTL_ADD, timer[0], &event);
	while (going()) {
		epoll_wait(events, &event, 1, -1);
		purge();
	}
}

/* R103: the server does its own delayed work before it reads the next request. */
static void delaying_server(void)
{
	int listener = listen_at(7424);
	write(1, "ready\n", 6);
	for (;;) {
		int client = accept(listener, NULL, NULL);
		char request[100];
		while (read(client, request, sizeof request) > 0) {
			send(client, "ok", 2, MSG_NOSIGNAL);
			sleep(1);
		}
		close(client);
	}
}
__attribute__((noinline)) static void ask(int server)
{
	char answer[10];
	send(server, "get", 3, MSG_NOSIGNAL);
	recv(server, answer, sizeof answer, 0);
}
static void keepalive_client(void)
{
	int server = connect_to(7424);
	while (going())
		ask(server);
}

/* R110: two small writes, one answer. */
static void nagle_server(void)
{
	int listener = listen_at(7425);
	write(1, "ready\n", 6);
	for (;;) {
		int client = accept(listener, NULL, NULL);
		char request[200];
		int have = 0, got;
		while ((got = read(client, request, sizeof request)) > 0)
			if ((have += got) >= 140) {
				have = 0;
				send(client, "ok", 2, MSG_NOSIGNAL);
			}
		close(client);
	}
}
__attribute__((noinline)) static void query(int server)
{
	static char text[100];
	char answer[10];
	send(server, text, 60, MSG_NOSIGNAL);
	send(server, text, 80, MSG_NOSIGNAL);
	recv(server, answer, sizeof answer, 0);
}
static void nagle_client(void)
{
	int server = connect_to(7425);
	while (going())
		query(server);
}

/* Kind 4: watches files that do not change. */
static void inotify(void)
{
	char event[4096];
	int watch = inotify_init1(0);
	inotify_add_watch(watch, folder, IN_MODIFY);
	signal(SIGALRM, _exit);
	alarm(4);
	read(watch, event, sizeof event);
}

/* Kind 4: a child in vfork that takes long before it executes. */
__attribute__((noinline)) static void start_slowly(void)
{
	if (!vfork()) {
		struct timespec t = { 0, 300000000 };
		nanosleep(&t, NULL);
		_exit(0);
	}
	wait(NULL);
}
static void slow_vfork(void)
{
	while (going())
		start_slowly();
}

/* Kind 5: workers hold a mutex over fdatasync, and clients wait for them. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int wal;
__attribute__((noinline)) static void append_record(void)
{
	static char record[4096];
	pthread_mutex_lock(&log_lock);
	pwrite(wal, record, sizeof record, 0);
	pwrite(wal, record, sizeof record, rand() % 1000 * 4096);
	fdatasync(wal);
	pthread_mutex_unlock(&log_lock);
}
static void *serve_client(void *end)
{
	char byte;
	while (read((intptr_t)end, &byte, 1) == 1) {
		append_record();
		send((intptr_t)end, "k", 1, MSG_NOSIGNAL);
	}
	return NULL;
}
static void *be_client(void *end)
{
	char byte;
	while (going()) {
		send((intptr_t)end, "g", 1, MSG_NOSIGNAL);
		read((intptr_t)end, &byte, 1);
	}
	shutdown((intptr_t)end, SHUT_RDWR);
	return NULL;
}
static void mutex_over_sync(void)
{
	pthread_t threads[16];
	wal = open(path("wal"), O_CREAT | O_RDWR, 0600);
	for (int i = 0; i < 8; i++) {
		int ends[2];
		socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
		pthread_create(&threads[2 * i], NULL, serve_client, (void *)(intptr_t)ends[0]);
		pthread_create(&threads[2 * i + 1], NULL, be_client, (void *)(intptr_t)ends[1]);
	}
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
}

/* Kind 3: a pool of idle threads beside one that reads slowly; and threads at a barrier for a slow one. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;
static void *pool_thread(void *unused)
{
	pthread_mutex_lock(&pool_lock);
	while (going()) {
		struct timespec end;
		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_nsec += 20000000;
		end.tv_sec += end.tv_nsec / 1000000000;
		end.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&pool_work, &pool_lock, &end);
	}
	pthread_mutex_unlock(&pool_lock);
	return NULL;
}
__attribute__((noinline)) static void save_all(void)
{
	static char block[1 << 16];
	int file = open(path("saved"), O_CREAT | O_RDWR, 0600);
	while (going()) {
		pwrite(file, block, sizeof block, rand() % 100 * sizeof block);
		fsync(file);
	}
}
static void pool_beside_sync(void)
{
	pthread_t thread;
	for (int i = 0; i < 16; i++)
		pthread_create(&thread, NULL, pool_thread, NULL);
	save_all();
}
static pthread_barrier_t barrier;
__attribute__((noinline)) static void slow_part(void) { compute_us(20000); }
static void *step(void *which)
{
	for (int i = 0; i < 120; i++) {
		if (!which)
			slow_part();
		else
			compute_us(100);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}
static void uneven_barrier(void)
{
	pthread_barrier_init(&barrier, NULL, 8);
	in_threads(8, step);
}

static const struct { const char *name; void (*run)(void); } cases[] = {
	{ "close-fds", close_fds }, { "fork-large", fork_large }, { "herd", herd },
	{ "counters-unpadded", counters_unpadded }, { "shared-mutex", shared_mutex },
	{ "quadratic-append", quadratic_append }, { "shared-memory-lock", shared_memory_lock },
	{ "log-reader", log_reader }, { "log-writer", log_writer }, { "traced", traced },
	{ "fault-contention", fault_contention }, { "bytewise", bytewise }, { "bytewise-stdin", bytewise_stdin },
	{ "flock-waiter", flock_waiter }, { "fcntl-holder", fcntl_holder }, { "fcntl-waiter", fcntl_waiter },
	{ "loop-runs-command", loop_runs_command }, { "delaying-server", delaying_server },
	{ "keepalive-client", keepalive_client }, { "nagle-server", nagle_server }, { "nagle-client", nagle_client },
	{ "inotify", inotify }, { "slow-vfork", slow_vfork }, { "mutex-over-sync", mutex_over_sync },
	{ "pool-beside-sync", pool_beside_sync }, { "uneven-barrier", uneven_barrier },
};

int main(int count, char **words)
{
	if (count < 4)
		return 2;
	until = now() + atof(words[2]);
	folder = words[3];
	if (!strcmp(words[1], "flock-holder"))
		flock_holder(count > 4 ? words[4] : "");
	if (!strcmp(words[1], "trace"))
		trace_slowly(atoi(words[4]));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!strcmp(words[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	return 2;
}
