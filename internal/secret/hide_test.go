package secret

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASecretIsHiddenHoweverItStandsThere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Bearer a"b c/d!`:             "Bearer {token}",
		`{"t":"a\"b c/d!"}`:           `{"t":"{token}"}`,
		`/sub?t=a%22b%20c%2Fd%21&x=1`: `/sub?t={token}&x=1`,
		`t=a%22b+c%2Fd%21`:            `t={token}`,
		`/sub?t=a%22b%20c%2fd%21&x=1`: `/sub?t={token}&x=1`,
		`{"t":"a\"b c\/d!"}`:          `{"t":"{token}"}`,
		`{"t":"a\u0022b c/d!"}`:       `{"t":"{token}"}`,
		`another`:                     `another`,
	} {
		require.Equal(t, want, Hide(text, "", `a"b c/d!`), text)
	}
	require.Equal(t, `{"t":"{token}"}`, Hide(`{"t":"a\u0026b\u003c+"}`, "a&b<+"))
	require.Equal(t, `{"t":"{token}"}`, Hide(`{"t":"a\u0026b\u003C\u002B"}`, "a&b<+"))
	require.Equal(t, "a1b", Hide("a1b", "1"), "too short to be told from other text")
}
