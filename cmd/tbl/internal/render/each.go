package render

// Each joins the documents of several targets, each judged apart: the worst
// decides.
func Each(command string, targets []string, docs []*Document) *Document {
	d := &Document{Command: command}
	data := make([]any, len(docs))
	for i, one := range docs {
		d.Linef("target %s", targets[i])
		d.Blocks = append(d.Blocks, one.Blocks...)
		for _, v := range one.Verdicts {
			v.Line += " (target " + targets[i] + ")"
			d.Verdicts = append(d.Verdicts, v.About("target "+targets[i]))
		}
		for _, x := range one.Distributions {
			x.Tag = targets[i] + "_" + x.Tag
			d.Distributions = append(d.Distributions, x)
		}
		d.Closing = append(d.Closing, one.Closing...)
		data[i] = one.Data
	}
	d.Data = struct {
		Targets []any `json:"targets"`
	}{data}
	return d
}
