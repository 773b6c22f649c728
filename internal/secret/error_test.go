package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorHidesTokensOfTheEnvironment(t *testing.T) {
	const token = "0f9e8d7c6b5a49382716"
	t.Setenv("SUBSCRIBE_TOKEN", token)
	require.NoError(t, Error(nil))
	err := Error(fmt.Errorf("malformed MIME header %q: %w", "x"+token, fs.ErrNotExist))
	require.NotContains(t, err.Error(), token)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "malformed MIME header")
}

// A remedy shows where a token belongs.
func TestErrorKeepsPlaceholders(t *testing.T) {
	for text, want := range map[string]string{
		"pass --header 'Authorization: Bearer {token}' with SUBSCRIBE_TOKEN set": "pass --header 'Authorization: Bearer {token}' with SUBSCRIBE_TOKEN set",
		"pass --header 'Authorization: Basic …'":                                 "pass --header 'Authorization: Basic …'",
		"sent 'Authorization: Bearer {token}abc'":                                "sent 'Authorization: [redacted]'",
	} {
		require.EqualError(t, Error(errors.New(text)), want)
	}
}

// In quadratic time, this many bytes would take an hour.
func TestLongSeriesOfEscapesNeedsLinearTime(t *testing.T) {
	t.Parallel()
	v := Environment([]string{"SUBSCRIBE_TOKEN=0f9e8d7c6b5a49382716"})
	for _, escape := range []string{`\`, "%5C", "%25"} {
		text := append(bytes.Repeat([]byte(escape), 1<<18), "0f9e8d7c6b5a49382716"...)
		hidden := v.Replace(text, "{token}")
		require.True(t, bytes.HasSuffix(hidden, []byte("{token}")), escape)
	}
}
