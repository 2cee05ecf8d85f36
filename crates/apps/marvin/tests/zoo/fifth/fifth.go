// Programs after public reports, Y19 to Y24: see REPORTS.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	endAt    time.Time
	scratch  string
	repaired bool
)

func running() bool { return time.Now().Before(endAt) }

// ---- Y19 etl-load: the collectors of an extract-transform-load step ----

type sortableBuffer struct {
	keys, values [][]byte
}

func (b *sortableBuffer) Len() int           { return len(b.keys) }
func (b *sortableBuffer) Less(i, j int) bool { return bytes.Compare(b.keys[i], b.keys[j]) < 0 }
func (b *sortableBuffer) Swap(i, j int) {
	b.keys[i], b.keys[j] = b.keys[j], b.keys[i]
	b.values[i], b.values[j] = b.values[j], b.values[i]
}

type Collector struct {
	logPrefix string
	buf       sortableBuffer
	storage   []byte
}

func (c *Collector) Collect(k uint32) {
	i := len(c.buf.keys) * 8
	kv := c.storage[i : i+8]
	kv[0], kv[1], kv[2], kv[3] = byte(k*2654435761>>24), byte(k>>16), byte(k>>8), byte(k)
	c.buf.keys = append(c.buf.keys, kv[:4])
	c.buf.values = append(c.buf.values, kv[4:])
}

func (c *Collector) Load(loadFunc func(k, v []byte)) {
	sort.Sort(&c.buf)
	for i := range c.buf.keys {
		loadFunc(c.buf.keys[i], c.buf.values[i])
	}
	if !repaired {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		lastAlloc.Store(m.Alloc)
	}
	c.buf.keys = c.buf.keys[:0]
	c.buf.values = c.buf.values[:0]
}

var lastAlloc atomic.Uint64

func etlLoad() {
	state := make(map[uint32]*[16]byte)
	for i := uint32(0); i < 200000; i++ {
		state[i] = new([16]byte)
	}
	var loads atomic.Uint64
	var wg sync.WaitGroup
	for w := uint32(0); w < 2; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := &Collector{logPrefix: fmt.Sprint("stage ", w), storage: make([]byte, 16*8)}
			sum := 0
			for n := uint32(0); running(); n++ {
				for i := uint32(0); i < 16; i++ {
					c.Collect(n*16 + i)
				}
				c.Load(func(k, v []byte) { sum += int(k[0]) + len(v) })
				loads.Add(1)
			}
		}()
	}
	wg.Wait()
	fmt.Println("loads", loads.Load(), "of state", len(state))
}

// ---- Y20 metric-post and api-server: a client of a monitoring service ----

func apiServer() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	answer := []byte(`{"success":true,"hosts":"` + strings.Repeat("app-01 ", 800) + `"}`)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})}
	os.WriteFile(filepath.Join(scratch, "api.port"), []byte(l.Addr().String()), 0o644)
	fmt.Println("api ready")
	time.AfterFunc(time.Until(endAt), func() { srv.Close() })
	srv.Serve(l)
}

type Client struct {
	BaseURL    string
	HTTPClient *http.Client
}

func closeResponse(resp *http.Response) {
	if resp != nil {
		if repaired {
			io.Copy(io.Discard, resp.Body)
		}
		resp.Body.Close()
	}
}

func (c *Client) UpdateHostStatus(id, status string) error {
	resp, err := c.HTTPClient.Post(c.BaseURL+"/api/v0/hosts/"+id+"/status", "application/json",
		strings.NewReader(`{"status":"`+status+`"}`))
	if err != nil {
		return err
	}
	defer closeResponse(resp)
	if resp.StatusCode != 200 {
		return errors.New(resp.Status)
	}
	return nil
}

func metricPost() {
	addr, err := os.ReadFile(filepath.Join(scratch, "api.port"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var dials, updates, failures atomic.Uint64
	dialer := &net.Dialer{}
	client := &Client{"http://" + string(addr), &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, a string) (net.Conn, error) {
			dials.Add(1)
			return dialer.DialContext(ctx, network, a)
		},
		MaxIdleConnsPerHost: 4,
	}}}
	var wg sync.WaitGroup
	for w := 0; w < 1; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; running(); i++ {
				if client.UpdateHostStatus(strconv.Itoa(i%100), "working") != nil {
					failures.Add(1)
				}
				updates.Add(1)
			}
		}()
	}
	wg.Wait()
	fmt.Println("updates", updates.Load(), "dials", dials.Load(), "failures", failures.Load())
}

