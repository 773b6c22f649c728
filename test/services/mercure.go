package services

import (
	"crypto/hmac"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// mercureKey signs the tokens for the hubs that tests start on this machine. The key is not secret.
const mercureKey = "a public key for tests of this project"

// mercureCommand returns the command of the hub in mercure/, which embeds github.com/dunglas/mercure.
func mercureCommand(s setup) (command, error) {
	hub, err := buildPath(s, "mercure", "mercure")
	if err != nil {
		return command{}, err
	}
	args, settings := []string{"-listen", s.address}, "transport local, no history"
	if s.History >= 0 {
		settings = "transport bolt, history without a limit"
		args = append(args, "-history", filepath.Join(s.dir, "history.db"))
		if s.History > 0 {
			settings = fmt.Sprintf("transport bolt, history of %d events", s.History)
			args = append(args, "-events", strconv.Itoa(s.History))
		}
	}
	if s.Heartbeat > 0 {
		args = append(args, "-heartbeat", s.Heartbeat.Truncate(time.Second).String())
	}
	if s.Lifetime > 0 {
		args = append(args, "-lifetime", s.Lifetime.String())
	}
	env, access := []string{"PUBLISHER_JWT_KEY=" + mercureKey}, "all clients may subscribe"
	var runEnv []string
	if s.Tokens {
		runEnv, access = []string{"SUBSCRIBER_JWT_KEY=" + mercureKey}, "subscribers need a JWT"
	}
	return command{
		path: hub, args: args, env: append(env, runEnv...), runEnv: runEnv, token: mercureToken(),
		version: moduleVersion(hub, "github.com/dunglas/mercure"), settings: settings + "; " + access,
	}, nil
}

// mercureToken returns a JWT that allows publishing to every topic.
func mercureToken() string {
	encode := base64.RawURLEncoding.EncodeToString
	signingInput := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(`{"mercure":{"publish":["*"]}}`))
	mac := hmac.New(sha256.New, []byte(mercureKey))
	mac.Write([]byte(signingInput))
	return signingInput + "." + encode(mac.Sum(nil))
}

// moduleVersion returns the version of a module in a Go program, and the version of Go that built the program, or "" if
// they are unknown.
func moduleVersion(program, module string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version + ", " + info.GoVersion
		}
	}
	return ""
}
