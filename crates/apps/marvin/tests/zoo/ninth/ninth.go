// ninth.go: six small programs in Go, chosen by the first argument; each runs for SECONDS
// below FOLDER/CASE and then prints one line.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var (
	caseName string
	caseDir  string
	deadline time.Time
	things   atomic.Int64
)

func over() bool { return !time.Now().Before(deadline) }

func finish() {
	fmt.Printf("%s: %d things\n", caseName, things.Load())
	os.Exit(0)
}

func exitAtDeadline() { time.AfterFunc(time.Until(deadline), finish) }

// ---- jet-stream ----

type consumer struct {
	name    string
	pending int
}

type stream struct {
	mu        sync.RWMutex
	name      string
	msgs      int
	consumers map[string]*consumer
}

func (s *stream) numConsumers() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.consumers)
}

func (s *stream) state() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.consumers {
		c.describe()
	}
	return s.name + " " + strconv.Itoa(s.msgs) + " " + strconv.Itoa(s.numConsumers())
}

func (c *consumer) describe() string {
	time.Sleep(time.Millisecond)
	return c.name + " " + strconv.Itoa(c.pending)
}

func (s *stream) storeMsg() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.msgs++
}

func jetStream() {
	exitAtDeadline()
	s := &stream{name: "orders", consumers: map[string]*consumer{}}
	for i := range 8 {
		name := "c" + strconv.Itoa(i)
		s.consumers[name] = &consumer{name: name}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over() {
			s.state()
			things.Add(1)
		}
	})
	wg.Go(func() {
		for !over() {
			time.Sleep(3 * time.Millisecond)
			s.storeMsg()
		}
	})
	wg.Wait()
	finish()
}

// ---- sem-group ----

type group struct {
	sem  chan struct{}
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

func (g *group) acquire(ctx context.Context) error {
	select {
	case g.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *group) start(ctx context.Context, f func() error) {
	g.wg.Add(1)
	if err := g.acquire(ctx); err != nil {
		g.mu.Lock()
		g.errs = append(g.errs, err)
		g.mu.Unlock()
		return
	}
	go func() {
		defer g.wg.Done()
		defer func() { <-g.sem }()
		if err := f(); err != nil {
			g.mu.Lock()
			g.errs = append(g.errs, err)
			g.mu.Unlock()
		}
	}()
}

func (g *group) wait() []error {
	g.wg.Wait()
	return g.errs
}

func semGroup() {
	exitAtDeadline()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	g := &group{sem: make(chan struct{}, 2)}
	for range 40 {
		g.start(ctx, func() error {
			time.Sleep(10 * time.Millisecond)
			things.Add(1)
			return nil
		})
	}
	g.wait()
	finish()
}

// ---- cgroup-resolve ----

type cgroupDecoder struct {
	ids map[int]string
}

func (d *cgroupDecoder) resolve(fd int) (string, error) {
	return filepath.EvalSymlinks(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func (d *cgroupDecoder) decode(fd int) error {
	path, err := d.resolve(fd)
	if err == nil {
		d.ids[fd] = path
	}
	return err
}

func cgroupResolve() {
	dir := filepath.Join(caseDir, "sys", "fs", "cgroup", "system.slice", "web.service", "tasks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		panic(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		panic(err)
	}
	d := &cgroupDecoder{ids: map[int]string{}}
	for !over() {
		if err := d.decode(int(f.Fd())); err != nil {
			panic(err)
		}
		things.Add(1)
	}
	finish()
}

// ---- log-router ----

type syslogAdapter struct {
	address string
	tag     string
}

func (a *syslogAdapter) stream(line string) error {
	conn, err := net.Dial("udp", a.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "<14>1 %s: %s\n", a.tag, line)
	return err
}

func logRouter() {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer pc.Close()
	a := &syslogAdapter{address: pc.LocalAddr().String(), tag: "web-1"}
	for !over() {
		if a.stream("GET /index.html 200") == nil {
			things.Add(1)
		}
	}
	finish()
}

// ---- grain-cluster ----

type member struct {
	Host  string
	Port  int
	Kinds []string
}

type memberList struct {
	current map[string]member
}

func (m *memberList) updateTopology(next map[string]member) bool {
	if reflect.DeepEqual(m.current, next) {
		return false
	}
	m.current = next
	return true
}

func newMembers(n int) map[string]member {
	out := map[string]member{}
	for i := range n {
		out["node-"+strconv.Itoa(i)] = member{"10.0.0." + strconv.Itoa(i), 8000 + i,
			[]string{"user", "room", "session"}}
	}
	return out
}

func grainCluster() {
	m := &memberList{current: newMembers(100)}
	next := newMembers(100)
	for !over() {
		m.updateTopology(next)
		things.Add(1)
	}
	finish()
}

// ---- bundle-values ----

type genericMap struct {
	Data map[string]any
}

func toObj(in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}

func (g *genericMap) deepCopy() *genericMap {
	out := &genericMap{Data: map[string]any{}}
	if err := toObj(g.Data, &out.Data); err != nil {
		panic(err)
	}
	return out
}

func newValues(depth int) map[string]any {
	out := map[string]any{"enabled": true, "replicas": 3.0, "image": "registry/app:1.2"}
	if depth > 0 {
		for _, k := range []string{"web", "worker", "cron"} {
			out[k] = newValues(depth - 1)
		}
	}
	return out
}

func bundleValues() {
	values := &genericMap{Data: newValues(3)}
	for !over() {
		c := values.deepCopy()
		c.Data["replicas"] = float64(things.Add(1))
	}
	finish()
}

func main() {
	if len(os.Args) < 4 {
		os.Exit(2)
	}
	run, ok := map[string]func(){
		"jet-stream":     jetStream,
		"sem-group":      semGroup,
		"cgroup-resolve": cgroupResolve,
		"log-router":     logRouter,
		"grain-cluster":  grainCluster,
		"bundle-values":  bundleValues,
	}[os.Args[1]]
	if !ok {
		os.Exit(2)
	}
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		panic(err)
	}
	caseName = os.Args[1]
	caseDir = filepath.Join(os.Args[3], caseName)
	os.RemoveAll(caseDir)
	if err := os.MkdirAll(caseDir, 0o755); err != nil {
		panic(err)
	}
	deadline = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	run()
}
