package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/target"
)

// prepare settles what some suites need of their target.
func (s *suiteSettings) prepare() error {
	if s.Streams {
		if err := s.prepareStreams(); err != nil {
			return usageError{err}
		}
	}
	if s.Cluster { // the script says what is wrong with another one
		s.clusterSize, _ = strconv.Atoi(s.setting("CLUSTER_SIZE", "3"))
	}
	if !s.MutualTLS {
		return nil
	}
	folder, err := filepath.Abs(s.setting("CERTS", "certs"))
	if err != nil {
		return err
	}
	s.certificates = target.Certificates(folder)
	return s.certificates.Check()
}

// prepareStreams gives backend and script the same noop interval, and every stream its id.
func (s *suiteSettings) prepareStreams() error {
	const byDefault = "1" // second
	text := s.setting("NOOP_INTERVAL", byDefault)
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0.001 && seconds <= 86400) {
		return fmt.Errorf("NOOP_INTERVAL is %q: it must be a number of seconds, from 0.001 to a day", text)
	}
	s.noopInterval = time.Duration(seconds * float64(time.Second))
	s.plan.Prefix = s.setting("PREFIX", s.Name+"-")
	s.env = append(s.env, "NOOP_INTERVAL="+text, "PREFIX="+s.plan.Prefix)
	return nil
}

// setting is what the script will find under that name: a flag, or the environment.
func (s *suiteSettings) setting(name, otherwise string) string {
	for _, given := range s.env {
		if value, ok := strings.CutPrefix(given, name+"="); ok {
			return value
		}
	}
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// nowhere is the environment of a script whose targets do not run yet.
func (s *suiteSettings) nowhere() []string {
	url := "http://127.0.0.1:1"
	if s.MutualTLS {
		url = "https://127.0.0.1:1"
	}
	env := []string{"BACKEND_URL=" + url, "CLUSTER_URL=" + url, "RUNNERS=" + strconv.Itoa(s.plan.Runners)}
	if s.MutualTLS {
		env = append(env, "CERTS="+string(s.certificates))
	}
	return env
}
