// Command nginxconf writes the files for nginx, Prometheus and Alertmanager of compose.yaml from environment
// variables. The files are nginx.conf, the password file for /prometheus/, the lists of backends and Alertmanagers for
// Prometheus, and the configuration of Alertmanager. The command runs in a container before these programs start, so
// that the host needs only Docker.
package main

import (
	"crypto/rand"
	"crypto/sha1" // #nosec G505 -- the strongest hash in all builds of nginx; a generated password has 192 random bits
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/infra/alertmanager"
	"github.com/sse-soak/sse-soak/nginx"
)

// Addresses of the stack on the loopback interface of the host.
const (
	internal   = "127.0.0.1:9145"
	grafana    = "127.0.0.1:3000"
	prometheus = "127.0.0.1:9090"
	alerts     = "127.0.0.1:9093"
)

// idleTimeout is longer than the timeouts of clients and backends, so that nginx closes no stream before they do.
const idleTimeout = time.Hour

func main() {
	if err := write(folders{"/etc/nginx-conf", "/etc/prometheus-targets", "/etc/alertmanager-conf"}, os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "nginxconf:", err)
		os.Exit(1)
	}
}

// folders has the paths of the folders for the files of nginx, of Prometheus and of Alertmanager.
type folders struct{ conf, targets, alerts string }

func write(to folders, env func(string) string) error {
	c, err := config(env)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := nginx.Render(&text, c); err != nil {
		return err
	}
	password := env("PROMETHEUS_PASSWORD")
	if password == "" {
		return errors.New("PROMETHEUS_PASSWORD must not be empty; run `make up`, which creates one in .env")
	}
	line, err := passwordLine("prometheus", password)
	if err != nil {
		return err
	}
	list, err := json.Marshal(scrapeTargets(c))
	if err != nil {
		return err
	}
	alertmanagerList, alertmanagerConfig, err := alertmanagers(env)
	if err != nil {
		return err
	}
	return errors.Join(
		// nginx.conf contains the token; root reads it before the workers start.
		replace(filepath.Join(to.conf, "nginx.conf"), text.String(), 0o600),
		replace(filepath.Join(to.conf, "htpasswd"), line, 0o644),
		replace(filepath.Join(to.targets, "backend.json"), string(list), 0o644),
		// The name does not end with .json, because Prometheus reads .json files in this folder as lists of backends.
		replace(filepath.Join(to.targets, "alertmanager.yml"), alertmanagerList, 0o644),
		replace(filepath.Join(to.alerts, "alertmanager.yml"), alertmanagerConfig, 0o644), // read by Alertmanager only
	)
}

// config returns nginx's configuration with the settings of the environment.
func config(env func(string) string) (nginx.Config, error) {
	connections, err := strconv.Atoi(env("CONNECTIONS"))
	if err != nil || connections < 1 {
		return nginx.Config{}, fmt.Errorf("CONNECTIONS must be a positive whole number, got %q", env("CONNECTIONS"))
	}
	open := env("OPEN_DISCONNECT")
	if open != "on" && open != "off" {
		return nginx.Config{}, fmt.Errorf("OPEN_DISCONNECT must be on or off, got %q", open)
	}
	c := nginx.Config{
		Dir: "/tmp", ErrorLog: "/dev/stderr", Listen: env("HTTP_PORT"), Sockets: []string{socket(1)},
		Connections: connections, IdleTimeout: idleTimeout,
		Site: &nginx.Site{ // #nosec G101 -- names of files, and the variable's own value
			AccessLog: "/dev/stdout", Token: env("BACKEND_TOKEN"), OpenDisconnect: open == "on",
			Internal: internal, Grafana: grafana, Prometheus: prometheus, PasswordFile: "/etc/nginx-conf/htpasswd",
			TLSListen: env("HTTPS_PORT"), Certificate: "/etc/nginx-certs/server.pem", Key: "/etc/nginx-certs/server-key.pem",
		},
	}
	for name, port := range map[string]string{"HTTP_PORT": c.Listen, "HTTPS_PORT": c.Site.TLSListen} {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil && (name == "HTTP_PORT" || port != "") {
			return nginx.Config{}, fmt.Errorf("%s must be the number of a port, got %q", name, port)
		}
	}
	if profile(env, "cluster") {
		c.Sockets = append(c.Sockets, socket(2), socket(3))
	}
	return c, nil
}

// profile reports whether a profile of Compose is enabled.
func profile(env func(string) string, name string) bool {
	return slices.Contains(strings.Split(env("COMPOSE_PROFILES"), ","), name)
}

// alertmanagers returns the list of Alertmanagers to which Prometheus sends alerts, and the configuration of the
// stack's Alertmanager. Without the profile alerts, the list and the configuration are empty.
func alertmanagers(env func(string) string) (list, config string, err error) {
	if !profile(env, "alerts") {
		return "[]", "", nil
	}
	text, err := alertmanager.Config(env("ALERT_WEBHOOK_URL"), env("ALERT_SNS_TOPIC"))
	return `[{"targets": ["` + alerts + `"], "labels": {"instance": "stack"}}]`, string(text), err
}

func socket(n int) string { return fmt.Sprintf("/run/backend/backend-%d.sock", n) }

// scrapeTargets returns the list of backends for Prometheus's file discovery. Prometheus reaches the backends through
// nginx, because they listen on unix sockets.
func scrapeTargets(c nginx.Config) (list []map[string]any) {
	for n := range c.Sockets {
		name := fmt.Sprintf("backend-%d", n+1)
		list = append(list, map[string]any{
			"targets": []string{internal}, "labels": map[string]string{"__metrics_path__": "/" + name + "/metrics", "instance": name},
		})
	}
	return list
}

// passwordLine returns a salted entry of an htpasswd file.
func passwordLine(user, password string) (string, error) {
	salt := make([]byte, 8)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("create a salt: %w", err)
	}
	sum := sha1.Sum(append([]byte(password), salt...)) // #nosec G401 -- see above
	return fmt.Sprintf("%s:{SSHA}%s\n", user, base64.StdEncoding.EncodeToString(append(sum[:], salt...))), nil
}

// replace writes a file atomically, because its readers may be running.
func replace(path, text string, mode os.FileMode) error {
	part := path + ".part"
	if err := os.WriteFile(part, []byte(text), mode); err != nil {
		return err
	}
	return os.Rename(part, path)
}
