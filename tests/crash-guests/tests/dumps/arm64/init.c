/* PID 1 of an arm64 guest: fills memory of every kind with marked pages, tells how many, and panics.
 *
 * In C and not in the agent's Rust: the test needs nothing but a cross compiler, and the agent knows x86 only. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static void insert(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		die(path);
	close(fd);
}

/* Modules are in loading order. */
static void insert_all(void)
{
	struct dirent **found;
	int count = scandir("/modules", &found, NULL, alphasort);

	for (int n = 0; n < count; n++) {
		char path[512];

		snprintf(path, sizeof(path), "/modules/%s", found[n]->d_name);
		if (found[n]->d_name[0] != '.')
			insert(path);
	}
}

/* Marks each page with its kind, so that a dump's reader can tell them apart. */
static void mark(char *at, long count, long page, const char *kind)
{
	for (long n = 0; n < count; n++)
		snprintf(at + n * page, 64, "marvin-mark %s %ld", kind, n);
}

static char *map(size_t size, int flags)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static void fill(long page)
{
	size_t size = 48UL << 20, large = 64UL << 20, pipe_size = 1 << 20;
	long count = size / page;
	int file, ends[2];
	char *at, *text;

	/* Without huge pages, then with them. */
	at = map(size, MAP_PRIVATE);
	madvise(at, size, MADV_NOHUGEPAGE);
	mark(at, count, page, "anon");
	at = map(large, MAP_PRIVATE);
	madvise(at, large, MADV_HUGEPAGE);
	mark(at, large / page, page, "thp");
	/* Page cache of a file system in memory. */
	file = open("/files/cache", O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, size))
		die("/files/cache");
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		die("/files/cache");
	mark(at, count, page, "cache");
	/* Free memory. */
	at = map(size, MAP_PRIVATE);
	mark(at, count, page, "freed");
	munmap(at, size);
	/* Pages of the kernel's own: a dump keeps them at any level. */
	if (pipe2(ends, 0) || fcntl(ends[1], F_SETPIPE_SZ, pipe_size) < 0)
		die("pipe");
	text = malloc(page);
	for (size_t n = 0; n < pipe_size / page; n++) {
		memset(text, 0, page);
		mark(text, 1, page, "pipe");
		if (write(ends[1], text, page) != page)
			die("pipe");
	}
	printf("marked anon %ld\nmarked thp %ld\nmarked cache %ld\nmarked freed %ld\nmarked pipe %ld\n", count,
	       (long)large / page, count, count, (long)pipe_size / page);
}

static void mount_all(void)
{
	static const char *const kinds[][2] = {
		{ "proc", "/proc" }, { "devtmpfs", "/dev" }, { "tmpfs", "/files" },
	};

	for (int n = 0; n < 3; n++) {
		mkdir(kinds[n][1], 0700);
		mount(kinds[n][0], kinds[n][1], kinds[n][0], 0, NULL);
	}
	freopen("/dev/console", "w", stdout);
	freopen("/dev/console", "w", stderr);
	setvbuf(stdout, NULL, _IONBF, 0);
}

int main(void)
{
	int fd;

	mount_all();
	insert_all();
	fill(sysconf(_SC_PAGESIZE));
	fd = open("/proc/sysrq-trigger", O_WRONLY);
	if (fd < 0 || write(fd, "c", 1) != 1)
		die("/proc/sysrq-trigger");
	for (;;)
		pause();
}
