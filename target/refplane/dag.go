package refplane

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"

	"tbl/target"
	"tbl/target/refplane/table"
)

// dag is the disaggregator: it picks the accepting core of a connection.
type dag struct {
	kind  DAGKind
	seed  uint64
	cores uint64
	ramp  []uint64 // running sums of the cores' weights; nil: all equal
}

func newDAG(cfg Config) dag {
	d := dag{kind: cfg.DAG, seed: mix(cfg.Seed ^ 1), cores: uint64(cfg.Cores)}
	weights := make([]uint64, cfg.Cores)
	for i := range weights {
		weights[i] = 1
	}
	weighted := false
	for _, f := range cfg.Faults {
		if f.Name == DAGSkew {
			for i := range weights {
				weights[i] = 1
			}
			for i, w := range f.Weights {
				weights[i] = uint64(w)
			}
			weighted = true
		}
	}
	for _, f := range cfg.Faults {
		if f.Name == DeadCore {
			weights[f.Core] = 0
			weighted = true
		}
	}
	if weighted {
		var sum uint64
		for _, w := range weights {
			sum += w
			d.ramp = append(d.ramp, sum)
		}
	}
	return d
}

// core is the accepting core of a connection with both ends known.
func (d *dag) core(c target.Conn) int {
	var b [36]byte
	n := 0
	if d.kind != Ports {
		a := c.Src.Addr().Unmap().As16()
		n += copy(b[n:], a[:])
	}
	if d.kind != SrcIP {
		binary.BigEndian.PutUint16(b[n:], c.Src.Port())
		binary.BigEndian.PutUint16(b[n+2:], c.Dst.Port())
		n += 4
	}
	if d.kind == Tuple {
		a := c.Dst.Addr().Unmap().As16()
		n += copy(b[n:], a[:])
	}
	h := table.Hash(d.seed, b[:n])
	if d.ramp == nil {
		return int(h % d.cores)
	}
	at, _ := bits.Mul64(h, d.ramp[len(d.ramp)-1])
	k, _ := slices.BinarySearch(d.ramp, at+1)
	return k
}

// complete fills the unset parts of a connection from r, a random number. It
// invents one client and, unless the caller steers by the source port, a
// whole network of destinations, so that the hash of the tuple is as even as
// a hash can be.
func complete(c target.Conn, r uint64) target.Conn {
	src, dst := c.Src.Addr(), c.Dst.Addr()
	sport, dport := c.Src.Port(), c.Dst.Port()
	if !dst.IsValid() || dst.IsUnspecified() {
		dst = netip.AddrFrom4([4]byte{10, 1, 0, 1})
		if sport == 0 {
			dst = netip.AddrFrom4([4]byte{10, 1, byte(r >> 24), byte(r >> 16)})
		}
	}
	if !src.IsValid() || src.IsUnspecified() {
		src = netip.AddrFrom4([4]byte{10, 0, 0, 1})
	}
	if sport == 0 {
		sport = uint16(1024 + (r>>32)*(65536-1024)>>32)
	}
	if dport == 0 {
		dport = 80
	}
	return target.Conn{Src: netip.AddrPortFrom(src, sport), Dst: netip.AddrPortFrom(dst, dport)}
}
