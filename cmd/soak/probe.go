package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/service/probe"
)

const probeHelp = `probe examines a service with a few streams for a minute (--seconds), and writes its description: a module like the
ones in load-tests/services/. Its comments state the evidence for each part. Ctrl-C ends the probe early and keeps the results.

URLs, headers and bodies may contain placeholders (docs/services.md): {base}, {topic}, {n}, {id}, {run}, {token}, and
{prompt} for responses that end by themselves. The request that publishes has {seq}, {sentAt} and {sum} in place of {n}
and {id}. In the description, {token} replaces the secret in a header or URL parameter whose name suggests one,
such as Authorization; SUBSCRIBE_TOKEN or PUBLISH_TOKEN provides the value. With --publish-url, the probe publishes 13 messages, one per second.

    soak probe http://HOST/sub/news --topic news \
      --publish-url http://HOST/pub/news \
      --publish-body '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}'

With --idle, probe writes no description. It keeps up to ten silent streams open for 15 minutes, and reports when each
stream is closed, and the probable cause. A NAT drops idle connections without notice, so only a message shows whether a
stream still works. With --publish-url, and {topic} in the requests that subscribe and publish, each stream has its own
topic. probe then publishes one message to each topic at the start, and another one after the silence.`

func probeCommand() *cobra.Command {
	var c probe.Config
	var seconds int
	var out string
	var idle bool
	cmd := &cobra.Command{
		Use:   "probe URL",
		Short: "Probe a service for a minute, and write its description",
		Long:  probeHelp,
		Args:  oneArg("URL of an event stream"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if idle && !cmd.Flags().Changed("seconds") {
				seconds = int(probe.LongestIdle / time.Second)
			}
			c.URL, c.Length = args[0], time.Duration(seconds)*time.Second
			if err := checkProbe(&c, out, idle); err != nil {
				return usageError{Err: err}
			}
			ctx, stop := prepareProbe(cmd.Context(), &c)
			defer stop()
			var text string
			var err error
			if idle {
				text, err = probe.Idle(ctx, c)
			} else {
				var result probe.Result
				result, err = probe.Run(ctx, c)
				text = result.Module
			}
			if err != nil {
				return err //nolint:wrapcheck // the error is a sentence for the user
			}
			if out == "" {
				_, err = io.WriteString(cmd.OutOrStdout(), text)
				return err //nolint:wrapcheck // the error names standard output
			}
			if err := os.WriteFile(out, []byte(text), 0o644); err != nil { // #nosec G306 -- a source file of the project, without secrets
				return fmt.Errorf("write the description: %w", err)
			}
			fmt.Fprintf(os.Stderr, "probe: wrote %s\n", out)
			return nil
		},
	}
	f := cmd.Flags()
	secondsFlag(f, &seconds, 60, "length of the probe in seconds, at least 20 (default with --idle: 900)")
	f.BoolVar(&idle, "idle", false, "keep silent streams open, and report when they are disconnected")
	f.StringVar(&c.Name, "name", "", "name of the service (default: the file name in --out, or \"probed\")")
	f.StringVar(&c.Topic, "topic", "", topicHelp)
	f.StringVar(&out, "out", "", "file to write the description to (default: standard output)")
	serviceFlags(f, &c)
	return cmd
}

// secondsFlag adds the flag --seconds, which accepts a number of seconds or a duration such as 10m.
func secondsFlag(f *pflag.FlagSet, seconds *int, value int, help string) {
	*seconds = value
	f.Var(plan.Setting{Name: "SECONDS", Value: seconds}, "seconds", help)
}

const topicHelp = "text in the URLs that becomes {topic}"

func serviceFlags(f *pflag.FlagSet, c *probe.Config) {
	f.BoolVar(&c.FollowRedirects, "follow-redirects", false, "follow redirects to another origin, without the headers given here")
	f.StringVar(&c.CA, "ca", "", "file of PEM certificates to trust for TLS, in addition to the system's")
	f.BoolVar(&c.Insecure, "insecure", false, "do not verify TLS certificates")
	f.IntVar(&c.Streams, "streams", 3, "number of streams at the start; tests open further ones")
	requestFlags(f, &c.Connect, "", "the request that opens a stream")
	f.StringVar(&c.SecondRequest.URL, "then-url", "", "URL of a second request after the first event; the event may provide {client}")
	requestFlags(f, &c.SecondRequest, "then-", "the second request")
	f.StringVar(&c.Publish.URL, "publish-url", "", "URL to publish messages to")
	requestFlags(f, &c.Publish, "publish-", "the request that publishes")
}

// prepareProbe completes a configuration. A signal ends the returned context, and a second one ends soak.
func prepareProbe(parent context.Context, c *probe.Config) (context.Context, context.CancelFunc) {
	c.SubscribeToken, c.PublishToken = os.Getenv("SUBSCRIBE_TOKEN"), os.Getenv("PUBLISH_TOKEN")
	c.Progress = func(sentence string) { fmt.Fprintf(os.Stderr, "probe: %s\n", sentence) }
	c.UsageError = func(err error) error {
		return usageError{Err: errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	ctx, stop := run.UntilSignal(parent)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func requestFlags(f *pflag.FlagSet, r *probe.Request, prefix, subject string) {
	f.StringVar(&r.Method, prefix+"method", "", "method of "+subject)
	f.StringVar(&r.Body, prefix+"body", "", "body of "+subject)
	f.StringArrayVar(&r.Headers, prefix+"header", nil, "header of "+subject+", as 'Name: value'; repeatable")
}

// checkProbe checks the settings. If the service has no name, checkProbe sets the name to the file name in out, without
// .js.
func checkProbe(c *probe.Config, out string, idle bool) error {
	longest := probe.Longest
	if idle {
		longest = probe.LongestIdle
	}
	switch {
	case idle && out != "":
		return errors.New("--out cannot be combined with --idle, which writes no description")
	case c.Streams < 1 || c.Streams > probe.MaxStreams:
		return fmt.Errorf("--streams must be from 1 to %d, got %d", probe.MaxStreams, c.Streams)
	case c.Length < probe.Shortest || c.Length > longest:
		return fmt.Errorf("--seconds must be from %.0f to %.0f, got %.0f", probe.Shortest.Seconds(), longest.Seconds(), c.Length.Seconds())
	}
	if out == "" {
		return nil
	}
	if _, err := os.Stat(out); err == nil {
		return fmt.Errorf("%s already exists; name another file with --out, or remove it", out)
	}
	c.Name = cmp.Or(c.Name, strings.TrimSuffix(filepath.Base(out), ".js"))
	return nil
}
