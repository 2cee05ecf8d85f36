// The programs of late.c that are several processes, or a server and its clients; late.c includes
// this file after its own helpers.

static int listen_at(const char *file) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    bind(s, (void *)&a, sizeof a);
    listen(s, 64);
    getsockname(s, (void *)&a, &size);
    FILE *f = fopen("port.new", "w");
    fprintf(f, "%d\n", ntohs(a.sin_port));
    fclose(f);
    rename("port.new", file);
    return s;
}

// Connects to the server that writes its port to a file, as soon as it is there.
static int connect_to(const char *file) {
    int port = 0;
    while (!is_over()) {
        FILE *f = fopen(file, "r");
        if (f) {
            fscanf(f, "%d", &port);
            fclose(f);
            break;
        }
        pause_for(20000);
    }
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons(port)};
    if (connect(s, (void *)&a, sizeof a)) exit(1);
    return s;
}

// R28: a name server that loses every third answer for AAAA, and a program that looks names up.
static void name_server(void) {
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_aton("127.0.0.53", &a.sin_addr);
    if (bind(s, (void *)&a, sizeof a)) {
        a.sin_port = htons(5353);
        if (bind(s, (void *)&a, sizeof a)) exit(1);
    }
    FILE *f = fopen("names.port", "w");
    fprintf(f, "%d\n", ntohs(a.sin_port));
    fclose(f);
    tell_ready();
    int count = 0;
    while (!is_over()) {
        unsigned char m[1024];
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        struct pollfd p = {s, POLLIN};
        if (poll(&p, 1, 200) != 1) continue;
        int length = recvfrom(s, m, 512, 0, (void *)&from, &size);
        int at = 12;
        while (at < length && m[at]) at += m[at] + 1;
        int is_address = m[at + 2] == 1;
        if (!is_address && ++count % 3 == 0) continue;
        length = at + 5;
        m[2] |= 0x84;
        m[3] = 0x80;
        m[7] = is_address;
        memset(m + 8, 0, 4);
        if (is_address) {
            memcpy(m + length, "\xc0\x0c\0\1\0\1\0\0\0\5\0\4\x7f\0\0\1", 16);
            length += 16;
        }
        sendto(s, m, length, 0, (void *)&from, size);
    }
}

static void call_service(void) {
    int port = 53, count = 0;
    FILE *f = fopen("names.port", "r");
    if (f) fscanf(f, "%d", &port);
    res_init();
    _res.nscount = 1;
    _res.nsaddr_list[0].sin_family = AF_INET;
    _res.nsaddr_list[0].sin_port = htons(port);
    inet_aton("127.0.0.53", &_res.nsaddr_list[0].sin_addr);
    _res.retrans = 5;
    _res.options &= ~(RES_DNSRCH | RES_DEFNAMES);
    while (!is_over()) {
        char name[64];
        sprintf(name, "backend-%d.shop.example.", count++ % 7);
        struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *found = NULL;
        if (getaddrinfo(name, "80", &hint, &found) == 0) freeaddrinfo(found);
        pause_for(1000);
    }
    fprintf(stderr, "%d requests\n", count);
}

// R63: processes insert into an index; one flushes its pages and holds the lock meanwhile.
static _Atomic int *flush_lock;
static _Atomic long *inserted;

KEEP static void perform_spin_delay(int *spins, int *delay) {
    _mm_pause();
    if (++*spins % 1000 == 0) {
        if (!*delay) *delay = 1000;
        pause_for(*delay);
        *delay += *delay / 2 + rand() % (*delay / 2);
        if (*delay > 1000000) *delay = 1000;
    }
}

KEEP static void s_lock(_Atomic int *lock) {
    int spins = 0, delay = 0;
    while (atomic_exchange(lock, 1)) perform_spin_delay(&spins, &delay);
}

static void s_unlock(_Atomic int *lock) { atomic_store(lock, 0); }

KEEP static void flush_pages(int file) {
    static char page[8192];
    for (int n = 0; n < 1000; n++) pwrite(file, page, sizeof page, n * 8192L);
    fsync(file);
}

