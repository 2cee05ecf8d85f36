/* PID 1 of a guest that judges its own dump: fills memory of every kind with marked pages, writes what the kernel says of each
 * frame (/proc/kpageflags) into pages that the host finds by their first words, and ends by a reset, with no code of the
 * kernel in between.
 *
 * In C and not in the agent's Rust: the agent is part of the measured machine. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL
#define MIB (1UL << 20)
#define WORDS 508
#define ADVICE_PAGEOUT 21
#define ADVICE_HWPOISON 100
#define ADVICE_SOFT_OFFLINE 101
#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x200000
#endif
#define NEW_HUGE (MAP_HUGETLB | 30 << MAP_HUGE_SHIFT)
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

/* A page of the report; a page of flags has the same head. */
struct report {
	char magic[16];
	uint64_t index, sum;
	union {
		uint64_t flags[WORDS];
		char text[WORDS * 8];
	};
};

static struct report *report;
static size_t written;

static void say(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	written += vsnprintf(report->text + written, sizeof(report->text) - written, format, list);
	va_end(list);
}

static void die(const char *what)
{
	fprintf(stderr, "oracle: %s: %s\n", what, strerror(errno));
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), done;

	if (fd < 0)
		return -1;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return done;
}

static int get(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count;

	if (fd < 0)
		return -1;
	count = read(fd, text, size - 1);
	text[count < 0 ? 0 : count] = 0;
	close(fd);
	return count < 0 ? -1 : 0;
}

static void insert_all(void)
{
	struct dirent **found;
	int count = scandir("/modules", &found, NULL, alphasort);

	for (int n = 0; n < count; n++) {
		char path[512];
		int fd;

		snprintf(path, sizeof(path), "/modules/%s", found[n]->d_name);
		if (found[n]->d_name[0] == '.')
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
			die(path);
		close(fd);
	}
}

/* Marks each page with its kind. */
static void mark(char *at, size_t size, const char *kind)
{
	for (size_t n = 0; n < size / PAGE; n++)
		snprintf(at + n * PAGE, 64, "marvin-mark %s %zu", kind, n);
}

static char *map_at(size_t size, int flags, int file)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, file, 0);

	return at == MAP_FAILED ? NULL : at;
}

static char *map(size_t size, int flags)
{
	char *at = map_at(size + 2 * MIB, flags | MAP_ANONYMOUS, -1);

	if (!at)
		die("mmap");
	return (char *)(((uintptr_t)at + 2 * MIB - 1) & ~(2 * MIB - 1));
}

static void known(const char *kind, size_t size)
{
	say("marked %s %zu\n", kind, size / PAGE);
}

static void missing(const char *kind)
{
	say("missing %s: %s\n", kind, strerror(errno));
}

/* Takes as many movable blocks offline as there may be. */
static void offline_blocks(int wanted)
{
	char path[128], text[128];

	for (int n = 255; n >= 0 && wanted; n--) {
		snprintf(path, sizeof(path), "/sys/devices/system/memory/memory%d/valid_zones", n);
		if (get(path, text, sizeof(text)) || strncmp(text, "Movable", 7))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/memory/memory%d/state", n);
		/* A page of it may be in use for a moment. */
		if (put(path, "offline") && put(path, "offline"))
			continue;
		wanted--;
	}
	for (int n = 0; n < 256; n++) {
		snprintf(path, sizeof(path), "/sys/devices/system/memory/memory%d/state", n);
		if (!get(path, text, sizeof(text)) && !strncmp(text, "offline", 7))
			say("offline %d\n", n);
	}
}

static void fill_anonymous(void)
{
	size_t size = 32 * MIB;
	char *at = map(size, MAP_PRIVATE);

	madvise(at, size, MADV_NOHUGEPAGE);
	mark(at, size, "anon");
	known("anon", size);
	put("/sys/kernel/mm/transparent_hugepage/enabled", "always");
	put("/sys/kernel/mm/transparent_hugepage/defrag", "always");
	at = map(size, MAP_PRIVATE);
	madvise(at, size, MADV_HUGEPAGE);
	mark(at, size, "thp");
	known("thp", size);
	/* Smaller folios, in mappings too small for 2 MiB. */
	if (put("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always"))
		missing("mthp");
	else {
		at = map(size, MAP_PRIVATE);
		madvise(at, 4 * MIB, MADV_HUGEPAGE);
		for (size_t n = 0; n < 4; n++)
			munmap(at + n * MIB, 128 << 10);
		for (size_t n = 0; n < 4; n++)
			mark(at + n * MIB + (128 << 10), 512 << 10, "mthp");
		known("mthp", 2 * MIB);
	}
	at = map(16 * MIB, MAP_SHARED);
	madvise(at, 16 * MIB, MADV_NOHUGEPAGE);
	mark(at, 16 * MIB, "shm");
	known("shm", 16 * MIB);
}

