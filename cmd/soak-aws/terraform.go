package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A deployment is one state of the Terraform code in dir.
type deployment struct {
	dir  string
	name string // NAME, for a state of its own; empty: the one whose name the settings say
	yes  bool   // terraform does not ask
	env  []string

	prices string  // file with prices in place of the built-in ones; "": none
	maxUSD float64 // that all of it may cost; 0: anything
}

// outputs are those of infra/terraform that the commands here need.
type outputs struct {
	Name         string            `json:"name"`
	Owner        string            `json:"owner"`
	Region       string            `json:"region"`
	BackendURL   string            `json:"backend_url"`
	ControlURL   string            `json:"control_url"`
	PublicURL    string            `json:"public_url"`
	Bucket       string            `json:"bucket"`
	Secrets      string            `json:"secrets_parameter"`
	Kubeconfig   string            `json:"kubeconfig_parameter"`
	Statuses     map[string]string `json:"status_parameters"` // ids of hosts by parameter
	Instances    map[string]string `json:"instances"`
	SSMCommand   string            `json:"ssm_command"`
	Connections  int               `json:"connections"`
	Interval     float64           `json:"noop_interval_seconds"`
	TTLMinutes   int               `json:"ttl_minutes"`
	EndParameter string            `json:"end_parameter"`
}

// has reports whether a host is in the state.
func (o outputs) has(id string) bool {
	return slices.Contains(slices.Collect(maps.Values(o.Instances)), id)
}

// connected returns terraform's outputs, and a way to ask AWS.
func (d *deployment) connected(ctx context.Context) (outputs, *cloud, error) {
	out, err := d.outputs(ctx)
	if err != nil {
		return out, nil, err
	}
	c, err := connect(ctx, out.Region)
	return out, c, err
}

// target returns the command of a make target for this deployment.
func (d *deployment) target(name string) string {
	if d.name != "" {
		return "make " + name + " NAME=" + d.name
	}
	return "make " + name
}

// settingsFile is where a deployment's settings are.
const settingsFile = "terraform.tfvars"

// check finds what would make terraform ask or fail in many words.
func (d *deployment) check() error {
	if _, err := exec.LookPath("terraform"); err != nil {
		return errors.New("terraform is not installed: https://developer.hashicorp.com/terraform/install")
	}
	if os.Getenv("TF_VAR_alert_emails") != "" || os.Getenv("TF_VAR_budget_usd") == "0" {
		return nil
	}
	file := filepath.Join(d.dir, settingsFile)
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("%s is missing; run cp %s.example %s and set alert_emails in it", file, file, file)
	}
	return nil
}

// set gives a variable to terraform. What stands in terraform.tfvars wins.
func (d *deployment) set(name, value string) {
	if os.Getenv("TF_VAR_"+name) == "" {
		d.env = append(d.env, "TF_VAR_"+name+"="+value)
	}
}

// command returns a terraform command in the folder. It has a process group of its own: a terminal sends Ctrl-C and its end to the
// whole foreground group, and a second SIGINT makes terraform exit without writing its state. So soak-aws passes one SIGINT on,
// and lets terraform finish if the terminal was closed.
func (d *deployment) command(ctx context.Context, args ...string) *exec.Cmd {
	running, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), errHangup) {
			interrupt()
		}
	})
	cmd := exec.CommandContext(running, "terraform", args...) //nolint:gosec // G204: arguments of soak-aws, without a shell
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = d.dir
	// The workspace is named each time: the one that was selected last may be another deployment's.
	workspace := cmp.Or(d.name, os.Getenv("TF_WORKSPACE"), "default")
	cmd.Env = append(append(os.Environ(), d.env...), "TF_WORKSPACE="+workspace)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Minute
	return cmd
}

// change runs terraform apply or destroy, after the user confirmed the plan.
func (d *deployment) change(ctx context.Context, verb string, args ...string) error {
	if d.yes {
		return d.run(ctx, verb, append(args, "-auto-approve")...)
	}
	dir, err := os.MkdirTemp("", "soak-aws-") // a plan may hold secrets
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plan := filepath.Join(dir, "plan")
	args = append(args, "-out="+plan)
	if verb == "destroy" {
		args = append(args, "-destroy")
	}
	if err := d.run(ctx, "plan", args...); err != nil {
		return err
	}
	fmt.Printf("\nEnter yes to %s this plan: ", verb)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case text := <-answer:
		if text != "yes" {
			return fmt.Errorf("terraform %s: not confirmed, nothing was changed; pass --yes to skip the question", verb)
		}
	}
	return d.run(ctx, "apply", plan)
}

// run runs terraform with its output on the terminal. Known errors of AWS get a remedy.
func (d *deployment) run(ctx context.Context, verb string, args ...string) error {
	cmd := d.command(ctx, append([]string{verb, "-input=false"}, args...)...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = os.Stdout, io.MultiWriter(os.Stderr, &text)
	err := cmd.Run()
	if remedy := explain(text.String()); err != nil && remedy != "" {
		return fmt.Errorf("terraform %s: %s (%w)", verb, remedy, err)
	}
	if err != nil {
		return fmt.Errorf("terraform %s: %w", verb, err)
	}
	return nil
}

// inState returns the addresses of resources in terraform's state.
func (d *deployment) inState(ctx context.Context, filter ...string) string {
	cmd := d.command(ctx, append([]string{"state", "list"}, filter...)...)
	cmd.Stderr = nil // there may be no state yet
	list, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(list))
}

// errNoOutputs is the error for a state without resources.
var errNoOutputs = errors.New("nothing is there: `make aws-up` makes it")

// outputs reads the outputs of terraform's state.
func (d *deployment) outputs(ctx context.Context) (outputs, error) {
	var out outputs
	cmd := d.command(ctx, "output", "-json")
	text, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("terraform output: %w", err)
	}
	var values map[string]struct{ Value json.RawMessage }
	if err := json.Unmarshal(text, &values); err != nil {
		return out, fmt.Errorf("terraform output: %w", err)
	}
	if len(values) == 0 {
		return out, errNoOutputs
	}
	plain := map[string]json.RawMessage{}
	for name, v := range values {
		plain[name] = v.Value
	}
	text, err = json.Marshal(plain)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("terraform output: %w", err)
	}
	return out, nil
}
