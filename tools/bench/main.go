// Command bench measures what a soak costs: the memory and CPU of a runner, of the backend and
// of nginx per connection and per noop, beside the figures of their peers and the limits that
// this project has set itself. It starts everything itself, on loopback only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/tools/whatran"
)

// Exit codes: a limit that is broken is a result, a measurement that failed is none.
const (
	exitOverLimit = 1
	exitBroken    = 2
	exitUsage     = 64
)

// An exitError is an error with an exit code of its own.
type exitError struct {
	code int
	error
}

func usage(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

// A bench is one run of this program.
type bench struct {
	ctx    context.Context // ends everything
	quick  bool
	only   []string
	growth time.Duration
	json   string
	md     string
	update bool
	rounds int
	window time.Duration

	dir     string // logs, shards, sockets
	started int    // processes so far: numbers their folders
	sizes
}

// sections can be measured alone; this is their order.
var sections = []struct {
	name    string
	measure func(*bench) []Metric
}{
	{"runner", (*bench).measureRunner},
	{"messages", (*bench).measureMessages},
	{"tls", (*bench).measureTLS},
	{"http2", (*bench).measureHTTP2},
	{"handshake", (*bench).measureHandshake},
	{"requests", (*bench).measureRequests},
	{"backend", (*bench).measureBackend},
	{"churn", (*bench).measureChurn},
	{"nginx", (*bench).measureNginx},
	{"growth", (*bench).measureGrowth},
	{"merge", (*bench).measureMerge},
}

func sectionNames() (names []string) {
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// sizes are how many connections each measurement holds.
type sizes struct {
	base, full     int // runner: its memory is the difference of the two
	encrypted      int // tls: the same in place of full
	handshakes     int
	idle, busy     int // backend
	broadcast      int
	nginx, growing int           // growing: growth
	shards         int           // merge
	ledgers        int           // in each of them
	settle         time.Duration // from the last connect to the first measurement
	idleSettle     time.Duration // the backend gives memory back to the system some seconds after a ramp
}

var (
	fullSizes = sizes{
		base: 500, full: 5000, encrypted: 3000, handshakes: 10_000, idle: 5000, busy: 15000, broadcast: 5000, nginx: 5000, growing: 1200,
		shards: 1000, ledgers: 1000, settle: 8 * time.Second, idleSettle: 10 * time.Second,
	}
	quickSizes = sizes{
		base: 200, full: 1000, encrypted: 600, handshakes: 1000, idle: 1000, busy: 2000, broadcast: 1000, nginx: 500, growing: 200,
		shards: 10, ledgers: 100, settle: time.Second, idleSettle: time.Second,
	}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(&bench{ctx: ctx}).Execute()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code := exitBroken
		if own := (exitError{}); errors.As(err, &own) {
			code = own.code
		}
		os.Exit(code)
	}
}

func command(b *bench) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure memory and CPU per connection, beside the peers' figures",
		Long: "bench measures the runner, the backend and nginx on this machine and holds the figures\n" +
			"against the project's limits. Run it at the root of the repository, with nothing else running.\n\n" +
			"Exit codes: 0 every limit kept, 1 a limit broken, 2 could not measure, 64 wrong usage.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unexpected argument %q", args[0])
			}
			return b.check()
		},
		RunE: func(*cobra.Command, []string) error { return b.run() },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	cmd.AddCommand(rawCommand(b.ctx), churnCommand(b.ctx), http2Command(b.ctx), rawHandshakesCommand(b.ctx))
	f := cmd.Flags()
	f.BoolVar(&b.quick, "quick", false, "small counts, under a minute: shows that it works, judges no limit")
	f.StringSliceVar(&b.only, "only", nil, "sections to run: "+strings.Join(sectionNames(), ", "))
	f.DurationVar(&b.growth, "growth", 10*time.Minute, "how long to watch a runner's memory, once it has settled for as long, 10m at most; 0 leaves it out, as --quick does")
	f.BoolVar(&b.update, "update", false, "keep the figures of --json's file for the sections that are not run")
	f.StringVar(&b.json, "json", "", "also write the figures to this file as JSON")
	f.StringVar(&b.md, "md", "", "also write the table to this file")
	f.IntVar(&b.rounds, "rounds", 3, "how often those that are compared take turns")
	f.DurationVar(&b.window, "window", 20*time.Second, "how long each of them is measured")
	return cmd
}

func (b *bench) check() error {
	for _, name := range b.only {
		if names := sectionNames(); !slices.Contains(names, name) {
			return usage("--only %s: the sections are %s", name, strings.Join(names, ", "))
		}
	}
	switch {
	case b.rounds < 1 || b.window < 2*time.Second:
		return usage("--rounds must be at least 1 and --window at least 2s")
	case b.growth != 0 && b.growth < time.Minute:
		return usage("--growth %v: a slope needs at least 1m", b.growth)
	case b.update && (b.json == "" || b.quick):
		return usage("--update adds to the full run in the file that --json names")
	}
	for _, name := range []string{"bin/k6", "bin/backend", "bin/soak", bareScript, soakScript, tlsScript, handshakeScript, requestsScript, described} {
		if _, err := os.Stat(name); err != nil {
			return fmt.Errorf("%w; `make build` makes the programs, and bench runs at the root of the repository", err)
		}
	}
	return nil
}

func (b *bench) run() (err error) {
	b.sizes = fullSizes
	if b.quick {
		b.sizes, b.rounds, b.window, b.growth = quickSizes, 1, 3*time.Second, 0
	}
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	r := Report{Schema: 1, Machine: thisMachine(), Ran: whatran.Here("."), Quick: b.quick}
	for _, s := range sections {
		if len(b.only) > 0 && !slices.Contains(b.only, s.name) || s.name == "growth" && b.growth == 0 {
			continue
		}
		began := time.Now()
		b.say("%s …", s.name)
		if err := attempt(func() { r.add(s.name, began, s.measure(b)) }); err != nil {
			err = fmt.Errorf("measure %s: %w; logs are in %s", s.name, err, b.dir)
			return errors.Join(err, r.save(b)) // the sections measured so far are kept
		}
		b.say("%s took %v", s.name, time.Since(began).Round(time.Second))
	}
	_ = os.RemoveAll(b.dir)
	r.Machine.LoadAfter = loadAverage()
	if err := r.save(b); err != nil {
		return err
	}
	r.write(os.Stdout)
	if broken := r.broken(); len(broken) > 0 {
		return exitError{exitOverLimit, errors.New("over the limit: " + strings.Join(broken, "; "))}
	}
	return nil
}

// folder is a new one for the logs of one process.
func (b *bench) folder(name string) string {
	b.started++
	dir := filepath.Join(b.dir, fmt.Sprintf("%02d-%s", b.started, name))
	check(os.MkdirAll(dir, 0o755))
	return dir
}

// say tells on stderr what is going on: minutes go by without a figure.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// sleep waits, or ends the measurement with the program.
func (b *bench) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
		check(b.ctx.Err())
	}
}

// A measurement is a straight line of steps, of which the first that fails ends it: check and must
// raise its error, attempt returns it.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func attempt(steps func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case failure:
			err = e.error
		default:
			panic(e)
		}
	}()
	steps()
	return nil
}