/* Counts pages that processors hold for themselves, by /proc/zoneinfo. */
static long count_listed(int file)
{
	static char text[256 << 10];
	size_t size = 0;
	ssize_t got;
	long sum = 0;

	lseek(file, 0, SEEK_SET);
	while ((got = read(file, text + size, sizeof(text) - 1 - size)) > 0)
		size += got;
	text[size] = 0;
	for (char *at = text; (at = strstr(at, " count:")); at++)
		sum += strtol(at + 7, NULL, 10);
	return sum;
}

static long count_free(void)
{
	static char text[64 << 10];
	int zones = open("/proc/zoneinfo", O_RDONLY | O_CLOEXEC);
	long listed = count_listed(zones);
	char *at;

	close(zones);
	get("/proc/meminfo", text, sizeof(text));
	at = strstr(text, "MemFree:");
	return listed + (at ? strtol(at + 8, NULL, 10) / 4 : 0);
}

/* Huge pages whose records share pages give seven of their eight pages of records back. */
static void share_records(void)
{
	long before = count_free(), saved;

	put("/proc/sys/vm/nr_hugepages", "140");
	saved = 128 * 512 - (before - count_free());
	if (saved > 128 * 4)
		say("hvo %ld\n", saved);
	else
		say("missing hvo: %ld pages of records were given back\n", saved);
}

