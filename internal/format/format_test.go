package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"0", "999", "1,000", "−1,234,567"}, []string{Thousands(0), Thousands(999), Thousands(1000), Thousands(-1_234_567)})
	require.Equal(t, []string{"1 runner", "2 runners", "1,200 processes"}, []string{Count(1, "runner"), Count(2, "runner"), Count(1200, "process")})
	require.Equal(t, []string{"1 stream was", "1200 streams were"}, []string{Plural(1, "stream was", "streams were"), Plural(1200, "stream was", "streams were")})
	require.Equal(t, []string{"0.0 MiB", "1023.0 MiB", "1.00 GiB"}, []string{Bytes(0), Bytes(1023 << 20), Bytes(1 << 30)})
	require.Equal(t, []string{"", "2023-11-14 22:13:20 UTC"}, []string{Moment(0), Moment(1.7e9)})
}
