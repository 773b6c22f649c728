package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A deployment is one state of the Terraform code in dir.
type deployment struct {
	dir   string
	name  string // NAME, for a state of its own; empty: the one whose name the settings say
	yes   bool   // terraform does not ask
	env   []string
	image string // file with the runners' image, if there is one

	prices string  // file with prices in place of the built-in ones; "": none
	maxUSD float64 // that all of it may cost; 0: anything
}

// outputs are those of infra/terraform that the commands here need.
type outputs struct {
	Name         string            `json:"name"`
	Region       string            `json:"region"`
	BackendURL   string            `json:"backend_url"`
	ControlURL   string            `json:"control_url"`
	PublicURL    string            `json:"public_url"`
	Bucket       string            `json:"bucket"`
	Secrets      string            `json:"secrets_parameter"`
	Kubeconfig   string            `json:"kubeconfig_parameter"`
	Statuses     []string          `json:"status_parameters"`
	Instances    map[string]string `json:"instances"`
	SSMCommand   string            `json:"ssm_command"`
	Connections  int               `json:"connections"`
	Interval     float64           `json:"noop_interval_seconds"`
	TTLMinutes   int               `json:"ttl_minutes"`
	EndParameter string            `json:"end_parameter"`
}

// settingsFile is where a deployment's settings are.
const settingsFile = "terraform.tfvars"

// check finds what would make terraform ask or fail in many words.
func (d *deployment) check() error {
	if _, err := exec.LookPath("terraform"); err != nil {
		return errors.New("terraform is not installed: https://developer.hashicorp.com/terraform/install")
	}
	if os.Getenv("TF_VAR_operator_cidrs") != "" && (os.Getenv("TF_VAR_alert_emails") != "" || os.Getenv("TF_VAR_budget_usd") == "0") {
		return nil
	}
	file := filepath.Join(d.dir, settingsFile)
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("%s is missing: cp %s.example %s, and say in it who may come in and who is told of the costs", file, file, file)
	}
	return nil
}

// set gives a variable to terraform. What stands in terraform.tfvars wins.
func (d *deployment) set(name, value string) {
	if os.Getenv("TF_VAR_"+name) == "" {
		d.env = append(d.env, "TF_VAR_"+name+"="+value)
	}
}

// command is terraform in the folder, which on Ctrl-C is asked to stop, and given time to.
func (d *deployment) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "terraform", args...) //nolint:gosec // G204: arguments of soak-aws, without a shell
	cmd.Dir = d.dir
	// The workspace is named each time: the one that was selected last may be another deployment's.
	workspace := cmp.Or(d.name, os.Getenv("TF_WORKSPACE"), "default")
	cmd.Env = append(append(os.Environ(), d.env...), "TF_WORKSPACE="+workspace)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Minute
	return cmd
}

// talk runs terraform for the person at the terminal, who may be asked.
func (d *deployment) talk(ctx context.Context, verb string, args ...string) error {
	if d.yes {
		args = append(args, "-auto-approve")
	}
	cmd := d.command(ctx, append([]string{verb}, args...)...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, io.MultiWriter(os.Stderr, &said)
	err := cmd.Run()
	if remedy := explain(said.String()); err != nil && remedy != "" {
		return fmt.Errorf("terraform %s: %s (%w)", verb, remedy, err)
	}
	if err != nil {
		return fmt.Errorf("terraform %s: %w", verb, err)
	}
	return nil
}

// outputs reads what terraform made. It is an error if it made nothing.
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
		return out, errors.New("nothing is there: `make aws-up` makes it")
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
