package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
)

// WriteText writes findings one after another, each with its place, what it
// costs and what to write instead, and a last line with the counts.
func WriteText(w io.Writer, findings []Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s:%d:%d: %s: %s [%s]\n    costs:   %s\n    instead: %s\n",
			f.File, f.Line, f.Column, f.Severity, f.Message, f.Rule, f.Cost, f.Instead); err != nil {
			return err
		}
	}
	errs := Errors(findings)
	_, err := fmt.Fprintf(w, "%s, %s\n", plural(errs, "error"), plural(len(findings)-errs, "warning"))
	return err
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// report is the JSON form.
type report struct {
	Findings []Finding `json:"findings"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
}

// WriteJSON writes one object with the findings and their counts.
func WriteJSON(w io.Writer, findings []Finding) error {
	errs := Errors(findings)
	if findings == nil {
		findings = []Finding{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(report{Findings: findings, Errors: errs, Warnings: len(findings) - errs})
}

// The parts of SARIF 2.1.0 that we fill (OASIS, "Static Analysis Results
// Interchange Format", sections 3.13 to 3.31).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Short   sarifText    `json:"shortDescription"`
		Help    sarifText    `json:"help"`
		Default sarifDefault `json:"defaultConfiguration"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
)

// WriteSARIF writes a SARIF 2.1.0 log, as code-scanning services read it.
// version is the tool's, empty when unknown.
func WriteSARIF(w io.Writer, findings []Finding, version string) error {
	index := map[string]int{}
	run := sarifRun{
		Tool:    sarifTool{Driver: sarifDriver{Name: "tbl lint", Version: version, Rules: []sarifRule{}}},
		Results: []sarifResult{},
	}
	for i, r := range Rules() {
		index[r.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID:      r.ID,
			Short:   sarifText{r.Summary},
			Help:    sarifText{"Costs: " + r.Cost + " Instead: " + r.Instead},
			Default: sarifDefault{r.Severity.String()},
		})
	}
	for _, f := range findings {
		run.Results = append(run.Results, sarifResult{
			RuleID:    f.Rule,
			RuleIndex: index[f.Rule],
			Level:     f.Severity.String(),
			Message:   sarifText{f.Message + " Costs: " + f.Cost + " Instead: " + f.Instead},
			Locations: []sarifLocation{{sarifPhysical{
				Artifact: sarifArtifact{fileURI(f.File)},
				Region:   sarifRegion{f.Line, f.Column},
			}}},
		})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	})
}

// fileURI makes a path a URI reference: relative paths stay relative.
func fileURI(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}
