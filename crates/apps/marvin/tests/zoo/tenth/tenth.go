// Seven small programs from public reports, written anew. Usage: tenth CASE SECONDS FOLDER
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	folder string
	stopAt time.Time
	things atomic.Int64
)

func running() bool { return time.Now().Before(stopAt) }

func exitAtDeadline(name, what string) {
	time.AfterFunc(time.Until(stopAt), func() {
		fmt.Printf("%s: %d %s\n", name, things.Load(), what)
		os.Exit(0)
	})
}

// ---- short-requests ----

type node struct {
	left, right *node
	key         int
}

func build(depth, key int) *node {
	if depth == 0 {
		return nil
	}
	return &node{build(depth-1, 2*key), build(depth-1, 2*key+1), key}
}

//go:noinline
func encode(n *node, depth int, out []byte) int {
	var scratch [400]byte
	if n == nil || depth == 0 {
		return len(out)
	}
	scratch[n.key%400] = byte(depth)
	text := strconv.AppendInt(scratch[:0], int64(n.key), 10)
	next := n.left
	if next == nil {
		next = n
	}
	return encode(next, depth-1, out) + len(text)
}

func serveRequest(root *node, reply chan<- int) {
	reply <- encode(root, 60, nil)
}

func shortRequests() string {
	root := build(8, 1)
	reply := make(chan int, 16)
	total := 0
	for running() {
		for i := 0; i < 16; i++ {
			go serveRequest(root, reply)
		}
		for i := 0; i < 16; i++ {
			total += <-reply
		}
		things.Add(16)
	}
	return "requests"
}

// ---- handle-pool ----

type handle struct {
	slot int
	data [64]byte
}

type pool struct {
	free chan int
}

func (p *pool) open() *handle {
	h := &handle{slot: <-p.free}
	runtime.SetFinalizer(h, func(h *handle) { p.free <- h.slot })
	return h
}

type session struct {
	goodbye chan struct{}
	buffer  [128]byte
}

func newSession() *session {
	s := &session{goodbye: make(chan struct{})}
	runtime.SetFinalizer(s, func(s *session) { s.goodbye <- struct{}{} })
	return s
}

func use(p *pool, number int) int {
	h := p.open()
	h.data[number%64] = 1
	return h.slot
}

