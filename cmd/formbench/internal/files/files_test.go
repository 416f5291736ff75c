package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

func TestFilePlan(t *testing.T) {
	t.Parallel()
	b := &bench.Bench{S3Program: "x", Options: bench.Options{Rounds: 3}}
	var uploads, s3 []string
	for _, c := range plan(b) {
		switch {
		case c.What == LargeWhat || c.What == BurstWhat:
			if c.Round != 1 || c.System != bench.APISystem {
				t.Errorf("memory is measured in %s", &c)
			}
		case c.Place == S3Place && c.What == DownloadWhat:
			s3 = append(s3, fmt.Sprint(c.Round, " ", c.System))
		case c.Place == DiskPlace && c.What != DownloadWhat:
			uploads = append(uploads, fmt.Sprint(c.Round, " ", c.What, " ", c.System))
		}
	}
	want := []string{
		"1 upload copy", "1 upload copy, hash, sync", "1 upload formsvc", "1 upload as a form formsvc",
		"2 upload copy, hash, sync", "2 upload formsvc", "2 upload as a form formsvc", "2 upload copy",
		"3 upload formsvc", "3 upload as a form formsvc", "3 upload copy", "3 upload copy, hash, sync",
	}
	if !slices.Equal(uploads, want) {
		t.Errorf("got %q, want %q", uploads, want)
	}
	want = []string{"1 minio-go", "1 formsvc", "2 formsvc", "2 minio-go", "3 minio-go", "3 formsvc"}
	if !slices.Equal(s3, want) {
		t.Errorf("got %q, want %q", s3, want)
	}
	if n := len(plan(b)); n != 3*(4+3+3+2)+4 {
		t.Errorf("got %d cells", n)
	}
	b.S3Program = ""
	if slices.ContainsFunc(plan(b), func(c Cell) bool { return c.Place == S3Place }) {
		t.Error("S3 is measured without a server")
	}
}

