package services

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

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
	out, err := exec.Command(interpreter, "-c", script, name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
