package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// TestCompareIgnoresOrder checks that the order within a group makes no difference to the comparison.
func TestCompareIgnoresOrder(t *testing.T) {
	t.Parallel()
	f := &Runner{Bench: &bench.Bench{Log: io.Discard}}
	at := time.Now()
	before := proc.Times{At: at, Each: []time.Duration{1e9, 2e9}, Self: 3e9, Machine: 10e9}
	for i, system := range []string{bench.APISystem, bench.CopySystem} {
		c := newCell(bench.UploadWhat, bench.DiskPlace, system, 0)
		after := proc.Times{At: at.Add(4 * time.Second), Each: []time.Duration{2e9, 4e9}, Self: 6e9, Machine: 20e9}
		charge(&c, float64(2+2*i), &before, &after)
		f.Done(&c)
	}
	if err := f.Compare(bench.CopySystem); err != nil || len(f.Cells) != 2 {
		t.Fatalf("got %+v, %v", f.Cells, err)
	}
	for unit, want := range map[string]float64{
		"MB/s": 500, "CPU-s/GB": 1.5, "server-s/GB": 0.5, "S3-s/GB": 1, "generator-s/GB": 1.5, "other-s/GB": 2, "other-cores": 1, "of-copy": 0.5,
	} {
		if got, _ := f.Cells[0].Get(unit); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", unit, got, want)
		}
	}
	if _, ok := f.Cells[1].Get("of-copy"); ok || len(f.done) > 0 {
		t.Error("it is compared with itself")
	}
}

// courierTo returns a client of a test server.
func courierTo(t *testing.T, what string, handler http.HandlerFunc) *courier {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	s := &Scene{
		cell: &result.Cell{Key: result.Key{What: what, System: bench.APISystem}}, world: database.InventedWorld(),
		Server: &server.Process{Ready: server.Ready{Addr: srv.Listener.Addr().String()}},
	}
	c, err := newCourier(t.Context(), s, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func testContent(size int) *Content {
	block := bytes.Repeat([]byte("content "), size/8+1)[:size]
	sum := sha256.Sum256(block)
	return &Content{block: block, Size: int64(size), sum: hex.EncodeToString(sum[:])}
}

// TestCourierSends checks that any server understands both kinds of upload.
func TestCourierSends(t *testing.T) {
	t.Parallel()
	what := testContent(3_000_000)
	for _, kind := range []string{bench.UploadWhat, bench.FormWhat} {
		c := courierTo(t, kind, func(w http.ResponseWriter, r *http.Request) {
			body := io.Reader(r.Body)
			if kind == bench.FormWhat {
				f, header, err := r.FormFile("file")
				if err != nil || header.Filename != "scan.pdf" {
					t.Errorf("the form: %v, %+v", err, header)
					return
				}
				body = f
			} else if r.Header.Get("Content-Disposition") == "" || r.ContentLength != what.Size {
				t.Errorf("got the header %v", r.Header)
			}
			hash := sha256.New()
			n, err := io.Copy(hash, body)
			if err != nil {
				t.Error(err)
			}
			server.SendJSON(w, http.StatusCreated, server.Uploaded{UUID: "x", Size: n, SHA256: hex.EncodeToString(hash.Sum(nil))})
		})
		for range 2 { // over one connection
			if id, err := c.Upload(t.Context(), what); err != nil || id != "x" {
				t.Errorf("%s: %q, %v", kind, id, err)
			}
		}
	}
}

func TestUploadRejectsWrongReplies(t *testing.T) {
	t.Parallel()
	what := testContent(500_000)
	for answer, want := range map[string]string{
		`{"uuid":"x","size":500000,"sha256":"` + what.sum + `"}`:                "",
		`{"uuid":"x","size":500000,"sha256":"` + strings.Repeat("0", 64) + `"}`: "want {",
		`{"uuid":"x","size":500000}`:                                            "want {",
		`{"uuid":"x","size":499999,"sha256":"` + what.sum + `"}`:                "want {",
		`{"size":500000,"sha256":"` + what.sum + `"}`:                           "want {",
		`{`: "unexpected end",
	} {
		c := courierTo(t, bench.UploadWhat, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, answer)
		})
		_, err := c.Upload(t.Context(), what)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", answer, err, want)
		}
	}
	c := courierTo(t, bench.UploadWhat, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	})
	if _, err := c.Upload(t.Context(), what); err == nil || !strings.Contains(err.Error(), "answered 503, want 201: too busy") {
		t.Errorf("refused: %v", err)
	}
}

func TestDownloadRejectsWrongBytes(t *testing.T) {
	t.Parallel()
	what := testContent(2_500_000)
	for name, x := range map[string]struct {
		body        []byte
		fetch, want string // errors; "" for none
	}{
		"as it was": {what.block, "", ""},
		"shorter":   {what.block[1:], "2499999 bytes", "2499999 bytes"},
		"other":     {append([]byte("C"), what.block[1:]...), "", "with SHA-256"},
	} {
		c := courierTo(t, bench.DownloadWhat, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(x.body)))
			_, _ = w.Write(x.body)
		})
		for want, err := range map[*string]error{
			&x.fetch: fetch(t.Context(), c, "x", what), &x.want: verify(t.Context(), c, "x", what),
		} {
			if (err == nil) != (*want == "") || err != nil && !strings.Contains(err.Error(), *want) {
				t.Errorf("%s: got %v, want %q", name, err, *want)
			}
		}
	}
	cut := courierTo(t, bench.DownloadWhat, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(what.Size))
		_, _ = w.Write(what.block[:what.Size/2])
		panic(http.ErrAbortHandler)
	})
	if err := fetch(t.Context(), cut, "x", what); err == nil {
		t.Error("a download that was cut off is taken for whole")
	}
	gone := courierTo(t, bench.DownloadWhat, http.NotFound)
	if err := fetch(t.Context(), gone, "x", what); err == nil || !strings.Contains(err.Error(), "answered 404") {
		t.Errorf("a file that isn't there: %v", err)
	}
}

// TestHoldsReportsLostFiles checks that a missing acknowledged file is noticed.
func TestHoldsReportsLostFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench.Bench{Self: self, Log: io.Discard, Options: bench.Options{FileSize: 1000, Dir: t.TempDir()}}
	f := &Runner{Bench: b, block: make([]byte, warmSize), contents: make(map[int64]*Content)}
	s, err := f.NewScene(ctx, new(newCell(bench.UploadWhat, bench.DiskPlace, bench.APISystem, 0)))
	defer func() { _ = s.Close() }()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.move(ctx, 3, 1000, false); err != nil {
		t.Fatal(err)
	}
	if s.stored != 4 { // one of them warmed up
		t.Errorf("counted %d", s.stored)
	}
	s.stored++
	if err := s.holds(ctx); err == nil || !strings.Contains(err.Error(), "5 files were acknowledged, the database has 4") {
		t.Errorf("got %v", err)
	}
}
