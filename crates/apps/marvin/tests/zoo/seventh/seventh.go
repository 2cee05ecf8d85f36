// Six programs after public reports, one of them per run: CASE SECONDS FOLDER [fixed].
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	deadline time.Time
	folder   string
	fixed    bool
)

func timeLeft() bool { return time.Now().Before(deadline) }

// ---- event-trace: arguments of system calls become words ----

var socketDomains = map[uint32]string{
	0: "AF_UNSPEC", 1: "AF_UNIX", 2: "AF_INET", 3: "AF_AX25", 4: "AF_IPX", 5: "AF_APPLETALK",
	6: "AF_NETROM", 7: "AF_BRIDGE", 8: "AF_ATMPVC", 9: "AF_X25", 10: "AF_INET6", 11: "AF_ROSE",
	12: "AF_DECnet", 13: "AF_NETBEUI", 14: "AF_SECURITY", 15: "AF_KEY", 16: "AF_NETLINK",
	17: "AF_PACKET", 18: "AF_ASH", 19: "AF_ECONET", 20: "AF_ATMSVC", 21: "AF_RDS", 22: "AF_SNA",
}

var capabilities = map[int32]string{
	0: "CAP_CHOWN", 1: "CAP_DAC_OVERRIDE", 2: "CAP_DAC_READ_SEARCH", 3: "CAP_FOWNER",
	4: "CAP_FSETID", 5: "CAP_KILL", 6: "CAP_SETGID", 7: "CAP_SETUID", 8: "CAP_SETPCAP",
	9: "CAP_LINUX_IMMUTABLE", 10: "CAP_NET_BIND_SERVICE", 11: "CAP_NET_BROADCAST",
	12: "CAP_NET_ADMIN", 13: "CAP_NET_RAW", 14: "CAP_IPC_LOCK", 15: "CAP_IPC_OWNER",
	16: "CAP_SYS_MODULE", 17: "CAP_SYS_RAWIO", 18: "CAP_SYS_CHROOT", 19: "CAP_SYS_PTRACE",
}

// ParseSocketDomain gives the name of an address family.
func ParseSocketDomain(sd uint32) string {
	if fixed {
		if n, ok := socketDomains[sd]; ok {
			return n
		}
		return strconv.Itoa(int(sd))
	}
	var names = map[uint32]string{
		0: "AF_UNSPEC", 1: "AF_UNIX", 2: "AF_INET", 3: "AF_AX25", 4: "AF_IPX",
		5: "AF_APPLETALK", 6: "AF_NETROM", 7: "AF_BRIDGE", 8: "AF_ATMPVC", 9: "AF_X25",
		10: "AF_INET6", 11: "AF_ROSE", 12: "AF_DECnet", 13: "AF_NETBEUI", 14: "AF_SECURITY",
		15: "AF_KEY", 16: "AF_NETLINK", 17: "AF_PACKET", 18: "AF_ASH", 19: "AF_ECONET",
		20: "AF_ATMSVC", 21: "AF_RDS", 22: "AF_SNA", 23: "AF_IRDA", 24: "AF_PPPOX",
	}
	if n, ok := names[sd]; ok {
		return n
	}
	return strconv.Itoa(int(sd))
}

// ParseCapability gives the name of a capability.
func ParseCapability(c int32) string {
	if fixed {
		if n, ok := capabilities[c]; ok {
			return n
		}
		return strconv.Itoa(int(c))
	}
	var names = map[int32]string{
		0: "CAP_CHOWN", 1: "CAP_DAC_OVERRIDE", 2: "CAP_DAC_READ_SEARCH", 3: "CAP_FOWNER",
		4: "CAP_FSETID", 5: "CAP_KILL", 6: "CAP_SETGID", 7: "CAP_SETUID", 8: "CAP_SETPCAP",
		9: "CAP_LINUX_IMMUTABLE", 10: "CAP_NET_BIND_SERVICE", 11: "CAP_NET_BROADCAST",
		12: "CAP_NET_ADMIN", 13: "CAP_NET_RAW", 14: "CAP_IPC_LOCK", 15: "CAP_IPC_OWNER",
		16: "CAP_SYS_MODULE", 17: "CAP_SYS_RAWIO", 18: "CAP_SYS_CHROOT", 19: "CAP_SYS_PTRACE",
		20: "CAP_SYS_PACCT", 21: "CAP_SYS_ADMIN", 22: "CAP_SYS_BOOT", 23: "CAP_SYS_NICE",
	}
	if n, ok := names[c]; ok {
		return n
	}
	return strconv.Itoa(int(c))
}

type traceArgument struct{ Name, Value string }

func parseArgs(id int, args []traceArgument) {
	args[0] = traceArgument{"domain", ParseSocketDomain(uint32(id % 23))}
	args[1] = traceArgument{"cap", ParseCapability(int32(id % 20))}
}