static void fill_huge(void)
{
	char *at;

	put("/proc/sys/vm/nr_hugepages", "12");
	if (getenv("hvo"))
		share_records();
	at = map_at(20 * MIB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	if (at) {
		mark(at, 20 * MIB, "huge");
		known("huge", 20 * MIB);
	} else
		missing("huge");
	if (!getenv("giant"))
		return;
	at = map_at(1024 * MIB, MAP_PRIVATE | MAP_ANONYMOUS | NEW_HUGE, -1);
	if (at) {
		mark(at, 1024 * MIB, "giant");
		known("giant", 1024 * MIB);
	} else
		missing("giant");
}

static void fill_cache(void)
{
	static char piece[PAGE];
	size_t size = 16 * MIB;
	int file = open("/files/cache", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int disk = open("/dev/vda", O_RDWR);

	for (size_t n = 0; n < size / PAGE; n++) {
		snprintf(piece, sizeof(piece), "marvin-mark cache %zu", n);
		if (write(file, piece, PAGE) != PAGE)
			die("/files/cache");
	}
	known("cache", size);
	if (disk < 0) {
		missing("disk");
		return;
	}
	for (size_t n = 0; n < size / PAGE; n++) {
		snprintf(piece, sizeof(piece), "marvin-mark disk %zu", n);
		if (write(disk, piece, PAGE) != PAGE)
			die("/dev/vda");
	}
	fsync(disk);
	known("disk", size);
}

/* A file in memory that is a device: its pages have records, and are in no zone of the allocator. */
static void fill_dax(void)
{
	static char piece[PAGE];
	size_t size = 16 * MIB;
	struct statx facts;
	char *at;
	int file;

	if (!getenv("dax"))
		return;
	for (int n = 0; n < 100 && access("/dev/pmem0", F_OK); n++)
		usleep(50000);
	mkdir("/dax", 0700);
	file = mount("/dev/pmem0", "/dax", "ext4", 0, "dax") ?
		       -1 :
		       open("/dax/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0) {
		missing("dax");
		return;
	}
	for (size_t n = 0; n < size / PAGE; n++) {
		snprintf(piece, sizeof(piece), "marvin-mark dax %zu", n);
		if (write(file, piece, PAGE) != PAGE)
			die("/dax/file");
	}
	at = map_at(size, MAP_SHARED, file);
	if (!at || statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &facts) ||
	    !(facts.stx_attributes & STATX_ATTR_DAX)) {
		missing("dax");
		return;
	}
	for (size_t n = 0; n < size; n += PAGE)
		(void)*(volatile char *)(at + n);
	known("dax", size);
}

/* Swaps out through zswap, and half of it in again. */
static void fill_swap(void)
{
	static char head[PAGE];
	uint32_t *words = (uint32_t *)(head + 1024);
	char text[4096], *at = map(16 * MIB, MAP_PRIVATE), *found;
	int disk = open("/dev/vdb", O_RDWR | O_CLOEXEC);

	words[0] = 1;
	words[1] = 64 * MIB / PAGE - 1;
	memcpy(head + PAGE - 10, "SWAPSPACE2", 10);
	put("/sys/module/zswap/parameters/enabled", "1");
	if (disk < 0 || write(disk, head, PAGE) != PAGE || fsync(disk) || swapon("/dev/vdb", 0)) {
		missing("swap");
		return;
	}
	madvise(at, 16 * MIB, MADV_NOHUGEPAGE);
	mark(at, 16 * MIB, "swapped");
	if (madvise(at, 16 * MIB, ADVICE_PAGEOUT))
		missing("swap");
	for (size_t n = 0; n < 8 * MIB; n += PAGE)
		(void)*(volatile char *)(at + n);
	known("swapped", 8 * MIB);
	get("/proc/meminfo", text, sizeof(text));
	found = strstr(text, "Zswapped:");
	say("zswap %ld\n", found ? strtol(found + 9, NULL, 10) / 4 : -1);
}

/* The kernel tells a process of each page that it poisons, even one that asked for it. */
static void survive(int number)
{
	(void)number;
}

static void spoil(void)
{
	char *at = map(64 * PAGE, MAP_PRIVATE), *huge;

	madvise(at, 64 * PAGE, MADV_NOHUGEPAGE);
	mark(at, 64 * PAGE, "hurt");
	for (int n = 0; n < 4; n++)
		if (madvise(at + n * PAGE, PAGE, ADVICE_HWPOISON)) {
			missing("poison");
			return;
		}
	for (int n = 8; n < 12; n++)
		if (madvise(at + n * PAGE, PAGE, ADVICE_SOFT_OFFLINE))
			missing("soft-offline");
	/* One of a huge page of its own, and a later one of a transparent one. */
	huge = map_at(2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	if (huge) {
		mark(huge, 2 * MIB, "hurt");
		if (madvise(huge + 5 * PAGE, PAGE, ADVICE_HWPOISON))
			missing("poison-huge");
	}
	at = map(4 * MIB, MAP_PRIVATE);
	madvise(at, 4 * MIB, MADV_HUGEPAGE);
	mark(at, 4 * MIB, "hurt");
	if (madvise(at + 2 * MIB + 7 * PAGE, PAGE, ADVICE_HWPOISON))
		missing("poison-thp");
}

/* Memory of the kernel's own that programs can write: a dump keeps it at any level. */
static void fill_kernel(void)
{
	static char piece[PAGE];
	union bpf_attr map_of = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = PAGE,
		.max_entries = 256,
		.map_flags = BPF_F_MMAPABLE,
	};
	int ends[2], file = syscall(SYS_bpf, BPF_MAP_CREATE, &map_of, sizeof(map_of));
	char *at = file < 0 ? NULL : map_at(256 * PAGE, MAP_SHARED, file);

	if (at) {
		mark(at, 256 * PAGE, "bpf");
		known("bpf", 256 * PAGE);
	} else
		missing("bpf");
	if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, MIB) < 0)
		die("pipe");
	for (size_t n = 0; n < MIB / PAGE; n++) {
		snprintf(piece, sizeof(piece), "marvin-mark pipe %zu", n);
		if (write(ends[1], piece, PAGE) != PAGE)
			die("pipe");
	}
	known("pipe", MIB);
	file = syscall(SYS_memfd_secret, 0);
	at = file < 0 || ftruncate(file, MIB) ? NULL : map_at(MIB, MAP_SHARED, file);
	if (at) {
		mark(at, MIB, "secret");
		known("secret", MIB);
	} else
		missing("secret");
}

static void fill_freed(void)
{
	char *at = map(24 * MIB, MAP_PRIVATE);

	mark(at, 24 * MIB, "freed");
	munmap(at, 24 * MIB);
}

/* Reads all flags twice: what changes meanwhile has its highest bit set. */
static void judge(struct report *pages, size_t count, int file)
{
	static uint64_t again[WORDS];

	for (size_t n = 0; n < count; n++) {
		ssize_t got = pread(file, pages[n].flags, sizeof(again), n * sizeof(again));

		pages[n].index = got > 0 ? got / 8 : 0;
	}
	for (size_t n = 0; n < count; n++) {
		pread(file, again, sizeof(again), n * sizeof(again));
		for (size_t word = 0; word < WORDS; word++)
			if (again[word] != pages[n].flags[word])
				pages[n].flags[word] |= 1UL << 63;
	}
}

