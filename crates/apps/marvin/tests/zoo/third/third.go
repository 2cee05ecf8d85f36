// Programs from public reports (tests/outside/49-third-aside-compiled.md), in Go: each does steadily
// what its report describes, for some seconds: `third NAME SECONDS DIR`. A fourth argument asks for
// the repaired form, to compare with.
// go build third.go

// The generator of the report is the one of a Go in which a program can seed the shared one.
//go:debug randseednop=0

package main

import (
	"bytes"
	"fmt"
	"io"
	"io/ioutil"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	end        time.Time
	isRepaired bool
)

func isOver() bool { return !time.Now().Before(end) }

// T18: a receiver of telemetry limits how often each cluster may write, and passes on to a store.

type limiter struct {
	last time.Time
}

func (l *limiter) allow(now time.Time) bool {
	isAllowed := now.Sub(l.last) >= 0
	l.last = now
	return isAllowed
}

type partitionedMetrics struct {
	partitionKey string
	families     []byte
}

type store interface {
	writeMetrics(p *partitionedMetrics) error
}

type forwardStore struct {
	client *http.Client
	url    string
}

func (f *forwardStore) writeMetrics(p *partitionedMetrics) error {
	response, err := f.client.Post(f.url, "application/octet-stream", bytes.NewReader(p.families))
	if err != nil {
		return err
	}
	io.Copy(io.Discard, response.Body)
	return response.Body.Close()
}

type lstore struct {
	lock  sync.Mutex
	store map[string]*limiter
	next  store
}

func (s *lstore) limiterOf(key string) *limiter {
	l := s.store[key]
	if l == nil {
		l = &limiter{}
		s.store[key] = l
	}
	return l
}

func (s *lstore) writeMetrics(p *partitionedMetrics) error {
	if isRepaired {
		s.lock.Lock()
		isAllowed := s.limiterOf(p.partitionKey).allow(time.Now())
		s.lock.Unlock()
		if !isAllowed {
			return nil
		}
		return s.next.writeMetrics(p)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.limiterOf(p.partitionKey).allow(time.Now()) {
		return nil
	}
	return s.next.writeMetrics(p)
}

func metricsStore(dir string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	os.WriteFile(filepath.Join(dir, "metrics-store-port"), []byte(strconv.Itoa(port)), 0o600)
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(25 * time.Millisecond)
	}))
	fmt.Println("ready")
	time.Sleep(time.Until(end))
}

