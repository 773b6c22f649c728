package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/secret"
)

// evidenceExtensions lists the extensions of the files that a run writes. Other files, such as keys, are omitted.
var evidenceExtensions = []string{".json", ".ndjson", ".csv", ".html", ".md", ".txt", ".log", ".gz"}

// isInPage reports whether report.html may contain the data of a file. The page encodes the data, so the page cannot be
// searched for secrets.
func isInPage(name string) bool { return filepath.Ext(name) != ".log" && filepath.Ext(name) != ".gz" }

const page = "report.html"

func (m *maker) addFiles(folder string) error {
	var hasPage bool
	var stale bool // the page may contain data of a file in which addFile replaced secrets
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, m.ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir(), name == contentsFile: // archive.json: the folder was unpacked from an earlier archive
			return nil
		case !isPackable(name):
			m.omit("%q has a name that is not valid on every system", name)
			return nil
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") || !slices.Contains(evidenceExtensions, filepath.Ext(name)):
			m.omit("%s is not a file that a run writes", name)
			return nil
		case name == page:
			hasPage = true
			return nil
		}
		found, err := m.addFile(path, name)
		stale = stale || found && isInPage(name)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the results in %s: %w", folder, err)
	}
	if hasPage && stale {
		m.omit("%s has data of files in which secrets were redacted; run `soak report` on the opened archive to write the page", page)
		return nil
	}
	if hasPage {
		_, err = m.addFile(filepath.Join(folder, page), page)
	}
	return err
}

// isPackable reports whether Open and sha256sum accept a name, and a terminal shows it unchanged.
func isPackable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsAny(name, "\\\n\t") && format.Escape(name) == name
}

// addFile copies one file, and replaces its secrets. found reports whether the file has a secret. A compressed file
// with a secret is omitted, as is a file that is too large or cannot be unpacked. report.html is copied unchanged,
// without a search.
func (m *maker) addFile(path, name string) (found bool, err error) {
	if err := m.checkName(name); err != nil {
		return false, err
	}
	in, err := safefile.Open(path, maxFile)
	if errors.Is(err, safefile.ErrTooLarge) {
		m.omit("%s was left out: %v", name, errors.Unwrap(err))
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	file := &interruptibleReader{m.ctx, in}
	if filepath.Ext(name) == ".gz" {
		switch secret, err := m.hasPackedSecret(file); {
		case m.ctx.Err() != nil:
			return false, m.ctx.Err()
		case errors.Is(err, errUnpackedTooLarge):
			m.omit("%s was left out: its compressed size is %s, but it unpacks to over %s; remove the file", name, sizeOf(in), format.Bytes(maxFile))
			return false, nil
		case err != nil:
			m.omit("%s was left out: it cannot be searched for secrets: %v", name, err)
			return false, nil
		case secret:
			m.omit("%s was left out: it contains a secret", name)
			return true, nil
		}
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
	}
	if filepath.Ext(name) == ".gz" || name == page { // not redacted: the content security policy of the page has the hash of its code
		return false, m.copy(name, func(out io.Writer) error {
			_, err := io.Copy(out, file)
			return err
		})
	}
	err = m.copy(name, func(out io.Writer) (err error) {
		found, err = m.copyRedacted(out, file)
		return err
	})
	if found {
		m.contents.Redacted = append(m.contents.Redacted, filepath.ToSlash(name))
	}
	return found, err
}

// maxFile is the maximum size of a file, before and after decompression.
const maxFile = safefile.Table

var errUnpackedTooLarge = errors.New("the unpacked file is too large")

func sizeOf(file *os.File) string {
	info, err := file.Stat()
	if err != nil {
		return "unknown"
	}
	return format.Bytes(info.Size())
}

func (m *maker) hasPackedSecret(packed io.Reader) (bool, error) {
	text, err := unpack(packed)
	if err != nil {
		return false, err
	}
	return m.copyRedacted(io.Discard, text)
}

// unpack returns a reader of the content of a compressed file. The reader fails with errUnpackedTooLarge after maxFile
// bytes.
func unpack(packed io.Reader) (io.Reader, error) {
	in, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	return &limitedReader{from: in, remaining: maxFile}, nil
}

// A limitedReader fails with errUnpackedTooLarge when more than the remaining bytes are read.
type limitedReader struct {
	from      io.Reader
	remaining int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if l.remaining -= int64(n); l.remaining < 0 {
		return n, errUnpackedTooLarge
	}
	return n, err
}

// NewSecrets returns the values that an archive must not contain: secrets in an environment, a .env file and addresses.
// It ignores a .env file that it cannot read.
func NewSecrets(environment []string, dotenv string, addresses ...string) *secret.Values {
	if text, err := os.ReadFile(dotenv); err == nil { // #nosec G304 -- the .env of the working directory
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			environment = append(slices.Clip(environment), strings.TrimSpace(lines.Text()))
		}
	}
	return secret.Environment(environment, addresses...)
}

// copyRedacted copies text, replaces the secrets in the copy, and reports whether it found any.
func (m *maker) copyRedacted(out io.Writer, text io.Reader) (found bool, err error) {
	writer := m.secrets.Writer(out)
	_, err = io.CopyBuffer(struct{ io.Writer }{writer}, struct{ io.Reader }{text}, make([]byte, 128<<10))
	return writer.Found, errors.Join(err, writer.Close())
}
