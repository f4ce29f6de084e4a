// Package figures finds the numbers in results, by the names that users know
// them by: those that assertions are held against, those that are compared from
// run to run, and those that benchmark tools follow.
package figures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tbl/cmd/tbl/internal/render"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// Fields is the JSON form of a result as a map, numbers kept as they are
// written, with the document's figures beside the result's own fields. No list
// in it is null.
func Fields(d *render.Document) (map[string]any, error) {
	raw, err := json.Marshal(listed(d.Data))
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	fields := map[string]any{}
	if err := dec.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	for name, v := range d.Extra {
		fields[name] = v
	}
	for name, v := range d.Figures {
		if _, taken := fields[name]; !taken {
			fields[name] = v
		}
	}
	return fields, nil
}

// Set is what one assertion is held against.
type Set struct {
	verdict.Figures
	// Of is "device …" or "target …", empty where there is one only.
	Of string
}

// Sets are the figures of a result: of each device or target where
// there are several, else of the whole.
func Sets(fields map[string]any) []Set {
	for list, name := range map[string]string{"devices": "device", "targets": "target"} {
		parts, ok := fields[list].([]any)
		if !ok || len(parts) < 2 {
			continue
		}
		var out []Set
		for _, p := range parts {
			if m, ok := p.(map[string]any); ok {
				of, _ := m[name].(string)
				out = append(out, Set{figuresOf(m), name + " " + of})
			}
		}
		return out
	}
	return []Set{{Figures: figuresOf(fields)}}
}

func figuresOf(fields map[string]any) verdict.Figures {
	f := verdict.Figures{All: map[string]float64{}, Cores: map[timingstats.CoreID]map[string]float64{}}
	core := func(id string, v any) {
		var c timingstats.CoreID
		if err := c.UnmarshalText([]byte(id)); err == nil {
			f.Cores[c] = map[string]float64{}
			flatten(f.Cores[c], "", v)
		}
	}
	for name, v := range fields {
		if name != "cores" {
			flatten(f.All, name, v)
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			for id, c := range v {
				core(id, c)
			}
		case []any:
			for _, c := range v {
				if m, ok := c.(map[string]any); ok {
					if id, ok := m["core"].(string); ok {
						core(id, c)
					}
				}
			}
		}
	}
	return f
}

// flatten adds the numbers in v under their names, nested ones joined by
// dots; true is 1, false 0. The response times stand under their short names
// too.
func flatten(out map[string]float64, name string, v any) {
	join := func(k string) string { return strings.TrimPrefix(name+"."+k, ".") }
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			flatten(out, join(k), e)
		}
	case []any:
		for i, e := range v {
			flatten(out, join(strconv.Itoa(i)), e)
		}
	case json.Number:
		if x, err := v.Float64(); err == nil {
			out[name] = x
			if short, ok := strings.CutPrefix(name, "response."); ok {
				out[short] = x
			}
		}
	case float64:
		out[name] = v
	case bool:
		out[name] = 0
		if v {
			out[name] = 1
		}
	}
}
