package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// chooseService sets the description of noop, which is part of this program. The script loads any other description
// from a module.
func (s *session) chooseService() {
	desc, ok := service.BuiltIn(s.Plan.Service, s.Plan.Interval())
	if s.isModule = !ok; ok {
		s.setService(desc)
	}
}

func (s *session) setService(desc *service.Service) {
	s.desc, s.service = desc, shard.ServiceOf(desc)
}

func (s *session) completeService() error {
	p := &s.Plan
	if err := s.completeServiceName(); err != nil {
		return err
	}
	if p.BackendURL == "" {
		return fmt.Errorf("BACKEND_URL is missing: soak starts only its own backend; set BACKEND_URL to the URL of %s", p.ServiceName())
	}
	if p.Topics == 0 && p.PublishRate > 0 {
		p.Topics = len(p.TopicNames)
	}
	if p.Published() {
		p.NoopInterval = p.PublishInterval()
	}
	return nil
}

// completeFinite fills in the service of a suite whose responses end by themselves. The service is a setting of the
// script.
func (s *session) completeFinite() (err error) {
	s.Plan.Service, s.isModule = s.setting("SERVICE", "openai-chat"), true
	if err := s.completeServiceName(); err != nil {
		return err
	}
	if plan.IsServiceFile(s.Plan.Service) {
		s.Settings["SERVICE"] = s.Plan.Service
	}
	if prompts := s.setting("PROMPTS", ""); prompts != "" { // a script has a different working directory
		if prompts, err = filepath.Abs(prompts); err == nil {
			err = checkFile(prompts)
		}
		if err != nil {
			return fmt.Errorf("read PROMPTS: %w; set it to a file with one JSON value per line", err)
		}
		s.Settings["PROMPTS"] = prompts
	}
	return nil
}

func checkFile(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", path)
	}
	return err
}

// completeServiceName makes the path of a module absolute. For any other name, it returns an error with a suggestion if
// load-tests/services has no such module. With a script of the user, it accepts any name.
func (s *session) completeServiceName() (err error) {
	name := s.Plan.Service
	if plan.IsServiceFile(name) {
		s.Plan.Service, err = filepath.Abs(name)
		return err
	}
	if s.Script != "" || s.script != "" {
		return nil
	}
	noop, err := Script("load-tests", "services", plan.NoopService+".js")
	if err != nil {
		return nil //nolint:nilerr // the script reports a module that cannot be loaded
	}
	modules, _ := filepath.Glob(filepath.Join(filepath.Dir(noop), "*.js")) // the pattern is valid
	var names []string
	for _, module := range modules {
		names = append(names, strings.TrimSuffix(filepath.Base(module), ".js"))
	}
	if slices.Contains(names, name) {
		return nil
	}
	hint := ""
	if suggestion := service.Nearest(name, names); suggestion != "" {
		hint = fmt.Sprintf("; did you mean %s?", suggestion)
	}
	return fmt.Errorf("SERVICE must be the path of a .js file, or one of %[2]s, got %[1]q%[3]s", name, strings.Join(names, ", "), hint)
}

// checkService calls Suite.Check before the description is read. If the run publishes nothing, the description sets the
// interval, so the check uses a very short one.
func (s *session) checkService() error {
	p := s.Plan
	if !p.Published() {
		p.NoopInterval = time.Millisecond.Seconds()
	}
	return s.Suite.Check(p)
}

// setMarker sets the marker of the messages of this run: the test id with a random suffix. The parts of a run on
// several machines must have the same marker, so their marker has no suffix.
func (s *session) setMarker() {
	s.Plan.Marker = s.Plan.TestID
	if s.runnerNumber == 0 {
		random := make([]byte, 3)
		_, _ = rand.Read(random) // rand.Read never fails
		s.Plan.Marker += "-" + hex.EncodeToString(random)
	}
}

// loadScript returns the requirements that the script declares with the plan and settings of its suite.
func (s *session) loadScript(ctx context.Context) (runners.Requirements, error) {
	p := s.Plan
	p.BackendURL = cmp.Or(p.BackendOf(1), unusedURL) // the script accepts one URL
	return s.load(ctx, plan.Document{Plan: p, Settings: s.settings(nil)}, nil)
}

func (s *session) load(ctx context.Context, d plan.Document, env map[string]string) (runners.Requirements, error) {
	needs, err := runners.Inspect(ctx, s.k6, s.script, d, env)
	var settingsErr runners.SettingsError
	if errors.As(err, &settingsErr) {
		err = UsageError{err}
	}
	return needs, err
}

// describe loads the script, which loads the description from its module. It completes the plan with the description.
func (s *session) describe(ctx context.Context) error {
	p := &s.Plan
	needs, err := s.loadScript(ctx)
	switch {
	case err != nil:
		return err
	case needs.Service == nil:
		return UsageError{fmt.Errorf("SERVICE is %q, but %s does not load it; load it as load-tests/sse/connectionTest.js does", p.Service, s.script)}
	}
	s.customToken, s.needs = needs.CustomToken, needs
	desc, err := service.Parse(needs.Service)
	if err != nil {
		return UsageError{fmt.Errorf("the description of %s: %w", p.ServiceName(), err)}
	}
	if err := desc.Complete(p); err != nil {
		return UsageError{err}
	}
	s.setService(desc)
	p.EndTimeoutS = p.EndTimeout().Seconds()
	if err := s.Suite.Check(*p); err != nil {
		return UsageError{err}
	}
	if p.Published() && !desc.Message.Marked && p.MaxHidden < 0 {
		s.warn(fmt.Sprintf("the description of %s has no message.run, so this run cannot pass: a message of another run or topic could hide a loss; publish {run} and name its place in message.run, or set MAX_HIDDEN",
			p.ServiceName()))
	}
	return nil
}

func (s *session) messages() string { return s.service.Noun() + "s" }

func (s *session) intervalText() string { return verdict.IntervalText(&s.Plan, &s.service) }

// tokens returns the secrets that pods get, by variable. Processes on this machine inherit the variables instead.
func (s *session) tokens(backendToken string) map[string]string {
	secrets := map[string]string{"BACKEND_TOKEN": backendToken}
	if s.isModule { // the module may read the other tokens
		for _, name := range []string{"PUBLISH_TOKEN", "SUBSCRIBE_TOKEN"} {
			secrets[name] = os.Getenv(name)
		}
	}
	for name, token := range secrets {
		if token == "" {
			delete(secrets, name)
		}
	}
	return secrets
}
