package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const (
	actionGrace = 5 * time.Second // between SIGTERM and SIGKILL
	maxOutput   = 4 << 10         // maximum bytes of an action's output in run.json
)

func (s *session) checkActions() error {
	for _, a := range s.actions {
		if a.At >= s.duration() {
			return fmt.Errorf("--at: the action %[1]s must start before %[3]s, the end of the load, got %[2]s", a.Name, a.At, s.duration())
		}
	}
	return nil
}

// runActions runs the actions until ctx ends, each at its time after the start of the runners. Then it sends SIGTERM to
// the actions that still run, and kills them after actionGrace or when force ends.
func (s *session) runActions(ctx, force context.Context, started <-chan struct{}) []verdict.ActionResult {
	select {
	case <-started:
	case <-ctx.Done():
	}
	start := time.Now()
	out := make([]verdict.ActionResult, len(s.actions))
	var running sync.WaitGroup
	for i, a := range s.actions {
		running.Go(func() { out[i] = s.runAction(ctx, force, start, a) })
	}
	running.Wait()
	return out
}

func (s *session) runAction(ctx, force context.Context, start time.Time, a plan.Action) verdict.ActionResult {
	result := verdict.ActionResult{Action: s.redactedAction(a), ExitCode: -1}
	select {
	case <-time.After(time.Until(start.Add(a.At))):
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		result.Problem = "it did not start, because the run ended first"
		return result
	}
	startFailure := func(err error) verdict.ActionResult {
		result.Problem = "it could not be started: " + err.Error()
		printMessage(fmt.Sprintf("action %s: %s", a.Name, result.Problem))
		return result
	}
	log, err := openActionLog(s.actionLogPath(a), s.secrets)
	if err != nil {
		return startFailure(err)
	}
	defer func() {
		if err := log.close(); err != nil {
			s.warn(fmt.Sprintf("the log of the action %s is incomplete: %v", a.Name, err))
		}
	}()
	s.announceAction(a.Name, result.Command)
	now := func() float64 { return format.Unix(start.Add(time.Since(start))) } // unaffected by steps of the wall clock
	startedUnix := now()
	p, err := process.Start(process.Spec{
		Name: "action " + a.Name, Path: "/bin/sh", Args: []string{"-c", a.Command}, Env: append(s.actionVariables(os.Environ()), s.actionEnvironment()...),
		Output: log.raw, OrphanSignal: syscall.SIGKILL,
	})
	if err != nil {
		return startFailure(err)
	}
	result.StartedUnix = startedUnix
	if release, err := p.Guard(); err != nil {
		s.warn(fmt.Sprintf("if soak is killed, processes of the action %s will keep running: %v", a.Name, err))
	} else {
		defer release()
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		select {
		case <-p.Done(): // the action ended at the same time as the run
		default:
			p.StopGroup(force, syscall.SIGTERM, actionGrace)
			result.Problem = "it was stopped when the run ended"
		}
	}
	result.EndedUnix, result.ExitCode, result.Output = now(), p.ExitCode(), log.tail()
	ending := fmt.Sprintf("action %s ended after %s: %s", a.Name, format.Duration(result.Duration()), result.Ending())
	printMessage(ending)
	s.watch.Note(ending)
	if result.Problem == "" {
		awaitOrphans(ctx, force, p)
	}
	return result
}

func (s *session) announceAction(name, command string) {
	printMessage(fmt.Sprintf("action %s starts: %s", name, command))
	if s.page != nil {
		s.page.view.Mark(name)
	}
	// The note omits the command, which may contain an unknown secret: the page may have more readers than this terminal.
	s.watch.Note("action " + name + " starts")
}

func (s *session) actionLogPath(a plan.Action) string {
	if s.runnerNumber > 0 { // parts may share a folder
		return s.dir.Path(fmt.Sprintf("action-%s-%d.log", a.Name, s.runnerNumber))
	}
	return s.dir.Path("action-" + a.Name + ".log")
}

// awaitOrphans waits for the background processes of an action, and stops them when ctx ends.
func awaitOrphans(ctx, force context.Context, p *process.Process) {
	for p.IsGroupRunning() {
		select {
		case <-time.After(time.Second): // not only when ctx ends: another group may have the id by then
		case <-ctx.Done():
			p.StopGroup(force, syscall.SIGTERM, actionGrace)
			return
		}
	}
}

func (s *session) redactedAction(a plan.Action) plan.Action {
	a.Command = s.secrets.String(a.Command)
	return a
}

// defaultVariables are the variables of soak's environment that an action gets without --at-env, in addition to LC_*.
var defaultVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"}

func (s *session) actionVariables(environment []string) (out []string) {
	extra := strings.Split(s.AtEnv, ",")
	for _, setting := range environment {
		name, _, _ := strings.Cut(setting, "=")
		if s.AtEnv == plan.AllVariables || slices.Contains(defaultVariables, name) || strings.HasPrefix(name, "LC_") || slices.Contains(extra, name) {
			out = append(out, setting)
		}
	}
	return out
}

// actionEnvironment returns the variables that describe the run to an action: test id, folder and target. For the
// targets that soak started, they also name the current processes and the configurations of nginx.
func (s *session) actionEnvironment() []string {
	folder, err := filepath.Abs(string(s.dir))
	if err != nil {
		folder = string(s.dir)
	}
	env := []string{"SOAK_TESTID=" + s.Plan.TestID, "SOAK_DIR=" + folder, "SOAK_TARGET=" + s.Plan.BackendURL}
	var nginx, backends, configurations []string
	for _, t := range s.allTargets() {
		l := t.Local
		if l == nil {
			continue
		}
		if pid := l.NginxPID(); pid != 0 {
			nginx, configurations = append(nginx, strconv.Itoa(pid)), append(configurations, l.NginxConfiguration())
		}
		for _, pid := range l.BackendPIDs() {
			backends = append(backends, strconv.Itoa(pid))
		}
	}
	for name, values := range map[string][]string{"SOAK_NGINX_PID": nginx, "SOAK_NGINX_CONF": configurations, "SOAK_BACKEND_PID": backends} {
		if len(values) > 0 {
			env = append(env, name+"="+strings.Join(values, " "))
		}
	}
	return env
}
