package app

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/loader"
	"tbl/loader/source"
	"tbl/timingstats/verdict"
)

func (a *app) loadCommand() *cli.Command {
	return &cli.Command{
		Usage: "write, one write per fresh connection",
		Flags: overNodes(commandFlags(
			intFlag("", "count", 0, "number of writes (neither --count nor --file nor --duration: until every core was covered)"),
			stringFlag("", "file", "", "write the rows (key,value) of a CSV `FILE`, - for stdin"),
			durationFlag("", "duration", 0, "stop after that time"),
			intFlag("", "min-writes-per-tmm", loader.DefaultMinWritesPerCore, "coverage-driven: writes that every core must get"),
			intFlag("", "max-connections", loader.DefaultMaxConnections, "coverage-driven: connections at most"),
			intFlag("", "workers", loader.DefaultWorkers, "requests at a time"),
			stringFlag("", "key-prefix", loader.DefaultKeyPrefix, "prefix of generated keys"),
			among(stringFlag("", "keys", source.KeysSeq.String(), "generated keys: seq, uuid or zipf"), source.KeysNames()...),
			intFlag("", "value-size", loader.DefaultValueSize, "size of generated values in bytes"),
			floatFlag("", "rate", 0, "open loop: requests per second, 0: as fast as answered"),
			durationFlag("", "ramp", 0, "let --rate grow from 0 over that time"),
			stringFlag("", "stages", "", "open loop in stages, `DURATION:RATE,…`"),
			durationFlag("", "warmup", 0, "leave the first part of the run out of the figures"),
			intFlag("", "runs", 1, "repeat the run, with a reset in between"),
			durationFlag("", "pause", 0, "pause between runs"),
			startAtFlag(),
			intFlag("", "retries", 0, "tries again for requests that surely did not arrive"),
			boolFlag("", "steer", "pick source ports that reach every core evenly"),
			intFlag("", "only-core", -1, "pick source ports that reach core `K` only"),
			maxImbalanceFlag(),
			maxImbalanceFlag(),
			boolFlag("", "destroy", "with --runs: delete entries that are already there"),
		)),
		Action: a.load,
	}
}

func maxImbalanceFlag() cli.Flag {
	return floatFlag("", "max-imbalance", verdict.DefaultMaxImbalance, "how many times the mean of entries or bytes a core may hold")
}

// checkMaxImbalance refuses what the loader would take for its default.
func checkMaxImbalance(c *cli.Context) error {
	if x := c.Float64("max-imbalance"); !(x >= 1) {
		return usagef("--max-imbalance %v: want 1 or more", x)
	}
	return nil
}

func (a *app) load(c *cli.Context) error {
	if err := loadOverNodes(c); err != nil {
		return err
	}
	if err := checkMaxImbalance(c); err != nil {
		return err
	}
	if n := given(c, "count", "file"); len(n) > 1 {
		return usagef("--%s and --%s: want one source", n[0], n[1])
	}
	if err := positiveIfSet(c, "count"); err != nil {
		return err
	}
	if c.IsSet("only-core") && c.Int("only-core") < 0 {
		return usagef("--only-core %d: want a core's number", c.Int("only-core"))
	}
	if err := atLeast(c, 1, "workers", "runs", "min-writes-per-tmm", "max-connections"); err != nil {
		return err
	}
	if err := atLeast(c, 0, "value-size", "retries"); err != nil {
		return err
	}
	keys, err := source.ParseKeys(c.String("keys"))
	if err != nil {
		return usagef("--keys: %w", err)
	}
	stages, err := parseStages(c.String("stages"))
	if err != nil {
		return err
	}
	start, err := startAt(c)
	if err != nil {
		return err
	}
	cfg := loader.LoadConfig{
		StartAt: start, Count: int64(c.Int("count")), Duration: c.Duration("duration"),
		MinWritesPerCore: int64(c.Int("min-writes-per-tmm")), MaxConnections: int64(c.Int("max-connections")),
		Warmup: c.Duration("warmup"), Workers: c.Int("workers"), Rate: c.Float64("rate"), Ramp: c.Duration("ramp"), Stages: stages,
		Keys: keys, KeyPrefix: c.String("key-prefix"), ValueSize: c.Int("value-size"), Seed: c.Uint64("seed"),
		Retries: c.Int("retries"), MaxErrors: maxErrors(c), MaxImbalance: c.Float64("max-imbalance"), Steer: c.Bool("steer"),
		Runs: c.Int("runs"), Pause: c.Duration("pause"),
	}
	if c.IsSet("only-core") {
		k := c.Int("only-core")
		cfg.OnlyCore = &k
	}
	if c.IsSet("file") {
		src, err := a.csvSource(c.String("file"), false)
		if err != nil {
			return err
		}
		defer src.Close()
		cfg.Source, cfg.SourceRows = src, src.Rows()
	}
	if err := cfg.Validate(); err != nil {
		return usagef("%w", err)
	}
	n := needs{writes: loadWrites(&cfg), rate: loadRate(&cfg)}
	if cfg.Duration > 0 {
		n.takes = render.Duration(cfg.Duration)
	}
	return a.measure(c, n, func(ctx context.Context, p *plane) (*render.Document, error) {
		cfg := cfg
		cfg.Progress = new(loader.Progress)
		if cfg.Runs > 1 {
			if err := p.refuseEntries(ctx, c.Bool("destroy"), "load --runs resets every core between runs"); err != nil {
				return nil, err
			}
		}
		ports := a.portBudget(c, p, &cfg)
		stop := a.progress(c, loaderSnapshot("load", cfg.Progress))
		r, err := loader.Load(ctx, p, cfg)
		stop()
		if r == nil {
			return nil, err
		}
		r.Warnings = append(r.Warnings, ports...)
		r.Verdicts = append(r.Verdicts, p.logBudget(r.OK)...)
		return render.Load(r), err
	})
}

