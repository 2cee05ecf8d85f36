/* Eleventh half, letters AI: seven C programs after public reports. Arguments: CASE SECONDS FOLDER. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static const char *case_name;
static double seconds, began;
static char folder[400];
static volatile long things;
static volatile pid_t main_child;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int running(void) { return now() - began < seconds; }

static void report(const char *what) { printf("%s: %ld %s\n", case_name, things, what); }

static void on_alarm(int sig)
{
	char line[120];
	int n = snprintf(line, sizeof line, "%s: %ld things\n", case_name, things);
	(void)sig;
	if (main_child > 0)
		kill(main_child, SIGKILL);
	if (write(1, line, n) < 0)
		_exit(1);
	_exit(0);
}

static void arm_deadline(void)
{
	struct itimerval it = { { 0, 0 }, { (long)seconds, (long)((seconds - (long)seconds) * 1e6) } };
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &it, NULL);
}

/* event-watch */
static pthread_mutex_t instance_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t instance_ready = PTHREAD_COND_INITIALIZER;
static int event_pipe[2];

static void *fse_run_loop(void *arg)
{
	struct pollfd p = { event_pipe[0], POLLIN, 0 };
	(void)arg;
	pthread_cond_signal(&instance_ready);
	while (poll(&p, 1, -1) >= 0)
		things++;
	return NULL;
}

static void fse_watcher_start(void)
{
	pthread_t loop;
	arm_deadline();
	if (pipe(event_pipe))
		exit(1);
	pthread_create(&loop, NULL, fse_run_loop, NULL);
	usleep(30000);
	pthread_mutex_lock(&instance_lock);
	pthread_cond_wait(&instance_ready, &instance_lock);
	pthread_mutex_unlock(&instance_lock);
	things++;
	report("watchers");
}

/* error-trigger */
static int num_children;

NOINLINE static void run_trigger(int seq)
{
	pid_t pid = fork();
	if (pid == 0) {
		usleep(20000 * (seq + 1));
		_exit(0);
	}
	num_children++;
	things++;
}

NOINLINE static void eventloop(sigset_t *mask)
{
	struct timespec tick = { 0, 200000000 };
	while (sigtimedwait(mask, NULL, &tick) == SIGCHLD)
		;
}

NOINLINE static void trigger_wait(sigset_t *mask)
{
	int sig;
	while (num_children > 0) {
		sigwait(mask, &sig);
		if (waitpid(-1, NULL, WNOHANG) > 0)
			num_children--;
	}
}

static void mcelog_run(void)
{
	sigset_t mask;
	arm_deadline();
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	for (int i = 0; i < 3; i++)
		run_trigger(i);
	eventloop(&mask);
	trigger_wait(&mask);
	report("triggers");
}

/* rule-runner */
static void run_programs(void)
{
	int left = 2, status;
	arm_deadline();
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			signal(SIGALRM, SIG_DFL);
			alarm((unsigned)seconds + 5);
			if (i == 0)
				_exit(0);
			pause();
			_exit(0);
		}
		if (i == 1)
			main_child = pid;
	}
	while (left > 0) {
		if (waitpid(-1, &status, 0) < 0)
			break;
		left--;
		things++;
	}
	report("programs");
}

/* target-build */
NOINLINE static void mkpath(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			perror(path);
		*p = '/';
	}
}

NOINLINE static void write_dep_information(int fd, const char *name)
{
	char path[700];
	snprintf(path, sizeof path, "%s/.redo/abs/proj/tree/src/module/%s", folder, name);
	mkpath(path);
	if (things % 16 == 0 && pwrite(fd, path, 32, 0) < 0)
		perror("dep");
}

static void redo_ifchange(void)
{
	char name[40];
	int fd;
	snprintf(name, sizeof name, "%s", "deps");
	fd = openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0600);
	while (running()) {
		snprintf(name, sizeof name, "t%ld.o", things % 5000);
		write_dep_information(fd, name);
		things++;
	}
	report("targets");
}

/* ping-sockets */
struct io_ev { int fd; uint32_t registered; };

NOINLINE static void notify_change(int ep, struct io_ev *ev, uint32_t flags)
{
	struct epoll_event e = { flags, { .ptr = ev } };
	int op = !flags ? EPOLL_CTL_DEL : ev->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	ev->registered = flags;
	epoll_ctl(ep, op, ev->fd, &e);
}

