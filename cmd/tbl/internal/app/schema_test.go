package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tbl/target/httpserve"
	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

const schemaFile = "../../../../testdata/runfile.schema.json"

// exported are command lines that between them save everything there is to
// save. What is in capitals is replaced.
var exported = []string{
	"load --clock model --seed 3 --count 4000",
	"load --clock model --seed 3 --count 1500 --runs 2",
	"load --clock model --seed 3 --rate 500 --duration 8s --warmup 1s --assert p99_ms<1",
	"load --clock model --seed 3 --stages 2s:100,2s:300 --fault dead-core=1",
	"load --target NODE --target OTHER --count 300",
	"load --target FAILING --count 200 --retries 1",
	"load --target NODE --target OTHER --count 300 --each --assert p99_ms<1 --assert errors<1%",
	"load --target NODE --count 64 --steer",
	"bulk-post --clock model --seed 3 --num-posts 40 --uuids-per-post 100",
	"bulk-post --target NODE --num-posts 8 --uuids-per-post 10",
	"validate --clock model --seed 3 --count 4000",
	"validate --clock model --seed 3 --count 4000 --fault deterministic-names",
	"validate --target NODE --count 2000 --destroy",
	"validate --target NODE --target OTHER --count 2000 --destroy --each",
	"probe --clock model --seed 3 --discovered",
	"probe --clock model --seed 3 --name a --name b --expect-owner 2",
	"probe --clock model --seed 3 --names-file FILE",
	"info --clock model --seed 3",
	"info --target NODE",
	"whoami --clock model --seed 3 --fault deterministic-names",
	"whoami --target NODE",
	"dump --target NODE",
	"reset --clock model --seed 3",
	"reset --target NODE --all-names",
	"find-names --clock model --seed 3",
	"meta --clock model --seed 3 --subtable s --key k",
	"meta --target NODE --subtable s --key k",
	"session --clock model --seed 3 --sessions 200",
	"stats LOGS/healthy.log",
	"stats LOGS/broken.log --show-slow --group-by subtable",
	"stats LOGS/chassis.log LOGS/lossy.log --all-lines",
	"stats LOGS/prefixes.log LOGS/two-runs.log --run all --assert p99<50 --warn slow<1%",
	"stats LOGS/prefixes.log --probes",
	"stats LOGS/chassis.log LOGS/broken.log --assert p99<50 --assert restarts<1",
	"stats LOGS/missing-core.log --threshold auto",
	"sticky --transactions 200 --workers 4",
	"sticky --transactions 200 --workers 4 --sticky=false --policy round-robin --kill 2@50% --fail not-reached@1:0.1",
	"compare BASE NEW",
	"merge BASE NEW",
	"merge BULK BULK2",
}

