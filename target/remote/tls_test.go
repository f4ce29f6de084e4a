package remote_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/remote"
	"tbl/target/targettest"
)

// certificate borrows httptest's, which is for example.com and 127.0.0.1.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return srv.TLS.Certificates[0], pool
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := httpserve.New(targettest.NewSimple(4), httpserve.Config{})
	start(t, srv, tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}}))
	url := "https://" + ln.Addr().String()
	var ans target.Answer

	r := connect(t, remote.Config{URL: url})
	err = r.Do(t.Context(), load(), &ans)
	var te *target.Error
	if !errors.As(err, &te) || te.Class != target.ClassTLS || te.Completion != target.CompletionNotReached {
		t.Errorf("a certificate nobody trusts: %v", err)
	}
	for _, cfg := range []remote.Config{{URL: url, RootCAs: pool}, {URL: url, Insecure: true}, {URL: url, Insecure: true, KeepAlive: true}, {URL: url, RootCAs: pool, LingerReset: true}} {
		r := connect(t, cfg)
		if r.FastPath() {
			t.Error("TLS takes the fast path")
		}
		before := srv.Counts().Accepted
		for range 5 {
			if err := r.Do(t.Context(), load(), &ans); err != nil || string(ans.Key) != "k" {
				t.Fatalf("%+v: %v, key %q", cfg, err, ans.Key)
			}
		}
		body := []byte(strings.Repeat("key\n", 50000))
		if err := r.Do(t.Context(), &target.Request{Op: target.OpBulkLoad, Body: body}, &ans); err != nil || ans.Written != 50000 {
			t.Errorf("bulk load: %v, written %d", err, ans.Written)
		}
		want := int64(6)
		if cfg.KeepAlive {
			want = 1
		}
		if got := srv.Counts().Accepted - before; got != want || r.Opened() != want {
			t.Errorf("%+v: %d connections accepted, %d opened, want %d", cfg, got, r.Opened(), want)
		}
	}

	plain, _ := serve(t, targettest.NewSimple(1), httpserve.Config{})
	err = connect(t, remote.Config{URL: "https" + strings.TrimPrefix(plain, "http"), Insecure: true}).Do(t.Context(), load(), &ans)
	if target.ClassOf(err) != target.ClassTLS {
		t.Errorf("TLS to a server without: %v", err)
	}
	for _, p := range paths {
		err = connect(t, remote.Config{URL: "http" + strings.TrimPrefix(url, "https"), Portable: p.portable}).Do(t.Context(), load(), &ans)
		if c := target.ClassOf(err); c != target.ClassHTTP4xx && c != target.ClassMalformed && c != target.ClassReset {
			t.Errorf("plain text to a TLS server: %v", err)
		}
	}
}

// Kept connections are few, are given up when the server has closed them, and
// still give right answers.
func TestKeepAlive(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	first := httpserve.New(targettest.NewSimple(4), httpserve.Config{})
	stop := start(t, first, ln)
	r := connect(t, remote.Config{URL: "http://" + addr, KeepAlive: true})
	if counts := run(t, r, 3, 20); counts[target.ClassOK].Load() != 60 || r.Opened() > 3 {
		t.Errorf("classes %s on %d connections", show(counts), r.Opened())
	}
	opened := r.Opened()
	stop()
	if ln, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	start(t, httpserve.New(targettest.NewSimple(4), httpserve.Config{}), ln)
	if counts := run(t, r, 3, 20); counts[target.ClassOK].Load() != 60 || r.Opened() > opened+3 {
		t.Errorf("after a restart: classes %s on %d connections", show(counts), r.Opened()-opened)
	}
}

// A host name is resolved once, an address of either family is taken.
func TestAddressFamilies(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("no %s here: %v", listen, err)
			continue
		}
		start(t, httpserve.New(targettest.NewSimple(4), httpserve.Config{}), ln)
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		hosts := []string{ln.Addr().String()}
		if addrs, err := net.LookupHost("localhost"); err == nil && strings.Contains(strings.Join(addrs, " ")+" ", strings.Trim(listen[:len(listen)-2], "[]")+" ") {
			hosts = append(hosts, "localhost:"+port)
		}
		for _, host := range hosts {
			for _, p := range paths {
				r := connect(t, remote.Config{URL: "http://" + host, Portable: p.portable})
				if counts := run(t, r, 2, 5); counts[target.ClassOK].Load() != 10 {
					t.Errorf("%s, %s: classes %s", host, p.name, show(counts))
				}
			}
		}
	}
}
