/* Programs after public reports, Y1 to Y7: see REPORTS.md. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In the real programs these functions are in files of their own. */
#define NOINLINE __attribute__((noinline))

static double end_at;
static int repaired;
static const char *scratch;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void in_scratch(char *out, size_t len, const char *name)
{
    snprintf(out, len, "%s/%s", scratch, name);
}

/* ---- Y1 netconf-server: the poll of a NETCONF server's sessions ---- */

#define NC_TIMEOUT_STEP 50
#define NC_SESSIONS 4

struct nc_session {
    int fd, client;
};

struct nc_pollsession {
    struct nc_session session[NC_SESSIONS];
    int count, last;
};

static struct nc_pollsession nc_ps;
static volatile int nc_stop;
static unsigned long nc_rounds;

static void *nc_client(void *arg)
{
    (void)arg;
    for (int i = 0; !nc_stop; i++) {
        usleep(100000);
        if (write(nc_ps.session[i % NC_SESSIONS].client, "<rpc><get/></rpc>", 17) < 0)
            break;
    }
    return NULL;
}

static int nc_ps_poll_session_io(struct nc_session *s, int timeout)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    return poll(&p, 1, timeout) == 1 && (p.revents & POLLIN);
}

NOINLINE static int nc_ps_poll(struct nc_pollsession *ps, int timeout)
{
    double until = now() + timeout / 1000.0;

    if (repaired) {
        struct pollfd p[NC_SESSIONS];
        for (int i = 0; i < ps->count; i++)
            p[i] = (struct pollfd){.fd = ps->session[i].fd, .events = POLLIN};
        nc_rounds++;
        if (poll(p, ps->count, timeout) > 0)
            for (int i = 0; i < ps->count; i++)
                if (p[i].revents & POLLIN)
                    return i;
        return -1;
    }
    do {
        nc_rounds++;
        for (int i = 0; i < ps->count; i++) {
            ps->last = (ps->last + 1) % ps->count;
            if (nc_ps_poll_session_io(&ps->session[ps->last], 0))
                return ps->last;
        }
        usleep(NC_TIMEOUT_STEP);
    } while (now() < until);
    return -1;
}

static int netconf_server(void)
{
    pthread_t t;
    char msg[256];
    unsigned long rpcs = 0;

    for (int i = 0; i < NC_SESSIONS; i++) {
        int sv[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
            return 1;
        nc_ps.session[i] = (struct nc_session){sv[0], sv[1]};
    }
    nc_ps.count = NC_SESSIONS;
    pthread_create(&t, NULL, nc_client, NULL);
    while (now() < end_at) {
        int i = nc_ps_poll(&nc_ps, 500);
        if (i >= 0 && read(nc_ps.session[i].fd, msg, sizeof msg) > 0)
            rpcs++;
    }
    nc_stop = 1;
    pthread_join(t, NULL);
    printf("rpcs %lu, rounds of the poll %lu\n", rpcs, nc_rounds);
    return 0;
}

/* ---- Y2 event-logger and journal-reader: syslog over a datagram socket ---- */

static void log_address(struct sockaddr_un *sa)
{
    memset(sa, 0, sizeof *sa);
    sa->sun_family = AF_UNIX;
    snprintf(sa->sun_path, sizeof sa->sun_path, "%s/dev-log", scratch);
}

static void get_process_field(pid_t pid, const char *field)
{
    char path[64], buf[4096];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, field);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return;
    while (read(fd, buf, sizeof buf) > 0)
        ;
    close(fd);
}

