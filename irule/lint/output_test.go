package lint_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tbl/irule/lint"
)

const sample = "when HTTP_REQUEST {\n    set ::x 1\n    log local0. \"hello\"\n}\n"

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := lint.WriteText(&b, lint.Check("a.tcl", []byte(sample))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a.tcl:2:9: error: ::x is global [global-variable]\n    costs:   It demotes", "\n    instead: A static::",
		"a.tcl:3:5: warning: log in HTTP_REQUEST without a condition [log-per-request]\n", "\n1 error, 1 warning\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	b.Reset()
	if err := lint.WriteText(&b, nil); err != nil || b.String() != "0 errors, 0 warnings\n" {
		t.Errorf("of nothing: %q, %v", &b, err)
	}
}

func TestJSON(t *testing.T) {
	want := lint.Check("a.tcl", []byte(sample))
	var b bytes.Buffer
	if err := lint.WriteJSON(&b, want); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Findings         []lint.Finding
		Errors, Warnings int
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != 2 || got.Findings[0] != want[0] || got.Findings[1] != want[1] || got.Errors != 1 || got.Warnings != 1 {
		t.Errorf("%+v", got)
	}
	b.Reset()
	if err := lint.WriteJSON(&b, nil); err != nil || !strings.Contains(b.String(), `"findings": []`) {
		t.Errorf("of nothing: %s, %v", &b, err)
	}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := lint.WriteSARIF(&b, lint.Check("my rules/a.tcl", []byte(sample)), "1.2"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID string
					}
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "2.1.0" || len(got.Runs) != 1 || len(got.Runs[0].Results) != 2 || len(got.Runs[0].Tool.Driver.Rules) != len(lint.Rules()) {
		t.Fatalf("%+v", got)
	}
	for _, r := range got.Runs[0].Results {
		if got.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("index %d is not rule %s", r.RuleIndex, r.RuleID)
		}
		if r.Message.Text == "" || r.Locations[0].PhysicalLocation.ArtifactLocation.URI != "my%20rules/a.tcl" {
			t.Errorf("%+v", r)
		}
	}
	if r := got.Runs[0].Results[0]; r.Level != "error" || r.Locations[0].PhysicalLocation.Region.StartLine != 2 {
		t.Errorf("%+v", r)
	}
	b.Reset()
	if err := lint.WriteSARIF(&b, nil, ""); err != nil || !strings.Contains(b.String(), `"results": []`) {
		t.Errorf("of nothing: %s, %v", &b, err)
	}
}
