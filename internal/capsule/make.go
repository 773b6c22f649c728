package capsule

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
	"github.com/sse-soak/sse-soak/internal/history"
	"github.com/sse-soak/sse-soak/internal/regularfile"
	"github.com/sse-soak/sse-soak/internal/secret"
)

// A Source names the places of the evidence of a run.
type Source struct {
	Results    string // folder of the run
	Prometheus string // address, with user and password if needed; "": none
	Without    string // why Prometheus is not asked, as a sentence; "": it is asked
	Dashboards string // folder of dashboards; "": none
	Compose    string // compose.yaml, which names the images of the stack; "": none
	Secrets    Secrets
	Version    string // of soak
}

// A making is a capsule under construction, in a folder.
type making struct {
	ctx      context.Context //nolint:containedctx // of Make, for every read
	dir      string
	secrets  Secrets
	contents Contents
}

// ErrHasData reports that the existing capsule of the run has Prometheus data, and the new one would have none.
var ErrHasData = errors.New("the existing capsule has the Prometheus data of the run, and a new one would not")

// Make writes the capsule of a run to a file, completely or not at all. If Prometheus cannot be reached, the capsule
// contains the reason.
func Make(ctx context.Context, from Source, file string) (Contents, error) {
	run, err := readVerdict(from.Results)
	if err != nil {
		return Contents{}, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".capsule-")
	if err != nil {
		return Contents{}, fmt.Errorf("make a folder for the capsule: %w", err)
	}
	defer os.RemoveAll(dir)
	if from.Secrets.Values == nil {
		from.Secrets = NewSecrets(nil, "")
	}
	m := &making{ctx: ctx, dir: dir, secrets: from.Secrets, contents: Contents{
		Schema: Schema, TestID: run.TestID, Verdict: run.Verdict, Started: instant(run.Started), Ended: instant(run.Ended),
		Made: time.Now().UTC().Truncate(time.Second), Soak: from.Version,
	}}
	if err := m.addResults(from.Results); err != nil {
		return Contents{}, err
	}
	known, err := m.addPrometheus(ctx, from.Prometheus, from.Without)
	if err == nil && m.contents.Prometheus.Missing != "" && HasData(file, run.TestID) {
		return m.contents, ErrHasData
	}
	if err == nil {
		err = m.addDashboards(from.Dashboards)
	}
	if err == nil {
		err = errors.Join(m.addJSON(versionsFile, versionsOf(ctx, from, run, known)), m.addJSON(kernelFile, kernelOf(known)))
	}
	if err == nil {
		err = m.addJSON(contentsFile, m.contents)
	}
	if err == nil {
		err = m.scan()
	}
	if err == nil {
		err = pack(ctx, dir, run.TestID, file)
	}
	return m.contents, err
}

// scan refuses a capsule that still contains a secret, whatever file or name it is in.
func (m *making) scan() error {
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
		left, err := m.left(path)
		if err != nil {
			return fmt.Errorf("scan %s: %w", name, err)
		}
		if left != "" {
			return fmt.Errorf("%s would contain the value of %s; remove it from the results and make the capsule again", name, left)
		}
		return nil
	})
}

// checkName refuses the name of a file that contains a secret.
func (m *making) checkName(name string) error {
	left := m.secrets.Left([]byte(filepath.ToSlash(name)))
	if left == "" {
		return nil
	}
	return fmt.Errorf("the name of the file %s contains the value of %s; rename the file and make the capsule again",
		m.secrets.Replace([]byte(name), secret.Redacted), left)
}

// left returns the variable of a secret in a file, in a compressed one too; "" if there is none.
func (m *making) left(path string) (string, error) {
	file, err := regularfile.Open(path, mostFile)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var text io.Reader = &interruptible{m.ctx, file}
	if filepath.Ext(path) == ".gz" {
		if text, err = unpacked(text); err != nil {
			return "", err
		}
	}
	return m.secrets.LeftIn(text)
}