static int journal_reader(void)
{
    struct sockaddr_un sa;
    int one = 1, fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    unsigned long messages = 0;
    struct timespec device = {0, 3000000};

    log_address(&sa);
    unlink(sa.sun_path);
    if (bind(fd, (struct sockaddr *)&sa, sizeof sa))
        return 1;
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
    printf("journal ready\n");
    fflush(stdout);
    while (now() < end_at) {
        char buf[2048], ctl[256];
        struct iovec iov = {buf, sizeof buf};
        struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl,
                            .msg_controllen = sizeof ctl};
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, 500) != 1 || recvmsg(fd, &mh, 0) < 0)
            continue;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c))
            if (c->cmsg_type == SCM_CREDENTIALS) {
                pid_t pid = ((struct ucred *)CMSG_DATA(c))->pid;
                get_process_field(pid, "comm");
                get_process_field(pid, "cmdline");
                get_process_field(pid, "status");
                get_process_field(pid, "cgroup");
            }
        nanosleep(&device, NULL);
        messages++;
    }
    return messages ? 0 : 0;
}

static unsigned long log_sent, log_lost;

NOINLINE static void send_to_log(int fd, const char *line, size_t len)
{
    if (send(fd, line, len, MSG_NOSIGNAL | (repaired ? MSG_DONTWAIT : 0)) < 0)
        log_lost++;
    else
        log_sent++;
}

static int event_logger(void)
{
    struct sockaddr_un sa;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    unsigned long events = 0;
    double next = now();

    log_address(&sa);
    for (int i = 0; connect(fd, (struct sockaddr *)&sa, sizeof sa); i++) {
        if (i == 100)
            return 1;
        usleep(20000);
    }
    while (now() < end_at) {
        char line[256];
        int n = snprintf(line, sizeof line, "<30>collector[%d]: event %lu of port %lu up",
                         (int)getpid(), events, events % 48);
        send_to_log(fd, line, n);
        events++;
        next += 1 / 1500.0;
        double left = next - now();
        if (left > 0)
            usleep(left * 1e6);
        else
            next = now();
    }
    printf("events %lu, sent %lu, lost %lu\n", events, log_sent, log_lost);
    return 0;
}

/* ---- Y3 tcp-acceptor: the accept loop of a coroutine library ---- */

struct mill_tcpsock {
    int fd;
};

static unsigned long accept_calls;

NOINLINE static int tcpaccept(struct mill_tcpsock *s, int deadline)
{
    while (1) {
        accept_calls++;
        int as = accept(s->fd, NULL, NULL);
        if (as >= 0)
            return as;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return -1;
        struct pollfd p = {s->fd, POLLIN, 0};
        if (poll(&p, 1, deadline) == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

static void connect_clients(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < 60; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&sa, sizeof sa))
            break;
    }
    while (now() < end_at + 1)
        pause();
    _exit(0);
}