static void uds_ping_pong(void)
{
	struct io_ev ev[2];
	struct epoll_event got[4];
	int s[2], ep = epoll_create1(0);
	char buf[64] = "ping";
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(1);
	for (int i = 0; i < 2; i++) {
		struct epoll_event e = { EPOLLIN, { .ptr = &ev[i] } };
		ev[i] = (struct io_ev){ s[i], EPOLLIN };
		epoll_ctl(ep, EPOLL_CTL_ADD, s[i], &e);
	}
	if (write(s[0], buf, 64) != 64)
		exit(1);
	while (running()) {
		int n = epoll_wait(ep, got, 4, 1000);
		for (int i = 0; i < n; i++) {
			struct io_ev *e = got[i].data.ptr;
			notify_change(ep, e, 0);
			if (read(e->fd, buf, 64) <= 0)
				exit(1);
			notify_change(ep, e, EPOLLIN);
			notify_change(ep, e, 0);
			notify_change(ep, e, EPOLLOUT);
			if (write(e->fd, buf, 64) != 64)
				exit(1);
			notify_change(ep, e, 0);
			notify_change(ep, e, EPOLLIN);
			things++;
		}
	}
	report("pings");
}

/* dir-browser */
struct dir_entry { char name[64]; uint64_t size; uint32_t type; };

NOINLINE static int comp_entries(const struct dir_entry *a, const struct dir_entry *b)
{
	if (a->type != b->type)
		return (int)a->type - (int)b->type;
	return strcasecmp(a->name, b->name);
}

NOINLINE static void sort_dir_struct(struct dir_entry *list, int n)
{
	for (int s = 0; s < n; s++) {
		int min = s;
		for (int c = s + 1; c < n; c++)
			if (comp_entries(&list[min], &list[c]) > 0)
				min = c;
		if (min != s) {
			struct dir_entry t = list[s];
			list[s] = list[min];
			list[min] = t;
		}
	}
}

static void get_dir_contents(void)
{
	enum { N = 2000 };
	struct dir_entry *list = calloc(N, sizeof *list);
	unsigned seed = 7;
	while (running()) {
		for (int i = 0; i < N; i++) {
			seed = seed * 1103515245u + 12345u;
			snprintf(list[i].name, sizeof list[i].name, "Game title %08x.cia", seed);
			list[i].size = seed;
			list[i].type = 1;
		}
		sort_dir_struct(list, N);
		things++;
	}
	report("folders");
}

/* c-compiler */
struct symbol { char name[40]; int value; };

NOINLINE static struct symbol *find_func(struct symbol *table, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

static void parse_unit(void)
{
	enum { N = 8000 };
	struct symbol *table = calloc(N, sizeof *table);
	unsigned seed = 3;
	long sum = 0;
	for (int i = 0; i < N; i++) {
		snprintf(table[i].name, sizeof table[i].name, "local_function_%d", i);
		table[i].value = i;
	}
	while (running()) {
		for (int i = 0; i < 200; i++) {
			char token[40];
			seed = seed * 1103515245u + 12345u;
			snprintf(token, sizeof token, "local_function_%u", (seed >> 8) % N);
			sum += find_func(table, N, token)->value;
			things++;
		}
	}
	if (sum == 1)
		puts("one");
	report("tokens");
}

static const struct { const char *name; void (*run)(void); } cases[] = {
	{ "event-watch", fse_watcher_start }, { "error-trigger", mcelog_run },
	{ "rule-runner", run_programs }, { "target-build", redo_ifchange },
	{ "ping-sockets", uds_ping_pong }, { "dir-browser", get_dir_contents },
	{ "c-compiler", parse_unit },
};

int main(int argc, char **argv)
{
	char command[900];
	if (argc < 4)
		return 2;
	case_name = argv[1];
	seconds = atof(argv[2]);
	snprintf(folder, sizeof folder, "%s/%s", argv[3], argv[1]);
	snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", folder, folder);
	if (system(command))
		return 2;
	began = now();
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!strcmp(cases[i].name, case_name)) {
			cases[i].run();
			return 0;
		}
	return 2;
}
