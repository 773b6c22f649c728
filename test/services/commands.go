package services

import (
	"crypto/hmac"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

var nchanModules = []string{"/usr/lib/nginx/modules/ngx_nchan_module.so", "/usr/lib64/nginx/modules/ngx_nchan_module.so"}

// nchanCommand returns the command of nginx with the module nchan from Debian's package libnginx-mod-nchan.
func nchanCommand(s setup) (command, error) {
	nginx, err := find("nchan", "nginx", "nginx-light libnginx-mod-nchan")
	if err != nil {
		return command{}, err
	}
	module := ""
	for _, path := range nchanModules {
		if _, err := os.Stat(path); err == nil {
			module = path
		}
	}
	if module == "" {
		return command{}, &MissingError{"nchan", "nginx lacks the module nchan; run `apt-get install libnginx-mod-nchan`"}
	}
	streams := s.Streams
	if streams == 0 {
		streams = 4000
	}
	buffer := s.History
	switch {
	case buffer == 0:
		buffer = 1000
	case buffer < 0:
		buffer = 0
	}
	const workers = 1
	path, err := configure(s, "nchan.conf", map[string]any{
		"Module": module, "Dir": s.dir, "Address": s.address, "Root": os.Geteuid() == 0, "Workers": workers,
		// 512 more connections for publishers and for nchan itself.
		"Connections": streams + 512, "Files": streams + 1024,
		"Ping": seconds(s.Heartbeat, 30*time.Second), "Buffer": buffer,
	})
	if err != nil {
		return command{}, err
	}
	return command{
		path: nginx, args: []string{"-e", filepath.Join(s.dir, "error.log"), "-c", path}, version: nchanVersion(nginx),
		settings: fmt.Sprintf("%d worker, no access log, buffer of %d messages per topic", workers, buffer),
	}, nil
}

// find returns the path of a program that a service needs. packages are the Debian packages of the program and its
// modules.
func find(service, program, packages string) (string, error) {
	path, err := process.Find(program)
	if err != nil {
		return "", &MissingError{service, program + " is not installed; run `apt-get install " + packages + "`"}
	}
	return path, nil
}

func nchanVersion(nginx string) string {
	version := nginxVersion(nginx)
	if nchan := outputOf("dpkg-query", "-W", "-f", "${Version}", "libnginx-mod-nchan"); nchan != "" {
		version = "nchan " + nchan + ", " + version
	}
	return version
}

func nginxVersion(nginx string) string {
	_, version, _ := strings.Cut(outputOf("sh", "-c", `"$0" -v 2>&1`, nginx), "nginx/")
	return "nginx " + version
}

// outputOf returns the output of a command, or "" if it fails.
func outputOf(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

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

// pocketbaseCommand returns the command of the server in pocketbase/, which embeds github.com/pocketbase/pocketbase.
func pocketbaseCommand(s setup) (command, error) {
	program, err := buildPath(s, "pocketbase", "pocketbase")
	if err != nil {
		return command{}, err
	}
	args := []string{"-listen", s.address, "-dir", filepath.Join(s.dir, "pb_data")}
	if s.Lifetime > 0 {
		args = append(args, "-lifetime", s.Lifetime.String())
	}
	return command{
		path: program, args: args, version: moduleVersion(program, "github.com/pocketbase/pocketbase"),
		settings: "one collection without access rules, each stream with a filter on the topic",
	}, nil
}

// djangoEventstream is python/django_events.py. It always sends heartbeats every 20 s.
var djangoEventstream = definition{
	name: "django-eventstream", service: "django-eventstream",
	command: func(s setup) (command, error) {
		return pythonCommand(s, "django-eventstream", "django_events.py", "storage in SQLite (WAL)", "--data", s.dir)
	},
}

var sseStarlette = definition{
	name: "sse-starlette", service: "test/services/sse-starlette.js",
	command: func(s setup) (command, error) {
		ping := strconv.Itoa(seconds(s.Heartbeat, 15*time.Second))
		return pythonCommand(s, "sse-starlette", "starlette_events.py", "a queue in memory per stream", "--ping", ping)
	},
}

// fastapiRooms is python/fastapi_rooms.py. It has no description, because tests write one with `soak init`.
var fastapiRooms = definition{
	name: "fastapi",
	command: func(s setup) (command, error) {
		return pythonCommand(s, "fastapi", "fastapi_rooms.py", "a queue in memory per stream")
	},
}

// pythonCommand returns the command of a script in python/. name is the name of the service and of its PyPI package.
func pythonCommand(s setup, name, script, settings string, args ...string) (command, error) {
	ready, err := buildPath(s, name, "python", "ready") // created when the environment is complete
	if err != nil {
		return command{}, err
	}
	interpreter := filepath.Join(filepath.Dir(ready), "bin", "python")
	return command{
		path:    interpreter,
		args:    append([]string{filepath.Join(s.root, "test", "services", "python", script), "--listen", s.address}, args...),
		env:     []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"},
		version: pythonVersion(interpreter, name), settings: "1 process of uvicorn, " + settings,
	}, nil
}

func pythonVersion(interpreter, name string) string {
	const script = `import importlib.metadata as m, platform, sys
print(m.version(sys.argv[1]) + ", uvicorn " + m.version("uvicorn") + ", Python " + platform.python_version())`
	return outputOf(interpreter, "-c", script, name)
}
