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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/service/probe"
)

const initHelp = `init prepares the current folder for soaks of a service. It probes the service, as ` + "`soak probe`" + ` does, and writes:

    NAME.js                      the description of the service, with the evidence as comments
    soak.yaml                    the settings, which ` + "`soak run`" + ` reads in this folder
    .github/workflows/soak.yml   a GitHub Actions workflow that runs soak with both files

With --publish-url, soak publishes messages to check their delivery. The service only has to deliver the text of a
message unchanged. soak replaces the placeholders in braces (docs/services.md):

    soak init 'https://HOST/rooms/news/events' --topic news \
      --publish-url 'https://HOST/rooms/news/messages' \
      --publish-body '{"author":"soak","text":"run={run} seq={seq} t={sentAt} sum={sum}"}'

For responses that end by themselves, such as answers from a language model, init prepares ` + "`soak run finite`" + `:

    soak init 'https://HOST/ask' --method POST --body '{"question":"{prompt}"}'

init does not overwrite files without --update or --force. Without a URL, init prompts for one.`

// An overwriteMode selects the existing files to replace: all (force), unedited ones (update), or none (zero).
type overwriteMode struct{ force, update bool }

func initCommand() *cobra.Command {
	var c probe.Config
	var seconds int
	var topics []string
	var mode overwriteMode
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
			if len(topics) > 0 {
				c.Topic = topics[0]
			}
			if err := cmp.Or(mode.check(c.Name+".js"), checkTopics(topics), checkProbe(&c, "", false)); err != nil {
				return usageError{Err: err}
			}
			ctx, stop := prepareProbe(cmd.Context(), &c)
			defer stop()
			result, err := probe.Run(ctx, c)
			if err != nil {
				return err //nolint:wrapcheck // a sentence for the user
			}
			if err := ctx.Err(); err != nil {
				return errors.New("interrupted: nothing was written")
			}
			return writeProject(cmd.OutOrStdout(), &c, topics, result, mode)
		},
	}
	f := cmd.Flags()
	secondsFlag(f, &seconds, 30, "length of the probe in seconds, at least 20; should cover 4 message intervals")
	f.StringVar(&c.Name, "name", "", "name of the service (default: the host of its URL)")
	f.StringArrayVar(&topics, "topic", nil, topicHelp+"; repeat it for further topics of the run")
	f.BoolVar(&mode.force, "force", false, "overwrite existing files")
	f.BoolVar(&mode.update, "update", false, "replace files that have not been edited since init wrote them; keep the others")
	serviceFlags(f, &c)
	return cmd
}

func (m overwriteMode) check(description string) error {
	if m.force && m.update {
		return errors.New("--force and --update cannot be combined")
	}
	for _, file := range []string{description, plan.SettingsFile, workflowFile} {
		if _, err := os.Lstat(file); err == nil && !m.force && !m.update {
			return fmt.Errorf("%s exists; pass --update to keep edited files, or --force to overwrite all", file)
		}
	}
	return nil
}

func promptURL(input io.Reader, output io.Writer) (string, error) {
	fmt.Fprint(output, "URL of an event stream (headers, topics and more are flags: soak init --help): ")
	line, err := bufio.NewReader(input).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		fmt.Fprintln(output)
		return "", usageError{Err: errors.New("a URL is required; run `soak init https://HOST/events`")}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the URL: %w", err)
	}
	return line, nil
}

// serviceName returns the configured name, or else the host of the URL. The description file is NAME.js.
func serviceName(c *probe.Config) (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" {
		return "", usageError{Err: fmt.Errorf("URL must have a host, such as https://HOST/events, got %q", c.URL)}
	}
	host := strings.TrimLeft(strings.ReplaceAll(u.Hostname(), ":", "-"), "-")
	name := cmp.Or(c.Name, host)
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") {
		return "", usageError{Err: fmt.Errorf("--name must have no / and must not start with a dot, because it names a file, got %q", name)}
	}
	return name, nil
}

//go:embed init_workflow.yml
var workflow string

// workflowOf returns the workflow with the action pinned to the commit id. A branch or a tag could change, and the
// action runs with the secrets of the user's repository. Without an id the placeholder COMMIT remains, and GitHub
// cannot run the workflow. release is "" if this build is not a release.
func workflowOf(release, id string) string {
	if id == "" {
		return strings.Replace(workflow, "VERSION", "the full hash of a release; this build of soak does not record its own", 1)
	}
	return strings.NewReplacer("@COMMIT", "@"+id, "VERSION", cmp.Or(release, "not a release")).Replace(workflow)
}

// workflowForSuite returns the workflow for a soak, or for the suite finite if the probe found finite streams.
func workflowForSuite(workflow string, result probe.Result) string {
	if !result.Finite {
		return workflow
	}
	return strings.NewReplacer("          args: |\n            --connections=10\n", "          command: run finite\n          args: |\n            --rate=1\n",
		"            --require-messages\n        # --require-messages: a run that checks no message is invalid, even if all connections stay open.\n", "").Replace(workflow)
}

