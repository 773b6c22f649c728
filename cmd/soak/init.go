package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/service/probe"
)

const initHelp = `init prepares an empty folder for soaks of a service: it probes the service as ` + "`soak probe`" + ` does, and writes

    NAME.js                      the description of the service, with the evidence as comments
    soak.yaml                    the settings, which ` + "`soak run`" + ` reads in this folder
    .github/workflows/soak.yml   a job of GitHub Actions that runs with both

To check messages, soak must publish some. A service that delivers a text is enough:

    soak init 'https://HOST/rooms/news/events' --topic news \
      --publish-url 'https://HOST/rooms/news/messages' \
      --publish-body '{"author":"soak","text":"run={run} seq={seq} t={sentAt} sum={sum}"}'

Responses that end by themselves, such as answers of a language model, are tested by ` + "`soak run finite`" + `:

    soak init 'https://HOST/ask' --method POST --body '{"question":"{prompt}"}'

It overwrites no file without --update or --force. Without a URL it prompts for one.`

// An overwriteMode decides what init does with files that exist.
type overwriteMode struct{ force, update bool }

func initCommand() *cobra.Command {
	var c probe.Config
	var seconds int
	var over overwriteMode
	cmd := &cobra.Command{
		Use:   "init [URL]",
		Short: "Probe a service, and write its description and the settings of a run",
		Long:  initHelp,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 1 {
				return usageError{Err: fmt.Errorf("name one URL of an event stream, not %d", len(args))}
			}
			c.URL = strings.Join(args, "")
			if c.URL == "" {
				if c.URL, err = promptURL(cmd.InOrStdin(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			if c.Name, err = serviceName(&c); err != nil {
				return err
			}
			c.Length = time.Duration(seconds) * time.Second
			if err := over.check(c.Name + ".js"); err != nil {
				return usageError{Err: err}
			}
			if err := checkProbe(&c, "", false); err != nil {
				return usageError{Err: err}
			}
			ctx, stop := readyProbe(cmd.Context(), &c)
			defer stop()
			result, err := probe.Run(ctx, c)
			if err != nil {
				return err //nolint:wrapcheck // a sentence for the user
			}
			if err := ctx.Err(); err != nil {
				return errors.New("interrupted: nothing was written")
			}
			return writeProject(cmd.OutOrStdout(), &c, result, over)
		},
	}
	f := cmd.Flags()
	secondsFlag(f, &seconds, 30, "length of the probe in seconds, at least 20; longer heartbeats and lifetimes are not found")
	f.StringVar(&c.Name, "name", "", "name of the service (default: the host of its URL)")
	f.BoolVar(&over.force, "force", false, "overwrite files that exist")
	f.BoolVar(&over.update, "update", false, "replace files that were not edited since init wrote them; keep the others")
	serviceFlags(f, &c)
	return cmd
}

// check returns an error if a file exists that may not be replaced.
func (o overwriteMode) check(description string) error {
	if o.force && o.update {
		return errors.New("--force and --update cannot be combined")
	}
	for _, file := range []string{description, plan.SettingsFile, workflowFile} {
		if _, err := os.Lstat(file); err == nil && !o.force && !o.update {
			return fmt.Errorf("%s exists; pass --update to keep what was edited, or --force to overwrite it", file)
		}
	}
	return nil
}

func promptURL(in io.Reader, out io.Writer) (string, error) {
	fmt.Fprint(out, "URL of an event stream (headers, topics and more are flags: soak init --help): ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		fmt.Fprintln(out)
		return "", usageError{Err: errors.New("a URL is required; run `soak init https://HOST/events`")}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the URL: %w", err)
	}
	return line, nil
}

// serviceName returns the name of the service: the given one, or its host as the name of a file.
func serviceName(c *probe.Config) (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" {
		return "", usageError{Err: fmt.Errorf("URL must have a host, such as https://HOST/events, got %q", c.URL)}
	}
	host := strings.TrimLeft(strings.ReplaceAll(u.Hostname(), ":", "-"), "-")
	name := cmp.Or(c.Name, host)
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", usageError{Err: fmt.Errorf("--name must consist of letters, digits, - and _, because it names a file, got %q", name)}
	}
	return name, nil
}

//go:embed init_workflow.yml
var workflow string

// workflowOf pins the action to the commit of a build: with a branch or a tag, others could change the code that runs
// with the secrets of a repository. A build without a commit leaves COMMIT to fill in, which GitHub refuses to run.
func workflowOf(release, id string) string {
	if id == "" {
		return strings.Replace(workflow, "VERSION", "the full hash of a release; this build of soak does not record its own", 1)
	}
	return strings.NewReplacer("@COMMIT", "@"+id, "VERSION", cmp.Or(release, "not a release")).Replace(workflow)
}