func TestFileGoals(t *testing.T) {
	t.Parallel()
	var cells []Cell
	add := func(what, place, system string, round int, rate, grown float64) {
		c := Cell{What: what, Place: place, System: system, Round: round}
		c.PerSecond, c.GrownMB = rate, grown
		cells = append(cells, c)
	}
	// The order within a round makes no difference.
	add(UploadWhat, DiskPlace, bench.CopySystem, 1, 1000, 0)
	add(UploadWhat, DiskPlace, bench.APISystem, 1, 600, 0)
	add(FormWhat, DiskPlace, bench.APISystem, 1, 590, 0)
	add(FormWhat, DiskPlace, bench.APISystem, 2, 295, 0)
	add(UploadWhat, DiskPlace, bench.APISystem, 2, 300, 0)
	add(UploadWhat, DiskPlace, bench.CopySystem, 2, 500, 0)
	add(UploadWhat, DiskPlace, bench.CarefulSystem, 2, 9000, 0)
	add(UploadWhat, S3Place, MinioSystem, 1, 100, 0)
	add(UploadWhat, S3Place, bench.APISystem, 1, 69, 0)
	add(LargeWhat, DiskPlace, bench.APISystem, 1, 1, 32.0)
	add(LargeWhat, S3Place, bench.APISystem, 1, 1, 63.9)
	list := Goals(&bench.Options{Only: []string{bench.FilesPart}}, cells)
	got := map[string]string{}
	for _, g := range list {
		name := g.Store + " " + strings.SplitN(g.Text, ":", 2)[0]
		got[name] = "not measured"
		if g.Measured {
			got[name] = g.Value.Text(g.Decimals) + " " + g.Verdict()
		}
	}
	for name, want := range map[string]string{
		"disk upload": "0.60 (0.60–0.60) reached", "disk upload as a form": "0.59 (0.59–0.59) MISSED",
		"disk download": "not measured", "S3 upload": "0.69 MISSED", "S3 download": "not measured",
		"disk large file": "32.0 MISSED", "S3 large file": "63.9 reached",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	if len(list) != 7 {
		t.Errorf("got %d goals", len(list))
	}
	if list := Goals(&bench.Options{Only: []string{bench.CreatePart}}, cells); list != nil {
		t.Errorf("got %+v", list)
	}
}

func TestFileCharge(t *testing.T) {
	t.Parallel()
	start := time.Now()
	before := proc.Times{At: start, Each: []time.Duration{1e9, 2e9}, Self: 3e9, Machine: 10e9}
	after := proc.Times{At: start.Add(4 * time.Second), Each: []time.Duration{2e9, 4e9}, Self: 6e9, Machine: 20e9}
	f := Figures{Files: 4, Bytes: 500_000_000} // 2 GB
	f.charge(before, after)
	want := Figures{
		Files: 4, Bytes: 500_000_000, Seconds: 4, PerSecond: 500,
		ServerCPU: 0.5, S3CPU: 1, GeneratorCPU: 1.5, OtherCPU: 2, OtherCores: 1,
	}
	if f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	f := &Runner{block: []byte("abcde"), contents: make(map[int64]*Content)}
	for size, want := range map[int64]string{1: "a", 5: "abcde", 12: "abcdeabcdeab"} {
		c := f.content(size)
		var got bytes.Buffer
		n, err := c.WriteTo(&got)
		sum := sha256.Sum256([]byte(want))
		if err != nil || n != size || got.String() != want || c.sum != hex.EncodeToString(sum[:]) {
			t.Errorf("size %d: got %q, %d, %v", size, &got, n, err)
		}
	}
}

// courierTo returns a client of a server that isn't ours.
func courierTo(t *testing.T, what string, handler http.HandlerFunc) *courier {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	s := &Scene{
		cell: &Cell{What: what, Place: DiskPlace, System: bench.APISystem}, world: database.InventedWorld(),
		Server: &server.Process{Addr: srv.Listener.Addr().String()},
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

// TestCourierSends makes sure that both kinds of upload are what any server
// understands.
func TestCourierSends(t *testing.T) {
	t.Parallel()
	what := testContent(3_000_000)
	for _, kind := range []string{UploadWhat, FormWhat} {
		c := courierTo(t, kind, func(w http.ResponseWriter, r *http.Request) {
			body := io.Reader(r.Body)
			if kind == FormWhat {
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

func TestWrongUploads(t *testing.T) {
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
		c := courierTo(t, UploadWhat, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, answer)
		})
		_, err := c.Upload(t.Context(), what)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", answer, err, want)
		}
	}
	c := courierTo(t, UploadWhat, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	})
	if _, err := c.Upload(t.Context(), what); err == nil || !strings.Contains(err.Error(), "answered 503, want 201: too busy") {
		t.Errorf("refused: %v", err)
	}
}

func TestWrongDownloads(t *testing.T) {
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
		c := courierTo(t, DownloadWhat, func(w http.ResponseWriter, _ *http.Request) {
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
	cut := courierTo(t, DownloadWhat, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(what.Size))
		_, _ = w.Write(what.block[:what.Size/2])
		panic(http.ErrAbortHandler)
	})
	if err := fetch(t.Context(), cut, "x", what); err == nil {
		t.Error("a download that was cut off is taken for whole")
	}
	gone := courierTo(t, DownloadWhat, http.NotFound)
	if err := fetch(t.Context(), gone, "x", what); err == nil || !strings.Contains(err.Error(), "answered 404") {
		t.Errorf("a file that isn't there: %v", err)
	}
}

// TestFilesHeld makes sure that files that were acknowledged must be there.
func TestFilesHeld(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench.Bench{Self: self, Log: io.Discard, Options: bench.Options{FileSize: 1000, Dir: t.TempDir()}}
	f := &Runner{Bench: b, block: make([]byte, warmSize), contents: make(map[int64]*Content)}
	s, err := f.NewScene(ctx, &Cell{What: UploadWhat, Place: DiskPlace, System: bench.APISystem})
	defer func() { _ = s.Close() }()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.uploads(ctx, 3, 1000); err != nil {
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

func TestSizeText(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		1 << 30: "1 GiB", 100_000_000: "100 MB", 2_000_000_000: "2 GB", 5 << 20: "5 MiB", 20_000: "20 kB", 14_001: "14001 bytes",
	} {
		if got := SizeText(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