// ---- Y21 stats-lines: the listener of a statistics daemon ----

type Logger interface {
	Log(keyvals ...interface{}) error
}

type Valuer func() interface{}

type logfmtLogger struct{ w io.Writer }

func (l logfmtLogger) Log(keyvals ...interface{}) error {
	_, err := fmt.Fprintln(l.w, keyvals...)
	return err
}

type levelFilter struct {
	next    Logger
	allowed string
}

func (l levelFilter) Log(keyvals ...interface{}) error {
	for i := 1; i < len(keyvals); i += 2 {
		if keyvals[i-1] == "level" && keyvals[i] != l.allowed {
			return nil
		}
	}
	return l.next.Log(keyvals...)
}

type logContext struct {
	logger  Logger
	keyvals []interface{}
}

func bindValues(keyvals []interface{}) {
	for i := 1; i < len(keyvals); i += 2 {
		if v, ok := keyvals[i].(Valuer); ok {
			keyvals[i] = v()
		}
	}
}

func (l *logContext) Log(keyvals ...interface{}) error {
	kvs := append(append([]interface{}(nil), l.keyvals...), keyvals...)
	bindValues(kvs)
	return l.logger.Log(kvs...)
}

func With(l *logContext, keyvals ...interface{}) *logContext {
	return &logContext{l.logger, append(append([]interface{}(nil), keyvals...), l.keyvals...)}
}

func Caller(depth int) Valuer {
	return func() interface{} {
		_, file, line, _ := runtime.Caller(depth)
		return file[strings.LastIndexByte(file, '/')+1:] + ":" + strconv.Itoa(line)
	}
}

func Debug(l *logContext) *logContext { return With(l, "level", "debug") }

type lineListener struct {
	logger *logContext
	lines  uint64
	sum    float64
	debug  bool
}

func (l *lineListener) handleLine(line string) {
	if !repaired || l.debug {
		Debug(l.logger).Log("msg", "Incoming line", "proto", "unixgram", "line", line)
	}
	l.lines++
	if name, rest, ok := strings.Cut(line, ":"); ok && name != "" {
		value, _, _ := strings.Cut(rest, "|")
		n, err := strconv.ParseFloat(value, 64)
		if err == nil {
			l.sum += n
		}
	}
}

func (l *lineListener) HandlePacket(packet []byte) {
	for _, line := range strings.Split(string(packet), "\n") {
		l.handleLine(line)
	}
}

func statsLines() {
	base := &logContext{levelFilter{logfmtLogger{os.Stderr}, "info"},
		[]interface{}{"caller", Caller(3)}}
	l := &lineListener{logger: base}
	packet := []byte(strings.TrimSuffix(strings.Repeat("api.requests:12.5|c\napi.time:7|ms\n", 20), "\n"))
	for running() {
		l.HandlePacket(packet)
	}
	fmt.Println("lines", l.lines, "sum", l.sum)
}

// ---- Y22 block-reader: asynchronous reads of blocks ----

type RequestId uint64

type AIO struct {
	mtx     sync.Mutex
	nextId  RequestId
	pending map[RequestId]bool
	done    map[RequestId]int
	events  chan RequestId
	file    *os.File
}

func (a *AIO) ReadAt(b []byte, off int64) RequestId {
	a.mtx.Lock()
	defer a.mtx.Unlock()
	a.nextId++
	id := a.nextId
	a.pending[id] = true
	time.AfterFunc(4*time.Millisecond, func() {
		a.file.ReadAt(b, off)
		a.events <- id
	})
	return id
}

func (a *AIO) wait() {
	id := <-a.events
	delete(a.pending, id)
	a.done[id] = 1
}

