package capsule

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/regularfile"
)

// kinds are the files of a run. Whatever else lies in its folder, such as keys and certificates, is nobody's evidence.
var kinds = []string{".json", ".ndjson", ".csv", ".html", ".md", ".txt", ".log", ".gz"}

// inPage says that report.html carries a copy of a file, which no search finds.
func inPage(name string) bool { return name == "verdict.json" || filepath.Ext(name) == ".csv" }

const page = "report.html"

// addResults copies the folder of a run, without secrets.
func (m *making) addResults(folder string) error {
	var stale bool // the page has a copy of what was redacted
	var later []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") || !slices.Contains(kinds, filepath.Ext(name)):
			m.leaveOut("%s is no file that a run leaves", filepath.Join(ResultsDir, name))
			return nil
		case !packable(name):
			m.leaveOut("%q has a name that no archive carries everywhere", filepath.Join(ResultsDir, name))
			return nil
		case name == page:
			later = append(later, name)
			return nil
		}
		found, err := m.addFile(path, filepath.Join(ResultsDir, name))
		stale = stale || found && inPage(name)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the results in %s: %w", folder, err)
	}
	if stale {
		m.leaveOut("%s has copies of files in which secrets were replaced: `soak report` makes it anew", page)
		return nil
	}
	for _, name := range later {
		if _, err := m.addFile(filepath.Join(folder, name), filepath.Join(ResultsDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// packable: Open takes the name, and so does sha256sum. A described service names files as it likes.
func packable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || unicode.IsControl(r) })
}

// addFile copies one file, without secrets; found says that there was one. A compressed file with one is left out.
func (m *making) addFile(path, name string) (found bool, err error) {
	text, err := regularfile.Read(path, mostUnpacked)
	if errors.Is(err, regularfile.ErrTooLarge) {
		m.leaveOut("%s is too large", name)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if filepath.Ext(name) == ".gz" {
		switch secret, err := m.packedSecret(text); {
		case err != nil:
			m.leaveOut("%s cannot be read, so that nobody knows whether a secret is in it: %v", name, err)
			return false, nil
		case secret:
			m.leaveOut("%s has a secret in it", name)
			return true, nil
		}
		return false, m.put(name, text)
	}
	clean := m.secrets.Clean
	if filepath.Base(name) == page {
		clean = m.secrets.Page
	}
	text, found = clean(text)
	if found {
		m.contents.Redacted = append(m.contents.Redacted, filepath.ToSlash(name))
	}
	return found, m.put(name, text)
}

// mostUnpacked bounds what is looked at of a compressed file: no shard is larger.
const mostUnpacked = 2 << 30

func (m *making) packedSecret(packed []byte) (bool, error) {
	text, err := unpack(packed)
	if err != nil {
		return false, err
	}
	_, found := m.secrets.Clean(text)
	return found, nil
}

// unpack returns what a compressed file contains.
func unpack(packed []byte) ([]byte, error) {
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, mostUnpacked+1))
	if err == nil && len(text) > mostUnpacked {
		err = errors.New("it is too large")
	}
	return text, err
}
