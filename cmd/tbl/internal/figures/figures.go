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
	fields := map[string]any{}
	parts := []any{d.Data}
	if d.Extra != nil {
		parts = append(parts, d.Extra)
	}
	for _, part := range parts {
		raw, err := json.Marshal(listed(part))
		if err != nil {
			return nil, fmt.Errorf("encode the result: %w", err)
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&fields); err != nil {
			return nil, fmt.Errorf("encode the result: %w", err)
		}
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
	return []Set{{Figures: figuresOfOne(fields)}}
}

// SetsFor are the figures that an assertion about one figure is held against:
// Sets, but those of the whole where the figure's name says itself which part
// is meant, as devices.NAME.restarts does.
func SetsFor(fields map[string]any, figure string) []Set {
	list, _, _ := strings.Cut(figure, ".")
	if _, ok := fields[list].([]any); ok {
		return []Set{{Figures: figuresOf(fields)}}
	}
	return Sets(fields)
}

// figuresOfOne are those of the whole, and of the only device what neither the
// whole nor a core has.
func figuresOfOne(fields map[string]any) verdict.Figures {
	f := figuresOf(fields)
	devices, _ := fields["devices"].([]any)
	if len(devices) != 1 {
		return f
	}
	only, _ := devices[0].(map[string]any)
	for name, v := range figuresOf(only).All {
		_, taken := f.All[name]
		for _, core := range f.Cores {
			_, has := core[name]
			taken = taken || has
		}
		if !taken {
			f.All[name] = v
		}
	}
	return f
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

// nameOf is what an element of a list is called; empty: it has no name.
func nameOf(element any) string {
	m, _ := element.(map[string]any)
	for _, field := range [...]string{"subtable", "device", "design", "node", "client", "name"} {
		if name, ok := m[field].(string); ok {
			return name
		}
	}
	return ""
}

// flatten adds the numbers in v under their names, nested ones joined by
// dots; true is 1, false 0. What stands in a list goes by its place, from 0, and
// by its name where it has one. The response times stand under their short names
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
		seen := map[string]bool{}
		for _, e := range v {
			if own := nameOf(e); own != "" && !seen[own] {
				seen[own] = true
				flatten(out, join(own), e)
			}
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
