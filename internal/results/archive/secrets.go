package archive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/secret"
)

// Secrets are values that never go into an archive.
type Secrets struct{ *secret.Values }

// NewSecrets returns the secrets of an environment, of a file like .env if it exists, and of addresses with a password.
func NewSecrets(environment []string, dotenv string, addresses ...string) Secrets {
	if text, err := os.ReadFile(dotenv); err == nil { //nolint:gosec // G304: the .env of the working directory
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			environment = append(slices.Clip(environment), strings.TrimSpace(lines.Text()))
		}
	}
	return Secrets{secret.Environment(environment, addresses...)}
}

// copy copies text without secrets. isPage means that the text is report.html, whose code is not changed.
func (s Secrets) copy(out io.Writer, text io.Reader, isPage bool) (found bool, err error) {
	clean := s.Writer(out)
	var to io.WriteCloser = clean
	if isPage {
		to = &pageWriter{clean: clean, out: out}
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{text}, make([]byte, 128<<10))
	return clean.Found, errors.Join(err, to.Close())
}

// code matches the code of report.html, which is the same in every report of a version. The policy of the page has its hash.
var code = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>`)

const (
	maxCode    = 1 << 20 // bytes of a style or script of the page: those of this version have 62 KB
	openingTag = len("<script>")
)

// A pageWriter passes report.html to a writer without secrets, and its code to out as it is.
type pageWriter struct {
	clean *secret.Writer
	out   io.Writer
	rest  []byte
}

func (w *pageWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	return len(p), w.pass(false)
}

func (w *pageWriter) Close() error { return errors.Join(w.pass(true), w.clean.Close()) }

// pass writes the complete parts, and everything at the end.
func (w *pageWriter) pass(end bool) error {
	for {
		at := code.FindIndex(w.rest)
		if at == nil {
			break
		}
		if err := w.text(at[0]); err != nil {
			return err
		}
		if err := w.clean.Flush(); err != nil {
			return err
		}
		if _, err := w.out.Write(w.rest[:at[1]-at[0]]); err != nil {
			return err
		}
		w.rest = w.rest[at[1]-at[0]:]
	}
	if end {
		return w.text(len(w.rest))
	}
	n := len(w.rest) - openingTag
	for _, tag := range []string{"<style>", "<script>"} {
		if i := bytes.Index(w.rest, []byte(tag)); i >= 0 && len(w.rest)-i <= maxCode {
			n = min(n, i)
		}
	}
	return w.text(max(n, 0))
}

// text passes the first n bytes of rest without secrets.
func (w *pageWriter) text(n int) error {
	_, err := w.clean.Write(w.rest[:n])
	w.rest = w.rest[n:]
	return err
}
