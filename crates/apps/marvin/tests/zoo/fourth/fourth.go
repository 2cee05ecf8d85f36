// Programs from public reports, V19..V24 (see REPORTS.md). Build: go build fourth.go (std only, no module file).
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	secs  = 4.0
	dir   = "/tmp"
	fixed bool
	end   time.Time
)

func going() bool { return time.Now().Before(end) }

// ---- V19: a tool that runs shell commands ----

//go:noinline
func runNativeCommand(ctx context.Context, command string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdout = &out
	cmd.Stderr = &out
	if fixed {
		cmd.WaitDelay = 500 * time.Millisecond
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}

func shellTool() {
	n := 0
	for going() {
		left := time.Until(end).Seconds()
		s, _ := runNativeCommand(context.Background(), fmt.Sprintf("sleep %.1f & echo started", left))
		if strings.Contains(s, "started") {
			n++
		}
	}
	fmt.Println("commands", n)
}

// ---- V20: an agent that takes the data of an application's transactions ----

type transaction struct {
	name     string
	duration time.Duration
	attrs    map[string]string
}

type harvest struct {
	metrics map[string][4]float64
	traces  []string
}

//go:noinline
func (t *transaction) MergeIntoHarvest(h *harvest) {
	for i := 0; i < 300; i++ {
		k := fmt.Sprintf("WebTransaction/Go/%s/%d", t.name, i)
		m := h.metrics[k]
		m[0]++
		m[1] += t.duration.Seconds()
		h.metrics[k] = m
	}
	keys := make([]string, 0, len(t.attrs))
	for k := range t.attrs {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	h.traces = append(h.traces[:0], keys...)
}

type app struct {
	dataChan chan *transaction
	merged   atomic.Int64
}

//go:noinline
func (a *app) process() {
	h := &harvest{metrics: map[string][4]float64{}}
	for t := range a.dataChan {
		t.MergeIntoHarvest(h)
		a.merged.Add(1)
	}
}

//go:noinline
func (a *app) Consume(t *transaction) {
	if fixed {
		select {
		case a.dataChan <- t:
		default: // dropped
		}
		return
	}
	a.dataChan <- t
}

func webAgent() {
	a := &app{dataChan: make(chan *transaction, 200)}
	go a.process()
	var served atomic.Int64
	var wg sync.WaitGroup
	for w := 0; w < 600; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for going() {
				time.Sleep(5 * time.Millisecond) // the request itself
				a.Consume(&transaction{name: "h" + strconv.Itoa(w%20), duration: 5 * time.Millisecond,
					attrs: map[string]string{"host": "a", "method": "GET", "code": "200"}})
				served.Add(1)
			}
		}()
	}
	for going() {
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("requests", served.Load(), "merged", a.merged.Load())
	os.Exit(0)
}

// ---- V21: a collector of network statistics ----

func connectionHost() {
	if len(os.Args) < 5 { // a second server of the same kind
		c := exec.Command(os.Args[0], "connection-host", os.Args[2], dir, "second")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		runtime.LockOSThread()
		if err := c.Start(); err != nil {
			panic(err)
		}
	}
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			panic(err)
		}
	}
	var keep []net.Conn
	for i := 0; i < 100; i++ {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			break
		}
		s, err := l.Accept()
		if err != nil {
			break
		}
		keep = append(keep, c, s)
	}
	for i := 0; i < 12000; i++ { // a server's other sockets
		if _, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0); err != nil {
			break
		}
	}
	fmt.Println("ready")
	time.Sleep(time.Duration(secs * float64(time.Second)))
	for _, c := range keep {
		c.Close()
	}
}

type connectionStat struct {
	laddr, raddr, status string
	pid                  int
}

//go:noinline
func getProcInodes(pid int, m map[string]int) {
	d := "/proc/" + strconv.Itoa(pid) + "/fd"
	f, err := os.Open(d)
	if err != nil {
		return
	}
	names, _ := f.Readdirnames(-1)
	f.Close()
	for _, n := range names {
		l, err := os.Readlink(d + "/" + n)
		if err == nil && strings.HasPrefix(l, "socket:[") {
			m[l[8:len(l)-1]] = pid
		}
	}
}

//go:noinline
func getProcInodesAll() map[string]int {
	m := map[string]int{}
	f, err := os.Open("/proc")
	if err != nil {
		return m
	}
	names, _ := f.Readdirnames(-1)
	f.Close()
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			getProcInodes(pid, m)
		}
	}
	return m
}