// saveAll runs the command lines and reads what they saved.
func saveAll(t *testing.T) map[string]any {
	t.Helper()
	dir := t.TempDir()
	places := map[string]string{}
	for i, name := range []string{"NODE", "OTHER", "FAILING"} {
		plane, err := refplane.New(refplane.Config{Cores: 2, Seed: uint64(5 + i)})
		if err != nil {
			t.Fatal(err)
		}
		var handler http.Handler = httpserve.New(plane, httpserve.Config{})
		if name == "FAILING" {
			handler = failing(handler)
		}
		node := httptest.NewServer(handler)
		t.Cleanup(func() {
			node.Close()
			plane.Close()
		})
		places[name] = node.URL
	}
	save := func(path, line string) {
		args := append(strings.Fields(line), "--export", path, "--quiet")
		var out, errs bytes.Buffer
		env := Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
		if code := Run(context.Background(), env, args); code == exitUsage {
			t.Fatalf("tbl %s: exit %d: %s", line, code, errs.String())
		}
	}
	for _, name := range []string{"BASE", "NEW", "BULK", "BULK2"} {
		places[name] = filepath.Join(dir, name+".json")
	}
	save(places["BASE"], "load --clock model --seed 1 --count 3000 --key-prefix a")
	save(places["NEW"], "load --clock model --seed 2 --count 3000 --key-prefix b")
	save(places["BULK"], "bulk-post --clock model --seed 1 --num-posts 40 --uuids-per-post 50")
	save(places["BULK2"], "bulk-post --clock model --seed 2 --num-posts 40 --uuids-per-post 50")
	places["LOGS"] = "../../../../testdata/logs"
	places["FILE"] = filepath.Join(dir, "names.txt")
	if err := os.WriteFile(places["FILE"], []byte("n1\nn2\nn3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for i, line := range exported {
		var args []string
		for _, a := range strings.Fields(line) {
			place, rest, more := strings.Cut(a, "/")
			if p, ok := places[place]; ok {
				a = p
				if more {
					a += "/" + rest
				}
			}
			args = append(args, a)
		}
		path := filepath.Join(dir, fmt.Sprintf("run%d.json", i))
		save(path, strings.Join(args, " "))
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("tbl %s: %v", line, err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("tbl %s: %v", line, err)
		}
		out[line] = doc
	}
	return out
}

// failing answers every seventh write with an error.
func failing(h http.Handler) http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/load") && n.Add(1)%7 == 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// TestSchema holds what every command saves against the schema, and then the
// schema against what is wrong with it: a field of another type, a missing
// one, one without its unit.
func TestSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	saved := saveAll(t)
	for _, line := range exported {
		if err := schema.Validate(saved[line]); err != nil {
			t.Errorf("tbl %s: %v", line, err)
		}
		if twice := sharedTitles(t, saved[line]); len(twice) > 0 {
			t.Errorf("tbl %s: several verdicts are called %q", line, twice)
		}
	}
	if t.Failed() {
		return
	}
	for _, cmd := range (&app{}).cli().Commands {
		if hasFlag(cmd, "export") && !slices.ContainsFunc(exported, func(l string) bool { return strings.HasPrefix(l, cmd.Name+" ") }) {
			t.Errorf("no example of %s is held against the schema", cmd.Name)
		}
	}
	m := mutator{t: t, schema: schema, seen: map[string]bool{}}
	for _, line := range exported {
		m.line, m.root = line, saved[line]
		m.object("", saved[line].(map[string]any), false)
	}
	if m.tried < 1000 {
		t.Errorf("only %d changes were tried", m.tried)
	}
}

// sharedTitles are the titles that several verdicts of a saved run have.
func sharedTitles(t *testing.T, saved any) []string {
	t.Helper()
	raw, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	var run struct {
		Verdicts []verdict.Verdict `json:"verdicts"`
	}
	if err := json.Unmarshal(raw, &run); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, v := range run.Verdicts {
		seen[v.Title()]++
	}
	maps.DeleteFunc(seen, func(_ string, n int) bool { return n == 1 })
	return slices.Sorted(maps.Keys(seen))
}

// mutator changes one thing after another of a document, and wants the schema
// to notice.
type mutator struct {
	t      *testing.T
	schema *jsonschema.Schema
	line   string
	root   any
	seen   map[string]bool // paths, list elements and free names left out
	tried  int
}

// refused says that the document as it is now must not pass.
func (m *mutator) refused(path, what string) {
	m.tried++
	if m.schema.Validate(m.root) == nil {
		m.t.Errorf("tbl %s: the schema takes %s at %s", m.line, what, path)
	}
}

// free are objects whose names are data.
func free(path string) bool {
	for _, end := range []string{".settings", ".variables", ".figures", ".series.cores", ".cores"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

func (m *mutator) object(path string, o map[string]any, names bool) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		v := o[name]
		at := path + "." + name
		if names {
			at = path + ".*"
		}
		command := strings.Fields(m.line)[0]
		if m.seen[command+at] {
			continue
		}
		m.seen[command+at] = true
		for _, wrong := range []any{"text", json.Number("1.5")} {
			if fmt.Sprintf("%T", wrong) == fmt.Sprintf("%T", v) {
				continue
			}
			o[name] = wrong
			m.refused(at, fmt.Sprintf("%T for %T", wrong, v))
		}
		o[name] = v
		for _, unit := range []string{"_ns", "_s", "_clicks", "_per_s", "_per_h"} {
			if bare, ok := strings.CutSuffix(name, unit); ok && !names {
				delete(o, name)
				o[bare] = v
				m.refused(at, "a missing unit")
				delete(o, bare)
				o[name] = v
			}
		}
		m.value(at, v)
	}
	if !names {
		o["of_nobody"] = json.Number("1")
		m.refused(path, "an unknown field")
		delete(o, "of_nobody")
	}
}

func (m *mutator) value(path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		m.object(path, v, free(path))
	case []any:
		for _, e := range v {
			m.value(path+"[]", e)
		}
	}
}

