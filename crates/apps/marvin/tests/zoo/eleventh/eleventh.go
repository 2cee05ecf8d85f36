// Eleventh half, letters AI: seven Go programs after public reports. Arguments: CASE SECONDS FOLDER.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	folder   string
	deadline time.Time
)

func running() bool { return time.Now().Before(deadline) }

// event-decode

type eventContext struct {
	Ts        uint64
	CgroupID  uint64
	Pid       uint32
	Tid       uint32
	Ppid      uint32
	HostPid   uint32
	UID       uint32
	MntID     uint32
	PidID     uint32
	Comm      [16]byte
	UtsName   [16]byte
	EventID   int32
	RetVal    int64
	StackID   uint32
	Argnum    uint16
	Processor uint16
}

//go:noinline
func readContext(raw io.Reader) (eventContext, error) {
	var ctx eventContext
	err := binary.Read(raw, binary.LittleEndian, &ctx)
	return ctx, err
}

func processEvents() (int, string) {
	sample := make([]byte, binary.Size(eventContext{}))
	for i := range sample {
		sample[i] = byte(i)
	}
	n, sum := 0, uint32(0)
	for running() {
		for i := 0; i < 500; i++ {
			ctx, err := readContext(bytes.NewReader(sample))
			if err != nil {
				return n, "events"
			}
			sum += ctx.Pid
			n++
		}
	}
	if sum == 1 {
		fmt.Println("one")
	}
	return n, "events"
}

// agent-monitor

type monitor struct {
	mu        sync.Mutex
	resetChan chan time.Duration
	seen      int
}

func (m *monitor) reset(timeout time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	time.Sleep(2 * time.Millisecond)
	m.resetChan <- timeout
}

func (m *monitor) handleFailure() {
	m.mu.Lock()
	m.seen++
	m.mu.Unlock()
}

func (m *monitor) run() {
	timer := time.NewTimer(time.Millisecond)
	for {
		select {
		case d := <-m.resetChan:
			timer.Reset(d)
		case <-timer.C:
			m.handleFailure()
			timer.Reset(time.Millisecond)
		}
	}
}

func keepalives() (int, string) {
	done := make(chan int, 64)
	for i := 0; i < 12; i++ {
		m := &monitor{resetChan: make(chan time.Duration)}
		go m.run()
		go func() {
			for {
				m.reset(time.Millisecond)
				done <- 1
			}
		}()
	}
	n := 0
	for {
		select {
		case <-done:
			n++
		case <-time.After(time.Until(deadline)):
			return n, "keepalives"
		}
	}
}

// text-grade

//go:noinline
func stringInSlice(word string, words []string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

func easyWords() []string {
	words := make([]string, 0, 3000)
	for i := 0; i < 3000; i++ {
		words = append(words, "word"+strconv.Itoa(100000+i*7))
	}
	return words
}

func assessText() (int, string) {
	easy := easyWords()
	n, complicated := 0, 0
	for running() {
		for i := 0; i < 200; i++ {
			if !stringInSlice("word"+strconv.Itoa(100000+(n*13)%30000), easy) {
				complicated++
			}
			n++
		}
	}
	return n, fmt.Sprintf("words (%d complicated)", complicated)
}

// stdin-runner

func runShell() (int, string) {
	requests, feed := io.Pipe()
	cmd := exec.Command("head", "-n", "1")
	cmd.Stdin = requests
	if err := cmd.Start(); err != nil {
		return 0, "commands"
	}
	if _, err := feed.Write([]byte("hello\n")); err != nil {
		return 0, "commands"
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
		return 1, "commands"
	case <-time.After(time.Until(deadline)):
		return 0, "commands"
	}
}

// path-decoder

//go:noinline
func decodeEscapeString(buf []byte) []byte {
	for i := 0; i < len(buf); i++ {
		if buf[i] == '\\' && i+1 < len(buf) {
			buf = append(buf[:i], buf[i+1:]...)
		}
	}
	return buf
}

func decodeDocuments() (int, string) {
	doc := []byte(strings.Repeat(`C:\\dir\\`, 24000))
	work := make([]byte, len(doc))
	n := 0
	for running() {
		copy(work, doc)
		if len(decodeEscapeString(work)) > 0 {
			n++
		}
	}
	return n, "documents"
}

// hook-logger

type fileHook struct{ path string }

func (h *fileHook) Fire(line []byte) error {
	fd, err := os.OpenFile(h.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer fd.Close()
	_, err = fd.Write(line)
	return err
}

func logEntries() (int, string) {
	hook := &fileHook{filepath.Join(folder, "app.log")}
	n := 0
	for running() {
		if n%20000 == 0 {
			os.Remove(hook.path)
		}
		if hook.Fire([]byte("level=info msg=\"request served\" status=200\n")) != nil {
			break
		}
		n++
	}
	return n, "entries"
}

// tool-finder

//go:noinline
func compilerID(tool string) (string, error) { return exec.LookPath(tool) }

func buildActions() (int, string) {
	var dirs []string
	for i := 0; i < 40; i++ {
		dir := filepath.Join(folder, "opt"+strconv.Itoa(i), "bin")
		os.MkdirAll(dir, 0o755)
		dirs = append(dirs, dir)
	}
	tool := filepath.Join(dirs[39], "gcc-14")
	os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o755)
	os.Setenv("PATH", strings.Join(dirs, ":"))
	n := 0
	for running() {
		if _, err := compilerID("gcc-14"); err != nil {
			break
		}
		n++
	}
	return n, "actions"
}

func main() {
	if len(os.Args) < 4 {
		os.Exit(2)
	}
	name := os.Args[1]
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	folder = filepath.Join(os.Args[3], name)
	os.RemoveAll(folder)
	os.MkdirAll(folder, 0o755)
	deadline = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	cases := map[string]func() (int, string){
		"event-decode": processEvents, "agent-monitor": keepalives, "text-grade": assessText,
		"stdin-runner": runShell, "path-decoder": decodeDocuments, "hook-logger": logEntries,
		"tool-finder": buildActions,
	}
	run, ok := cases[name]
	if !ok {
		os.Exit(2)
	}
	n, what := run()
	fmt.Printf("%s: %d %s\n", name, n, what)
}