//go:noinline
func processInet(inodes map[string]int) []connectionStat {
	b, _ := os.ReadFile("/proc/net/tcp6")
	var out []connectionStat
	for i, line := range bytes.Split(b, []byte("\n")) {
		f := bytes.Fields(line)
		if i == 0 || len(f) < 10 {
			continue
		}
		out = append(out, connectionStat{string(f[1]), string(f[2]), string(f[3]), inodes[string(f[9])]})
	}
	return out
}

func netStats() {
	n, conns := 0, 0
	for going() {
		var inodes map[string]int
		if !fixed {
			inodes = getProcInodesAll()
		}
		conns = len(processInet(inodes))
		n++
	}
	fmt.Println("collections", n, "connections", conns)
}

// ---- V22: a writer of pulse records ----

type pulseRecord struct {
	RowCount  int64
	TimeStamp int64
	Data      []uint16
}

//go:noinline
func writeRecord(w io.Writer, r *pulseRecord) error {
	if err := binary.Write(w, binary.LittleEndian, r.RowCount); err != nil {
		return err
	}
	if err := binary.Write(w, binary.LittleEndian, r.TimeStamp); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, r.Data)
}

func pulseFiles() {
	f, err := os.Create(filepath.Join(dir, "pulses.ljh"))
	if err != nil {
		panic(err)
	}
	var w io.Writer = f
	bw := bufio.NewWriterSize(f, 65536)
	if fixed {
		w = bw
	}
	r := &pulseRecord{Data: make([]uint16, 16)}
	n := int64(0)
	for going() {
		for i := 0; i < 1000; i++ {
			r.RowCount = n
			r.TimeStamp = n * 1000
			if err := writeRecord(w, r); err != nil {
				panic(err)
			}
			n++
		}
		if n%500000 == 0 {
			bw.Flush()
			f.Seek(0, io.SeekStart)
		}
	}
	bw.Flush()
	fmt.Println("records", n)
}

// ---- V23: a server of watch events ----

type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

type customResource struct {
	Kind   string            `json:"kind"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Spec   []map[string]any  `json:"spec"`
}

//go:noinline
func serveWatchEvent(w io.Writer, typ string, object []byte) {
	if fixed {
		io.WriteString(w, `{"type":"`+typ+`","object":`)
		w.Write(object)
		io.WriteString(w, "}\n")
		return
	}
	b, err := json.Marshal(watchEvent{typ, object})
	if err != nil {
		panic(err)
	}
	w.Write(b)
}

func watchServer() {
	cr := customResource{Kind: "Widget", Labels: map[string]string{"app": "x", "tier": "backend"}}
	for i := 0; i < 60; i++ {
		cr.Spec = append(cr.Spec, map[string]any{"host": fmt.Sprintf("node-%d.example", i), "port": 8000 + i, "ready": true, "weights": []int{1, 2, 3}})
	}
	n := 0
	for going() {
		cr.Name = "widget-" + strconv.Itoa(n)
		object, _ := json.Marshal(cr) // cached once for all watchers
		for w := 0; w < 200; w++ {
			serveWatchEvent(io.Discard, "MODIFIED", object)
			n++
		}
	}
	fmt.Println("events", n)
}

// ---- V24: a game with a ticker and a start signal ----

//go:noinline
func tickerMultiplex(out chan<- time.Time, tickerIn <-chan time.Time, startIn <-chan time.Time) {
	if fixed {
		for {
			select {
			case t := <-tickerIn:
				out <- t
			case t, ok := <-startIn:
				if !ok {
					return
				}
				out <- t
			}
		}
	}
	for {
		select {
		case t := <-tickerIn:
			out <- t
		case t, ok := <-startIn:
			if !ok {
				return
			}
			out <- t
		default:
		}
	}
}

func snakeGame() {
	ticker := time.NewTicker(100 * time.Millisecond)
	out := make(chan time.Time)
	start := make(chan time.Time, 1)
	start <- time.Now()
	go tickerMultiplex(out, ticker.C, start)
	frames, h := 0, fnv.New32a()
	for t := range out {
		fmt.Fprint(h, t.Nanosecond()) // move and draw
		frames++
		if !going() {
			break
		}
	}
	fmt.Println("frames", frames)
}

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}
	if len(os.Args) > 2 {
		secs, _ = strconv.ParseFloat(os.Args[2], 64)
	}
	if len(os.Args) > 3 {
		dir = os.Args[3]
	}
	fixed = len(os.Args) > 4 && os.Args[4] == "fixed"
	end = time.Now().Add(time.Duration(secs * float64(time.Second)))
	f := map[string]func(){"shell-tool": shellTool, "web-agent": webAgent, "connection-host": connectionHost, "net-stats": netStats,
		"pulse-files": pulseFiles, "watch-server": watchServer, "snake-game": snakeGame}[os.Args[1]]
	if f == nil {
		os.Exit(2)
	}
	f()
}
