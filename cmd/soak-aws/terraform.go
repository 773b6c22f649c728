package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A deployment is one state of the Terraform code in dir.
type deployment struct {
	dir         string
	name        string // NAME, for a separate state; "": the name in the settings
	skipConfirm bool
	program     string   // path of soak
	env         []string // variables for terraform; the variables of the user override them
	prices      string   // file with prices; "": the built-in prices
	maxUSD      float64  // maximum cost of the deployment; 0: no limit
}

// settings has the values of local.settings in infra/terraform, which are known before resources exist.
type settings struct {
	streams
	Name, Region, Owner string
	TTLMinutes          int    `json:"ttl_minutes"`
	RetentionDays       int    `json:"retention_days"`
	DiskGiB             int    `json:"disk_gib"`
	RunnerArchitecture  string `json:"runner_architecture"`
	SubnetID            string `json:"subnet_id"`
	Tags                map[string]string
	Hosts               map[string]int    // number of hosts by instance type
	Architectures       map[string]string // by instance type
}

// outputs has the values of the output "deployment" of infra/terraform.
type outputs struct {
	Settings     settings
	BackendURL   string `json:"backend_url"`
	ControlURL   string `json:"control_url"`
	PublicURL    string `json:"public_url"`
	Bucket       string
	Secrets      string            `json:"secrets_parameter"`
	Kubeconfig   string            `json:"kubeconfig_parameter"`
	Statuses     map[string]string `json:"status_parameters"` // ids of hosts by parameter
	Instances    map[string]string // ids of hosts by name
	EndParameter string            `json:"end_parameter"`
}

// makeCommand returns the command that makes a target of the Makefile for this deployment.
func (d *deployment) makeCommand(name string) string {
	if d.name != "" {
		return "make " + name + " NAME=" + d.name
	}
	return "make " + name
}

// soakAWS returns a soak-aws command for this deployment.
func (d *deployment) soakAWS(command string) string {
	if d.name != "" {
		return "bin/soak-aws --name " + d.name + " " + command
	}
	return "bin/soak-aws " + command
}

// set passes a variable to terraform. terraform.tfvars and the environment of the user override it.
func (d *deployment) set(name, value string) { d.env = append(d.env, "TF_VAR_"+name+"="+value) }

// command returns a terraform command. In its own process group it does not receive the SIGINT and SIGHUP of a
// terminal. soak-aws sends one SIGINT; after a second one, terraform would exit without writing its state.
func (d *deployment) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "terraform", args...) // #nosec G204 -- arguments of soak-aws, without a shell
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = d.dir
	if _, err := os.Stat(d.dir); err != nil {
		cmd.Err = fmt.Errorf("%w; run soak-aws in the folder of the repository, or pass --dir", err)
	}
	// Only up needs the files of hosts; other commands use placeholders, because the variables must be valid. The
	// workspace is always set, because the last selected workspace may belong to another deployment.
	cmd.Env = []string{"TF_VAR_stack_dir=tests/files/stack", "TF_VAR_runner_dir=tests/files/runner", "TF_WORKSPACE=default"}
	cmd.Env = slices.Concat(cmd.Env, d.env, os.Environ())
	if d.name != "" {
		cmd.Env = append(cmd.Env, "TF_VAR_name="+d.name, "TF_WORKSPACE="+d.name)
	}
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Minute
	return cmd
}

func (d *deployment) init(ctx context.Context) error {
	cmd := d.command(ctx, "init", "-input=false")
	cmd.Env = append(cmd.Env, "TF_WORKSPACE=default") // the workspace of the deployment may not exist yet
	cmd.Stderr = nil
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("terraform init: %w\n%s", err, text)
	}
	return nil
}

// readSettings returns local.settings, which terraform evaluates from all sources of variables.
func (d *deployment) readSettings(ctx context.Context) (s settings, err error) {
	cmd := d.command(ctx, "console")
	cmd.Stdin = strings.NewReader("jsonencode(local.settings)\n")
	text, err := cmd.Output()
	text = bytes.TrimSpace(text)
	text = text[bytes.LastIndexByte(text, '\n')+1:] // earlier lines are about the wait for the state lock
	var quoted string
	if err == nil {
		err = json.Unmarshal(text, &quoted)
	}
	if err == nil {
		err = json.Unmarshal([]byte(quoted), &s)
	}
	switch {
	case err != nil:
		return s, fmt.Errorf("evaluate the settings in %s: %w; see the output above", d.dir, err)
	case d.name != "" && s.Name != d.name:
		return s, fmt.Errorf("terraform.tfvars has name = %q, which overrides NAME=%s; delete that line", s.Name, d.name)
	}
	return s, nil
}