static int tcp_acceptor(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof sa;
    struct mill_tcpsock ls = {socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    struct rlimit rl;
    unsigned long connections = 0;

    if (bind(ls.fd, (struct sockaddr *)&sa, sizeof sa) || listen(ls.fd, 128) ||
        getsockname(ls.fd, (struct sockaddr *)&sa, &len))
        return 1;
    pid_t child = fork();
    if (child == 0)
        connect_clients(ntohs(sa.sin_port));
    getrlimit(RLIMIT_NOFILE, &rl);
    rl.rlim_cur = 32;
    setrlimit(RLIMIT_NOFILE, &rl);
    while (now() < end_at) {
        int cd = tcpaccept(&ls, 200);
        if (cd < 0) {
            if (errno == EMFILE) {
                if (repaired)
                    usleep(100000);
                continue;
            }
            if (errno == ETIMEDOUT)
                continue;
            break;
        }
        connections++;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("connections %lu, calls of accept %lu\n", connections, accept_calls);
    return 0;
}

/* ---- Y4 tune-detect: which format has a music file ---- */

struct SDL_RWops {
    FILE *fp;
    long at;
};

static long stdio_seek(struct SDL_RWops *rw, long offset, int whence)
{
    if (repaired && offset == 0 && whence == SEEK_CUR)
        return rw->at;
    if (fseek(rw->fp, offset, whence) == 0)
        return ftell(rw->fp);
    return -1;
}

static long SDL_RWtell(struct SDL_RWops *rw)
{
    return stdio_seek(rw, 0, SEEK_CUR);
}

static size_t SDL_RWread(struct SDL_RWops *rw, void *p, size_t n)
{
    size_t got = fread(p, 1, n, rw->fp);
    rw->at += got;
    return got;
}

NOINLINE static int detect_mp3(struct SDL_RWops *rw, long end)
{
    unsigned char magic[4] = {0};
    while (SDL_RWtell(rw) < end) {
        unsigned char b;
        if (SDL_RWread(rw, &b, 1) != 1)
            return 0;
        magic[0] = magic[1];
        magic[1] = magic[2];
        magic[2] = magic[3];
        magic[3] = b;
        if (magic[0] == 0xff && (magic[1] & 0xe0) == 0xe0 && (magic[2] & 0xf0) != 0xf0 &&
            (magic[1] & 0x06) != 0)
            return 1;
    }
    return 0;
}

static int tune_detect(void)
{
    char path[512];
    unsigned long files = 0, mp3 = 0;
    static unsigned char tune[65536];

    in_scratch(path, sizeof path, "tune.bin");
    for (size_t i = 0; i < sizeof tune; i++)
        tune[i] = (i * 2654435761u >> 13) & 0x7f;
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(tune, 1, sizeof tune, f) != sizeof tune || fclose(f))
        return 1;
    while (now() < end_at) {
        struct SDL_RWops rw = {fopen(path, "rb"), 0};
        if (!rw.fp)
            return 1;
        mp3 += detect_mp3(&rw, 20000);
        fclose(rw.fp);
        files++;
    }
    printf("files %lu, mp3 %lu\n", files, mp3);
    return 0;
}

/* ---- Y5 auth-digest: nonces of a digest authentication ---- */

NOINLINE static void get_random_bytes(unsigned char *out, size_t n)
{
    if (repaired) {
        if (getrandom(out, n, 0) != (ssize_t)n)
            exit(1);
        return;
    }
    FILE *f = fopen("/dev/urandom", "rb");
    if (!f || fread(out, 1, n, f) != n)
        exit(1);
    fclose(f);
}

static unsigned session_key(const unsigned char *nonce, const char *realm)
{
    unsigned h = 2166136261u;
    for (int i = 0; i < 8; i++)
        h = (h ^ nonce[i]) * 16777619u;
    for (; *realm; realm++)
        h = (h ^ (unsigned char)*realm) * 16777619u;
    return h;
}

static int auth_digest(void)
{
    unsigned long nonces = 0;
    unsigned sum = 0;
    while (now() < end_at)
        for (int i = 0; i < 32; i++) {
            unsigned char nonce[8];
            get_random_bytes(nonce, sizeof nonce);
            sum ^= session_key(nonce, "ZEO storage server");
            nonces++;
        }
    printf("nonces %lu (%u)\n", nonces, sum);
    return 0;
}

/* ---- Y6 band-values: the values of a netCDF variable as one string ---- */

NOINLINE static char *get_1d_values(const double *values, size_t n, char *out)
{
    char *end = out;
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        char item[40];
        int len = snprintf(item, sizeof item, i ? ",%.4f" : "%.4f", values[i]);
        if (repaired) {
            memcpy(end, item, len + 1);
            end += len;
        } else {
            strcat(out, item);
        }
    }
    return out;
}

static int band_values(void)
{
    enum { N = 50000 };
    double *values = malloc(N * sizeof *values);
    char *out = malloc(N * 24);
    unsigned long variables = 0;
    size_t total = 0;
    for (int i = 0; i < N; i++)
        values[i] = 1000.0 + i * 3600.25;
    while (now() < end_at) {
        total += strlen(get_1d_values(values, N, out));
        variables++;
    }
    printf("variables %lu, bytes %zu\n", variables, total);
    free(values);
    free(out);
    return 0;
}

/* ---- Y7 clip-encode: a small video encoder ---- */

#define W 320
#define H 240

static uint8_t frame[H][W], previous[H][W];
static float dct_table[8][8];