func handlePool() string {
	exitAtDeadline("handle-pool", "handles")
	p := &pool{free: make(chan int, 32)}
	for i := 0; i < 32; i++ {
		p.free <- i
	}
	go func() {
		for {
			runtime.GC()
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for i := 0; ; i++ {
		if i == 300 {
			newSession()
		}
		use(p, i)
		things.Add(1)
	}
}

// ---- map-reuse ----

func addItems(m map[uint64]int, request int) {
	for i := 0; i < 5; i++ {
		m[uint64(request*7919+i*104729)] = i
	}
}

func sumItems(m map[uint64]int, request int) int {
	sum := 0
	for i := 0; i < 5; i++ {
		sum += m[uint64(request*7919+i*104729)]
	}
	return sum
}

func mapReuse() string {
	m := make(map[uint64]int)
	for i := 0; i < 1000000; i++ {
		m[uint64(i)*2654435761] = i
	}
	clear(m)
	sum := 0
	for request := 0; running(); request++ {
		addItems(m, request)
		sum += sumItems(m, request)
		clear(m)
		things.Add(1)
	}
	return "requests"
}

// ---- metric-loop ----

type contextKey int

const (
	keyRequest contextKey = iota
	keyLogger
	keyRegion
)

func updateMetric(ctx context.Context, values map[string]int, name string) {
	logger, _ := ctx.Value(keyLogger).(string)
	region, _ := ctx.Value(keyRegion).(string)
	values[name] += len(logger) + len(region)
}

func metricLoop() string {
	ctx := context.WithValue(context.Background(), keyLogger, "metrics")
	ctx = context.WithValue(ctx, keyRegion, "north")
	values := map[string]int{}
	for round := 0; running(); round++ {
		ctx = context.WithValue(ctx, keyRequest, strconv.Itoa(round))
		for _, name := range []string{"cpu", "memory", "disk", "network"} {
			updateMetric(ctx, values, name)
		}
		things.Add(1)
	}
	return "rounds"
}

// ---- tls-scan ----

func writeRoots(path string, count int) *x509.Certificate {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	var bundle bytes.Buffer
	var first *x509.Certificate
	for i := 0; i < count; i++ {
		template := &x509.Certificate{
			SerialNumber:          big.NewInt(int64(i + 1)),
			Subject:               pkix.Name{CommonName: fmt.Sprintf("Root %d", i)},
			NotBefore:             time.Now().Add(-time.Hour),
			NotAfter:              time.Now().Add(time.Hour * 1000),
			IsCA:                  true,
			BasicConstraintsValid: true,
			KeyUsage:              x509.KeyUsageCertSign,
			SubjectKeyId:          []byte{byte(i), byte(i >> 8), 1, 1},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		if first == nil {
			first, _ = x509.ParseCertificate(der)
		}
		pem.Encode(&bundle, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	if err := os.WriteFile(path, bundle.Bytes(), 0o600); err != nil {
		panic(err)
	}
	return first
}

func scanHost(path string, presented *x509.Certificate) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data)
	_, err = presented.Verify(x509.VerifyOptions{Roots: roots})
	return err == nil
}

func tlsScan() string {
	path := filepath.Join(folder, "roots.pem")
	presented := writeRoots(path, 150)
	for running() {
		if scanHost(path, presented) {
			things.Add(1)
		}
	}
	return "hosts"
}

// ---- sync-gateway ----

type database struct {
	lock  sync.RWMutex
	users map[string]int
}

func (d *database) role(user string) int {
	d.lock.RLock()
	defer d.lock.RUnlock()
	return d.users[user]
}

func (d *database) changes(user string) int {
	d.lock.RLock()
	defer d.lock.RUnlock()
	time.Sleep(2 * time.Millisecond)
	return d.role(user) + len(d.users)
}

func (d *database) update(user string, role int) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.users[user] = role
}

func syncGateway() string {
	exitAtDeadline("sync-gateway", "feeds")
	d := &database{users: map[string]int{"alice": 1, "bob": 2}}
	var feeds sync.WaitGroup
	for i := 0; i < 6; i++ {
		feeds.Add(1)
		go func() {
			defer feeds.Done()
			for {
				d.changes("alice")
				things.Add(1)
			}
		}()
	}
	feeds.Add(1)
	go func() {
		defer feeds.Done()
		time.Sleep(100 * time.Millisecond)
		for i := 0; ; i++ {
			d.update("bob", i)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	feeds.Wait()
	return "feeds"
}

// ---- gzip-handler ----

type response struct {
	body bytes.Buffer
}

func serveCompressed(r *response, page string) error {
	r.body.Reset()
	w := gzip.NewWriter(&r.body)
	if _, err := w.Write([]byte(page)); err != nil {
		return err
	}
	return w.Close()
}

func gzipHandler() string {
	page := strings.Repeat("<li>item and some text</li>\n", 12)
	r := &response{}
	for running() {
		if serveCompressed(r, page) != nil {
			break
		}
		things.Add(1)
	}
	return "responses"
}

func main() {
	cases := map[string]func() string{
		"short-requests": shortRequests,
		"handle-pool":    handlePool,
		"map-reuse":      mapReuse,
		"metric-loop":    metricLoop,
		"tls-scan":       tlsScan,
		"sync-gateway":   syncGateway,
		"gzip-handler":   gzipHandler,
	}
	name := os.Args[1]
	run := cases[name]
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	if run == nil {
		os.Exit(2)
	}
	folder = filepath.Join(os.Args[3], name)
	os.RemoveAll(folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		panic(err)
	}
	stopAt = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	what := run()
	fmt.Printf("%s: %d %s\n", name, things.Load(), what)
}
