package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/sizing"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

var usualSizes = []int{1200, 12_000, 120_000, 1_000_000, 5_000_000}

type planOptions struct {
	connections, seconds int
	interval, maxUSD     float64
	load                 sizing.Load
	region, pricesFile   string
	asJSON               bool
}

func planCommand() *cobra.Command {
	o := planOptions{interval: 15}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Estimate the resources of a run: runners, memory, ports, hosts, price",
		Long: "plan estimates the resources of a run from the measured cost of a stream (docs/results/bench.md). Hosts are AWS\n" +
			sizing.HostType + " on-demand instances, each with a public address and a disk: some for runners, others for nginx and backends.\n" +
			"The price excludes traffic, setup and removal. The prices, with their date and source, are in internal/host/sizing/prices.json.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&o.connections, "connections", 0, "number of streams (default: a table of common sizes)")
	f.Var(plan.Setting{Name: "NOOP_INTERVAL", Value: &o.interval}, "noop-interval", "seconds between two noops of one stream")
	f.IntVar(&o.load.Topics, "topics", 0, "number of topics to publish to, in place of noops (with --publish-rate)")
	f.Float64Var(&o.load.Rate, "publish-rate", 0, "messages to publish per second, across all topics (with --topics)")
	f.BoolVar(&o.load.TLS, "tls", false, "TLS between runners and service")
	f.BoolVar(&o.load.HTTP2, "http2", false, "HTTP/2 between runners and service: streams share connections")
	secondsFlag(f, &o.seconds, 3600, "length of the run, such as 3600 or 72h, for the price and the size of the shards")
	f.StringVar(&o.region, "region", "us-east-1", "AWS region of the prices")
	f.StringVar(&o.pricesFile, "prices", os.Getenv("PRICES"), "file with prices, in place of the built-in table [PRICES]")
	f.Float64Var(&o.maxUSD, "max-usd", 0, "maximum price of the run in US dollars (0: no limit)")
	f.BoolVar(&o.asJSON, "json", false, "print JSON, memory in bytes")
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command) error {
	sizes := usualSizes
	if cmd.Flags().Changed("connections") {
		sizes = []int{o.connections}
	}
	publishes := cmd.Flags().Changed("topics") || cmd.Flags().Changed("publish-rate")
	if publishes && cmd.Flags().Changed("noop-interval") {
		return usageError{Err: errors.New("--noop-interval cannot be combined with --topics or --publish-rate; omit --noop-interval to plan for published messages")}
	}
	o.load.Interval = time.Duration(o.interval * float64(time.Second))
	if err := sizing.CheckBudget(0, o.maxUSD, ""); err != nil {
		return usageError{Err: err}
	}
	if o.seconds < 1 {
		return usageError{Err: fmt.Errorf("--seconds must be at least 1, got %d", o.seconds)}
	}
	length := time.Duration(o.seconds) * time.Second
	o.load.Length, o.load.Checkpoint = length, shard.CheckpointInterval(length)
	prices, err := sizing.ReadPrices(o.pricesFile)
	if err != nil {
		return usageError{Err: err}
	}
	needs, err := needsOf(o.load, sizes, prices, o.region)
	if err != nil {
		return usageError{Err: err}
	}
	if o.asJSON {
		err = printJSON(cmd.OutOrStdout(), needs)
	} else if err = printNeeds(cmd.OutOrStdout(), needs, length); err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "\nprices of %s, %s: %s\n", prices.AsOf, o.region, prices.Source)
	}
	for _, n := range needs {
		if err == nil {
			err = sizing.CheckBudget(n.DollarsPerHour*length.Hours(), o.maxUSD, fmt.Sprintf("a run of %.0f s with %s", length.Seconds(), format.Count(n.Connections, "connection")))
		}
	}
	return err
}

func needsOf(load sizing.Load, sizes []int, prices sizing.Prices, region string) (needs []sizing.Need, err error) {
	for _, n := range sizes {
		need, err := load.Need(n)
		if err == nil {
			err = need.Price(prices, region)
		}
		if err != nil {
			return nil, err
		}
		needs = append(needs, need)
	}
	return needs, nil
}

func printJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(value) //nolint:wrapcheck // of standard output
}

// printNeeds prints a table with a column for each number of streams, because the names of the rows are long.
func printNeeds(w io.Writer, needs []sizing.Need, length time.Duration) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	rate := "noops per second"
	if needs[0].Topics > 0 {
		rate = "messages per second"
	}
	for _, row := range []struct {
		name  string
		value func(n sizing.Need) string
	}{
		{"connections", func(n sizing.Need) string { return strconv.Itoa(n.Connections) }},
		{rate, func(n sizing.Need) string { return fmt.Sprintf("%.0f", n.NoopsPerSecond) }},
		{"runners", func(n sizing.Need) string { return strconv.Itoa(n.Runners) }},
		{"  memory of each, MiB", func(n sizing.Need) string { return strconv.FormatUint(n.RunnerMemory>>20, 10) }},
		{"  open files of each", func(n sizing.Need) string { return strconv.Itoa(n.RunnerFiles) }},
		{"  cores for received data", func(n sizing.Need) string { return fmt.Sprintf("%.2f", n.RunnerCores) }},
		{"  shard of each at the end, MiB", func(n sizing.Need) string { return fmt.Sprintf("%.1f", float64(n.ShardBytes)/(1<<20)) }},
		{"  checkpoints of each, MiB/h", func(n sizing.Need) string { return fmt.Sprintf("%.0f", float64(n.CheckpointBytes)/(1<<20)) }},
		{"hosts for runners", func(n sizing.Need) string { return strconv.Itoa(n.RunnerHosts) }},
		{"  ephemeral ports of each", func(n sizing.Need) string { return strconv.Itoa(n.Ports) }},
		{"  source addresses of each", func(n sizing.Need) string { return strconv.Itoa(n.SourceAddresses) }},
		{"hosts for nginx and backends", func(n sizing.Need) string { return strconv.Itoa(n.TargetHosts) }},
		{"  memory of all, MiB", func(n sizing.Need) string { return strconv.FormatUint(n.TargetMemory>>20, 10) }},
		{"  open files of all", func(n sizing.Need) string { return strconv.Itoa(n.TargetFiles) }},
		{"$ per hour", func(n sizing.Need) string { return fmt.Sprintf("%.2f", n.DollarsPerHour) }},
		{fmt.Sprintf("$ for a run of %.0f s", length.Seconds()), func(n sizing.Need) string { return fmt.Sprintf("%.2f", n.DollarsPerHour*length.Hours()) }},
	} {
		fmt.Fprintf(t, "%-31s", row.name)
		for _, n := range needs {
			fmt.Fprint(t, "\t", row.value(n))
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}