static void insert_vectors(void) {
    while (!is_over()) {
        s_lock(flush_lock);
        ++*inserted;
        s_unlock(flush_lock);
        double until = now() + 100e-6;
        while (now() < until) {}
    }
}

static void vector_index(void) {
    flush_lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    inserted = (void *)(flush_lock + 64);
    int flushes = 0, file = open("index.pages", O_CREAT | O_RDWR, 0644);
    for (int n = 0; n < 4; n++)
        if (fork_child() == 0) {
            srand(n);
            insert_vectors();
            exit(0);
        }
    for (; !is_over(); flushes++) {
        s_lock(flush_lock);
        flush_pages(file);
        s_unlock(flush_lock);
    }
    while (wait(NULL) > 0) {}
    unlink("index.pages");
    fprintf(stderr, "%d flushes, %ld inserted\n", flushes, *inserted);
}

// R64: a key-value server with one thread, whose clients get and, one of them, run scripts.
static char (*key_names)[32];
enum { KEYS = 1000000, CLIENTS = 12 };

KEEP static int string_match_len(const char *pattern, const char *text) {
    for (; *pattern && *pattern != '*'; pattern++, text++)
        if (*pattern != *text && *pattern != '?') return 0;
    return *pattern == '*' || !*text;
}

KEEP static int keys_command(const char *pattern) {
    int found = 0;
    for (int n = 0; n < KEYS; n++) found += string_match_len(pattern, key_names[n]);
    return found;
}

KEEP static int eval_script(const char *script) { return keys_command(script + 5); }

static void read_query(int client, long *gets, long *scripts) {
    char query[64] = "";
    if (read(client, query, 63) <= 0) exit(0);
    char answer[32];
    int number;
    if (strncmp(query, "EVAL ", 5) == 0) {
        number = eval_script(query);
        ++*scripts;
    } else {
        number = key_names[atoi(query + 4) % KEYS][8];
        ++*gets;
    }
    write(client, answer, sprintf(answer, ":%d\n", number));
}

static void key_server(void) {
    key_names = malloc(32L * KEYS);
    for (int n = 0; n < KEYS; n++) sprintf(key_names[n], "session:%08x:%d", n * 2654435761u, n % 9);
    int s = listen_at("keys.port"), queue = epoll_create1(0);
    long gets = 0, scripts = 0;
    for (int n = 0; n < CLIENTS; n++) {
        int client = accept(s, NULL, NULL);
        struct epoll_event e = {EPOLLIN, {.fd = client}};
        epoll_ctl(queue, EPOLL_CTL_ADD, client, &e);
    }
    while (!is_over()) {
        struct epoll_event e[CLIENTS];
        int count = epoll_wait(queue, e, CLIENTS, 100);
        for (int n = 0; n < count; n++) read_query(e[n].data.fd, &gets, &scripts);
    }
    unlink("keys.port");
    fprintf(stderr, "%ld gets, %ld scripts\n", gets, scripts);
}

static void key_clients(void) {
    unlink("keys.port");
    tell_ready();
    struct pollfd clients[CLIENTS];
    for (int n = 0; n < CLIENTS; n++) {
        clients[n] = (struct pollfd){connect_to("keys.port"), POLLIN};
        write(clients[n].fd, "GET 1", 5);
    }
    for (double next = 0; !is_over();) {
        poll(clients, CLIENTS, 100);
        for (int n = 0; n < CLIENTS; n++) {
            char answer[64];
            if (!clients[n].revents) continue;
            if (read(clients[n].fd, answer, 64) <= 0) exit(0);
            if (n) pause_for(20);
            int is_script = n == 0 && now() > next;
            if (is_script) next = now() + 0.005;
            write(clients[n].fd, is_script ? "EVAL session:?f*" : "GET 77", is_script ? 16 : 6);
        }
    }
}

// R79: compilations count their results in one file under a lock made of a symbolic link.
static long refusals;