// addPrometheus stores the Prometheus data of the run's time.
func (m *making) addPrometheus(ctx context.Context, address, without string) (*known, error) {
	k := newKnown()
	if without != "" {
		m.contents.Prometheus.Missing = m.secrets.String(without)
		return k, nil
	}
	if address == "" {
		m.contents.Prometheus.Missing = "no Prometheus address; set --prometheus or PROMETHEUS_URL"
		return k, nil
	}
	prometheus, err := history.At(address)
	if err != nil {
		return k, err
	}
	snapshot := Snapshot{Address: prometheus.String(), From: m.contents.Started.Add(-margin), To: m.contents.Ended.Add(margin)}
	if now := time.Now().UTC(); snapshot.To.After(now) {
		snapshot.To = now
	}
	snapshot.From, snapshot.To = snapshot.From.Truncate(time.Millisecond), snapshot.To.Truncate(time.Millisecond)
	clean := map[string]string{} // of each value of a label
	var ours error               // an error of this program, not of Prometheus
	err = prometheus.Take(ctx, snapshot.From, snapshot.To, func(series []*history.Series) error {
		for _, s := range series {
			for _, label := range s.Labels {
				value, seen := clean[label.Value]
				if !seen {
					value = m.secrets.String(label.Value)
					clean[label.Value] = value
				}
				label.Value = value
			}
			snapshot.Samples += len(s.Samples)
			snapshot.Histograms += len(s.Histograms)
			k.see(s)
		}
		var bodies [][]byte
		if bodies, ours = history.Requests(series); ours != nil {
			return ours
		}
		for _, body := range bodies {
			snapshot.Requests++
			if ours = m.put(filepath.Join(PrometheusDir, fmt.Sprintf("%06d.pb", snapshot.Requests)), body); ours != nil {
				return ours
			}
		}
		return nil
	})
	snapshot.Series = len(k.series)
	switch {
	case ours != nil:
		return k, ours
	case ctx.Err() != nil:
		return k, ctx.Err()
	case err != nil:
		if err := os.RemoveAll(filepath.Join(m.dir, PrometheusDir)); err != nil { // part of the data would look like all of it
			return k, err
		}
		m.contents.Prometheus.Missing = m.secrets.String(err.Error())
		return newKnown(), nil
	case snapshot.Samples+snapshot.Histograms == 0:
		m.contents.Prometheus.Missing = fmt.Sprintf("Prometheus at %s has no data from %s to %s", snapshot.Address,
			snapshot.From.Format(time.RFC3339), snapshot.To.Format(time.RFC3339))
		return k, nil
	}
	m.contents.Prometheus = snapshot
	return k, nil
}

func (m *making) addDashboards(folder string) error {
	if folder == "" {
		m.leaveOut("the dashboards were not found next to this program")
		return nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := m.addFile(file, filepath.Join(DashboardsDir, filepath.Base(file))); err != nil {
			return fmt.Errorf("read the dashboards: %w", err)
		}
	}
	return nil
}

// put stores a file.
func (m *making) put(name string, content []byte) error {
	return m.copy(name, func(out io.Writer) error {
		_, err := out.Write(content)
		return err
	})
}

// copy stores a file that fill writes.
func (m *making) copy(name string, fill func(io.Writer) error) error {
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // G304: in our temporary folder
	if err != nil {
		return err
	}
	return errors.Join(fill(out), out.Close())
}

func (m *making) addJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	text = []byte(format.Escape(string(text))) // in JSON, such characters are in strings only
	if name == contentsFile && len(text) >= mostContents {
		return fmt.Errorf("%s must have at most %s, got %s; remove files from the results that no run leaves", name,
			format.Bytes(mostContents), format.Bytes(len(text)))
	}
	if name == contentsFile { // names files, such as token.log, whose names look like secrets
		return m.put(name, append(text, '\n'))
	}
	clean, _ := m.secrets.Clean(text)
	return m.put(name, append(clean, '\n'))
}

func (m *making) leaveOut(format string, args ...any) {
	sentence := string(m.secrets.Replace(fmt.Appendf(nil, format, args...), secret.Redacted))
	if !slices.Contains(m.contents.LeftOut, sentence) {
		m.contents.LeftOut = append(m.contents.LeftOut, sentence)
	}
}