// schemaObject is an object of the schema, with its fields in order.
type schemaObject struct {
	Properties schemaFields    `json:"properties"`
	Defs       json.RawMessage `json:"$defs"`
	Type       any             `json:"type"`
	Text       string          `json:"description"`
}

type schemaFields []schemaField

type schemaField struct {
	name string
	Text string `json:"description"`
	Ref  string `json:"$ref"`
	Type any    `json:"type"`
	// Items of an array, Each of an object whose names are data.
	Items *schemaField   `json:"items"`
	Each  *schemaField   `json:"additionalProperties"`
	Const any            `json:"const"`
	Enum  []any          `json:"enum"`
	OneOf []*schemaField `json:"oneOf"`
}

// inOrder calls f for each member of an object, as it stands in the file.
func inOrder(raw []byte, f func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return err
		}
		if err := f(name.(string), v); err != nil {
			return err
		}
	}
	return nil
}

func (fs *schemaFields) UnmarshalJSON(raw []byte) error {
	return inOrder(raw, func(name string, v json.RawMessage) error {
		f := schemaField{name: name}
		if err := json.Unmarshal(v, &f); err != nil {
			return err
		}
		*fs = append(*fs, f)
		return nil
	})
}

// has says that a field of the same name and meaning is among them.
func (fs schemaFields) has(f schemaField) bool {
	return slices.ContainsFunc(fs, func(o schemaField) bool { return o.name == f.name && o.Text == f.Text })
}

// form is the field's type in words.
func (f *schemaField) form() string {
	switch {
	case f == nil:
		return "anything"
	case f.Ref != "":
		return "`" + strings.TrimPrefix(f.Ref, "#/$defs/") + "`"
	case len(f.OneOf) > 0:
		return f.OneOf[0].form() + " or null"
	case f.Items != nil:
		return "list of " + f.Items.form()
	case f.Each != nil:
		return "object, each " + f.Each.form()
	case f.Type == nil: // what it is follows from its values
		values := f.Enum
		if f.Const != nil {
			values = append(values, f.Const)
		}
		if len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool { n, ok := v.(float64); return !ok || n != math.Trunc(n) }) {
			return "integer"
		}
		return "string"
	}
	if list, ok := f.Type.([]any); ok {
		return fmt.Sprint(list[0]) + " or null"
	}
	return fmt.Sprint(f.Type)
}

// runFileFields lists the schema, field by field.
func runFileFields(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var root schemaObject
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	// What other objects hold whole is described once.
	parts := map[string]schemaFields{}
	err = inOrder(root.Defs, func(name string, v json.RawMessage) error {
		var o schemaObject
		err := json.Unmarshal(v, &o)
		if slices.Contains([]string{"core_summary", "counts", "verdict"}, name) {
			parts[name] = o.Properties
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	list := func(title string, o schemaObject) {
		told := schemaFields{}
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if part := parts[name]; len(o.Properties) > len(part) && !slices.ContainsFunc(part, func(f schemaField) bool { return !o.Properties.has(f) }) {
				title += ", all of `" + name + "`, and"
				told = append(told, part...)
			}
		}
		fmt.Fprintf(&b, "**%s**\n\n| field | form | meaning |\n|:---|:---|:---|\n", title)
		for _, f := range o.Properties {
			if f.Text == "" {
				t.Errorf("%s: %s has no description in the schema", title, f.name)
			}
			if told.has(f) {
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, f.form(), f.Text)
		}
		b.WriteByte('\n')
	}
	list("every file", root)
	commands := saveableCommands()
	err = inOrder(root.Defs, func(name string, v json.RawMessage) error {
		var o schemaObject
		if err := json.Unmarshal(v, &o); err != nil {
			return err
		}
		switch {
		case o.Properties == nil:
			if o.Text == "" {
				t.Errorf("%s has no description in the schema", name)
			}
			fmt.Fprintf(&b, "**`%s`**: %s\n\n", name, o.Text)
		case slices.Contains(commands, name):
			list("a run of "+name, o)
		default:
			list("`"+name+"`", o) // an object within others
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// saveableCommands are the commands that can save a run, as the header names
// them.
func saveableCommands() []string {
	var out []string
	for _, cmd := range (&app{}).cli().Commands {
		if hasFlag(cmd, "export") {
			out = append(append(out, cmd.Name), cmd.Aliases...)
		}
	}
	return out
}