// portBudget says beforehand what the local ports are good for, where the run
// may need more, and returns the warnings.
func (a *app) portBudget(c *cli.Context, p *plane, cfg *loader.LoadConfig) []string {
	if p.remote == nil {
		return nil
	}
	rate := cfg.Rate
	for _, s := range cfg.Stages {
		rate = max(rate, s.Rate)
	}
	b := p.remote.Budget(cfg.Workers, rate)
	if c.Bool("v") || b.MaxRequests > 0 && cfg.Count > b.MaxRequests && b.Sustainable > 0 {
		line := fmt.Sprintf("%s local ports for one destination", render.Int(int64(b.Ports)))
		if b.Sustainable > 0 {
			line += fmt.Sprintf(", each gone for %s after its connection: %s can go on for ever", render.Duration(b.Hold), render.Rate(b.Sustainable))
		}
		if b.ExhaustedAfter > 0 {
			line += fmt.Sprintf("; at %s they are exhausted after %s", render.Rate(rate), render.Duration(b.ExhaustedAfter))
		}
		fmt.Fprintf(a.env.Stderr, "tbl: ports: %s\n", line)
	}
	return b.Warnings
}

// csvSource opens a file of rows. The whole file is checked before the first
// write: a row that can't be written is named and nothing is sent.
func (a *app) csvSource(path string, keyOnly bool) (*source.CSV, error) {
	in, name := a.env.Stdin, "stdin"
	if path != "-" {
		f, err := openFile(path)
		if err != nil {
			return nil, usagef("--file: %w", err)
		}
		// The source reads it to its end, twice; it stays open until the process
		// or the source ends.
		in, name = f, path
	}
	src, err := source.OpenCSV(in, source.CSVOptions{Name: name, KeyOnly: keyOnly})
	if err != nil {
		return nil, usagef("--file: %w", err)
	}
	return src, nil
}

// openFile opens a regular file or pipe for reading; a directory is refused
// here, as reading would only fail later.
func openFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s is a directory, want a file", path)
	}
	return f, nil
}

// parseStages reads DURATION:RATE,DURATION:RATE,…
func parseStages(s string) ([]loader.Stage, error) {
	if s == "" {
		return nil, nil
	}
	var out []loader.Stage
	for _, part := range strings.Split(s, ",") {
		d, r, ok := strings.Cut(part, ":")
		dur, err1 := time.ParseDuration(d)
		rate, err2 := strconv.ParseFloat(r, 64)
		if !ok || err1 != nil || err2 != nil {
			return nil, usagef("--stages %q: want DURATION:RATE, such as 30s:1000", part)
		}
		out = append(out, loader.Stage{Duration: dur, Rate: rate})
	}
	return out, nil
}

func loadWrites(cfg *loader.LoadConfig) string {
	switch cfg.ModeOf() {
	case "file":
		return fmt.Sprintf("%s rows, into the subtable of whichever core accepts", render.Int(cfg.SourceRows))
	case "count":
		return fmt.Sprintf("%s entries named %s_…, into the subtable of whichever core accepts", render.Int(cfg.Count*int64(max(cfg.Runs, 1))), cfg.KeyPrefix)
	case "duration":
		return fmt.Sprintf("entries named %s_…, as many as go in the time", cfg.KeyPrefix)
	}
	return fmt.Sprintf("entries named %s_… until every core has %d, %s at most", cfg.KeyPrefix, cfg.MinWritesPerCore, render.Int(cfg.MaxConnections))
}

func loadRate(cfg *loader.LoadConfig) string {
	switch {
	case cfg.Rate > 0:
		return render.Rate(cfg.Rate)
	case len(cfg.Stages) > 0:
		return fmt.Sprintf("%d stages", len(cfg.Stages))
	}
	return fmt.Sprintf("as fast as answered, %d at a time", cfg.Workers)
}

