package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// options are the flags, and what follows from them.
type options struct {
	quick  bool
	only   []string
	growth time.Duration
	json   string
	md     string
	update bool
	bin    string
	rounds int
	window time.Duration
	keep   string

	dir  string // logs, shards, sockets
	runs int    // processes started so far: numbers their folders
	size sizes
}

// sizes are how many connections each measurement holds.
type sizes struct {
	base, full    int // runner: its memory is the difference of the two
	idle, busy    int // backend
	broadcast     int
	nginx, growth int
	shards        int           // merge
	ledgers       int           // in each of them
	rawPerProcess int           // connections of one raw client: descriptors bound it
	settle        time.Duration // from the last connect to the first measurement
}

var (
	fullSizes = sizes{
		base: 500, full: 5000, idle: 5000, busy: 15000, broadcast: 5000, nginx: 5000, growth: 1200,
		shards: 1000, ledgers: 1000, rawPerProcess: 5000, settle: 8 * time.Second,
	}
	quickSizes = sizes{
		base: 200, full: 1000, idle: 1000, busy: 2000, broadcast: 1000, nginx: 500, growth: 200,
		shards: 10, ledgers: 100, rawPerProcess: 1000, settle: time.Second,
	}
)

func (o *options) check() error {
	for _, name := range o.only {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return usageError{fmt.Errorf("--only %s: the sections are runner, backend, nginx, growth and merge", name)}
		}
	}
	if o.rounds < 1 || o.window < 2*time.Second {
		return usageError{fmt.Errorf("--rounds must be at least 1 and --window at least 2s")}
	}
	if o.growth != 0 && o.growth < time.Minute {
		return usageError{fmt.Errorf("--growth %v: a slope needs at least 1m", o.growth)}
	}
	if o.update && (o.json == "" || o.quick) {
		return usageError{fmt.Errorf("--update adds to the full run in the file that --json names")}
	}
	o.size = fullSizes
	if o.quick {
		o.size, o.rounds, o.window, o.growth = quickSizes, 1, 3*time.Second, 0
	}
	for _, name := range []string{"k6", "backend", "soak"} {
		if _, err := os.Stat(filepath.Join(o.bin, name)); err != nil {
			return fmt.Errorf("%w; `make build` makes it, and bench runs at the root of the repository", err)
		}
	}
	return nil
}

// prepare makes the folder for logs, shards and sockets.
func (o *options) prepare() (cleanup func(), err error) {
	if o.keep != "" {
		if err = os.MkdirAll(o.keep, 0o755); err == nil {
			o.dir, err = os.MkdirTemp(o.keep, "run-")
		}
		return func() {}, err
	}
	o.dir, err = os.MkdirTemp("", "bench-")
	return func() { _ = os.RemoveAll(o.dir) }, err
}

// folder is a new one for the logs of one process.
func (o *options) folder(name string) (string, error) {
	o.runs++
	dir := filepath.Join(o.dir, fmt.Sprintf("%02d-%s", o.runs, name))
	return dir, os.MkdirAll(dir, 0o755)
}

// say tells on stderr what is going on: minutes go by without a figure.
func (o *options) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
