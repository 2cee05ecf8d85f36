// Programs from public reports (tests/outside/49-third-aside-compiled.md), in C: each does steadily
// what its report describes, for some seconds: `third NAME SECONDS DIR`. A fourth argument asks for
// the repaired form, to compare with.
// gcc -O1 -g -w third.c -o third -lpthread
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static double end;
static int is_repaired;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int is_over(void) { return now() >= end; }

static void tell_ready(void) {
    puts("ready");
    fflush(stdout);
}

static void leave(int signal) { _exit(0); }

// For programs that wait without end.
static void leave_at_end(void) {
    signal(SIGALRM, leave);
    alarm((unsigned)(end - now() + 0.5));
}

static pid_t fork_child(void) {
    pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

static pthread_t start(void *(*function)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, argument);
    return thread;
}

static char *path_in(const char *dir, const char *name) {
    char *path;
    asprintf(&path, "%s/%s", dir, name);
    return path;
}

// T1: a sandbox takes a lock on a file while it makes its directories.

static int lock_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd == -1 || flock(fd, LOCK_EX) == -1) exit(1);
    return fd;
}

KEEP static int preproc_lock_firejail_dir(const char *dir) {
    return lock_file(path_in(dir, "firejail-run.lock"));
}

static void preproc_build_firejail_dir(const char *dir) {
    mkdir(path_in(dir, "firejail-mnt"), 0700);
    rmdir(path_in(dir, "firejail-mnt"));
}

static void sandbox_run(const char *dir) {
    leave_at_end();
    while (!is_over()) {
        int fd = preproc_lock_firejail_dir(dir);
        preproc_build_firejail_dir(dir);
        close(fd);
        usleep(1000);
    }
}

// The sandbox that was suspended from the terminal.
static void suspended_run(const char *dir) {
    leave_at_end();
    pid_t child = fork_child();
    if (child == 0) {
        preproc_lock_firejail_dir(dir);
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    tell_ready();
    for (;;) pause();
}

// T2: a daemon for radios tells in its log who has connected.

static void answer_later(int fd, double seconds) {
    unsigned char packet[512];
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    ssize_t size = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&peer, &length);
    if (size < 12) return;
    usleep(seconds * 1e6);
    packet[2] = 0x81;
    packet[3] = 0x83; // There is no such name.
    packet[10] = packet[11] = 0;
    sendto(fd, packet, size, 0, (struct sockaddr *)&peer, length);
}

static void slow_names(const char *dir) {
    leave_at_end();
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    bind(fd, (struct sockaddr *)&address, sizeof address);
    getsockname(fd, (struct sockaddr *)&address, &length);
    FILE *file = fopen(path_in(dir, "names-port"), "w");
    fprintf(file, "%d\n", ntohs(address.sin_port));
    fclose(file);
    tell_ready();
    for (;;) answer_later(fd, 0.7);
}

// Stands for the line in resolv.conf.
static void use_name_server(const char *dir) {
    int port = 0;
    FILE *file = fopen(path_in(dir, "names-port"), "r");
    if (!file || fscanf(file, "%d", &port) != 1) exit(1);
    fclose(file);
    res_init();
    _res.nscount = 1;
    _res.nsaddr_list[0].sin_family = AF_INET;
    _res.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    _res.nsaddr_list[0].sin_port = htons(port);
}

static void get_rigctl(int port) {
    while (!is_over()) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in source = {.sin_family = AF_INET};
        source.sin_addr.s_addr = inet_addr("127.88.7.9");
        bind(fd, (struct sockaddr *)&source, sizeof source);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        char answer[64];
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
            write(fd, "f\n", 2);
            read(fd, answer, sizeof answer);
        }
        close(fd);
        usleep(20000);
    }
    _exit(0);
}

KEEP static void handle_socket(int fd) {
    char command[64];
    if (read(fd, command, sizeof command) > 0) write(fd, "14074000\n", 9);
    close(fd);
}

KEEP static void print_peer(FILE *log, struct sockaddr_in *peer) {
    char host[NI_MAXHOST], service[NI_MAXSERV];
    int flags = is_repaired ? NI_NUMERICHOST | NI_NUMERICSERV : NI_NOFQDN;
    if (getnameinfo((struct sockaddr *)peer, sizeof *peer, host, sizeof host, service,
                    sizeof service, flags) == 0)
        fprintf(log, "Connection opened from %s:%s\n", host, service);
}

static void rig_server(const char *dir) {
    leave_at_end();
    use_name_server(dir);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    bind(fd, (struct sockaddr *)&address, sizeof address);
    listen(fd, 16);
    getsockname(fd, (struct sockaddr *)&address, &length);
    FILE *log = fopen("/dev/null", "w");
    if (fork_child() == 0) get_rigctl(ntohs(address.sin_port));
    for (;;) {
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        int client = accept(fd, (struct sockaddr *)&peer, &size);
        print_peer(log, &peer);
        handle_socket(client);
    }
}

// T3: a brick of a file system passes requests from its readers to its workers.

struct call_stub {
    struct call_stub *next;
    char data[128];
};

