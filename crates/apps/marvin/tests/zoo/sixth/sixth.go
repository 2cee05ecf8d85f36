// Six small programs after public reports: sixth NAME SECONDS FOLDER [fixed]
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	endTime time.Time
	fixed   bool
	folder  string
)

func running() bool {
	return time.Now().Before(endTime)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func publish(name, address string) {
	check(os.WriteFile(filepath.Join(folder, name), []byte(address), 0o600))
	fmt.Println("ready")
}

func address(name string) string {
	text, err := os.ReadFile(filepath.Join(folder, name))
	check(err)
	return string(text)
}

// ---------------------------------------------------------------- object-gateway

func objectStore() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		io.WriteString(w, "{\"id\":\"main\",\"commit_id\":\"4711\"}")
	})
	go http.Serve(listener, handler)
	publish("object-store", listener.Addr().String())
	time.Sleep(time.Until(endTime))
}

type apiClient struct {
	client *http.Client
	base   string
}

func newAPIClient(base string) *apiClient {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if fixed {
		transport.MaxIdleConnsPerHost = 100
	}
	return &apiClient{client: &http.Client{Transport: transport}, base: base}
}

func (c *apiClient) GetBranch(name string) error {
	response, err := c.client.Get(c.base + "/repositories/demo/branches/" + name)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func objectGateway() {
	client := newAPIClient("http://" + address("object-store"))
	var group sync.WaitGroup
	var requests, failures atomic.Int64
	for i := 0; i < 16; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for running() {
				if client.GetBranch("main") != nil {
					failures.Add(1)
				}
				requests.Add(1)
				time.Sleep(3 * time.Millisecond)
			}
		}()
	}
	group.Wait()
	fmt.Println("requests", requests.Load(), "failures", failures.Load())
}

// ---------------------------------------------------------------- egress-policy

func nameServer() {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	check(err)
	publish("name-server", socket.LocalAddr().String())
	go func() {
		for {
			query := make([]byte, 512)
			n, peer, err := socket.ReadFrom(query)
			if err != nil {
				return
			}
			go answer(socket, peer, query[:n])
		}
	}()
	time.Sleep(time.Until(endTime))
}

func answer(socket net.PacketConn, peer net.Addr, query []byte) {
	time.Sleep(300 * time.Millisecond)
	at := 12
	for at < len(query) && query[at] != 0 {
		at += int(query[at]) + 1
	}
	if at+5 > len(query) {
		return
	}
	kind := binary.BigEndian.Uint16(query[at+1:])
	reply := append([]byte{}, query[:at+5]...)
	binary.BigEndian.PutUint16(reply[2:], 0x8180)
	binary.BigEndian.PutUint16(reply[6:], 0)
	binary.BigEndian.PutUint16(reply[8:], 0)
	binary.BigEndian.PutUint16(reply[10:], 0)
	if kind == 1 {
		binary.BigEndian.PutUint16(reply[6:], 1)
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 10, 1, 2, 3)
	}
	socket.WriteTo(reply, peer)
}

type egressDNS struct {
	resolver *net.Resolver
	dnsNames []string
	updates  atomic.Int64
}

func (e *egressDNS) getMinIPsAndMinTTL(name string) ([]net.IPAddr, error) {
	return e.resolver.LookupIPAddr(context.Background(), name)
}

func (e *egressDNS) Update(name string) bool {
	ips, err := e.getMinIPsAndMinTTL(name)
	if err != nil {
		return false
	}
	if len(ips) > 0 {
		e.updates.Add(1)
	}
	return true
}

func (e *egressDNS) Sync() {
	for running() {
		if fixed {
			var group sync.WaitGroup
			for _, name := range e.dnsNames {
				group.Add(1)
				go func() {
					defer group.Done()
					e.Update(name)
				}()
			}
			group.Wait()
			continue
		}
		for _, name := range e.dnsNames {
			if !running() {
				return
			}
			e.Update(name)
		}
	}
}

func egressPolicy() {
	server := address("name-server")
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}
	e := &egressDNS{resolver: &net.Resolver{PreferGo: true, Dial: dial}}
	for i := 0; i < 30; i++ {
		e.dnsNames = append(e.dnsNames, "host"+strconv.Itoa(i)+".example.com.")
	}
	e.Sync()
	fmt.Println("updates", e.updates.Load())
}

// ---------------------------------------------------------------- port-scan

type Limiter struct {
	tokens   chan struct{}
	maxCount int64
	count    atomic.Int64
	ticker   *time.Ticker
	mutex    sync.Mutex
}

func (limiter *Limiter) run() {
	for {
		if limiter.count.Load() == 0 {
			<-limiter.ticker.C
			limiter.count.Store(limiter.maxCount)
		}
		select {
		case <-limiter.ticker.C:
			limiter.count.Store(limiter.maxCount)
		case limiter.tokens <- struct{}{}:
			limiter.count.Add(-1)
		}
	}
}

func (limiter *Limiter) Take() {
	if fixed {
		limiter.mutex.Lock()
		if limiter.count.Load() == 0 {
			<-limiter.ticker.C
			limiter.count.Store(limiter.maxCount)
		}
		limiter.count.Add(-1)
		limiter.mutex.Unlock()
		return
	}
	<-limiter.tokens
}

