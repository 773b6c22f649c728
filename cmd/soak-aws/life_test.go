package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExtend(t *testing.T) {
	f := startAWS(t)
	f.setReady()
	f.launched = time.Now().Truncate(time.Second)
	schedule := func(name string) map[string]any {
		return map[string]any{
			"Arn": "arn", "CreationDate": 1.7e9, "LastModificationDate": 1.7e9, "Name": name, "GroupName": "sse-soak", "State": "ENABLED",
			"FlexibleTimeWindow": map[string]any{"Mode": "OFF"}, "ScheduleExpression": "at(2020-01-01T00:00:00)",
			"ScheduleExpressionTimezone": "UTC", "Target": map[string]any{"Arn": "terminate", "Input": "{}", "RoleArn": "arn:aws:iam::123456789012:role/end-of-hosts"},
		}
	}
	f.schedules = map[string]map[string]any{"end-sse-soak-stack": schedule("end-sse-soak-stack"), "end-sse-soak-runners": schedule("end-sse-soak-runners")}
	d := newAppliedDeployment(t)
	require.NoError(t, d.extend(context.Background(), 120))
	want := f.launched.Add(5 * time.Hour).UTC()
	assert.Equal(t, want.Format(time.RFC3339), f.parameters["/sse-soak/end"])
	for name, s := range f.schedules {
		assert.Equal(t, "at("+want.Add(15*time.Minute).Format("2006-01-02T15:04:05")+")", s["ScheduleExpression"], name)
		assert.Equal(t, map[string]any{"Arn": "terminate", "Input": "{}", "RoleArn": "arn:aws:iam::123456789012:role/end-of-hosts"}, s["Target"], "the other properties must not change")
	}

	// Another extension is added to the current end, up to a limit.
	require.NoError(t, d.extend(context.Background(), 60))
	assert.Equal(t, want.Add(time.Hour).Format(time.RFC3339), f.parameters["/sse-soak/end"])
	require.ErrorContains(t, d.extend(context.Background(), -3), "--minutes must be positive, got -3")
	require.ErrorContains(t, d.extend(context.Background(), 24*60), "the time until the end of the hosts must be at most 24h0m0s, got ")

	// If the schedules cannot be moved, the hosts must not get a later end, because the schedules would terminate them
	// during a soak.
	f.schedules = nil
	require.ErrorContains(t, d.extend(context.Background(), 60), "the hosts still end at")
	assert.Equal(t, want.Add(time.Hour).Format(time.RFC3339), f.parameters["/sse-soak/end"])
}
