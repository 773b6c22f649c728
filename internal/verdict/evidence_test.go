package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumnsOfNumbers(t *testing.T) {
	t.Parallel()
	table := Table{Columns: []string{"stage", "rate", "took", "of all", "status"}}
	table.Add("5 at a time", "20/s", "53.4 MiB", "-31 % … +15 %", "good")
	table.Add("300 requests", "1,000/s", "–", "", "bad")
	for i, numeric := range []bool{false, true, true, true, false} {
		require.Equal(t, numeric, table.Numeric(i), table.Columns[i])
	}
	require.False(t, (&Table{Columns: []string{"stage"}}).Numeric(0), "without rows")
}
