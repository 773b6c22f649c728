package capsule

import (
	"bufio"
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/secret"
)

// Secrets are values that never go into a capsule.
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

// code matches the code of report.html: it is the same in every report of a version, and the page's policy has its hash.
var code = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>`)

// Page is Clean for report.html.
func (s Secrets) Page(text []byte) (clean []byte, found bool) {
	done := 0
	for _, at := range append(code.FindAllIndex(text, -1), []int{len(text), len(text)}) {
		part, one := s.Clean(text[done:at[0]])
		clean, found, done = append(append(clean, part...), text[at[0]:at[1]]...), found || one, at[1]
	}
	return clean, found
}
