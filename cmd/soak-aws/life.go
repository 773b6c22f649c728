package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	// outsideLater is how much later than a host itself a schedule ends it from outside (modules/host).
	outsideLater = 15 * time.Minute
	// longestLife is how far ahead an end may be moved. Hosts refuse more.
	longestLife = 24 * time.Hour
	// aroundASoak is the time of a soak in addition to its seconds: starting runners and reading shards.
	aroundASoak = 10 * time.Minute
	// defaultLength is the default of `soak run --seconds`.
	defaultLength = time.Hour
)

// clock formats the time of day.
func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly + " MST") }

// end returns when the first of a deployment's hosts ends itself; the zero time without hosts.
func (c *cloud) end(ctx context.Context, name, parameter string, ttl time.Duration) (time.Time, error) {
	hosts, err := c.hosts(ctx, tag{"Run", name})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask when the hosts were started: %w", err)
	}
	var end time.Time
	for _, h := range hosts {
		if own := h.Launch.Add(ttl); end.IsZero() || own.Before(end) {
			end = own
		}
	}
	if end.IsZero() {
		return end, nil
	}
	values, err := c.parameters(ctx, parameter)
	if err != nil {
		return end, err
	}
	if moved, err := time.Parse(time.RFC3339, values[parameter]); err == nil && moved.After(end) {
		end = moved
	}
	return end, nil
}

// endOf returns when the first host in terraform's state ends itself.
func (c *cloud) endOf(ctx context.Context, out outputs) (time.Time, error) {
	return c.end(ctx, out.Name, out.EndParameter, time.Duration(out.TTLMinutes)*time.Minute)
}

// outlives returns an error if hosts end before a soak does.
func outlives(end, now time.Time, length time.Duration) error {
	left := end.Sub(now)
	switch {
	case end.IsZero():
		return errors.New("no host is left: `make aws-up` makes new ones")
	case left <= 0:
		return fmt.Errorf("the hosts ended at %s: `make aws-up` makes new ones", clock(end))
	case left >= length+aroundASoak:
		return nil
	}
	missing := (length + aroundASoak - left + time.Minute - 1).Truncate(time.Minute)
	return fmt.Errorf("the hosts end at %s, in %v, and the soak takes %v and up to %v around it: `bin/soak-aws extend --minutes %d` moves their end, or soak for fewer SECONDS",
		clock(end), left.Round(time.Second), length, aroundASoak, int(missing.Minutes()))
}

// credentialsFor checks that the credentials are valid until a soak is judged. Those of a profile are renewed by the
// AWS tools during its session, whose end is unknown; those in the environment are not.
func (c *cloud) credentialsFor(ctx context.Context, now time.Time, length time.Duration) finding {
	const what = "credentials' end"
	var exported struct{ Expiration time.Time }
	if c.ask(ctx, &exported, "configure", "export-credentials", "--format", "process") != nil { // version 1 cannot
		exported.Expiration, _ = time.Parse(time.RFC3339, os.Getenv("AWS_CREDENTIAL_EXPIRATION"))
	}
	end, fixed := exported.Expiration, os.Getenv("AWS_SESSION_TOKEN") != ""
	switch {
	case end.IsZero() && fixed:
		return note(what, "AWS_SESSION_TOKEN has an end that is not known: a soak of %v reads its shards with it at its end", length)
	case end.IsZero() || end.After(now.Add(length+aroundASoak)):
		return ok(what, "they are valid until after a soak of %v", length)
	case fixed:
		return fail(what, "those in the environment end at %s, before a soak of %v is judged: log in for longer, or use a profile that renews them", clock(end), length)
	}
	return note(what, "they end at %s, before a soak of %v is judged: its shards can be read only if the profile's session lives longer", clock(end), length)
}

// secondsOf returns how long a soak with these arguments takes.
func secondsOf(args []string) time.Duration {
	value, _ := valueOf("--seconds", args)
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	return defaultLength
}

// extend moves the end of all hosts by some minutes, without making new ones. First the schedules outside, then the hosts'
// own: whatever fails in between leaves the end where it was.
func (d *deployment) extend(ctx context.Context, by time.Duration) error {
	out, c, err := d.connected(ctx)
	if err != nil {
		return err
	}
	end, err := c.endOf(ctx, out)
	now := time.Now()
	switch {
	case err != nil:
		return err
	case end.Before(now):
		return outlives(end, now, 0)
	}
	later := end.Add(by).UTC().Truncate(time.Second)
	if later.After(now.Add(longestLife)) {
		return fmt.Errorf("the hosts would end in %v: an end may be %v ahead at most", later.Sub(now).Round(time.Minute), longestLife)
	}
	if err := c.moveSchedules(ctx, out.Name, later.Add(outsideLater)); err != nil {
		return fmt.Errorf("the hosts still end at %s: move the schedules that end them: %w", clock(end), err)
	}
	if err := c.ask(ctx, nil, "ssm", "put-parameter", "--overwrite", "--name", out.EndParameter, "--value", later.Format(time.RFC3339)); err != nil {
		return fmt.Errorf("the hosts still end at %s: store the later end: %w", clock(end), err)
	}
	fmt.Printf("all hosts end at %s, in %v; a schedule ends them from outside %v later\n", clock(later), later.Sub(now).Round(time.Minute), outsideLater)
	return nil
}

// moveSchedules sets the time of every schedule in a group, and leaves the rest of each as it is.
func (c *cloud) moveSchedules(ctx context.Context, group string, to time.Time) error {
	var names []string
	if err := c.ask(ctx, &names, "scheduler", "list-schedules", "--group-name", group, "--query", "Schedules[].Name"); err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("there is none in the group %s", group)
	}
	for _, name := range names {
		var schedule map[string]any
		if err := c.ask(ctx, &schedule, "scheduler", "get-schedule", "--group-name", group, "--name", name); err != nil {
			return err
		}
		for _, answered := range []string{"Arn", "CreationDate", "LastModificationDate"} {
			delete(schedule, answered)
		}
		schedule["ScheduleExpression"] = "at(" + to.UTC().Format("2006-01-02T15:04:05") + ")"
		text, err := json.Marshal(schedule)
		if err != nil {
			return err
		}
		if err := c.ask(ctx, nil, "scheduler", "update-schedule", "--cli-input-json", string(text)); err != nil {
			return err
		}
	}
	return nil
}
