// Six programs after public reports, Go. Usage: eighth CASE SECONDS FOLDER
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var deadline time.Time
var folder string

func working() bool { return time.Now().Before(deadline) }

// row-fetch

type snowflakeRows struct {
	params map[string]string
	next   int64
}

func getCurrentLocation(params map[string]string) *time.Location {
	loc := time.Now().Location()
	if name, ok := params["timezone"]; ok {
		if named, err := time.LoadLocation(name); err == nil {
			loc = named
		}
	}
	return loc
}

//go:noinline
func (rows *snowflakeRows) Next(dest []time.Time) {
	loc := getCurrentLocation(rows.params)
	for i := range dest {
		dest[i] = time.Unix(rows.next+int64(i), 0).In(loc)
	}
	rows.next++
}

func rowFetch() int64 {
	rows := &snowflakeRows{params: map[string]string{"timezone": "America/Los_Angeles"}}
	dest := make([]time.Time, 4)
	for working() {
		rows.Next(dest)
	}
	return rows.next
}

// arp-collect

type neighbor struct {
	index int
	state string
}

//go:noinline
func getTotalArpEntriesRTNL(neighbors []neighbor) map[string]int {
	entries := map[string]int{}
	for _, n := range neighbors {
		device, err := net.InterfaceByIndex(n.index)
		if err != nil {
			continue
		}
		entries[device.Name]++
	}
	return entries
}

func arpCollect() int64 {
	var neighbors []neighbor
	links, err := net.Interfaces()
	if err != nil || len(links) == 0 {
		fmt.Println("no interface")
		os.Exit(1)
	}
	for i := 0; i < 1000; i++ {
		neighbors = append(neighbors, neighbor{links[i%len(links)].Index, "reachable"})
	}
	var scrapes int64
	for working() {
		getTotalArpEntriesRTNL(neighbors)
		scrapes++
	}
	return scrapes
}

// replica-close

type outgoingConn struct {
	closeCh chan struct{}
	packets chan int
	sent    atomic.Int64
}

func (c *outgoingConn) worker() {
	for {
		select {
		case <-c.closeCh:
			return
		case n := <-c.packets:
			if n < 0 {
				return
			}
			c.sent.Add(1)
		}
	}
}

//go:noinline
func (c *outgoingConn) Close() {
	c.closeCh <- struct{}{}
}

func replicaClose() int64 {
	var closed atomic.Int64
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for working() {
			c := &outgoingConn{closeCh: make(chan struct{}), packets: make(chan int)}
			go c.worker()
			c.packets <- 1
			if closed.Load()%100 == 99 {
				c.packets <- -1
			}
			c.Close()
			closed.Add(1)
		}
	}()
	select {
	case <-finished:
	case <-time.After(time.Until(deadline)):
	}
	return closed.Load()
}

// apply-diff

//go:noinline
func matchesArray(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !matchesValue(a[i], b[i]) {
			return false
		}
	}
	return true
}

//go:noinline
func matchesValue(av, bv any) bool {
	if reflect.TypeOf(av) != reflect.TypeOf(bv) {
		return false
	}
	switch at := av.(type) {
	case string:
		return at == bv.(string)
	case float64:
		return at == bv.(float64)
	case map[string]any:
		bt := bv.(map[string]any)
		for key := range at {
			if !matchesValue(at[key], bt[key]) {
				return false
			}
		}
		for key := range bt {
			if !matchesValue(at[key], bt[key]) {
				return false
			}
		}
		return true
	case []any:
		return matchesArray(at, bv.([]any))
	}
	return av == nil
}

func applyDiff() int64 {
	schema := `{"type":"string"}`
	for i := 0; i < 9; i++ {
		schema = `{"properties":{"spec":` + schema + `}}`
	}
	var diffs int64
	for working() {
		var original, modified any
		if json.Unmarshal([]byte(schema), &original) != nil {
			os.Exit(1)
		}
		if json.Unmarshal([]byte(schema), &modified) != nil {
			os.Exit(1)
		}
		if matchesValue(original, modified) {
			diffs++
		}
	}
	return diffs
}

// command-proxy

func start(command string) (*exec.Cmd, *sync.WaitGroup, *bytes.Buffer) {
	cmd := exec.Command("sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdoutPipe, err := cmd.StdoutPipe()
	if err != nil {
		os.Exit(1)
	}
	if cmd.Start() != nil {
		os.Exit(1)
	}
	var wg sync.WaitGroup
	out := &bytes.Buffer{}
	wg.Add(1)
	go func() {
		defer wg.Done()
		out.ReadFrom(stdoutPipe)
	}()
	return cmd, &wg, out
}

//go:noinline
func Execute(command string, groups chan<- int) string {
	cmd, wg, out := start(command)
	groups <- cmd.Process.Pid
	wg.Wait()
	cmd.Wait()
	return out.String()
}

func commandProxy() int64 {
	var commands atomic.Int64
	groups := make(chan int, 100000)
	go func() {
		for working() {
			if strings.Contains(Execute("sleep 30 & echo started", groups), "started") {
				commands.Add(1)
			}
		}
	}()
	time.Sleep(time.Until(deadline))
	for len(groups) > 0 {
		syscall.Kill(-<-groups, syscall.SIGKILL)
	}
	return commands.Load()
}

// locked-server

type request struct {
	value int
	reply chan int
}

//go:noinline
func serve(requests <-chan request) {
	runtime.LockOSThread()
	for r := range requests {
		r.reply <- r.value + 1
	}
}

func lockedServer() int64 {
	requests := make(chan request)
	go serve(requests)
	reply := make(chan int)
	value := 0
	for working() {
		requests <- request{value, reply}
		value = <-reply
	}
	return int64(value)
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		os.Exit(2)
	}
	name := os.Args[1]
	folder = filepath.Join(os.Args[3], name)
	os.RemoveAll(folder)
	os.MkdirAll(folder, 0o700)
	deadline = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	cases := map[string]struct {
		run    func() int64
		things string
	}{
		"row-fetch":     {rowFetch, "rows"},
		"arp-collect":   {arpCollect, "scrapes"},
		"replica-close": {replicaClose, "connections"},
		"apply-diff":    {applyDiff, "diffs"},
		"command-proxy": {commandProxy, "commands"},
		"locked-server": {lockedServer, "requests"},
	}
	c, ok := cases[name]
	if !ok {
		os.Exit(2)
	}
	fmt.Printf("%s: %d %s\n", name, c.run(), c.things)
}