// loaderSnapshot adapts the loader's progress.
func loaderSnapshot(label string, p *loader.Progress) func() render.Snapshot {
	return func() render.Snapshot {
		missing := fmt.Sprint(p.Missing())
		return render.Snapshot{
			Label: label, Done: p.Completed.Load(), Total: p.Total.Load(), Errors: p.Errors.Load(),
			Heard: p.Heard.Load(), Cores: p.Known.Load(), Missing: missing[1 : len(missing)-1],
			Scheduled: p.Scheduled(),
		}
	}
}

func (a *app) bulkPostCommand() *cli.Command {
	return &cli.Command{
		Usage: "write batches of fresh UUIDv4 keys, one batch per POST",
		Flags: overNodes(commandFlags(
			intFlag("", "num-posts", loader.DefaultNumPosts, "number of batches"),
			intFlag("", "uuids-per-post", loader.DefaultUUIDsPerPost, "keys per batch"),
			intFlag("", "batch-bytes", 0, "bound batches by size instead, in bytes"),
			stringFlag("", "file", "", "take the keys from a CSV `FILE`, - for stdin"),
			intFlag("", "workers", loader.DefaultBulkWorkers, "batches at a time"),
			intFlag("", "runs", 1, "repeat all batches, with a reset in between"),
			durationFlag("", "pause", 0, "pause between runs"),
			startAtFlag(),
			intFlag("", "retries", 0, "tries again for batches that surely did not arrive"),
			boolFlag("", "keep-alive", "remote: use connections again, to measure the wire: a worker's batches then reach one core"),
			boolFlag("", "reuse-bodies", "send the same bodies again and again, to measure the wire"),
			intFlag("", "threshold", 100, "clicks per write from which a batch is remote"),
			maxImbalanceFlag(),
			maxImbalanceFlag(),
			boolFlag("", "destroy", "with --runs: delete entries that are already there"),
		)),
		Action: a.bulkPost,
	}
}

func (a *app) bulkPost(c *cli.Context) error {
	if err := loadOverNodes(c); err != nil {
		return err
	}
	if err := checkMaxImbalance(c); err != nil {
		return err
	}
	if err := atLeast(c, 1, "num-posts", "uuids-per-post", "workers", "runs", "threshold"); err != nil {
		return err
	}
	if err := atLeast(c, 0, "batch-bytes", "retries"); err != nil {
		return err
	}
	start, err := startAt(c)
	if err != nil {
		return err
	}
	cfg := loader.BulkConfig{
		StartAt: start, BatchBytes: c.Int("batch-bytes"), Workers: c.Int("workers"), Runs: c.Int("runs"), Pause: c.Duration("pause"),
		ReuseBodies: c.Bool("reuse-bodies"), Timeout: c.Duration("timeout"), Seed: c.Uint64("seed"), Retries: c.Int("retries"),
		MaxErrors: maxErrors(c), MaxImbalance: c.Float64("max-imbalance"), Threshold: int64(c.Int("threshold")),
	}
	if !c.IsSet("file") || c.IsSet("num-posts") {
		cfg.NumPosts = c.Int("num-posts")
	}
	if cfg.BatchBytes == 0 || c.IsSet("uuids-per-post") {
		cfg.UUIDsPerPost = c.Int("uuids-per-post")
	}
	writes := fmt.Sprintf("%s batches of %s keys, %s entries in all", render.Int(int64(cfg.NumPosts)), render.Int(int64(cfg.UUIDsPerPost)),
		render.Int(int64(cfg.NumPosts)*int64(cfg.UUIDsPerPost)*int64(cfg.Runs)))
	if c.IsSet("file") {
		src, err := a.csvSource(c.String("file"), true)
		if err != nil {
			return err
		}
		defer src.Close()
		cfg.Source = src
		writes = fmt.Sprintf("%s keys of %s", render.Int(src.Rows()), c.String("file"))
	}
	if err := cfg.Validate(); err != nil {
		return usagef("%w", err)
	}
	n := needs{writes: writes, rate: fmt.Sprintf("as fast as answered, %d batches at a time", cfg.Workers)}
	return a.measure(c, n, func(ctx context.Context, p *plane) (*render.Document, error) {
		cfg := cfg
		cfg.Progress = new(loader.Progress)
		if cfg.Runs > 1 {
			if err := p.refuseEntries(ctx, c.Bool("destroy"), "bulk-post --runs resets every core between runs"); err != nil {
				return nil, err
			}
		}
		stop := a.progress(c, loaderSnapshot("bulk-post", cfg.Progress))
		r, err := loader.Bulk(ctx, p, cfg)
		stop()
		if r == nil {
			return nil, err
		}
		r.Verdicts = append(r.Verdicts, p.logBudget(r.Written)...)
		return render.Bulk(r), err
	})
}
