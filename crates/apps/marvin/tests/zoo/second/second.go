// The second late half of the programs from public reports (tests/outside/49-second-aside.md), in
// Go: each does steadily what its report describes, for some seconds: second NAME SECONDS DIR.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var end time.Time

func isOver() bool { return !time.Now().Before(end) }

func tell(words ...any) { fmt.Fprintln(os.Stderr, words...) }

// S5: a server that logs the name of each client, and a name server that answers late.
func nameServer(dir string) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_, port, _ := net.SplitHostPort(server.LocalAddr().String())
	os.WriteFile(filepath.Join(dir, "names.port"), []byte(port), 0o644)
	fmt.Println("ready")
	query := make([]byte, 512)
	for !isOver() {
		server.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		size, from, err := server.ReadFrom(query)
		if err != nil {
			continue
		}
		answer := append([]byte{}, query[:size]...)
		// A response, recursion available, no such name.
		answer[2] |= 0x80
		answer[3] = 0x83
		time.AfterFunc(900*time.Millisecond, func() { server.WriteTo(answer, from) })
	}
}

func remoteInfo(resolver *net.Resolver, client net.Conn) string {
	host, _, _ := net.SplitHostPort(client.RemoteAddr().String())
	names, err := resolver.LookupAddr(context.Background(), host)
	if err != nil || len(names) == 0 {
		return host
	}
	return names[0]
}

func websocketServer(dir string) {
	port, err := os.ReadFile(filepath.Join(dir, "names.port"))
	if err != nil {
		panic(err)
	}
	resolver := &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "udp", "127.0.0.1:"+string(port))
		},
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for number := 1; !isOver(); number++ {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{
				IP: net.IPv4(127, 7, byte(number>>8), byte(number)),
			}}
			client, err := dialer.Dial("tcp", server.Addr().String())
			if err != nil {
				panic(err)
			}
			io.ReadAll(client)
			client.Close()
		}
	}()
	served := 0
	time.AfterFunc(time.Until(end), func() {
		tell(served, "clients")
		os.Exit(0)
	})
	for {
		client, err := server.Accept()
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(client, "hello %s\n", remoteInfo(resolver, client))
		client.Close()
		served++
	}
}

// S7: many requests, and a database handle that may open one connection. The database is in another
// process, which takes 40 ms for a statement.
func database(dir string) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	os.WriteFile(filepath.Join(dir, "database.port"), []byte(server.Addr().String()), 0o644)
	fmt.Println("ready")
	go func() {
		time.Sleep(time.Until(end))
		os.Exit(0)
	}()
	for {
		client, err := server.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			lines := bufio.NewScanner(client)
			for lines.Scan() {
				time.Sleep(40 * time.Millisecond)
				client.Write([]byte("ok\n"))
			}
		}()
	}
}

type lineDriver struct{ address string }

type lineConn struct {
	net.Conn
	lines *bufio.Scanner
}

type lineStmt struct {
	conn *lineConn
	text string
}

func (d *lineDriver) Open(name string) (driver.Conn, error) {
	conn, err := net.Dial("tcp", d.address)
	if err != nil {
		return nil, err
	}
	return &lineConn{conn, bufio.NewScanner(conn)}, nil
}

func (c *lineConn) Prepare(text string) (driver.Stmt, error) { return &lineStmt{c, text}, nil }
func (c *lineConn) Begin() (driver.Tx, error)                { return nil, driver.ErrSkip }
func (s *lineStmt) Close() error                             { return nil }
func (s *lineStmt) NumInput() int                            { return 0 }
func (s *lineStmt) Query([]driver.Value) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

func (s *lineStmt) Exec([]driver.Value) (driver.Result, error) {
	fmt.Fprintln(s.conn, s.text)
	if !s.conn.lines.Scan() {
		return nil, io.ErrUnexpectedEOF
	}
	return driver.ResultNoRows, nil
}

