package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
)

// end is when the first of a deployment's hosts ends itself; the zero time where there is no host.
func (c *cloud) end(ctx context.Context, name, parameter string, ttl time.Duration) (time.Time, error) {
	hosts, err := c.instances(ctx, tag{"Run", name})
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

// endOf is when the first host of what terraform made ends itself.
func (c *cloud) endOf(ctx context.Context, out outputs) (time.Time, error) {
	return c.end(ctx, out.Name, out.EndParameter, time.Duration(out.TTLMinutes)*time.Minute)
}

// outlives is an error where hosts end before a soak does.
func outlives(end, now time.Time, seconds time.Duration) error {
	if end.IsZero() {
		return errors.New("no host is left: `make aws-up` makes new ones")
	}
	left := end.Sub(now)
	if left >= seconds+aroundASoak {
		return nil
	}
	if left <= 0 {
		return fmt.Errorf("the hosts ended at %s: `make aws-up` makes new ones", end.UTC().Format(time.TimeOnly+" MST"))
	}
	missing := (seconds + aroundASoak - left + time.Minute - 1).Truncate(time.Minute)
	return fmt.Errorf("the hosts end at %s, in %v, and the soak takes %v and up to %v around it: `bin/soak-aws extend --minutes %d` moves their end, or soak for fewer SECONDS",
		end.UTC().Format(time.TimeOnly+" MST"), left.Round(time.Second), seconds, aroundASoak, int(missing.Minutes()))
}

// defaultLength is the default of `soak run --seconds`.
const defaultLength = time.Hour

// secondsOf is how long a soak with these arguments takes.
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
	out, err := d.outputs(ctx)
	if err != nil {
		return err
	}
	c, err := connect(ctx, out.Region)
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
		return fmt.Errorf("the hosts still end at %s: move the schedules that end them: %w", end.UTC().Format(time.TimeOnly+" MST"), err)
	}
	if err := c.store(ctx, out.EndParameter, later.Format(time.RFC3339)); err != nil {
		return fmt.Errorf("the hosts still end at %s: store the later end: %w", end.UTC().Format(time.TimeOnly+" MST"), err)
	}
	fmt.Printf("all hosts end at %s, in %v; a schedule ends them from outside %v later\n", later.Format(time.TimeOnly+" MST"), later.Sub(now).Round(time.Minute), outsideLater)
	return nil
}

// moveSchedules sets the time of every schedule in a group, and leaves the rest of each as it is.
func (c *cloud) moveSchedules(ctx context.Context, group string, to time.Time) error {
	text, err := c.api.send(ctx, request{service: "scheduler", path: "/schedules", query: url.Values{"ScheduleGroup": {group}, "MaxResults": {"100"}}})
	if err != nil {
		return err
	}
	var list struct{ Schedules []struct{ Name string } }
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list.Schedules) == 0 {
		return fmt.Errorf("there is none in the group %s", group)
	}
	for _, s := range list.Schedules {
		if err := c.moveSchedule(ctx, group, s.Name, to); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

func (c *cloud) moveSchedule(ctx context.Context, group, name string, to time.Time) error {
	path := "/schedules/" + url.PathEscape(name)
	text, err := c.api.send(ctx, request{service: "scheduler", path: path, query: url.Values{"groupName": {group}}})
	if err != nil {
		return err
	}
	var schedule map[string]any
	if err := json.Unmarshal(text, &schedule); err != nil {
		return err
	}
	for _, answered := range []string{"Arn", "CreationDate", "LastModificationDate", "Name"} {
		delete(schedule, answered)
	}
	schedule["ScheduleExpression"] = "at(" + to.UTC().Format("2006-01-02T15:04:05") + ")"
	schedule["GroupName"] = group
	body, err := json.Marshal(schedule)
	if err != nil {
		return err
	}
	_, err = c.api.send(ctx, request{service: "scheduler", method: http.MethodPut, path: path, body: string(body)})
	return err
}
