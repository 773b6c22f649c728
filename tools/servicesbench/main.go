// Command servicesbench soaks the services of test/services and our own backend, one after the other on this machine
// with the same load, or runs another suite of soak on them, and writes a table of what each delivered, what the suite
// found and what it cost. `make services-bench` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/tools/whatran"
)

// load is what each service gets.
type load struct {
	Connections int     `json:"connections"`
	Topics      int     `json:"topics"`
	Rate        float64 `json:"publish_rate"` // messages per second, all topics together
	Seconds     int     `json:"seconds"`
	Runners     int     `json:"runners"`
}

// interval is that of the messages of one stream. Our backend, which has no topics, sends noops at it.
func (l load) interval() float64 { return float64(l.Topics) / l.Rate }

type bench struct {
	load
	root, out string
	suite     string   // "": the soak
	more      []string // arguments of `soak run` besides
	only      []string
}

func main() {
	var b bench
	var only string
	flag.IntVar(&b.Connections, "connections", 2000, "streams")
	flag.IntVar(&b.Topics, "topics", 20, "topics that they are dealt to")
	flag.Float64Var(&b.Rate, "publish-rate", 20, "messages per second, all topics together")
	flag.IntVar(&b.Seconds, "seconds", 300, "how long each service is soaked")
	flag.IntVar(&b.Runners, "runners", 2, "k6 processes")
	flag.StringVar(&b.root, "root", ".", "the repository, with bin/ built")
	flag.StringVar(&b.out, "out", "results/services", "folder for the table, the figures and each service's run")
	flag.StringVar(&b.suite, "suite", "", "run this suite on each, such as resume; empty: the soak")
	flag.StringVar(&only, "only", "", "these services alone, with commas: "+strings.Join(names(), ",")+"; NAME"+bare+" is one that keeps nothing for a stream that comes back")
	render := flag.Bool("render", false, "measure nothing: write the table of -out again, from its figures and runs")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "servicesbench [FLAGS] [-- FLAGS OF soak run]")
		flag.PrintDefaults()
	}
	flag.Parse()
	b.more = flag.Args()
	if *render {
		if err := again(b.out); err != nil {
			fmt.Fprintln(os.Stderr, "servicesbench:", err)
			os.Exit(2)
		}
		return
	}
	if only != "" {
		b.only = strings.Split(only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "servicesbench:", err)
		os.Exit(2)
	}
}

// check validates the settings before any service is started.
func (b *bench) check() (err error) {
	for _, name := range b.only {
		if !slices.Contains(names(), strings.TrimSuffix(name, bare)) {
			return fmt.Errorf("-only %s: the services are %s", name, strings.Join(names(), ", "))
		}
	}
	if len(b.only) == 0 {
		b.only = names()
	}
	if b.Connections < 1 || b.Topics < 1 || b.Rate <= 0 || b.Runners < 1 || b.Seconds < 15 {
		return errors.New("-connections, -topics, -publish-rate and -runners must be positive, and -seconds at least 15")
	}
	if b.root, err = filepath.Abs(b.root); err != nil {
		return err
	}
	if b.out, err = filepath.Abs(b.out); err != nil {
		return err
	}
	if err := whatran.CheckBuilt(b.root); err != nil {
		return err
	}
	return os.MkdirAll(b.out, 0o755)
}

// run soaks each service in turn. A service that cannot be started or soaked is a row that says so; what was measured
// is written after each, so that an end in between loses nothing.
func (b *bench) run(ctx context.Context) error {
	if err := b.check(); err != nil {
		return err
	}
	ran := whatran.Here(b.root)
	r := report{Schema: 1, Machine: thisMachine(ran.Commit), Ran: ran, Suite: b.suite, Load: b.load}
	for _, name := range b.only {
		b.say("%s …", name)
		row := b.measure(ctx, name)
		if ctx.Err() != nil {
			return fmt.Errorf("soak %s: %w", name, context.Cause(ctx))
		}
		b.say("%s: %s", name, row.outcome())
		r.Rows = append(r.Rows, row)
		if err := r.save(b.out); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}

// say tells on stderr what is going on: minutes go by without a row.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