KEEP static int lockfile_acquire(const char *name) {
    char owner[64];
    sprintf(owner, "host:%d", getpid());
    for (long wait_us = 8000; symlink(owner, name); refusals++) {
        if (is_over()) return 0;
        pause_for(wait_us);
        if (wait_us < 128000) wait_us *= 2;
    }
    return 1;
}

KEEP static void stats_flush(void) {
    char text[64] = "0", new[64];
    if (!lockfile_acquire("stats.lock")) return;
    int file = open("stats", O_RDONLY);
    if (file >= 0) read(file, text, 63);
    close(file);
    sprintf(new, "stats.%d", getpid());
    file = open(new, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    write(file, text, sprintf(text, "%d\n", atoi(text) + 1));
    fsync(file);
    close(file);
    // Stands for a file system that needs 5 ms for a call.
    pause_for(5000);
    rename(new, "stats");
    unlink("stats.lock");
}

static void count_results(void) {
    unlink("stats.lock");
    unlink("stats");
    for (int n = 0; n < 12; n++)
        if (fork_child() == 0) {
            long count = 0;
            for (; !is_over(); count++) {
                stats_flush();
                for (double until = now() + 3e-3; now() < until;) {}
            }
            fprintf(stderr, "%ld updates, %ld refusals\n", count, refusals);
            exit(0);
        }
    while (wait(NULL) > 0) {}
}

// R101: a server whose workers compute in their start-up code, after the master has listened.
KEEP static double init_worker_by_script(void) {
    double sum = 0, until = end - 0.2;
    for (long n = 0; n % 100000 || now() < until; n++) {
        double x = n % 6283 / 1000.0 - 3.14, square = x * x;
        sum += x * (1 - square / 6 * (1 - square / 20 * (1 - square / 42)));
    }
    return sum;
}

static void serve_queue(int s) {
    double sum = init_worker_by_script();
    struct pollfd p = {s, POLLIN};
    while (!is_over()) {
        if (poll(&p, 1, 50) != 1) continue;
        int client = accept4(s, NULL, NULL, SOCK_NONBLOCK);
        if (client < 0) continue;
        char answer[64];
        write(client, answer, sprintf(answer, "ok %g\n", sum));
        close(client);
    }
}

static void front_server(void) {
    int s = listen_at("front.port");
    fcntl(s, F_SETFL, O_NONBLOCK);
    for (int n = 0; n < 2; n++)
        if (fork_child() == 0) {
            serve_queue(s);
            exit(0);
        }
    while (wait(NULL) > 0) {}
    unlink("front.port");
}

static void front_clients(void) {
    unlink("front.port");
    tell_ready();
    char answer[64];
    struct pollfd p[16];
    for (int n = 0; n < 16; n++) {
        p[n] = (struct pollfd){connect_to("front.port"), POLLIN};
        write(p[n].fd, "GET / HTTP/1.0\r\n\r\n", 18);
    }
    for (int n = 0; n < 16; n++) read(p[n].fd, answer, 64);
}

// R107: a guard that has to permit each opening of a file in a directory.
static void open_guard(void) {
    char path[64];
    mkdir("guarded", 0755);
    for (int n = 0; n < 100; n++) {
        sprintf(path, "guarded/f%d", n);
        int file = open(path, O_CREAT | O_WRONLY, 0644);
        write(file, "text\n", 5);
        close(file);
    }
    int events = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
    // It takes the administrator: without, this ends before it is ready.
    if (fanotify_mark(events, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_EVENT_ON_CHILD, AT_FDCWD,
                      "guarded")) exit(1);
    tell_ready();
    struct pollfd p = {events, POLLIN};
    while (!is_over()) {
        struct fanotify_event_metadata event[8];
        if (poll(&p, 1, 200) != 1) continue;
        int count = read(events, event, sizeof event) / (int)sizeof *event;
        for (int n = 0; n < count; n++) {
            struct fanotify_response response = {event[n].fd, FAN_ALLOW};
            pause_for(5000);
            write(events, &response, sizeof response);
            close(event[n].fd);
        }
    }
}