func portScan() {
	limiter := &Limiter{
		tokens:   make(chan struct{}),
		maxCount: 1 << 31,
		ticker:   time.NewTicker(time.Second),
	}
	limiter.count.Store(limiter.maxCount)
	if !fixed {
		go limiter.run()
	}
	var group sync.WaitGroup
	var probes atomic.Int64
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			state := uint32(i + 1)
			for running() {
				for range 50 {
					limiter.Take()
					state = state*1664525 + 1013904223
				}
				probes.Add(50)
			}
		}()
	}
	group.Wait()
	fmt.Println("probes", probes.Load())
}

// ---------------------------------------------------------------- block-sync

const maxMessageSize = 64 * 1024

var bufferPool = sync.Pool{New: func() any {
	buffer := make([]byte, maxMessageSize)
	return &buffer
}}

type service struct {
	blocks   [][]byte
	received int64
	bytes    int64
}

func (s *service) readStream(stream io.Reader) error {
	var msgBytes []byte
	if fixed {
		pooled := bufferPool.Get().(*[]byte)
		defer bufferPool.Put(pooled)
		msgBytes = *pooled
	} else {
		msgBytes = make([]byte, maxMessageSize)
	}
	if _, err := io.ReadFull(stream, msgBytes[:2]); err != nil {
		return err
	}
	length := int(binary.BigEndian.Uint16(msgBytes))
	if _, err := io.ReadFull(stream, msgBytes[2:2+length]); err != nil {
		return err
	}
	s.handleMessage(msgBytes[2 : 2+length])
	return nil
}

func (s *service) handleMessage(message []byte) {
	for _, b := range message {
		s.bytes += int64(b & 1)
	}
	s.received++
}

func blockSync() {
	local, remote := net.Pipe()
	go func() {
		message := make([]byte, 2+180)
		binary.BigEndian.PutUint16(message, 180)
		w := bufio.NewWriterSize(remote, 64*len(message))
		for {
			if _, err := w.Write(message); err != nil {
				return
			}
		}
	}()
	s := &service{}
	for range 320 {
		s.blocks = append(s.blocks, make([]byte, 64*1024))
	}
	stream := bufio.NewReaderSize(local, 16384)
	for running() {
		check(s.readStream(stream))
	}
	fmt.Println("messages", s.received)
}

// ---------------------------------------------------------------- request-log

type logfmtLogger struct {
	w io.Writer
}

func (l *logfmtLogger) Log(keyvals ...any) error {
	line := make([]byte, 0, 160)
	for i := 0; i+1 < len(keyvals); i += 2 {
		if i > 0 {
			line = append(line, ' ')
		}
		line = append(line, keyvals[i].(string)...)
		line = append(line, '=')
		switch v := keyvals[i+1].(type) {
		case string:
			line = append(line, v...)
		case int:
			line = strconv.AppendInt(line, int64(v), 10)
		}
	}
	_, err := l.w.Write(append(line, '\n'))
	return err
}

func requestLog() {
	file, err := os.Create(filepath.Join(folder, "requests.log"))
	check(err)
	defer file.Close()
	var w io.Writer = file
	if fixed {
		w = bufio.NewWriterSize(file, 64*1024)
	}
	logger := &logfmtLogger{w: w}
	lines := 0
	for running() {
		for range 1000 {
			logger.Log("level", "info", "org_id", "fake", "path", "/api/v1/query", "n", lines)
			lines++
		}
		if lines%500000 == 0 {
			file.Seek(0, io.SeekStart)
		}
	}
	fmt.Println("lines", lines)
}

// ---------------------------------------------------------------- code-browser

type gitRepository struct {
	dir string
}

func (r *gitRepository) git(args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.Output()
	check(err)
	return strings.TrimSpace(string(out))
}

func (r *gitRepository) ResolveRevision(branch string) string {
	if fixed {
		name := filepath.Join(r.dir, ".git", "refs", "heads", branch)
		text, err := os.ReadFile(name)
		check(err)
		return strings.TrimSpace(string(text))
	}
	return r.git("rev-parse", "--verify", branch)
}

func codeBrowser() {
	r := &gitRepository{dir: filepath.Join(folder, "repo")}
	if err := os.Mkdir(r.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		check(err)
	}
	r.git("init", "-q", "-b", "trunk")
	r.git("-c", "user.name=a", "-c", "user.email=a@example.com",
		"commit", "-q", "--allow-empty", "-m", "start")
	pages := 0
	for running() {
		if len(r.ResolveRevision("trunk")) == 40 {
			pages++
		}
	}
	fmt.Println("pages", pages)
}

func main() {
	if len(os.Args) < 4 {
		os.Exit(2)
	}
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	check(err)
	folder = os.Args[3]
	fixed = len(os.Args) > 4 && os.Args[4] == "fixed"
	endTime = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	programs := map[string]func(){
		"object-store":   objectStore,
		"object-gateway": objectGateway,
		"name-server":    nameServer,
		"egress-policy":  egressPolicy,
		"port-scan":      portScan,
		"block-sync":     blockSync,
		"request-log":    requestLog,
		"code-browser":   codeBrowser,
	}
	program, known := programs[os.Args[1]]
	if !known {
		os.Exit(2)
	}
	program()
}
