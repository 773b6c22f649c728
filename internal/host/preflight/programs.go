package preflight

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// A Program is a program that soak starts, or that a user needs.
type Program struct {
	Name    string
	Names   []string               // names of the executable; none: Name
	Find    func() (string, error) // replaces the search on the PATH
	Version []string               // arguments that print its version, or connect to its service
	For     string                 // what is unavailable without the program
	Needed  bool                   // every run needs the program
	Remedy  string                 // how to install the program
	Start   string                 // remedy if the program fails
}

// optionalPrograms lists the third-party programs.
var optionalPrograms = []Program{
	{Name: "nginx", Names: []string{"nginx", "/usr/sbin/nginx"}, Version: []string{"-v"}, For: "local runs have no proxy in front of the backend", Remedy: "apt-get install nginx-light"},
	{Name: "docker", Version: []string{"info", "--format", "Docker {{.ServerVersion}}, Compose and images of the stack"}, For: "no `make up`, no images", Remedy: "https://docs.docker.com/engine/install/", Start: "systemctl start docker, as a member of the group docker"},
	{Name: "prometheus", Version: []string{"--version"}, For: "`soak open` needs docker to show metrics of the past", Remedy: "apt-get install prometheus"},
	{Name: "kubectl", Version: []string{"version", "--request-timeout=3s"}, For: "no shell on Kubernetes; `--on k8s` needs a cluster, not kubectl", Remedy: "https://kubernetes.io/docs/tasks/tools/", Start: "kubectl config use-context NAME, for a cluster that answers"},
	{Name: "terraform", Version: []string{"version"}, For: "no machines on AWS (`make aws-up`)", Remedy: "https://developer.hashicorp.com/terraform/install"},
	{Name: "aws", Version: []string{"--version"}, For: "no machines on AWS", Remedy: "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"},
	{Name: "session-manager-plugin", Version: []string{"--version"}, For: "no tunnel to machines on AWS", Remedy: "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"},
	{Name: "browser", Names: []string{"chromium", "chromium-browser", "google-chrome", "firefox"}, Version: []string{"--version"}, For: "reports cannot be opened on this machine", Remedy: "apt-get install chromium"},
}

// versionTimeout is the time limit for a program to print its version.
const versionTimeout = 5 * time.Second

// find runs the program, and returns a finding with its version, or with the reason why it cannot be used.
func (p Program) find(ctx context.Context) Finding {
	f := Finding{Group: "programs", Name: p.Name, State: OK, Remedy: p.Remedy}
	path, err := p.path()
	if err != nil {
		f.State, f.Result = p.stateWithout(), "not found: "+p.For
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, p.Version...) // #nosec G204 -- a fixed list of programs
	cmd.WaitDelay = time.Second                         // a child process may keep the output open
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		reason := cmp.Or(lastLine(&stderr), err.Error())
		if ctx.Err() != nil {
			reason = "no output within " + versionTimeout.String()
		}
		f.State, f.Result = p.stateWithout(), fmt.Sprintf("%s failed (%s): %s", path, reason, p.For)
		f.Remedy = cmp.Or(p.Start, p.Remedy)
		return f
	}
	f.Result, f.Remedy = cmp.Or(firstLine(&stdout), firstLine(&stderr), path), ""
	return f
}

// stateWithout returns the state of the finding if the program cannot be used.
func (p Program) stateWithout() State {
	if p.Needed {
		return Broken
	}
	return Absent
}

// path returns the path of the program, from Find if it is set, otherwise by its names.
func (p Program) path() (path string, err error) {
	if p.Find != nil {
		return p.Find()
	}
	for _, name := range append(p.Names, p.Name) {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", err
}

func firstLine(out *bytes.Buffer) string {
	line, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	return strings.TrimSpace(line)
}

func lastLine(out *bytes.Buffer) string {
	text := strings.TrimSpace(out.String())
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
