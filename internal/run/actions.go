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

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const (
	actionGrace = 5 * time.Second // between interrupt and kill
	maxOutput   = 4 << 10         // bytes of an action's output in run.json
)

// checkActions refuses actions that would begin when the streams are ended already.
func (s *session) checkActions() error {
	for _, a := range s.actions {
		if a.At >= s.duration() {
			return fmt.Errorf("--at: the action %[1]s must start before %[3]s, when the streams end, got %[2]s", a.Name, a.At, s.duration())
		}
	}
	return nil
}

// act runs each action at its time, which counts from the start of the runners, until ctx ends. Then it interrupts
// the remaining actions, and kills them after actionGrace or when force ends.
func (s *session) act(ctx, force context.Context, started <-chan struct{}) []verdict.ActionResult {
	select {
	case <-started:
	case <-ctx.Done():
	}
	zero := time.Now()
	out := make([]verdict.ActionResult, len(s.actions))
	var all sync.WaitGroup
	for i, a := range s.actions {
		all.Go(func() { out[i] = s.actOne(ctx, force, zero, a) })
	}
	all.Wait()
	return out
}

func (s *session) actOne(ctx, force context.Context, zero time.Time, a plan.Action) verdict.ActionResult {
	acted := verdict.ActionResult{Action: s.shownAction(a), ExitCode: -1}
	select {
	case <-time.After(time.Until(zero.Add(a.At))):
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		acted.Problem = "it did not start, because the run ended first"
		return acted
	}
	path := s.dir.Path("action-" + a.Name + ".log")
	if s.part > 0 { // parts may share a folder
		path = s.dir.Path(fmt.Sprintf("action-%s-%d.log", a.Name, s.part))
	}
	log, err := openActionLog(path, s.secrets)
	if err != nil {
		acted.Problem = "it could not be started: " + err.Error()
		printMessage(fmt.Sprintf("action %s: %s", a.Name, acted.Problem))
		return acted
	}
	defer func() {
		if err := log.close(); err != nil {
			s.warn(fmt.Sprintf("the log of the action %s is incomplete: %v", a.Name, err))
		}
	}()
	printMessage(fmt.Sprintf("action %s starts: %s", a.Name, acted.Command))
	if s.page != nil {
		s.page.view.Mark(a.Name)
	}
	// Its command may hold a secret, and the page has more readers than this terminal.
	s.watch.Note("action " + a.Name + " begins")
	now := func() float64 { return float64(zero.Add(time.Since(zero)).UnixMicro()) / 1e6 } // a stepped clock moves none
	began := now()
	p, err := process.Start(process.Spec{
		Name: "action " + a.Name, Path: "/bin/sh", Args: []string{"-c", a.Command}, Env: append(s.actionVariables(os.Environ()), s.actionEnvironment()...),
		Output: log.raw, Orphan: syscall.SIGKILL,
	})
	if err != nil {
		acted.Problem = "it could not be started: " + err.Error()
		printMessage(fmt.Sprintf("action %s: %s", a.Name, acted.Problem))
		return acted
	}
	acted.StartedUnix = began
	if release, err := p.Guard(); err != nil {
		s.warn(fmt.Sprintf("if soak is killed, processes of the action %s will keep running: %v", a.Name, err))
	} else {
		defer release()
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		select {
		case <-p.Done(): // at the same moment
		default:
			p.StopGroup(force, syscall.SIGTERM, actionGrace)
			acted.Problem = "it was stopped when the run ended"
		}
	}
	acted.EndedUnix, acted.ExitCode, acted.Output = now(), p.ExitCode(), log.tail()
	printMessage(fmt.Sprintf("action %s ended after %s: %s", a.Name, acted.Duration(), acted.Ending()))
	s.watch.Note(fmt.Sprintf("action %s ended after %s: %s", a.Name, acted.Duration(), acted.Ending()))
	for acted.Problem == "" && p.HasOrphans() { // its background processes continue as long as the run
		select {
		case <-time.After(time.Second): // once all has ended the number of the group may be given to another
		case <-ctx.Done():
			p.StopGroup(force, syscall.SIGTERM, actionGrace)
			return acted
		}
	}
	return acted
}

// shownAction returns the action for display: without secrets in its command.
func (s *session) shownAction(a plan.Action) plan.Action {
	a.Command = s.secrets.String(a.Command)
	return a
}

// usualVariables are the environment variables that an action gets without --at-env.
var usualVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"}

// actionVariables returns the part of an environment that actions get.
func (s *session) actionVariables(environment []string) (out []string) {
	extra := strings.Split(s.AtEnv, ",")
	for _, setting := range environment {
		name, _, _ := strings.Cut(setting, "=")
		if s.AtEnv == plan.AllVariables || slices.Contains(usualVariables, name) || strings.HasPrefix(name, "LC_") || slices.Contains(extra, name) {
			out = append(out, setting)
		}
	}
	return out
}

// actionEnvironment returns the environment of an action: ours, the run, and the present processes of a target that
// was started here.
func (s *session) actionEnvironment() []string {
	folder, err := filepath.Abs(string(s.dir))
	if err != nil {
		folder = string(s.dir)
	}
	env := []string{"SOAK_TESTID=" + s.Plan.TestID, "SOAK_DIR=" + folder, "SOAK_TARGET=" + s.Plan.BackendURL}
	var nginx, backends, configurations []string
	all := slices.Clip(s.targets)
	if s.cluster != nil {
		all = append(all, s.cluster)
	}
	for _, t := range all {
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