func eventTrace() {
	args := make([]traceArgument, 2)
	events, size := 0, 0
	for timeLeft() {
		for i := 0; i < 200; i++ {
			parseArgs(events, args)
			size += len(args[0].Value) + len(args[1].Value)
			events++
		}
	}
	fmt.Printf("event-trace: %d events, %d bytes\n", events, size)
}

// ---- log-store: a replicated log; entries of several producers go to a file ----

type wal struct {
	mu       sync.Mutex
	file     *os.File
	appended int64
	synced   int64
	syncs    int64
	wake     *sync.Cond
}

func newWal(path string) *wal {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	w := &wal{file: f}
	w.wake = sync.NewCond(&w.mu)
	if fixed {
		go w.runSync()
	}
	return w
}

// Append writes one entry and returns when it is safe on the disk.
func (w *wal) Append(entry []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.file.Write(entry); err != nil {
		panic(err)
	}
	w.appended++
	if fixed {
		mine := w.appended
		w.wake.Broadcast()
		for w.synced < mine {
			w.wake.Wait()
		}
		return
	}
	if err := w.file.Sync(); err != nil {
		panic(err)
	}
	w.syncs++
}

func (w *wal) runSync() {
	w.mu.Lock()
	for {
		for w.synced == w.appended {
			w.wake.Wait()
		}
		upTo := w.appended
		w.mu.Unlock()
		_ = w.file.Sync()
		w.mu.Lock()
		w.syncs++
		w.synced = upTo
		w.wake.Broadcast()
	}
}

func logStore() {
	w := newWal(filepath.Join(folder, "wal-0.log"))
	var wg sync.WaitGroup
	for p := 0; p < 16; p++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			entry := make([]byte, 512)
			for i := 0; timeLeft(); i++ {
				entry[0] = byte(i)
				w.Append(entry)
			}
		}()
	}
	wg.Wait()
	fmt.Printf("log-store: %d entries, %d times to disk\n", w.appended, w.syncs)
}

// ---- ssdb-client: callers share a few connections ----

type ssdbClient struct{ queries int }

func (c *ssdbClient) Get(key string) string {
	c.queries++
	time.Sleep(2 * time.Millisecond)
	return "value of " + key
}

type pool struct {
	lock        sync.Mutex
	free        []*ssdbClient
	size        int
	maxPoolSize int
	waitTimeout time.Duration
}

var errTimeout = errors.New("no connection in time")

// NewClient gives a free connection, or waits for one.
func (p *pool) NewClient() (*ssdbClient, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	end := time.Now().Add(p.waitTimeout)
	for {
		if n := len(p.free); n > 0 {
			c := p.free[n-1]
			p.free = p.free[:n-1]
			return c, nil
		}
		if p.size < p.maxPoolSize {
			p.size++
			return &ssdbClient{}, nil
		}
		if time.Now().After(end) {
			return nil, errTimeout
		}
		if fixed {
			p.lock.Unlock()
		}
		time.Sleep(10 * time.Millisecond)
		if fixed {
			p.lock.Lock()
		}
	}
}

// CloseClient gives a connection back.
func (p *pool) CloseClient(c *ssdbClient) {
	p.lock.Lock()
	p.free = append(p.free, c)
	p.lock.Unlock()
}

func ssdbCalls() {
	p := &pool{maxPoolSize: 5, waitTimeout: 5 * time.Second}
	var answered, failed atomic.Int64
	for i := 0; i < 24; i++ {
		go func() {
			for k := 0; ; k++ {
				c, err := p.NewClient()
				if err != nil {
					failed.Add(1)
					continue
				}
				if c.Get("user:"+strconv.Itoa(k)) != "" {
					answered.Add(1)
				}
				p.CloseClient(c)
			}
		}()
	}
	time.Sleep(time.Until(deadline))
	fmt.Printf("ssdb-client: %d answers, %d without connection\n", answered.Load(), failed.Load())
}

// ---- feed-index: identifiers of posts are checked ----

const (
	didPattern    = `^did:[a-z]+:[a-zA-Z0-9._:%-]*[a-zA-Z0-9._-]$`
	handlePattern = `^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+` +
		`[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`
	nsidPattern = `^[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?` +
		`(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)+` +
		`(\.[a-zA-Z]([a-zA-Z]{0,61}[a-zA-Z])?)$`
)

var (
	didRegex    = regexp.MustCompile(didPattern)
	handleRegex = regexp.MustCompile(handlePattern)
	nsidRegex   = regexp.MustCompile(nsidPattern)
)