func authorityRequests(dir string) {
	address, err := os.ReadFile(filepath.Join(dir, "database.port"))
	if err != nil {
		panic(err)
	}
	sql.Register("line", &lineDriver{string(address)})
	db, err := sql.Open("line", "")
	if err != nil {
		panic(err)
	}
	if len(os.Args) < 5 {
		db.SetMaxOpenConns(1)
	}
	var served atomic.Int64
	var handlers sync.WaitGroup
	for n := 0; n < 10; n++ {
		handlers.Add(1)
		go func() {
			defer handlers.Done()
			for !isOver() {
				if _, err := db.Exec("select sleep"); err != nil {
					panic(err)
				}
				served.Add(1)
			}
		}()
	}
	handlers.Wait()
	tell(served.Load(), "requests, waited", db.Stats().WaitDuration)
}

// S40: a loop waits for results, with a default case that does nothing.
func waitForResults(results <-chan int, done <-chan struct{}) (count int) {
	for {
		select {
		case <-results:
			count++
		case <-done:
			return count
		default:
		}
	}
}

func batchQuery(string) {
	results := make(chan int)
	done := make(chan struct{})
	go func() {
		for !isOver() {
			time.Sleep(20 * time.Millisecond)
			results <- 1
		}
		close(done)
	}()
	tell(waitForResults(results, done), "results")
}

// S30: names are turned into camel case, each time with expressions that are compiled anew.
const (
	capitals = "([a-z0-9])([A-Z])"
	marks    = "[-_.+ ]+|[^a-zA-Z0-9]+"
)

var rules = [2]*regexp.Regexp{regexp.MustCompile(capitals), regexp.MustCompile(marks)}

func camelCase(name string) string {
	if len(os.Args) < 5 {
		rules = [2]*regexp.Regexp{regexp.MustCompile(capitals), regexp.MustCompile(marks)}
	}
	name = rules[1].ReplaceAllString(rules[0].ReplaceAllString(name, "$1 $2"), " ")
	var words strings.Builder
	for _, word := range strings.Fields(name) {
		words.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return words.String()
}

func renameFields(string) {
	count, size := 0, 0
	for ; !isOver(); count++ {
		size += len(camelCase("id_" + strconv.Itoa(count%10)))
	}
	tell(count, "names of", size, "bytes")
}

// S46: lines are counted in all files of a tree, and for each file all its parents are looked at.
func makeSources(dir string) {
	for n := 0; n < 100; n++ {
		folder := filepath.Join(dir, "sources", "team", "product", "src", "main",
			"module"+strconv.Itoa(n), "a", "b", "c", "d")
		os.MkdirAll(folder, 0o755)
		for file := 0; file < 20; file++ {
			text := strings.Repeat("let x = 1;\n", 10)
			os.WriteFile(filepath.Join(folder, strconv.Itoa(file)+".txt"), []byte(text), 0o644)
		}
	}
	fmt.Println("ready")
}

func parentsOK(path string) bool {
	for parent := filepath.Dir(path); parent != "/" && parent != "."; parent = filepath.Dir(parent) {
		if info, err := os.Stat(parent); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

func countLines(path string) int {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1024), 1<<20)
	count := 0
	for lines.Scan() {
		count++
	}
	return count
}

func countTree(dir string) {
	rounds, total := 0, 0
	for ; !isOver(); rounds++ {
		root := filepath.Join(dir, "sources")
		filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() {
				return nil
			}
			if len(os.Args) > 4 || parentsOK(path) {
				total += countLines(path)
			}
			return nil
		})
	}
	tell(rounds, "rounds,", total, "lines")
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	end = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	programs := map[string]func(string){
		"name-server":        nameServer,
		"websocket-server":   websocketServer,
		"database":           database,
		"authority-requests": authorityRequests,
		"batch-query":        batchQuery,
		"rename-fields":      renameFields,
		"make-sources":       makeSources,
		"count-tree":         countTree,
	}
	programs[os.Args[1]](os.Args[3])
}
