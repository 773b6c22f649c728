package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/secret"
)

// A Source names the evidence of a run, and the secrets to remove from it.
type Source struct {
	Folder     string         // folder of the run
	Prometheus string         // address, with user and password if needed; "" without Prometheus
	SkipReason string         // why Prometheus is not queried, as a sentence; "" if it is queried
	Secrets    *secret.Values // values to replace; if nil, only text that looks like a secret is replaced
	Version    string         // of soak
}

type maker struct {
	ctx      context.Context //nolint:containedctx // the context of Make, for every read
	dir      string
	secrets  *secret.Values
	contents Contents
}

// ErrHasData reports that the existing archive of the run has Prometheus data, and the new one would have none.
var ErrHasData = errors.New("the existing archive has the Prometheus data of the run, and a new one would have none")

// Make writes the archive of a run to a file, completely or not at all. If Prometheus cannot be read, the archive
// states the reason. However, Make does not replace an archive that has Prometheus data with one that has none: it
// returns ErrHasData.
func Make(ctx context.Context, from Source, file string) (Contents, error) {
	run, err := readVerdict(from.Folder)
	if err != nil {
		return Contents{}, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".archive-")
	if err != nil {
		return Contents{}, fmt.Errorf("make a folder for the archive: %w", err)
	}
	defer os.RemoveAll(dir)
	if from.Secrets == nil {
		from.Secrets = NewSecrets(nil, "")
	}
	m := &maker{ctx: ctx, dir: dir, secrets: from.Secrets, contents: Contents{
		Schema: Schema, TestID: run.TestID, Verdict: run.Verdict, Started: timeOf(run.Started), Ended: timeOf(run.Ended),
		Created: time.Now().UTC().Truncate(time.Second), Soak: from.Version,
	}}
	if err := m.addFiles(from.Folder); err != nil {
		return Contents{}, err
	}
	if err := m.addExport(from.Prometheus, from.SkipReason); err != nil {
		return m.contents, err
	}
	if m.contents.Prometheus.Missing != "" && HasData(file, run.TestID) {
		return m.contents, ErrHasData
	}
	if err := m.addContents(); err != nil {
		return m.contents, err
	}
	if err := m.scan(); err != nil {
		return m.contents, err
	}
	return m.contents, pack(ctx, dir, run.TestID, file)
}

// scan returns an error if the name or the content of a file in the archive still contains a secret.
func (m *maker) scan() error {
	return filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(m.dir, path)
		if err != nil {
			return err
		}
		if err := m.checkName(name); err != nil {
			return err
		}
		variable, err := m.remainingSecret(path)
		if err != nil {
			return fmt.Errorf("scan %s: %w", name, err)
		}
		if variable != "" {
			return fmt.Errorf("%s would contain the value of %s; remove the value from the results and make the archive again", name, variable)
		}
		return nil
	})
}

func (m *maker) checkName(name string) error {
	variable := m.secrets.FindRemaining([]byte(filepath.ToSlash(name)))
	if variable == "" {
		return nil
	}
	return fmt.Errorf("the name of the file %s contains the value of %s; rename the file and make the archive again",
		m.secrets.Replace([]byte(name), secret.Redacted), variable)
}

// remainingSecret returns the name of a variable whose value is in a file, which may be compressed. It returns "" if
// the file contains no such value.
func (m *maker) remainingSecret(path string) (string, error) {
	limit := int64(maxFile)
	if filepath.Base(path) == ExportFile {
		limit = maxBytes
	}
	file, err := safefile.Open(path, limit)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var text io.Reader = &interruptibleReader{m.ctx, file}
	if filepath.Ext(path) == ".gz" {
		if text, err = unpack(text); err != nil {
			return "", err
		}
	}
	return m.secrets.FindRemainingIn(text)
}

// copy creates a file with the content that fill writes.
func (m *maker) copy(name string, fill func(io.Writer) error) error {
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // #nosec G304 -- in our temporary folder
	if err != nil {
		return err
	}
	return errors.Join(fill(out), out.Close())
}

// addContents stores archive.json. The secrets in it are already replaced. A second replacement would change file names
// such as token.log.
func (m *maker) addContents() error {
	text, err := json.MarshalIndent(m.contents, "", "  ")
	if err != nil {
		return err
	}
	text = []byte(format.Escape(string(text))) // the escaped characters are inside JSON strings
	if len(text) >= maxContents {
		return fmt.Errorf("%s must have at most %s, got %s; remove files that no run writes from the results", contentsFile,
			format.Bytes(maxContents), format.Bytes(len(text)))
	}
	return m.copy(contentsFile, func(out io.Writer) error {
		_, err := out.Write(append(text, '\n'))
		return err
	})
}

// omit adds a sentence about an omitted file to the contents, once and without secrets.
func (m *maker) omit(format string, args ...any) {
	sentence := string(m.secrets.Replace(fmt.Appendf(nil, format, args...), secret.Redacted))
	if !slices.Contains(m.contents.Omitted, sentence) {
		m.contents.Omitted = append(m.contents.Omitted, sentence)
	}
}