// ParseDID tells whether the text is a DID.
func ParseDID(raw string) bool {
	if fixed {
		return didRegex.MatchString(raw)
	}
	return regexp.MustCompile(didPattern).MatchString(raw)
}

// ParseHandle tells whether the text is a handle.
func ParseHandle(raw string) bool {
	if fixed {
		return handleRegex.MatchString(raw)
	}
	return regexp.MustCompile(handlePattern).MatchString(raw)
}

// ParseNSID tells whether the text is an NSID.
func ParseNSID(raw string) bool {
	if fixed {
		return nsidRegex.MatchString(raw)
	}
	return regexp.MustCompile(nsidPattern).MatchString(raw)
}

func feedIndex() {
	posts, good := 0, 0
	for timeLeft() {
		who := strconv.Itoa(posts % 977)
		if ParseDID("did:plc:ab12"+who) && ParseHandle("user"+who+".bsky.social") &&
			ParseNSID("app.bsky.feed.post") {
			good++
		}
		posts++
	}
	fmt.Printf("feed-index: %d posts, %d good\n", posts, good)
}

// ---- chat-agent: an agent that answers messages; now and then one comes ----

type inboundMessage struct{ Channel, Content string }

type agentLoop struct {
	inbound chan inboundMessage
	rounds  atomic.Int64
	handled atomic.Int64
}

func (al *agentLoop) processMessage(m inboundMessage) {
	if strings.Contains(m.Content, "weather") {
		al.handled.Add(1)
	}
}

// Run handles messages till the end.
func (al *agentLoop) Run(ctx context.Context) {
	for {
		al.rounds.Add(1)
		if fixed {
			select {
			case <-ctx.Done():
				return
			case m := <-al.inbound:
				al.processMessage(m)
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case m := <-al.inbound:
			al.processMessage(m)
		default:
			time.Sleep(200 * time.Microsecond)
		}
	}
}

func chatAgent() {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	al := &agentLoop{inbound: make(chan inboundMessage)}
	go func() {
		for timeLeft() {
			time.Sleep(700 * time.Millisecond)
			al.inbound <- inboundMessage{"telegram", "how is the weather"}
		}
	}()
	al.Run(ctx)
	fmt.Printf("chat-agent: %d rounds, %d messages\n", al.rounds.Load(), al.handled.Load())
}

// ---- report-query: reports read a table through database/sql ----

type tableDriver struct{}
type tableConn struct{}
type tableStmt struct{}
type tableRows struct{ at int }

func (tableDriver) Open(string) (driver.Conn, error)          { return &tableConn{}, nil }
func (*tableConn) Prepare(string) (driver.Stmt, error)        { return &tableStmt{}, nil }
func (*tableConn) Close() error                               { return nil }
func (*tableConn) Begin() (driver.Tx, error)                  { return nil, driver.ErrSkip }
func (*tableStmt) Close() error                               { return nil }
func (*tableStmt) NumInput() int                              { return 0 }
func (*tableStmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (*tableStmt) Query([]driver.Value) (driver.Rows, error) {
	time.Sleep(time.Millisecond)
	return &tableRows{}, nil
}
func (*tableRows) Columns() []string { return []string{"id"} }
func (*tableRows) Close() error      { return nil }
func (r *tableRows) Next(dest []driver.Value) error {
	if r.at++; r.at > 20 {
		return io.EOF
	}
	dest[0] = int64(r.at)
	return nil
}

func firstID(db *sql.DB) (int64, error) {
	rows, err := db.Query("SELECT id FROM artist ORDER BY id")
	if err != nil {
		return 0, err
	}
	if fixed {
		defer rows.Close()
	}
	var id int64
	if rows.Next() {
		err = rows.Scan(&id)
	}
	return id, err
}

func reportQuery() {
	sql.Register("table", tableDriver{})
	db, err := sql.Open("table", "")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(10)
	db.SetMaxIdleConns(5)
	var done atomic.Int64
	for i := 0; i < 50; i++ {
		go func() {
			for {
				if id, err := firstID(db); err == nil && id == 1 {
					done.Add(1)
				}
			}
		}()
	}
	time.Sleep(time.Until(deadline))
	fmt.Printf("report-query: %d reports\n", done.Load())
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: case seconds folder [fixed]")
		os.Exit(2)
	}
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	deadline = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	fixed = len(os.Args) > 4 && os.Args[4] == "fixed"
	folder = filepath.Join(os.Args[3], os.Args[1])
	_ = os.MkdirAll(folder, 0o755)
	cases := map[string]func(){
		"event-trace": eventTrace, "log-store": logStore, "ssdb-client": ssdbCalls,
		"feed-index": feedIndex, "chat-agent": chatAgent, "report-query": reportQuery,
	}
	run, ok := cases[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no case", os.Args[1])
		os.Exit(2)
	}
	run()
}
