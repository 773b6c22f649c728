package ci

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// These types are the parts of JUnit's format that GitLab, Jenkins and other readers have in common.
type (
	testSuites struct {
		XMLName xml.Name    `xml:"testsuites"`
		Suites  []testSuite `xml:"testsuite"`
	}
	testSuite struct {
		Name       string     `xml:"name,attr"`
		Tests      int        `xml:"tests,attr"`
		Failures   int        `xml:"failures,attr"`
		Errors     int        `xml:"errors,attr"`
		Skipped    int        `xml:"skipped,attr"`
		Time       string     `xml:"time,attr"`
		Timestamp  string     `xml:"timestamp,attr,omitempty"`
		Properties []property `xml:"properties>property"`
		Cases      []testCase `xml:"testcase"`
	}
	property struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Error   *problem `xml:"error,omitempty"`
		Failure *problem `xml:"failure,omitempty"`
		Skipped *skipped `xml:"skipped,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	skipped struct {
		Message string `xml:"message,attr"`
	}
	problem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit writes a test case for each check. If the verdict is not pass although no check is unmet, a substitute test
// case has the reasons of the verdict.
func junit(w io.Writer, v *verdict.Verdict) error {
	s := testSuite{
		Name: title(v), Time: fmt.Sprintf("%.3f", max(v.EndedUnix-v.StartedUnix, 0)),
		Properties: []property{{"verdict", string(v.Verdict)}, {"testid", v.TestID}, {"target", v.Plan.BackendURL}},
	}
	if v.MessagesChecked != nil {
		s.Properties = append(s.Properties, property{"messages_checked", fmt.Sprint(*v.MessagesChecked)})
	}
	if v.StartedUnix > 0 {
		s.Timestamp = time.UnixMicro(int64(1e6 * v.StartedUnix)).UTC().Format("2006-01-02T15:04:05")
	}
	for _, c := range v.Checks {
		s.add(c)
	}
	if s.Failures+s.Errors == 0 {
		for _, c := range unmetChecks(v) {
			s.add(c)
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err //nolint:wrapcheck // safefile.Write names the file
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	return errors.Join(e.Encode(testSuites{Suites: []testSuite{s}}), e.Close())
}

func (s *testSuite) add(c verdict.Check) {
	entry, message := testCase{Class: s.Name, Name: c.Name}, c.Actual+"; limit: "+c.Limit
	s.Tests++
	switch c.State() {
	case verdict.Met:
		entry.Out = message
	case verdict.NotJudged:
		entry.Skipped = &skipped{Message: message}
		s.Skipped++
	case verdict.Warned:
		entry.Out = "warning: " + strings.Join(c.Sentences(), "\n")
	case verdict.Undecided:
		entry.Error = &problem{Message: message, Type: string(verdict.Invalid), Text: failureText(c)}
		s.Errors++
	case verdict.Broken:
		entry.Failure = &problem{Message: message, Type: string(verdict.Fail), Text: failureText(c)}
		s.Failures++
	}
	s.Cases = append(s.Cases, entry)
}

func failureText(c verdict.Check) string {
	sentences := c.Sentences()
	if c.Why != "" {
		sentences = append(slices.Clip(sentences), c.Why)
	}
	return strings.Join(sentences, "\n")
}
