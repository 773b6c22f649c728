package main

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/probe"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

const initHelp = `init makes an empty folder ready to soak a service: it probes the service as ` + "`soak probe`" + ` does, and writes

    NAME.js     what the service speaks, with a comment on what was seen of each part
    soak.yaml   the settings, all of them; ` + "`soak run`" + ` reads it where it is in the working directory
    .github/workflows/soak.yml   a job of GitHub Actions that soaks with these

A file that is there already is never written over. Without a URL it asks for one.`

func initCommand() *cobra.Command {
	var c probe.Config
	var seconds int
	cmd := &cobra.Command{
		Use:   "init [URL]",
		Short: "Probe a service, and write what a soak of it needs: description and settings",
		Long:  initHelp,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 1 {
				return usageError{Err: fmt.Errorf("name one URL of an event stream, not %d", len(args))}
			}
			c.URL = strings.Join(args, "")
			if c.URL == "" {
				if c.URL, err = askURL(cmd.InOrStdin(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			if c.Name, err = nameOf(&c); err != nil {
				return err
			}
			c.Length = time.Duration(seconds) * time.Second
			description := c.Name + ".js"
			for _, file := range []string{description, plan.SettingsFile, workflowFile} {
				if _, err := os.Lstat(file); err == nil {
					return usageError{Err: fmt.Errorf("%s is there already: begin in an empty folder, or remove it", file)}
				}
			}
			if err := checkProbe(&c, "", false); err != nil {
				return usageError{Err: err}
			}
			ctx, stop := readyProbe(cmd.Context(), &c)
			defer stop()
			module, err := probe.Run(ctx, c)
			if err != nil {
				return err //nolint:wrapcheck // a sentence for the user
			}
			if err := ctx.Err(); err != nil {
				return errors.New("interrupted: nothing was written")
			}
			return writeProject(cmd.OutOrStdout(), &c, description, module)
		},
	}
	f := cmd.Flags()
	f.IntVar(&seconds, "seconds", 30, "seconds to look; heartbeats and lifetimes that are longer are not seen")
	f.StringVar(&c.Name, "name", "", "name of the service (default: the host of its URL)")
	serviceFlags(f, &c)
	return cmd
}

func askURL(in io.Reader, out io.Writer) (string, error) {
	fmt.Fprint(out, "URL of an event stream (headers, topics and more are flags: soak init --help): ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		fmt.Fprintln(out)
		return "", usageError{Err: errors.New("no URL was given: `soak init https://HOST/events`")}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the URL: %w", err)
	}
	return line, nil
}

// nameOf is the name of the service: the one that was given, or its host as the name of a file.
func nameOf(c *probe.Config) (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" {
		return "", usageError{Err: fmt.Errorf("%q is no URL: write one such as https://HOST/events", c.URL)}
	}
	host := strings.TrimLeft(strings.ReplaceAll(u.Hostname(), ":", "-"), "-")
	name := cmp.Or(c.Name, host)
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", usageError{Err: fmt.Errorf("--name is %q: it becomes the name of a file in this folder, so write letters, digits, - and _", name)}
	}
	return name, nil
}

//go:embed init_workflow.yml
var workflow string

// workflowOf pins the action to the commit of a build: a branch or a tag would let others change what runs beside the
// secrets of a repository. A build that records no commit leaves COMMIT to fill in, which GitHub refuses to run.
func workflowOf(release, id string) string {
	if id == "" {
		return strings.Replace(workflow, "VERSION", "the full hash of a release; this build of soak does not record its own", 1)
	}
	return strings.NewReplacer("@COMMIT", "@"+id, "VERSION", cmp.Or(release, "not a release")).Replace(workflow)
}

// workflowFile is where GitHub looks for it.
var workflowFile = filepath.Join(".github", "workflows", "soak.yml")

// tryOut are the flags of a first run: few streams, for a short time.
const tryOut = "--connections 10 --seconds 60"

func writeProject(w io.Writer, c *probe.Config, description, module string) error {
	u, err := url.Parse(c.URL)
	if err != nil {
		return usageError{Err: err}
	}
	given := map[string]string{"service": "./" + description, "backend-url": u.Scheme + "://" + u.Host}
	if c.Publish.URL != "" {
		given["topics"], given["publish-rate"] = "4", "1"
	}
	if c.FollowRedirects {
		given["follow-redirects"] = "true"
	}
	settings, err := plan.FileOf(given)
	if err != nil {
		return err //nolint:wrapcheck // says which
	}
	id, _ := source()
	if err := os.MkdirAll(filepath.Dir(workflowFile), 0o750); err != nil {
		return err //nolint:wrapcheck // says what it could not make
	}
	for _, file := range []struct{ path, text string }{{description, module}, {plan.SettingsFile, settings}, {workflowFile, workflowOf(linked, id)}} {
		if err := safefile.Write(file.path, func(w io.Writer) error { _, err := io.WriteString(w, file.text); return err }); err != nil {
			return fmt.Errorf("write %s: %w", file.path, err)
		}
	}
	_, err = fmt.Fprintf(w, `
Wrote %s (look at its comments: what was seen, and what was not), %s and %s.

Next:
    soak doctor             # has this machine what a run needs?
    soak run %s
    soak run                # as soak.yaml has it
`, description, plan.SettingsFile, workflowFile, tryOut)
	return err //nolint:wrapcheck // of standard output
}
