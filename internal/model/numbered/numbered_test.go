package numbered

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendWritesTheFormat(t *testing.T) {
	for range 200 {
		id, k, n := strings.Repeat("x", rand.IntN(40)), rand.IntN(1e9), rand.IntN(1e9)
		crc := crc32.ChecksumIEEE(fmt.Appendf(nil, "%s/%d/%d", id, k, n))
		require.Equal(t, fmt.Sprintf("[%d/%d:%08x] ", k, n, crc), string(Append(nil, id, k, n, 0)))
	}
	padded := string(Append(nil, "run-17", 3, 40, 40))
	require.Regexp(t, "^.{15} (lorem ){4}$", padded)
	require.LessOrEqual(t, len(padded), 40)
}

func TestValidRejectsAnotherRequestAndAnotherNumber(t *testing.T) {
	token, _, _ := Next(Append(nil, "a", 3, 40, 0))
	require.True(t, token.Valid("a"))
	require.False(t, token.Valid("b"))
	token.K = 4
	require.False(t, token.Valid("a"))
}

func TestNumberingAllocatesNothing(t *testing.T) {
	buffer := make([]byte, 0, 256)
	id := "run-17"
	require.Zero(t, testing.AllocsPerRun(100, func() {
		text := Append(buffer, id, 17, 40, 100)
		token, _, found := Next(text)
		if !found || !token.Valid(id) {
			t.Fatal("the token is lost")
		}
	}))
}

// reference is the grammar of a token as a regular expression.
var reference = regexp.MustCompile(`\[([1-9][0-9]{0,8})/([1-9][0-9]{0,8}):([0-9a-f]{8})\]`)

// maxToken is the length of the longest token in bytes.
const maxToken = len("[/:01234567]") + 2*maxDigits

// FuzzNext compares Next with a regular expression, and a text in two pieces with the whole text.
func FuzzNext(f *testing.F) {
	f.Add(string(Append(nil, "id", 1, 2, 30)), 5)
	f.Add("[1/2:00000000[1/2:00000000] [1/2", 16)
	f.Add("[[/:]1000000000/1:00000000]", 3)
	f.Add("Sure! [0/3:00000000][1/2:0000000] [x [[12/40:0000abcd]tail[13/40:ffffffff] [1", 70)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var want []Token
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			k, _ := strconv.Atoi(m[1])
			n, _ := strconv.Atoi(m[2])
			crc, _ := strconv.ParseUint(m[3], 16, 32)
			want = append(want, Token{K: k, N: n, CRC: uint32(crc)})
		}
		expected, rest := findAll(text)
		require.Equal(t, want, expected)
		require.Less(t, len(rest), maxToken)
		cut = min(max(cut, 0), len(text))
		first, end := findAll([]byte(text[:cut]))
		second, _ := findAll(append(end, text[cut:]...))
		require.Equal(t, want, append(first, second...))
		for _, token := range want {
			repeated, rest, found := Next(AppendToken(nil, token))
			require.True(t, found)
			require.Empty(t, rest)
			require.Equal(t, token, repeated)
		}
	})
}

func findAll[T string | []byte](text T) (tokens []Token, rest T) {
	for {
		token, rest, found := Next(text)
		if !found {
			return tokens, rest
		}
		tokens, text = append(tokens, token), rest
	}
}