func telemetryServer(dir string) {
	port, err := os.ReadFile(filepath.Join(dir, "metrics-store-port"))
	if err != nil {
		os.Exit(1)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	next := &forwardStore{&http.Client{Transport: transport}, "http://127.0.0.1:" + string(port) + "/upload"}
	s := &lstore{store: map[string]*limiter{}, next: next}
	var uploads atomic.Int64
	handleUpload := func(cluster int) {
		families := bytes.Repeat([]byte("up 1\n"), 200)
		for !isOver() {
			s.writeMetrics(&partitionedMetrics{"cluster-" + strconv.Itoa(cluster), families})
			uploads.Add(1)
		}
	}
	for cluster := range 12 {
		go handleUpload(cluster)
	}
	time.Sleep(time.Until(end))
	fmt.Fprintln(os.Stderr, uploads.Load(), "uploads")
}

// T19: a tool for stacked branches keeps the metadata of its branches in git.

type gitRunner struct {
	dir   string
	batch *exec.Cmd
	in    io.WriteCloser
	out   io.Reader
}

func (r *gitRunner) run(arguments ...string) (string, error) {
	command := exec.Command("git", arguments...)
	command.Dir = r.dir
	output, err := command.Output()
	return strings.TrimSpace(string(output)), err
}

func (r *gitRunner) readObject(ref string) (string, error) {
	if r.batch == nil {
		r.batch = exec.Command("git", "cat-file", "--batch")
		r.batch.Dir = r.dir
		r.in, _ = r.batch.StdinPipe()
		r.out, _ = r.batch.StdoutPipe()
		r.batch.Start()
	}
	fmt.Fprintln(r.in, ref)
	buffer := make([]byte, 4096)
	n, err := r.out.Read(buffer)
	return string(buffer[:n]), err
}

func (r *gitRunner) readMetadata(branch string) (string, error) {
	ref := "refs/stackit/metadata/" + branch
	if isRepaired {
		return r.readObject(ref)
	}
	if _, err := r.run("show-ref", "--verify", "--hash", ref); err != nil {
		return "", err
	}
	sha, err := r.run("rev-parse", ref)
	if err != nil {
		return "", err
	}
	return r.run("cat-file", "blob", sha)
}

func stackMetadata(dir string) {
	repository := filepath.Join(dir, "stack")
	os.MkdirAll(repository, 0o700)
	r := &gitRunner{dir: repository}
	r.run("init", "-q", ".")
	for i := range 8 {
		blob := filepath.Join(repository, "blob")
		os.WriteFile(blob, []byte(fmt.Sprintf(`{"parent":"branch-%d","order":%d}`, i-1, i)), 0o600)
		sha, err := r.run("hash-object", "-w", "blob")
		if err != nil {
			os.Exit(1)
		}
		r.run("update-ref", "refs/stackit/metadata/branch-"+strconv.Itoa(i), sha)
	}
	reads := 0
	for !isOver() {
		if metadata, err := r.readMetadata("branch-" + strconv.Itoa(reads%8)); err == nil && len(metadata) > 0 {
			reads++
		}
	}
	fmt.Fprintln(os.Stderr, reads, "reads")
}

// T20: a probe looks in /proc which sockets belong to which process.

// Stands for the /proc of a machine with many processes.
func makeProc(root string) {
	for pid := 1000; pid < 1060; pid++ {
		fds := filepath.Join(root, strconv.Itoa(pid), "fd")
		if os.MkdirAll(fds, 0o700) != nil {
			os.Exit(1)
		}
		for fd := range 64 {
			os.Symlink("/dev/null", filepath.Join(fds, strconv.Itoa(fd)))
		}
	}
}

func readDirNames(dir string) ([]string, error) {
	if isRepaired {
		directory, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		defer directory.Close()
		return directory.Readdirnames(-1)
	}
	infos, err := ioutil.ReadDir(dir)
	names := make([]string, 0, len(infos))
	for _, info := range infos {
		names = append(names, info.Name())
	}
	return names, err
}

// The socket of each descriptor is looked up only for the processes that are new.
func walkProcPid(root string, known map[string]int) int {
	sockets := 0
	pids, _ := readDirNames(root)
	for _, pid := range pids {
		fds, err := readDirNames(filepath.Join(root, pid, "fd"))
		if err != nil {
			continue
		}
		if known[pid] != len(fds) {
			known[pid] = len(fds)
			for _, fd := range fds {
				var stat syscall.Stat_t
				syscall.Stat(filepath.Join(root, pid, "fd", fd), &stat)
				sockets += int(stat.Mode >> 15 & 1)
			}
		}
		sockets += len(fds)
	}
	return sockets
}

func probeProc(dir string) {
	root := filepath.Join(dir, "proc")
	makeProc(root)
	known := map[string]int{}
	walks, sockets := 0, 0
	for !isOver() {
		sockets += walkProcPid(root, known)
		walks++
	}
	fmt.Fprintln(os.Stderr, walks, "walks", sockets)
}

// T21: a tester of databases makes rows of random values, in many goroutines.

type partitionRange struct {
	min, max int
	rand     *rand.Rand
}

func (p *partitionRange) intn(n int) int {
	if isRepaired {
		return p.rand.Intn(n)
	}
	return rand.Intn(n)
}

func (p *partitionRange) genValues(values []int) {
	for i := range values {
		values[i] = p.min + p.intn(p.max-p.min)
	}
}

func mutationJob(p *partitionRange, rows *atomic.Int64) {
	values := make([]int, 64)
	for !isOver() {
		p.genValues(values)
		rows.Add(1)
	}
}

func loadGemini(dir string) {
	rand.Seed(42)
	var rows atomic.Int64
	var jobs sync.WaitGroup
	for i := range 8 {
		jobs.Add(1)
		go func() {
			defer jobs.Done()
			p := &partitionRange{i * 1000, i*1000 + 1000, rand.New(rand.NewSource(int64(i)))}
			mutationJob(p, &rows)
		}()
	}
	jobs.Wait()
	fmt.Fprintln(os.Stderr, rows.Load(), "rows")
}

// T22: a library decodes maps into structures, and gives each value a name for its errors.

type decoder struct {
	errors []string
}

func (d *decoder) nameOf(name string, index int) string {
	if isRepaired {
		return name + "[" + strconv.Itoa(index) + "]"
	}
	return fmt.Sprintf("%s[%d]", name, index)
}

func (d *decoder) decode(name string, input any, output reflect.Value) {
	switch output.Kind() {
	case reflect.Slice:
		d.decodeSlice(name, input, output)
	case reflect.Int:
		value, isInt := input.(int)
		if !isInt {
			d.errors = append(d.errors, "'"+name+"' expected type int")
			return
		}
		output.SetInt(int64(value))
	}
}

func (d *decoder) decodeSlice(name string, input any, output reflect.Value) {
	items := input.([]any)
	if output.Cap() < len(items) {
		output.Set(reflect.MakeSlice(output.Type(), len(items), len(items)))
	}
	for i, item := range items {
		d.decode(d.nameOf(name, i), item, output.Index(i))
	}
}

func decodeMaps(dir string) {
	items := make([]any, 2000)
	for i := range items {
		items[i] = i % 200
	}
	var ports []int
	decoded := 0
	d := &decoder{}
	for !isOver() {
		d.decode("config.listeners.ports", items, reflect.ValueOf(&ports).Elem())
		decoded++
	}
	fmt.Fprintln(os.Stderr, decoded, "decoded", len(d.errors), ports[3])
}

// T23: a service in a container has a limit for its memory, and its heap has grown.

type job struct {
	next    *job
	payload [48]byte
}

type table struct {
	rows []*job
}

func baseHeap(megabytes int) *table {
	t := &table{}
	for range megabytes * 1024 * 1024 / 64 {
		t.rows = append(t.rows, &job{})
	}
	for i := range t.rows {
		t.rows[i].next = t.rows[(i*7919)%len(t.rows)]
	}
	return t
}

func handleJob(t *table, n int) int {
	var head *job
	for range 100 {
		head = &job{next: head}
		head.payload[n%48]++
	}
	t.rows[n%len(t.rows)].payload[0] += head.payload[1]
	return int(head.payload[n%48])
}

func runJobs(dir string) {
	if os.Getenv("GOMEMLIMIT") == "" && !isRepaired {
		os.Setenv("GOMEMLIMIT", "52MiB")
		executable, _ := os.Executable()
		syscall.Exec(executable, os.Args, os.Environ())
	}
	t := baseHeap(40)
	jobs, sum := 0, 0
	for !isOver() {
		sum += handleJob(t, jobs)
		jobs++
	}
	fmt.Fprintln(os.Stderr, jobs, "jobs", sum)
}

func main() {
	if len(os.Args) < 4 {
		os.Exit(2)
	}
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	end = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	isRepaired = len(os.Args) > 4
	programs := map[string]func(string){
		"metrics-store":    metricsStore,
		"telemetry-server": telemetryServer,
		"stack-metadata":   stackMetadata,
		"probe-proc":       probeProc,
		"load-gemini":      loadGemini,
		"decode-maps":      decodeMaps,
		"run-jobs":         runJobs,
	}
	program := programs[os.Args[1]]
	if program == nil {
		os.Exit(2)
	}
	program(os.Args[3])
}
