// Command genlog writes a log as a BIG-IP would hold it, repeatable by its
// seed: samples of healthy cores (or, with -slow, some of a remote one) among
// other lines, of any size. It feeds the benchmarks.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

type config struct {
	bytes   int64
	share   float64 // of lines that are samples
	cores   int
	slow    int // the number of this core's samples are remote, -1: none
	key     int // bytes of a key, 0: loadkey_N
	bare    bool
	runs    int // samples per core after which a new run begins, 0: never
	seed    uint64
	samples int64 // stop after so many, 0: at bytes
}

func main() {
	var c config
	flag.Int64Var(&c.bytes, "bytes", 1<<30, "size of the log")
	flag.Float64Var(&c.share, "share", 1, "share of lines that are samples")
	flag.IntVar(&c.cores, "cores", 4, "number of cores")
	flag.IntVar(&c.slow, "slow", -1, "a core whose writes are remote")
	flag.IntVar(&c.key, "key-bytes", 0, "length of keys, 0 for loadkey_N")
	flag.IntVar(&c.runs, "run-samples", 0, "samples per core and run, 0 for one run")
	flag.BoolVar(&c.bare, "bare", false, "samples without anything before the message")
	flag.Int64Var(&c.samples, "samples", 0, "stop after so many samples")
	flag.Uint64Var(&c.seed, "seed", 1, "seed")
	flag.Parse()
	if flag.NArg() > 0 || c.cores < 1 || c.share < 0 || c.share > 1 {
		fmt.Fprintln(os.Stderr, "genlog: bad arguments")
		os.Exit(2)
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	if err := c.write(w); err != nil {
		fmt.Fprintln(os.Stderr, "genlog:", err)
		os.Exit(1)
	}
}

// others are lines of other programs and rules, in the lengths that occur. %d
// is replaced by a number.
var others = []string{
	" bigip1 notice mcpd[6123]: 01070410:5: Removed subscription with subscriber id %d.cli",
	" bigip1 info tmm1[16963]: Rule /Common/other <HTTP_REQUEST>: client 10.1.1.%d asked for /index.html",
	" bigip1 err tmm[16963]: 01220001:3: TCL error: /Common/other <HTTP_REQUEST> - can't read \"x%d\": no such variable     invoked from within \"log local0. $x\"",
	" bigip1 notice tmm2[16963]: 01010028:3: No members available for pool /Common/web_pool_%d",
	" bigip1 err mcpd[6123]: 01070638:3: Pool /Common/web_pool member /Common/10.2.0.%d:80 monitor status down. [ /Common/http: down; last error: Could not connect. ]  [ was up for 3hrs:12mins:7sec ]",
	" bigip1 info audit_forwarder[7102]: audit_forwarder connected to %d.log.example.net",
	" bigip1 warning tmm3[16963]: 01260009:4: Connection error: ssl_passthru:4006: alert(40) handshake failure %d",
	" bigip1 notice sshd[%d]: Accepted publickey for admin from 192.0.2.17 port 51514 ssh2",
	" bigip1 info tmm[16963]: Rule /Common/LOCALDB <HTTP_REQUEST>: tmm=0 CLIENT_ACCEPTED accepts=%d from 10.1.2.3:51514",
	" bigip1 debug httpd[11873]: pam_bigip_authz: authenticated user admin with role 0 session %d (Administrator) in partition [All]",
}

func (c *config) write(w *bufio.Writer) error {
	rng := rand.New(rand.NewPCG(c.seed, 0))
	at := time.Date(2026, 5, 6, 16, 2, 11, 0, time.UTC)
	stamp := []byte(at.Format(time.Stamp))
	writes := make([]int64, c.cores)
	names := make([]string, c.cores)
	for i := range names {
		names[i] = fmt.Sprintf("localdb_tmm_%d_%d", i, 5946+i)
	}
	var b []byte
	var written, samples int64
	run := 0
	for line := 0; written < c.bytes && (c.samples == 0 || samples < c.samples); line++ {
		if line%500 == 499 {
			at = at.Add(time.Second)
			stamp = []byte(at.Format(time.Stamp))
		}
		b = append(b[:0], stamp...)
		if c.share < 1 && rng.Float64() >= c.share {
			t := others[rng.IntN(len(others))]
			for i := 0; i < len(t); i++ {
				if t[i] == '%' {
					b = strconv.AppendInt(b, rng.Int64N(1000), 10)
					i++
					continue
				}
				b = append(b, t[i])
			}
		} else {
			core := rng.IntN(c.cores)
			writes[core] += 1000
			samples++
			if run++; c.runs > 0 && run > c.runs*c.cores {
				run = 0
				clear(writes)
				writes[core] = 1000
			}
			if c.bare {
				b = append(b[:0], "tmm="...)
			} else {
				b = append(b, " bigip1 info tmm"...)
				if core > 0 {
					b = strconv.AppendInt(b, int64(core), 10)
				}
				b = append(b, "[16963]: Rule /Common/LOCALDB <HTTP_REQUEST>: tmm="...)
			}
			b = strconv.AppendInt(b, int64(core), 10)
			b = append(b, " subtable="...)
			b = append(b, names[core]...)
			b = append(b, " writes="...)
			b = strconv.AppendInt(b, writes[core], 10)
			b = append(b, " key="...)
			if c.key == 0 {
				b = append(b, "loadkey_"...)
				b = strconv.AppendInt(b, rng.Int64N(1_000_000), 10)
			} else {
				for range c.key {
					b = append(b, 'a'+byte(rng.Uint32()%26))
				}
			}
			clicks, tag := 2+int64(rng.ExpFloat64()*4), " FAST_LOCAL (sampled 1/1000)"
			if core == c.slow {
				clicks, tag = 121+int64(rng.ExpFloat64()*60000), " SLOW (sampled 1/1000)"
			}
			b = append(b, " clicks="...)
			b = strconv.AppendInt(b, clicks, 10)
			b = append(b, tag...)
		}
		b = append(b, '\n')
		written += int64(len(b))
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return w.Flush()
}