func (a *AIO) WaitFor(id RequestId) {
	a.mtx.Lock()
	defer a.mtx.Unlock()
	for a.pending[id] {
		if repaired {
			a.mtx.Unlock()
			select {
			case other := <-a.events:
				a.mtx.Lock()
				delete(a.pending, other)
				a.done[other] = 1
			case <-time.After(200 * time.Microsecond):
				a.mtx.Lock()
			}
			continue
		}
		a.wait()
	}
	delete(a.done, id)
}

func blockReader() {
	path := filepath.Join(scratch, "blocks.img")
	if os.WriteFile(path, make([]byte, 1<<20), 0o644) != nil {
		os.Exit(1)
	}
	f, _ := os.Open(path)
	a := &AIO{pending: map[RequestId]bool{}, done: map[RequestId]int{},
		events: make(chan RequestId, 64), file: f}
	var reads atomic.Uint64
	var wg sync.WaitGroup
	for w := 0; w < 8; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			buf := make([]byte, 4096)
			for i := 0; running(); i++ {
				a.WaitFor(a.ReadAt(buf, int64((w*31+i)%256)*4096))
				reads.Add(1)
			}
		}()
	}
	wg.Wait()
	fmt.Println("reads", reads.Load())
}

// ---- Y23 stream-stages: the stages of a stream ----

func bufferSize() int {
	if repaired {
		return 256
	}
	return 0
}

func StreamSlice(ctx context.Context, data []int) <-chan int {
	out := make(chan int, bufferSize())
	go func() {
		defer close(out)
		for _, v := range data {
			select {
			case out <- v:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func FanOut(ctx context.Context, in <-chan int, fn func(int) int, n int) []<-chan int {
	var outs []<-chan int
	for i := 0; i < n; i++ {
		out := make(chan int, bufferSize())
		outs = append(outs, out)
		go func() {
			defer close(out)
			for v := range in {
				select {
				case out <- fn(v):
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return outs
}

func FanIn(ctx context.Context, ins ...<-chan int) <-chan int {
	out := make(chan int, bufferSize())
	var wg sync.WaitGroup
	for _, in := range ins {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for v := range in {
				select {
				case out <- v:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	go func() {
		wg.Wait()
		close(out)
	}()
	return out
}

func streamStages() {
	data := make([]int, 10000)
	for i := range data {
		data[i] = i
	}
	ctx := context.Background()
	items, sum := 0, 0
	for running() {
		outs := FanOut(ctx, StreamSlice(ctx, data), func(v int) int { return v * 2 }, 4)
		for v := range FanIn(ctx, outs...) {
			sum += v
			items++
		}
	}
	fmt.Println("items", items, "sum", sum)
}

// ---- Y24 host-agent: the agent of a device management looks at processes ----

var bootTimeCache uint64

func readLines(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}

func BootTime() uint64 {
	if repaired && bootTimeCache != 0 {
		return bootTimeCache
	}
	var boot uint64
	readLines("/proc/uptime")
	for _, line := range readLines("/proc/stat") {
		if rest, ok := strings.CutPrefix(line, "btime "); ok {
			boot, _ = strconv.ParseUint(rest, 10, 64)
		}
	}
	bootTimeCache = boot
	return boot
}

func createTime(pid string) uint64 {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return 0
	}
	ticks, _ := strconv.ParseUint(f[19], 10, 64)
	return BootTime()*100 + ticks
}

func Processes() int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil && createTime(e.Name()) != 0 {
			n++
		}
	}
	return n
}

func hostAgent() {
	rounds, processes := 0, 0
	for running() {
		processes += Processes()
		rounds++
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println("rounds", rounds, "processes", processes)
}

func main() {
	if len(os.Args) < 4 {
		os.Exit(2)
	}
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	endAt = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	scratch = os.Args[3]
	repaired = len(os.Args) > 4 && os.Args[4] == "fixed"
	cases := map[string]func(){
		"etl-load": etlLoad, "metric-post": metricPost, "api-server": apiServer,
		"stats-lines": statsLines, "block-reader": blockReader,
		"stream-stages": streamStages, "host-agent": hostAgent,
	}
	run, ok := cases[os.Args[1]]
	if !ok {
		os.Exit(2)
	}
	run()
}
