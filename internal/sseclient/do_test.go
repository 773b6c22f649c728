package sseclient

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndOfReportsUnknownErrors(t *testing.T) {
	t.Parallel()
	end := EndOf(errors.New("boom"))
	require.Equal(t, ReasonError, end.Reason)
	require.Equal(t, "read the stream: boom", end.Message())
}