/* Waits until the balloon has what the host wants, and counts nodes, and blocks from 4 GiB on that are online. */
static void await_shape(void)
{
	static char text[64 << 10];
	long wanted = strtol(getenv("balloon") ?: "0", NULL, 10), pages = 0, nodes = 0, added = 0;
	char path[128];
	int file;

	for (int n = 0; n < 600 && pages < wanted; n++) {
		ssize_t got = 0, size = 0;
		char *at;

		usleep(50000);
		file = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
		while (file >= 0 && (got = read(file, text + size, sizeof(text) - 1 - size)) > 0)
			size += got;
		close(file);
		text[size] = 0;
		at = strstr(text, "balloon_inflate ");
		pages = at ? strtol(at + 16, NULL, 10) : 0;
	}
	say("balloon %ld\n", pages);
	if (pages < wanted)
		say("missing balloon: %ld of %ld pages\n", pages, wanted);
	for (int n = 0; n < 64; n++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", n);
		nodes += !access(path, F_OK);
	}
	wanted = strtol(getenv("added") ?: "0", NULL, 10);
	for (int turn = 0; turn < 200 && added < wanted; turn++) {
		usleep(50000);
		added = 0;
		for (int n = 32; n < 256; n++) {
			snprintf(path, sizeof(path), "/sys/devices/system/memory/memory%d/state", n);
			added += !get(path, text, sizeof(text)) && !strncmp(text, "online", 6);
		}
	}
	if (added < wanted)
		say("missing added: %ld of %ld blocks\n", added, wanted);
	say("nodes %ld\nadded %ld\n", nodes, added);
}

#ifdef __x86_64__
static void prepare_end(void)
{
	if (iopl(3))
		die("iopl");
}

static void end(void)
{
	/* Reset control of the ICH9 (0xcf9): a hard reset. */
	outb(0x02, 0xcf9);
	outb(0x06, 0xcf9);
	for (;;)
		pause();
}
#else
static void prepare_end(void)
{
}

static void end(void)
{
	/* Semihosting: QEMU exits (SYS_EXIT, ADP_Stopped_ApplicationExit). */
	static uint64_t reason[2] = { 0x20026, 0 };
	register uint64_t call asm("x0") = 0x18;
	register uint64_t *words asm("x1") = reason;

	asm volatile("hlt #0xf000" : : "r"(call), "r"(words) : "memory");
	for (;;)
		pause();
}
#endif

/* The nodes of disks may come after their module was loaded. */
static void await_disks(void)
{
	for (int n = 0; n < 100 && access("/dev/vdb", F_OK); n++)
		usleep(50000);
}

static void mount_all(void)
{
	static const char *const kinds[][2] = {
		{ "proc", "/proc" }, { "sysfs", "/sys" }, { "devtmpfs", "/dev" }, { "ramfs", "/files" },
	};

	for (int n = 0; n < 4; n++) {
		mkdir(kinds[n][1], 0700);
		mount(kinds[n][0], kinds[n][1], kinds[n][0], 0, NULL);
	}
	freopen("/dev/console", "w", stdout);
	freopen("/dev/console", "w", stderr);
}

int main(void)
{
	size_t frames = strtoul(getenv("frames") ?: "0", NULL, 10), count = frames / WORDS + 1;
	struct report *pages;
	char size[32] = "";
	int file, zones;

	signal(SIGBUS, survive);
	mount_all();
	insert_all();
	await_disks();
	report = (struct report *)map(PAGE, MAP_PRIVATE);
	get("/sys/devices/system/memory/block_size_bytes", size, sizeof(size));
	say("block %lu\n", strtoul(size, NULL, 16));
	await_shape();
	offline_blocks(2);
	fill_huge();
	fill_anonymous();
	fill_cache();
	fill_dax();
	fill_kernel();
	fill_swap();
	spoil();
	fill_freed();
	/* Whatever waits on a processor's list goes where it belongs. */
	sync();
	sleep(1);
	file = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		die("/proc/kpageflags");
	pages = (struct report *)map(count * PAGE, MAP_PRIVATE);
	madvise(pages, count * PAGE, MADV_NOHUGEPAGE);
	for (size_t n = 0; n < count; n++) {
		memcpy(pages[n].magic, "marvin-frames-1", 16);
		pages[n].sum = n;
	}
	prepare_end();
	memcpy(report->magic, "marvin-report-1", 16);
	/* What it needs is allocated before flags are read, and not free any more in them. */
	zones = open("/proc/zoneinfo", O_RDONLY | O_CLOEXEC);
	count_listed(zones);
	judge(pages, count, file);
	say("listed %ld\n", count_listed(zones));
	end();
}