// forSuite returns a workflow with the command for the streams that were found.
func forSuite(workflow string, found probe.Result) string {
	if !found.Finite {
		return workflow
	}
	return strings.NewReplacer("          args: |\n            --connections=10\n", "          command: run finite\n          args: |\n            --rate=1\n",
		"            --require-messages\n        # --require-messages: a run that checked no message is invalid, not a pass of its connections.\n", "").Replace(workflow)
}

// workflowFile is the path at which GitHub looks for workflows.
var workflowFile = filepath.Join(".github", "workflows", "soak.yml")

// The settings of a first run: few streams, for a short time.
const (
	firstConnections = "10"
	firstSeconds     = "60"
)

// settingsFor returns the settings of the first run. Only a description that publishes gets settings to publish by.
func settingsFor(c *probe.Config, found probe.Result, description string) (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", usageError{Err: err}
	}
	given := map[string]string{"service": "./" + description, "backend-url": u.Scheme + "://" + u.Host, "seconds": firstSeconds}
	if !found.Finite {
		given["connections"] = firstConnections
	}
	switch {
	case found.Topics && c.Topic != "":
		given["topic"] = c.Topic
	case found.Publishes && found.Topics:
		given["topics"] = "4"
	case found.Publishes:
		given["topics"] = "1"
	}
	if found.Publishes {
		given["publish-rate"] = "1"
	}
	if c.FollowRedirects {
		given["follow-redirects"] = "true"
	}
	if c.Insecure {
		given["insecure"] = "true"
	}
	if c.CA != "" {
		given["ca"] = c.CA
	}
	return plan.SettingsText(given) //nolint:wrapcheck // it names the setting
}

// writeProject writes the files, and prints the missing parts and the next steps.
func writeProject(w io.Writer, c *probe.Config, found probe.Result, over overwriteMode) error {
	description := c.Name + ".js"
	settings, err := settingsFor(c, found, description)
	if err != nil {
		return err
	}
	id, _ := source()
	if err := os.MkdirAll(filepath.Dir(workflowFile), 0o750); err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	settingsKept := over.update && isEdited(plan.SettingsFile, "#")
	fmt.Fprintln(w)
	for _, file := range []struct{ path, text, comment string }{
		{description, found.Module, "//"}, {plan.SettingsFile, settings, "#"}, {workflowFile, forSuite(workflowOf(linked, id), found), "#"},
	} {
		path := file.path
		if over.update && isEdited(path, file.comment) {
			path = strings.TrimSuffix(path, filepath.Ext(path)) + ".new" + filepath.Ext(path)
			if file.path == workflowFile { // GitHub would run a second one
				fmt.Fprintf(w, "Kept %s, which was edited.\n", file.path)
				continue
			}
			fmt.Fprintf(w, "Kept %s, which was edited; the new one is %s.\n", file.path, path)
		}
		text := addChecksum(file.text, file.comment)
		if err := safefile.Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		fmt.Fprintf(w, "Wrote %s.\n", path)
	}
	if len(found.Missing) > 0 {
		fmt.Fprintln(w, "\nNot found:")
		for _, sentence := range found.Missing {
			fmt.Fprintf(w, "  - %s\n", sentence)
		}
	}
	_, err = fmt.Fprintf(w, "\nNext, a first run%s\n", firstRun(found, settingsKept))
	return err //nolint:wrapcheck // of standard output
}

// firstRun describes the first run, and the command for it. The size is known only if init wrote the settings.
func firstRun(found probe.Result, settingsKept bool) string {
	size, checks, command := " of "+firstConnections+" streams", "checks every message", "soak run"
	switch {
	case found.Finite:
		size, checks, command = " of a request per second", "accounts for each response", "soak run finite --rate 1"
	case !found.Checked:
		checks = "checks connections only"
	}
	if size += " for " + firstSeconds + " s"; settingsKept {
		size = " by the settings of " + plan.SettingsFile
	}
	return fmt.Sprintf("%s, which %s:\n    %s", size, checks, command)
}

const stamp = " soak init: "

// addChecksum appends a line with the checksum of a text, which shows init whether a file was edited.
func addChecksum(text, comment string) string {
	return fmt.Sprintf("%s%s%s%x\n", text, comment, stamp, sha256.Sum256([]byte(text)))
}

// isEdited reports whether a file exists that init did not write, or that was changed since.
func isEdited(path, comment string) bool {
	existing, err := os.ReadFile(path) // #nosec G304 -- in this folder
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	text, _, _ := strings.Cut(string(existing), comment+stamp)
	return string(existing) != addChecksum(text, comment)
}
