// Command prometheusurl prints the address of the stack's Prometheus with user and password, in the format of
// PROMETHEUS_URL. It reads .env through Docker Compose, because only Compose implements the syntax of that file.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// user is the user of Prometheus in the password file of nginx.
const user = "prometheus"

func main() {
	text, err := address(context.Background())
	if err != nil {
		fmt.Fprintf(os.Stderr, "find the address of the stack's Prometheus: %v; set PROMETHEUS_URL\n", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

// address returns the address of Prometheus from the configuration that `docker compose` prints. options are options of
// `docker compose`.
func address(ctx context.Context, options ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "docker", append(append([]string{"compose"}, options...), "config", "--format", "json")...).Output() // #nosec G204 -- the caller's own options, without a shell
	if err != nil {
		if exitErr := new(exec.ExitError); errors.As(err, &exitErr) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exitErr.Stderr)))
		}
		return "", fmt.Errorf("docker compose config: %w", err)
	}
	var stack struct {
		Services struct {
			Prometheus struct{ Command []string }
			Nginxconf  struct{ Environment map[string]string }
		}
	}
	if err := json.Unmarshal(output, &stack); err != nil {
		return "", fmt.Errorf("docker compose config: %w", err)
	}
	// Compose doubles each $ in its output.
	unescape := func(value string) string { return strings.ReplaceAll(value, "$$", "$") }
	for _, argument := range stack.Services.Prometheus.Command {
		if externalURL, ok := strings.CutPrefix(unescape(argument), "--web.external-url="); ok {
			u, err := url.Parse(externalURL)
			if err != nil {
				return "", fmt.Errorf("PUBLIC_URL: %w", err)
			}
			u.User = url.UserPassword(user, unescape(stack.Services.Nginxconf.Environment["PROMETHEUS_PASSWORD"]))
			return u.String(), nil
		}
	}
	return "", errors.New("read compose.yaml: the command of Prometheus has no --web.external-url")
}
