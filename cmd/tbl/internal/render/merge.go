package render

import (
	"slices"
	"time"

	"tbl/loader"
	"tbl/loader/fleet"
)

// MergedLoad is the document of several clients' loads as one.
func MergedLoad(r *loader.LoadResult, s *fleet.Summary) *Document {
	d := Load(r)
	d.Data = struct {
		*loader.LoadResult
		*fleet.Summary
	}{r, s}
	return clients(d, s)
}

// MergedBulk is the document of several clients' bulk loads as one.
func MergedBulk(r *loader.BulkResult, s *fleet.Summary) *Document {
	d := Bulk(r)
	d.Data = struct {
		*loader.BulkResult
		*fleet.Summary
	}{r, s}
	return clients(d, s)
}

// clients puts before a document who did what.
func clients(d *Document, s *fleet.Summary) *Document {
	head := &Document{}
	several := slices.ContainsFunc(s.Clients, func(c fleet.Client) bool { return c.Host != s.Clients[0].Host })
	agreed := slices.ContainsFunc(s.Clients, func(c fleet.Client) bool { return c.LateNS != 0 })
	header := []string{"client"}
	if several {
		header = append(header, "host")
	}
	header = append(header, "start_offset")
	if agreed {
		header = append(header, "start_late")
	}
	t := head.Append("clients", append(header, "elapsed", "sent", "failed", "writes", "writes/s", "p50", "p99")...)
	t.Left = true
	for _, c := range s.Clients {
		row := []any{c.Name}
		if several {
			row = append(row, c.Host)
		}
		row = append(row, time.Duration(c.OffsetNS))
		if agreed {
			row = append(row, time.Duration(c.LateNS))
		}
		t.Row(append(row, time.Duration(c.ElapsedNS), c.Sent, c.Failed, c.Writes, Fixed1(c.WritesPerS), time.Duration(c.Response.P50NS), p99(c.Response))...)
	}
	head.Linef("%d clients, start marks within %s by their clocks; all at work for %s: %s", len(s.Clients),
		Duration(time.Duration(s.StartSkewNS)), Duration(time.Duration(s.TogetherNS)), Rate(s.TogetherPerS))
	d.Blocks = append(head.Blocks, d.Blocks...)
	return d
}
