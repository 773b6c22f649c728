package archive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/secret"
)

// Secrets are values that an archive must not contain.
type Secrets struct{ *secret.Values }

// NewSecrets returns the secrets of an environment, of a file like .env if it exists, and of addresses with a password.
func NewSecrets(environment []string, dotenv string, addresses ...string) Secrets {
	if text, err := os.ReadFile(dotenv); err == nil { // #nosec G304 -- the .env of the working directory
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			environment = append(slices.Clip(environment), strings.TrimSpace(lines.Text()))
		}
	}
	return Secrets{secret.Environment(environment, addresses...)}
}

// copy copies text without secrets, and reports whether it found any.
func (s Secrets) copy(out io.Writer, text io.Reader) (found bool, err error) {
	writer := s.Writer(out)
	_, err = io.CopyBuffer(struct{ io.Writer }{writer}, struct{ io.Reader }{text}, make([]byte, 128<<10))
	return writer.Found, errors.Join(err, writer.Close())
}
