package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// settings are the variables of infra/terraform that matter before anything is made.
type settings struct {
	Name        string  `json:"name"`
	Region      string  `json:"region"`
	Zone        string  `json:"zone"`
	StackType   string  `json:"stack_instance_type"`
	RunnerType  string  `json:"runner_instance_type"`
	RunnerArch  string  `json:"runner_architecture"`
	RunnerNodes int     `json:"runner_node_count"`
	Budget      float64 `json:"budget_usd"`
	TTLMinutes  int     `json:"ttl_minutes"`
	StackDisk   int     `json:"stack_disk_gib"`
	RunnerDisk  int     `json:"runner_disk_gib"`

	RetentionDays int `json:"retention_days"`

	SubnetID    string            `json:"subnet_id"`
	Tags        map[string]string `json:"tags"`
	Connections int               `json:"connections"`
	Interval    float64           `json:"noop_interval_seconds"`
}

// tagList returns the tags of what terraform makes, as the AWS command line writes them.
func (s settings) tagList() string {
	list := "{Key=Project,Value=sse-soak},{Key=Run,Value=" + s.Name + "},{Key=ManagedBy,Value=terraform}"
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		list += ",{Key=" + key + ",Value=" + s.Tags[key] + "}"
	}
	return list
}

// differ returns an error if the stack has other streams than the user typed; 0: nothing was typed.
func (s settings) differ(where string, connections int, interval float64) error {
	if connections != 0 && connections != s.Connections {
		return fmt.Errorf("CONNECTIONS is %d, and %s has %d; change it there, or leave CONNECTIONS out", connections, where, s.Connections)
	}
	if interval != 0 && interval != s.Interval {
		return fmt.Errorf("NOOP_INTERVAL is %g, and %s has %g; change it there, or leave NOOP_INTERVAL out", interval, where, s.Interval)
	}
	return nil
}

// anyFiles are values of variables for folders that aws-up makes, where they do not matter: some that are there.
var anyFiles = []string{"TF_VAR_stack_dir=tests/files/stack", "TF_VAR_runner_dir=tests/files/runner"}

// settings asks terraform for the values of its variables, with all their sources taken into account.
func (d *deployment) settings(ctx context.Context) (settings, error) {
	var s settings
	var pairs []string
	for _, name := range []string{
		"name", "region", "zone", "stack_instance_type", "runner_instance_type", "runner_node_count", "budget_usd", "ttl_minutes",
		"stack_disk_gib", "runner_disk_gib", "retention_days", "subnet_id", "tags", "connections", "noop_interval_seconds",
	} {
		pairs = append(pairs, name+" = var."+name)
	}
	pairs = append(pairs, "runner_architecture = local.runner_architecture")
	cmd := d.command(ctx, "console")
	cmd.Env = append(cmd.Env, anyFiles...)
	cmd.Stdin = strings.NewReader("jsonencode({" + strings.Join(pairs, ", ") + "})\n")
	text, err := cmd.Output()
	var quoted string
	if err == nil {
		quoted, err = strconv.Unquote(strings.TrimSpace(string(text)))
	}
	if err == nil {
		err = json.Unmarshal([]byte(quoted), &s)
	}
	if err != nil {
		return s, fmt.Errorf("the settings in %s are not valid, see above (%w)", d.dir, err)
	}
	if d.name != "" && s.Name != d.name {
		return s, fmt.Errorf("%s says name = %q, which wins over NAME=%s: delete that line", settingsFile, s.Name, d.name)
	}
	return s, nil
}

// arch prints the architecture of the runners' hosts.
func (d *deployment) arch(ctx context.Context) error {
	s, err := d.settings(ctx)
	if err == nil {
		fmt.Println(s.RunnerArch)
	}
	return err
}

// hosts is how many of each type there are to be.
func (s settings) hosts() map[string]int {
	hosts := map[string]int{s.StackType: 1}
	if s.RunnerNodes > 0 {
		hosts[s.RunnerType] += s.RunnerNodes
	}
	return hosts
}

// types are those of the hosts.
func (s settings) types() []string { return slices.Sorted(maps.Keys(s.hosts())) }

// architecture is that of a type of host.
func (s settings) architecture(kind string) string {
	if kind == s.StackType {
		return "amd64"
	}
	return s.RunnerArch
}

// init prepares the folder, and the state of the deployment in it: one that has a name has a workspace of that name.
func (d *deployment) init(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(d.dir, ".terraform")); err != nil {
		fmt.Println("terraform loads the AWS provider, some hundred MB: a minute or two")
	}
	if err := d.quiet(ctx, "default", "init", "-input=false"); err != nil {
		return err
	}
	if d.name == "" {
		return nil
	}
	return d.quiet(ctx, "", "workspace", "select", "-or-create", d.name)
}

// initialized prepares the folder and returns the settings.
func (d *deployment) initialized(ctx context.Context) (settings, error) {
	if err := d.init(ctx); err != nil {
		return settings{}, err
	}
	return d.settings(ctx)
}

// quiet runs terraform in a workspace, and shows what it said only where it fails.
func (d *deployment) quiet(ctx context.Context, workspace string, args ...string) error {
	cmd := d.command(ctx, args...)
	cmd.Env = append(cmd.Env, "TF_WORKSPACE="+workspace) // empty: as if it were not set
	cmd.Stderr = nil
	said, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s", said)
		return fmt.Errorf("terraform %s: %w", args[0], err)
	}
	return nil
}
