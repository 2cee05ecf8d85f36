// The late half of the programs from public reports (tests/outside/49-put-aside.md), in Go: each
// does steadily what its report describes, for some seconds: late NAME SECONDS DIR.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
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

// R77: each page is made of ten parts, which the default transport fetches from one server.
func makeCertificate() tls.Certificate {
	key, _ := rsa.GenerateKey(rand.Reader, 2048)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end.Add(time.Hour)}
	text, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}

func fetchPart(url string) {
	answer, err := http.Get(url)
	if err != nil {
		return
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
}

func fetchPages(dir string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	var opened, pages atomic.Int64
	server := &http.Server{
		TLSConfig:    &tls.Config{Certificates: []tls.Certificate{makeCertificate()}},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "part "+r.URL.Path)
		}),
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		},
	}
	go server.ServeTLS(listener, "", "")
	url := "https://" + listener.Addr().String() + "/item/"
	for !isOver() {
		var parts sync.WaitGroup
		for p := 0; p < 10; p++ {
			parts.Add(1)
			go func() {
				defer parts.Done()
				fetchPart(url + strconv.Itoa(p))
				pages.Add(1)
			}()
		}
		parts.Wait()
	}
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

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	end = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	programs := map[string]func(string){
		"raft-puts":   raftPuts,
		"fetch-pages": fetchPages,
		"put-blocks":  putBlocks,
	}
	programs[os.Args[1]](os.Args[3])
}