// change runs terraform apply or destroy, and adds the remedy to known AWS errors.
func (d *deployment) change(ctx context.Context, verb string, args ...string) error {
	if d.skipConfirm {
		args = append(args, "-auto-approve")
	}
	cmd := d.command(ctx, append([]string{verb}, args...)...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = os.Stdout, io.MultiWriter(os.Stderr, &text)
	answers, err := cmd.StdinPipe() // only the foreground process group can read the terminal
	if err != nil {
		return fmt.Errorf("terraform %s: %w", verb, err)
	}
	go func() {
		_, _ = io.Copy(answers, os.Stdin)
		_ = answers.Close()
	}()
	if err = cmd.Run(); err == nil {
		return nil
	}
	if remedy := explain(text.String()); remedy != "" {
		return fmt.Errorf("terraform %s: %s (%w)", verb, remedy, err)
	}
	return fmt.Errorf("terraform %s: %w", verb, err)
}

// addressesInState returns the addresses of the resources in terraform's state that match the filter, one per line.
func (d *deployment) addressesInState(ctx context.Context, filter ...string) string {
	cmd := d.command(ctx, append([]string{"state", "list"}, filter...)...)
	cmd.Stderr = nil // there may be no state yet
	list, _ := cmd.Output()
	return strings.TrimSpace(string(list))
}

var errNoOutputs = errors.New("there is no deployment")

// outputs returns the output "deployment" from the state of terraform, or errNoOutputs.
func (d *deployment) outputs(ctx context.Context) (out outputs, err error) {
	var values map[string]struct{ Value json.RawMessage }
	text, err := d.command(ctx, "output", "-json").Output()
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	output, exists := values["deployment"]
	switch {
	case err != nil:
		return out, fmt.Errorf("terraform output: %w", err)
	case !exists:
		return out, fmt.Errorf("%w; run `%s`", errNoOutputs, d.makeCommand("aws-up"))
	}
	return out, json.Unmarshal(output.Value, &out)
}

// A site is a deployment with its existing resources.
type site struct {
	*deployment
	settings settings
	output   outputs // zero if no resources exist
	aws      *cloud
	values   map[string]string // decrypted values of the deployment's parameters in Systems Manager, by name
}

// plannedSite returns the deployment with its current settings (readSettings), and with its existing resources, if any.
func (d *deployment) plannedSite(ctx context.Context) (site, error) {
	s := site{deployment: d}
	err := d.init(ctx)
	if err == nil {
		s.settings, err = d.readSettings(ctx)
	}
	if err == nil {
		s.output, err = d.outputs(ctx)
	}
	if err == nil || errors.Is(err, errNoOutputs) {
		s.aws, err = connect(ctx, s.settings.Region)
	}
	if err == nil {
		s.values, _ = s.parameters(ctx) // none exist before the first apply; apply reports missing permissions
	}
	return s, err
}

// appliedSite returns the existing deployment with the settings of its last apply.
func (d *deployment) appliedSite(ctx context.Context) (site, error) {
	out, err := d.outputs(ctx)
	s := site{deployment: d, settings: out.Settings, output: out}
	if err == nil {
		s.aws, err = connect(ctx, out.Settings.Region)
	}
	if err == nil {
		s.values, err = s.parameters(ctx)
	}
	return s, err
}

func (s site) parameters(ctx context.Context) (map[string]string, error) {
	var list []struct{ Name, Value string }
	err := s.aws.call(ctx, &list, "ssm", "get-parameters-by-path", "--path", "/"+s.settings.Name, "--recursive", "--with-decryption",
		"--query", "Parameters[].{Name:Name,Value:Value}")
	values := map[string]string{}
	for _, p := range list {
		values[p.Name] = p.Value
	}
	return values, err
}
