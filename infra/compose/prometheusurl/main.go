// Command prometheusurl prints the address of the stack's Prometheus with the user and the password in it, as
// PROMETHEUS_URL takes it. It asks Docker Compose, which alone knows how a line of .env is read.
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

// user is whom nginx lets through to Prometheus.
const user = "prometheus"

func main() {
	text, err := address(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "the address of the stack's Prometheus is not known, name it by PROMETHEUS_URL:", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

// address reads what Compose, with these options, would start.
func address(ctx context.Context, options ...string) (string, error) {
	said, err := exec.CommandContext(ctx, "docker", append(append([]string{"compose"}, options...), "config", "--format", "json")...).Output() // #nosec G204 -- the caller's own options, without a shell
	if err != nil {
		if failed := new(exec.ExitError); errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("docker compose config: %w", err)
	}
	var stack struct {
		Services struct {
			Prometheus struct{ Command []string }
			Nginxconf  struct{ Environment map[string]string }
		}
	}
	if err := json.Unmarshal(said, &stack); err != nil {
		return "", fmt.Errorf("docker compose config: %w", err)
	}
	// A $ is doubled, so that what is said may be read again.
	written := func(value string) string { return strings.ReplaceAll(value, "$$", "$") }
	for _, argument := range stack.Services.Prometheus.Command {
		if at, ok := strings.CutPrefix(written(argument), "--web.external-url="); ok {
			u, err := url.Parse(at)
			if err != nil {
				return "", fmt.Errorf("PUBLIC_URL: %w", err)
			}
			u.User = url.UserPassword(user, written(stack.Services.Nginxconf.Environment["PROMETHEUS_PASSWORD"]))
			return u.String(), nil
		}
	}
	return "", errors.New("compose.yaml tells Prometheus no --web.external-url")
}