NOINLINE static void read_frame(unsigned n)
{
    memcpy(previous, frame, sizeof frame);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            frame[y][x] = ((x + n * 2) * (y + n) >> 3) ^ ((x * 7 + y * 13 + n) & 15);
}

NOINLINE static unsigned sad_16x16(int x, int y, int px, int py)
{
    unsigned s = 0;
    for (int j = 0; j < 16; j++)
        for (int i = 0; i < 16; i++)
            s += abs(frame[y + j][x + i] - previous[py + j][px + i]);
    return s;
}

NOINLINE static unsigned motion_search(int x, int y, int *mx, int *my)
{
    unsigned best = ~0u;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int px = x + dx, py = y + dy;
            if (px < 0 || py < 0 || px > W - 16 || py > H - 16)
                continue;
            unsigned s = sad_16x16(x, y, px, py);
            if (s < best) {
                best = s;
                *mx = px;
                *my = py;
            }
        }
    return best;
}

NOINLINE static void fdct_8x8(float b[8][8])
{
    float t[8][8];
    for (int u = 0; u < 8; u++)
        for (int j = 0; j < 8; j++) {
            float s = 0;
            for (int i = 0; i < 8; i++)
                s += dct_table[u][i] * b[j][i];
            t[u][j] = s;
        }
    for (int u = 0; u < 8; u++)
        for (int v = 0; v < 8; v++) {
            float s = 0;
            for (int j = 0; j < 8; j++)
                s += dct_table[v][j] * t[u][j];
            b[v][u] = s;
        }
}

NOINLINE static unsigned quantize_8x8(float b[8][8], int q)
{
    unsigned bits = 0, run = 0;
    for (int v = 0; v < 8; v++)
        for (int u = 0; u < 8; u++) {
            int level = lrintf(b[v][u] / (q + u + v));
            if (level) {
                bits += 2 + run + (32 - __builtin_clz(abs(level)));
                run = 0;
            } else {
                run++;
            }
        }
    return bits;
}

static unsigned encode_frame(void)
{
    unsigned bits = 0;
    for (int y = 0; y + 16 <= H; y += 16)
        for (int x = 0; x + 16 <= W; x += 16) {
            int mx = x, my = y;
            motion_search(x, y, &mx, &my);
            for (int k = 0; k < 4; k++) {
                float b[8][8];
                int ox = k % 2 * 8, oy = k / 2 * 8;
                for (int j = 0; j < 8; j++)
                    for (int i = 0; i < 8; i++)
                        b[j][i] = frame[y + oy + j][x + ox + i] -
                                  previous[my + oy + j][mx + ox + i];
                fdct_8x8(b);
                bits += quantize_8x8(b, 6);
            }
        }
    return bits;
}

static int clip_encode(void)
{
    unsigned long frames = 0, bits = 0;
    char path[512];
    in_scratch(path, sizeof path, "clip.out");
    FILE *out = fopen(path, "wb");
    if (!out)
        return 1;
    for (int u = 0; u < 8; u++)
        for (int i = 0; i < 8; i++)
            dct_table[u][i] = (u ? 0.5 : 0.353553) * cos((2 * i + 1) * u * M_PI / 16);
    while (now() < end_at) {
        read_frame(frames);
        unsigned b = encode_frame();
        fwrite(&b, sizeof b, 1, out);
        bits += b;
        frames++;
    }
    fclose(out);
    printf("frames %lu, bits %lu\n", frames, bits);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"netconf-server", netconf_server}, {"event-logger", event_logger},
        {"journal-reader", journal_reader}, {"tcp-acceptor", tcp_acceptor},
        {"tune-detect", tune_detect},       {"auth-digest", auth_digest},
        {"band-values", band_values},       {"clip-encode", clip_encode},
    };
    if (argc < 4)
        return 2;
    end_at = now() + atof(argv[2]);
    scratch = argv[3];
    repaired = argc > 4 && !strcmp(argv[4], "fixed");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name))
            return cases[i].run();
    return 2;
}
