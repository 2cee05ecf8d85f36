// Programs of Go from public reports: `foreign NAME SECONDS FOLDER`; `cases.txt` has the reports.
package main

import (
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var until time.Time
var folder string
var sink atomic.Int64

func going() bool { return time.Now().Before(until) }

func inGoroutines(count int, body func(int)) {
	var all sync.WaitGroup
	for n := 0; n < count; n++ {
		all.Add(1)
		go func() { defer all.Done(); body(n) }()
	}
	all.Wait()
}

// R26: counters side by side in one line of memory.
type counter struct{ value int64 }

var counters [16]counter

//go:noinline
func countOwn(n int) {
	for going() {
		for i := 0; i < 100000; i++ {
			atomic.AddInt64(&counters[n].value, 1)
		}
	}
}

// R104: read locks of one RWMutex.
var buckets = map[string]int{"a": 1, "b": 2}
var guard sync.RWMutex

//go:noinline
func takeBucket(int) {
	for going() {
		for i := 0; i < 1000; i++ {
			guard.RLock()
			guard.RUnlock()
		}
	}
}

// R40: many small objects, and allocations that have to help the collector.
type node struct {
	left, right *node
	text        [4]*int
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

//go:noinline
func handleRequest(int) {
	for going() {
		kept := tree(12)
		sink.Add(int64(len(kept.text)))
	}
}

// An idle server.
func idleServer() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			if client, err := listener.Accept(); err == nil {
				client.Close()
			}
		}
	}()
	time.Sleep(time.Until(until))
}

// A mutex that is held over fsync.
func mutexOverSync() {
	var guard sync.Mutex
	file, err := os.Create(folder + "/go-wal")
	if err != nil {
		panic(err)
	}
	inGoroutines(8, func(int) {
		for going() {
			guard.Lock()
			file.WriteAt(make([]byte, 4096), 0)
			file.Sync()
			guard.Unlock()
		}
	})
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	until = time.Now().Add(time.Duration(seconds * 1e9))
	folder = os.Args[3]
	switch os.Args[1] {
	case "atomics":
		inGoroutines(2, countOwn)
	case "rwmutex":
		inGoroutines(2, takeBucket)
	case "gc-assist":
		live := tree(20)
		inGoroutines(4, handleRequest)
		sink.Add(int64(len(live.text)))
	case "idle-server":
		idleServer()
	case "mutex-over-sync":
		mutexOverSync()
	default:
		os.Exit(2)
	}
}
