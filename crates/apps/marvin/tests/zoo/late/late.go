// The late half of the programs from public reports (tests/outside/49-put-aside.md), in Go: each
// does steadily what its report describes, for some seconds: late NAME SECONDS DIR.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var end time.Time

func isOver() bool { return !time.Now().Before(end) }

// R34: proposals of many clients wait for one goroutine that appends to the log.
type proposal struct {
	data []byte
	done chan struct{}
}

type raftNode struct {
	mu        sync.Mutex
	log       *os.File
	proposals chan proposal
}

func (n *raftNode) saveEntries(batch []proposal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range batch {
		n.log.Write(p.data)
	}
	syscall.Fdatasync(int(n.log.Fd()))
}

func (n *raftNode) processReady() {
	for p := range n.proposals {
		batch := []proposal{p}
		n.saveEntries(batch)
		for _, p := range batch {
			close(p.done)
		}
	}
}

func (n *raftNode) put(data []byte) {
	p := proposal{data, make(chan struct{})}
	n.proposals <- p
	<-p.done
}

func raftPuts(dir string) {
	path := filepath.Join(dir, "raft.wal")
	log, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	defer os.Remove(path)
	node := &raftNode{log: log, proposals: make(chan proposal)}
	go node.processReady()
	var puts atomic.Int64
	var clients sync.WaitGroup
	for c := 0; c < 50; c++ {
		clients.Add(1)
		go func() {
			defer clients.Done()
			data := make([]byte, 1024)
			for !isOver() {
				node.put(data)
				puts.Add(1)
			}
		}()
	}
	clients.Wait()
	fmt.Fprintln(os.Stderr, puts.Load(), "puts")
}

// R77: clients of one server use the default transport.
func fetchPages(dir string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var opened, pages atomic.Int64
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "page "+r.URL.Path)
		}),
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		},
	}
	go server.Serve(listener)
	var clients sync.WaitGroup
	for c := 0; c < 10; c++ {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for n := 0; !isOver(); n++ {
				answer, err := http.Get("http://" + listener.Addr().String() + "/" + strconv.Itoa(n))
				if err != nil {
					continue
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				pages.Add(1)
			}
		}()
	}
	clients.Wait()
	fmt.Fprintln(os.Stderr, pages.Load(), "pages,", opened.Load(), "connections opened")
}

// R86: blocks are put with a goroutine each.
func putBlock(dir string, number int, data []byte) {
	folder := filepath.Join(dir, "blocks", strconv.Itoa(number%8))
	name := filepath.Join(folder, strconv.Itoa(number))
	f, err := os.Create(name + ".part")
	if err != nil {
		panic(err)
	}
	f.Write(data)
	f.Sync()
	f.Close()
	os.Rename(name+".part", name)
	if d, err := os.Open(folder); err == nil {
		d.Sync()
		d.Close()
	}
}

func putBlocks(dir string) {
	for n := 0; n < 8; n++ {
		os.MkdirAll(filepath.Join(dir, "blocks", strconv.Itoa(n)), 0o755)
	}
	var puts atomic.Int64
	var putters sync.WaitGroup
	for g := 0; g < 100; g++ {
		putters.Add(1)
		go func() {
			defer putters.Done()
			data := make([]byte, 32<<10)
			for !isOver() {
				putBlock(dir, g, data)
				puts.Add(1)
			}
		}()
	}
	putters.Wait()
	threads, _ := os.ReadDir("/proc/self/task")
	fmt.Fprintln(os.Stderr, puts.Load(), "blocks,", len(threads), "threads")
}

// R105: a concurrent map of 32 shards, of whose keys a few are used far more than the others.
type target struct {
	name    string
	outputs []string
}

type shard struct {
	mu    sync.Mutex
	items map[string]*target
}

type targetMap struct{ shards [32]shard }

func (m *targetMap) shardOf(key string) *shard {
	hash := uint32(2166136261)
	for i := 0; i < len(key); i++ {
		hash = (hash ^ uint32(key[i])) * 16777619
	}
	return &m.shards[hash%32]
}

func (m *targetMap) Get(key string) *target {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[key]
}

func (m *targetMap) Set(key string, t *target) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[key] = t
}

func buildTargets(dir string) {
	m := &targetMap{}
	for n := range m.shards {
		m.shards[n].items = map[string]*target{}
	}
	keys := make([]string, 30000)
	for n := range keys {
		keys[n] = fmt.Sprintf("//src/package_%d/sub:target_%d", n%100, n)
		m.Set(keys[n], &target{name: keys[n]})
	}
	var gets atomic.Int64
	var builders sync.WaitGroup
	for g := 0; g < 12; g++ {
		builders.Add(1)
		go func() {
			defer builders.Done()
			seed, count := uint32(g), int64(0)
			for ; count%1024 != 0 || !isOver(); count++ {
				seed = seed*1664525 + 1013904223
				key := keys[seed>>8%3]
				if seed>>12%5 == 0 {
					key = keys[seed>>9%uint32(len(keys))]
				}
				if count%101 == 0 {
					m.Set(key, &target{name: key})
				} else {
					m.Get(key)
				}
			}
			gets.Add(count)
		}()
	}
	builders.Wait()
	fmt.Fprintln(os.Stderr, gets.Load(), "lookups")
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	end = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	programs := map[string]func(string){
		"raft-puts":     raftPuts,
		"fetch-pages":   fetchPages,
		"put-blocks":    putBlocks,
		"build-targets": buildTargets,
	}
	programs[os.Args[1]](os.Args[3])
}
