package refplane

import (
	"encoding/binary"
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

// core is the accepting core of a connection with both ends known: a point on
// a circle that the cores share, turned from a hash of everything else by the
// source port's multiple of the golden section (Knuth, TAOCP 3, 6.4). A client
// whose ports follow each other, by ones or by twos as kernels give them out,
// is then spread as evenly as can be, like by the linear hashes of real
// disaggregators; independent hashes of 28,000 ports that come round again and
// again would leave the cores visibly uneven.
func (d *dag) core(c target.Conn) int {
	var b [34]byte
	n := 0
	if d.kind == Tuple {
		// The same bytes in whole words, which the hash reads at once.
		src, dst := c.Src.Addr().As16(), c.Dst.Addr().As16() // of IPv4 the mapped form
		hi, lo := binary.BigEndian.Uint64(dst[:8]), binary.BigEndian.Uint64(dst[8:])
		binary.BigEndian.PutUint64(b[0:], binary.BigEndian.Uint64(src[:8]))
		binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(src[8:]))
		binary.BigEndian.PutUint64(b[16:], uint64(c.Dst.Port())<<48|hi>>16)
		binary.BigEndian.PutUint64(b[24:], hi<<48|lo>>16)
		binary.BigEndian.PutUint16(b[32:], uint16(lo))
		return d.at(table.Hash(d.seed, b[:]), c)
	}
	if d.kind == SrcIP {
		a := c.Src.Addr().As16()
		n += copy(b[n:], a[:])
	}
	if d.kind != SrcIP {
		binary.BigEndian.PutUint16(b[n:], c.Dst.Port())
		n += 2
	}
	return d.at(table.Hash(d.seed, b[:n]), c)
}

// at is core's choice, hash being that of everything but the source port.
func (d *dag) at(hash uint64, c target.Conn) int {
	point := uint32(hash)
	if d.kind != SrcIP {
		point += uint32(c.Src.Port()) * 0x9e3779b1
	}
	if d.ramp == nil {
		return int(uint64(point) * d.cores >> 32)
	}
	at := uint64(point) * d.ramp[len(d.ramp)-1] >> 32
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