struct iot_conf {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct call_stub *head, *tail;
    int queue_size, sleep_count;
    char pad[64];
};

static struct iot_conf conf = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
static long fops;

KEEP static unsigned posix_fop(struct call_stub *stub) {
    unsigned sum = 0;
    for (int i = 0; i < 12; i++)
        for (unsigned j = 0; j < sizeof stub->data; j++) sum = sum * 31 + stub->data[j];
    return sum;
}

KEEP static struct call_stub *iot_dequeue(void) {
    struct call_stub *stub;
    pthread_mutex_lock(&conf.mutex);
    while (!conf.head) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 120;
        conf.sleep_count++;
        pthread_cond_timedwait(&conf.cond, &conf.mutex, &until);
        conf.sleep_count--;
    }
    stub = conf.head;
    conf.head = stub->next;
    conf.queue_size--;
    pthread_mutex_unlock(&conf.mutex);
    return stub;
}

static void *iot_worker(void *argument) {
    for (;;) {
        struct call_stub *stub = iot_dequeue();
        stub->data[0] = posix_fop(stub);
        free(stub);
        __atomic_add_fetch(&fops, 1, __ATOMIC_RELAXED);
    }
}

KEEP static void do_iot_schedule(struct call_stub *stub) {
    pthread_mutex_lock(&conf.mutex);
    stub->next = NULL;
    if (conf.head) conf.tail->next = stub;
    else conf.head = stub;
    conf.tail = stub;
    conf.queue_size++;
    if (conf.sleep_count) pthread_cond_signal(&conf.cond);
    pthread_mutex_unlock(&conf.mutex);
}

static void *rpcrqhnd(void *argument) {
    for (unsigned requests = 1; requests % 1024 || !is_over(); requests++) {
        struct call_stub *stub = malloc(sizeof *stub);
        memset(stub->data, 7, sizeof stub->data);
        do_iot_schedule(stub);
        if (conf.queue_size > 4000) usleep(1000);
    }
    return NULL;
}

static void brick_io(const char *dir) {
    for (int i = 0; i < 16; i++) start(iot_worker, NULL);
    pthread_t readers[3];
    for (int i = 0; i < 3; i++) readers[i] = start(rpcrqhnd, NULL);
    for (int i = 0; i < 3; i++) pthread_join(readers[i], NULL);
    fprintf(stderr, "%ld fops\n", fops);
    exit(0);
}

// T4: a program that copies trees gets the names of the files from a list.

static int get_next_byte(int fd, char *byte) {
    if (is_repaired) {
        static char buffer[32768];
        static ssize_t at, size;
        if (at == size) {
            at = 0;
            if ((size = read(fd, buffer, sizeof buffer)) <= 0) return size = 0;
        }
        *byte = buffer[at++];
        return 1;
    }
    fd_set readable, failed;
    FD_ZERO(&readable);
    FD_ZERO(&failed);
    FD_SET(fd, &readable);
    FD_SET(fd, &failed);
    struct timespec timeout = {60, 0};
    pselect(fd + 1, &readable, NULL, &failed, &timeout, NULL);
    return read(fd, byte, 1);
}

KEEP static int read_line(int fd, char *line, size_t size) {
    size_t length = 0;
    char byte;
    while (get_next_byte(fd, &byte) == 1) {
        if (byte == '\n') break;
        if (length < size - 1) line[length++] = byte;
    }
    line[length] = 0;
    return length;
}

static void sync_filelist(const char *dir) {
    char *path = path_in(dir, "filelist");
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 200000; i++) fprintf(file, "/var/lib/archive/%03d/%06d.dat\n", i / 1000, i);
    fclose(file);
    long names = 0;
    while (!is_over()) {
        int fd = open(path, O_RDONLY);
        char line[4096];
        while (read_line(fd, line, sizeof line) && !is_over()) names++;
        close(fd);
    }
    fprintf(stderr, "%ld names\n", names);
}

// T5: a print server stops listening to a client until it decides to do something with it.

struct client {
    int fd;
    void (*read_cb)(struct client *);
    void (*write_cb)(struct client *);
};

static int poll_fd;

static void cupsdAddSelect(int fd, void (*read_cb)(struct client *),
                           void (*write_cb)(struct client *), struct client *data) {
    struct epoll_event event = {.data.ptr = data};
    if (read_cb) event.events |= EPOLLIN;
    if (write_cb) event.events |= EPOLLOUT;
    data->read_cb = read_cb;
    data->write_cb = write_cb;
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) == -1)
        epoll_ctl(poll_fd, EPOLL_CTL_MOD, fd, &event);
}

static void cupsdReadClient(struct client *con) {
    char request[256];
    if (read(con->fd, request, sizeof request) <= 0) return;
    if (is_repaired) {
        close(con->fd);
        return;
    }
    cupsdAddSelect(con->fd, NULL, NULL, con);
}