var workflowFile = filepath.Join(".github", "workflows", "soak.yml")

const (
	firstConnections = 10
	firstSeconds     = "60"
)

// settingsFor returns the text of soak.yaml for the first run.
func settingsFor(c *probe.Config, topics []string, result probe.Result, description string) (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", usageError{Err: err}
	}
	values := map[string][]string{}
	set := func(name string, texts ...string) { values[name] = texts }
	set("service", "./"+description)
	set("backend-url", u.Scheme+"://"+u.Host)
	set("seconds", firstSeconds)
	if !result.Finite {
		set("connections", strconv.Itoa(firstConnections))
	}
	switch {
	case result.Topics && len(topics) > 0:
		set("topic", topics...)
	case result.Publishes && result.Topics:
		set("topics", "4")
	case result.Publishes:
		set("topics", "1")
	}
	if result.Publishes {
		set("publish-rate", "1")
	}
	if c.FollowRedirects {
		set("follow-redirects", "true")
	}
	if c.Insecure {
		set("insecure", "true")
	}
	if c.CA != "" {
		set("ca", c.CA)
	}
	return plan.SettingsText(values) //nolint:wrapcheck // the error names the setting
}

// checkTopics returns an error if the first run would refuse the topics.
func checkTopics(topics []string) error {
	switch n := len(topics); {
	case n > firstConnections:
		return fmt.Errorf("--topic must be passed at most %d times, the number of streams of the first run, got %d; add further topics to %s", firstConnections, n, plan.SettingsFile)
	case len(slices.Compact(slices.Sorted(slices.Values(topics)))) < n:
		return fmt.Errorf("--topic must have unique names, got %s", strings.Join(topics, ", "))
	}
	return nil
}

// writeProject writes the three files. If --update keeps an edited file, writeProject writes the new text to a second
// file, such as soak.new.yaml. It never writes a second workflow.
func writeProject(w io.Writer, c *probe.Config, topics []string, result probe.Result, mode overwriteMode) error {
	description := c.Name + ".js"
	settings, err := settingsFor(c, topics, result, description)
	if err != nil {
		return err
	}
	id, _ := source()
	if err := os.MkdirAll(filepath.Dir(workflowFile), 0o750); err != nil {
		return err //nolint:wrapcheck // the error names the folder
	}
	kept := map[string]bool{} // by path
	fmt.Fprintln(w)
	for _, file := range []struct{ path, text, comment string }{
		{description, result.Module, "//"}, {plan.SettingsFile, settings, "#"}, {workflowFile, workflowForSuite(workflowOf(release, id), result), "#"},
	} {
		path := file.path
		if kept[file.path] = mode.update && isEdited(path, file.comment); kept[file.path] {
			path = strings.TrimSuffix(path, filepath.Ext(path)) + ".new" + filepath.Ext(path)
			if file.path == workflowFile { // GitHub would run the second workflow too
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
	if len(result.Missing) > 0 {
		fmt.Fprintln(w, "\nNot found:")
		for _, sentence := range result.Missing {
			fmt.Fprintf(w, "  - %s\n", sentence)
		}
	}
	if len(result.Variables) > 0 {
		fmt.Fprintf(w, "\nNo file contains a token. A run reads tokens from the environment: set %s.\n", strings.Join(result.Variables, " and "))
	}
	_, err = fmt.Fprintf(w, "\nNext, a first run%s\n", firstRun(result, kept[description], kept[plan.SettingsFile]))
	return err //nolint:wrapcheck // of standard output
}

// firstRun describes the first run. The size of the run is unknown if init kept the settings of the user. The checks
// are unknown if init kept the description.
func firstRun(result probe.Result, keptDescription, keptSettings bool) string {
	size, checks, command := fmt.Sprintf(" of %d streams", firstConnections), "checks every message", "soak run"
	switch {
	case result.Finite:
		size, checks, command = " of one request per second", "accounts for each response", "soak run finite --rate 1"
	case !result.Checked:
		checks = "checks connections only"
	}
	if keptDescription {
		checks = "uses the kept description"
	}
	if size += " for " + firstSeconds + " s"; keptSettings {
		size = " with the settings of " + plan.SettingsFile
	}
	return fmt.Sprintf("%s, which %s:\n    %s", size, checks, command)
}

const checksumMark = " soak init: "

// addChecksum appends a comment with the checksum of the text, by which isEdited recognizes unchanged files.
func addChecksum(text, comment string) string {
	return fmt.Sprintf("%s%s%s%x\n", text, comment, checksumMark, sha256.Sum256([]byte(text)))
}

// isEdited reports whether the file differs from the one that init wrote, or cannot be read. A missing file is not
// edited.
func isEdited(path, comment string) bool {
	existing, err := os.ReadFile(path) // #nosec G304 -- in this folder
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	text, _, _ := strings.Cut(string(existing), comment+checksumMark)
	return string(existing) != addChecksum(text, comment)
}
