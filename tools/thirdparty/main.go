// Command thirdparty measures programs of other projects, one at a time on this machine. It writes a page of tables,
// and the figures as JSON. `thirdparty services` runs soak on the services of test/services and on the backend.
// `thirdparty gateways` puts gateways for language models in front of the numbered model.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/tools/page"
)

// A comparison measures programs of one kind. The exported fields of an implementation are the figures.
type comparison interface {
	declare(*flag.FlagSet)
	// names returns the programs that are measured by default, and those that are measured only if -only names them.
	names() (standard, extra []string)
	// check returns an error if a flag has an invalid value.
	check() error
	// start starts the processes that all measurements need, and returns a function that stops them.
	start(context.Context) (stop func(), err error)
	// measure measures one program, and returns the outcome in one line.
	measure(ctx context.Context, name string) (outcome string)
	write(io.Writer) error
}

type options struct {
	root, out, only string
	soakArgs        []string // arguments after the flags

	Date    time.Time     `json:"date"`
	RunInfo *page.RunInfo `json:"run_info"`
}

func main() {
	var o options
	c := map[string]comparison{"services": &servicesBench{options: &o}, "gateways": &gatewaysBench{options: &o}}
	if len(os.Args) < 2 || c[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: thirdparty services|gateways [FLAGS] [-- FLAGS OF soak run]")
		os.Exit(2)
	}
	kind := os.Args[1]
	page.Main("thirdparty "+kind, func(ctx context.Context) error { return o.run(ctx, kind, c[kind], os.Args[2:]) })
}

// run measures each selected program in turn, and writes the page after each, so that an interruption loses no results.
func (o *options) run(ctx context.Context, kind string, c comparison, args []string) error {
	programs, err := o.parse(kind, c, args)
	if err != nil {
		return err
	}
	o.Date, o.RunInfo = time.Now().UTC(), page.ThisProgram(o.root)
	stop, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, name := range programs {
		page.Progress("%s …", name)
		outcome := c.measure(ctx, name)
		if ctx.Err() != nil {
			return fmt.Errorf("measure %s: %w", name, context.Cause(ctx))
		}
		page.Progress("%s: %s", name, outcome)
		if err := page.Save(filepath.Join(o.out, kind), c, c.write); err != nil {
			return err
		}
	}
	return c.write(os.Stdout)
}

// parse reads and validates the flags, creates the output folder, and returns the names of the programs to measure.
func (o *options) parse(kind string, c comparison, args []string) (programs []string, err error) {
	flags := flag.NewFlagSet("thirdparty "+kind, flag.ExitOnError)
	standard, extra := c.names()
	all := slices.Concat(standard, extra)
	flags.StringVar(&o.root, "root", ".", "folder of the repository, with programs in bin/")
	flags.StringVar(&o.out, "out", filepath.Join("results", kind), "folder for the page, the figures and logs")
	flags.StringVar(&o.only, "only", "", "names of the programs, separated by commas; an unknown name lists all")
	c.declare(flags)
	_ = flags.Parse(args) // exits on an error
	o.soakArgs = flags.Args()
	if programs = standard; o.only != "" {
		programs = strings.Split(o.only, ",")
	}
	for _, name := range programs {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("each name in -only must be one of %s, got %q", strings.Join(all, ", "), name)
		}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	for _, folder := range []*string{&o.root, &o.out} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return nil, err
		}
	}
	if err := page.CheckBuilt(o.root); err != nil {
		return nil, err
	}
	return programs, os.MkdirAll(o.out, 0o755)
}