KEEP static int cupsdDoSelect(int timeout) {
    struct epoll_event events[64];
    int count = epoll_wait(poll_fd, events, 64, timeout);
    for (int i = 0; i < count; i++) {
        struct client *con = events[i].data.ptr;
        if (con->read_cb && (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))) con->read_cb(con);
        if (con->write_cb && (events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            con->write_cb(con);
    }
    return count;
}

static void print_scheduler(const char *dir) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/cups.sock", dir);
    unlink(address.sun_path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) == -1) exit(1);
    listen(listener, 4);
    if (fork_child() == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        connect(fd, (struct sockaddr *)&address, sizeof address);
        write(fd, "POST / HTTP/1.1\r\n\r\n", 19);
        usleep(50000);
        _exit(0);
    }
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct client *con = calloc(1, sizeof *con);
    con->fd = accept(listener, NULL, NULL);
    cupsdAddSelect(con->fd, cupsdReadClient, NULL, con);
    long loops = 0;
    while (!is_over()) {
        int left = (end - now()) * 1000;
        cupsdDoSelect(left > 0 ? left : 0);
        loops++;
    }
    fprintf(stderr, "%ld loops\n", loops);
}

// T6: a status daemon of a window manager sets a timer for its next event.

static volatile sig_atomic_t had_tmr;
static long timers_run;

// The loop below may never come to its end: so the handler looks now and then if it is time to go.
static void timer_handler(int signal) {
    static unsigned calls;
    had_tmr = 1;
    if ((++calls & 1023) == 0 && is_over()) _exit(0);
}

static void set_timer(long microseconds) {
    struct itimerval timer = {0};
    timer.it_value.tv_usec = microseconds > 0 ? microseconds : 1;
    if (!is_repaired) timer.it_interval = timer.it_value;
    setitimer(ITIMER_REAL, &timer, NULL);
}

KEEP static unsigned inform_meters(void) {
    unsigned hash = 5381;
    for (int i = 0; i < 200000; i++) hash = hash * 33 + (i & 0xff);
    return hash;
}

static void status_daemon(const char *dir) {
    signal(SIGALRM, timer_handler);
    set_timer(1);
    unsigned sum = 0;
    while (!is_over()) {
        if (had_tmr) {
            had_tmr = 0;
            sum += inform_meters();
            timers_run++;
            if (is_repaired) set_timer(500000);
        }
        struct timeval timeout = {0, 100000};
        select(0, NULL, NULL, NULL, &timeout);
    }
    fprintf(stderr, "%ld timers %u\n", timers_run, sum);
}

// T7: a library for climate models gathers small arrays before they are written.

struct io_data_list {
    struct io_data_list *next;
    double *data;
    int request, length;
    char fill[88];
};

struct file_desc {
    struct io_data_list *data_list_top, *data_list_end;
    long buffer_size;
    int fd;
};

static const long buffer_size_limit = 60000 * 3 * 8;

KEEP static void write_buffered_data(struct file_desc *file) {
    lseek(file->fd, 0, SEEK_SET);
    struct io_data_list *node = file->data_list_top;
    while (node) {
        struct io_data_list *next = node->next;
        free(node->data);
        free(node);
        node = next;
    }
    file->data_list_top = file->data_list_end = NULL;
    file->buffer_size = 0;
    write(file->fd, "flushed\n", 8);
}

KEEP static void add_data_to_buffer(struct file_desc *file, const double *array, int length) {
    struct io_data_list *node = calloc(1, sizeof *node);
    node->data = malloc(length * sizeof *array);
    node->length = length;
    memcpy(node->data, array, length * sizeof *array);
    file->buffer_size += length * sizeof *array;
    if (!file->data_list_top) {
        file->data_list_top = node;
    } else if (is_repaired) {
        file->data_list_end->next = node;
    } else {
        struct io_data_list *last = file->data_list_top;
        while (last->next) last = last->next;
        last->next = node;
    }
    file->data_list_end = node;
}

static void PIO_write_darray(struct file_desc *file, const double *array, int length) {
    add_data_to_buffer(file, array, length);
    if (file->buffer_size > buffer_size_limit) write_buffered_data(file);
}

static void write_history(const char *dir) {
    struct file_desc file = {0};
    file.fd = open(path_in(dir, "history"), O_WRONLY | O_CREAT, 0600);
    double array[3] = {1, 2, 3};
    long calls = 0;
    // The run has been going for a while: the list has its usual length.
    int was_repaired = is_repaired;
    is_repaired = 1;
    for (int i = 0; i < 20000; i++) PIO_write_darray(&file, array, 3);
    is_repaired = was_repaired;
    for (; !is_over(); calls++) PIO_write_darray(&file, array, 3);
    fprintf(stderr, "%ld calls\n", calls);
}

static const struct {
    const char *name;
    void (*run)(const char *);
} programs[] = {
    {"sandbox-run", sandbox_run},     {"suspended-run", suspended_run},
    {"rig-server", rig_server},       {"slow-names", slow_names},
    {"brick-io", brick_io},           {"sync-filelist", sync_filelist},
    {"print-scheduler", print_scheduler}, {"status-daemon", status_daemon},
    {"write-history", write_history},
};

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    signal(SIGPIPE, SIG_IGN);
    end = now() + atof(argv[2]);
    is_repaired = argc > 4;
    for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(programs[i].name, argv[1])) {
            programs[i].run(argv[3]);
            return 0;
        }
    return 2;
}
