package main

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
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// filesSmall makes the part with files short. The sizes are multiples of nothing.
var filesSmall = []string{"-rounds", "1", "-only", filesPart, "-file-size", "70001", "-file-count", "2",
	"-file-large", "2100007", "-file-burst", "3"}

// needS3 skips the test where there is no S3 server, except in CI.
func needS3(t *testing.T) {
	t.Helper()
	if os.Getenv(s3Env) != "" {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set, and in CI nothing may be skipped: run the tests with \"make test\"", s3Env)
	}
	t.Skipf("SKIPPED: %s is not set; \"make test\" builds the server and sets it", s3Env)
}

func TestFilesEveryCell(t *testing.T) {
	needS3(t)
	t.Parallel()
	dir := t.TempDir()
	table, r := benchmark(t, append(slices.Clone(filesSmall), "-dir", dir, "-stores", "postgres")...)
	for _, row := range [][]any{
		{uploadWhat, diskPlace, copySystem}, {uploadWhat, diskPlace, carefulSystem}, {uploadWhat, diskPlace, groupSystem},
		{formWhat, diskPlace, groupSystem}, {downloadWhat, diskPlace, copySystem}, {downloadWhat, diskPlace, groupSystem},
		{uploadWhat, s3Place, minioSystem}, {uploadWhat, s3Place, groupSystem}, {formWhat, s3Place, groupSystem},
		{downloadWhat, s3Place, minioSystem}, {downloadWhat, s3Place, groupSystem},
		{largeWhat, diskPlace, groupSystem}, {burstWhat, s3Place, groupSystem},
	} {
		if !hasRow(table, row...) {
			t.Errorf("no row for %v in\n%s", row, table)
		}
	}
	if want := 4 + 3 + 2 + 3 + 2 + 2; len(r.Files) != want {
		t.Errorf("got %d cells, want %d", len(r.Files), want)
	}
	for _, c := range r.Files {
		checkFiles(t, &c)
	}
	if len(r.Goals) != 7 || slices.ContainsFunc(r.Goals, func(g goal) bool { return !g.Measured }) {
		t.Errorf("got the goals %+v", r.Goals)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// checkFiles makes sure that a cell has the figures of what it does.
func checkFiles(t *testing.T, c *fileCell) {
	t.Helper()
	files, size := 2, int64(70001)
	switch c.What {
	case largeWhat:
		size = 2100007
	case burstWhat:
		files, size = 3, 14000
	}
	ok := c.Files == files && c.Bytes == size && c.Seconds > 0 && c.Round == 1
	ok = ok && math.Abs(c.PerSecond*c.Seconds*1e6-float64(files)*float64(size)) < 1
	ok = ok && (c.PeakMB > 5) == (c.System != minioSystem)
	ok = ok && (c.What != largeWhat || (c.GrownMB >= c.GrownUpMB && c.GrownMB >= 0 && c.GrownMB < c.PeakMB))
	if !ok {
		t.Errorf("implausible cell %+v", c)
	}
}

func TestFilesWithoutS3(t *testing.T) {
	t.Setenv(s3Env, "")
	table, r := benchmark(t, filesSmall...)
	if !strings.Contains(table, "NOT MEASURED: files on S3") || !strings.Contains(table, "S3: not measured") {
		t.Errorf("the gap is not loud:\n%s", table)
	}
	for _, g := range r.Goals {
		if g.Measured != (g.Store == diskPlace) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
}

func TestFilePlan(t *testing.T) {
	t.Parallel()
	b := &bench{s3Program: "x", options: options{Rounds: 3}}
	var uploads, s3 []string
	for _, c := range filePlan(b) {
		switch {
		case c.What == largeWhat || c.What == burstWhat:
			if c.Round != 1 || c.System != groupSystem {
				t.Errorf("memory is measured in %s", &c)
			}
		case c.Place == s3Place && c.What == downloadWhat:
			s3 = append(s3, fmt.Sprint(c.Round, " ", c.System))
		case c.Place == diskPlace && c.What != downloadWhat:
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
	if n := len(filePlan(b)); n != 3*(4+3+3+2)+4 {
		t.Errorf("got %d cells", n)
	}
	b.s3Program = ""
	if slices.ContainsFunc(filePlan(b), func(c fileCell) bool { return c.Place == s3Place }) {
		t.Error("S3 is measured without a server")
	}
}

func TestFileGoals(t *testing.T) {
	t.Parallel()
	var cells []fileCell
	add := func(what, place, system string, round int, rate, grown float64) {
		c := fileCell{What: what, Place: place, System: system, Round: round}
		c.PerSecond, c.GrownMB = rate, grown
		cells = append(cells, c)
	}
	// The order within a round makes no difference.
	add(uploadWhat, diskPlace, copySystem, 1, 1000, 0)
	add(uploadWhat, diskPlace, groupSystem, 1, 600, 0)
	add(formWhat, diskPlace, groupSystem, 1, 590, 0)
	add(formWhat, diskPlace, groupSystem, 2, 295, 0)
	add(uploadWhat, diskPlace, groupSystem, 2, 300, 0)
	add(uploadWhat, diskPlace, copySystem, 2, 500, 0)
	add(uploadWhat, diskPlace, carefulSystem, 2, 9000, 0)
	add(uploadWhat, s3Place, minioSystem, 1, 100, 0)
	add(uploadWhat, s3Place, groupSystem, 1, 69, 0)
	add(largeWhat, diskPlace, groupSystem, 1, 1, 32.0)
	add(largeWhat, s3Place, groupSystem, 1, 1, 63.9)
	list := fileGoals(&options{Only: []string{filesPart}}, cells)
	got := map[string]string{}
	for _, g := range list {
		name := g.Store + " " + strings.SplitN(g.Text, ":", 2)[0]
		got[name] = "not measured"
		if g.Measured {
			got[name] = g.Value.text(g.decimals) + " " + g.verdict()
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
	if list := fileGoals(&options{Only: []string{createPart}}, cells); list != nil {
		t.Errorf("got %+v", list)
	}
}

func TestFileCharge(t *testing.T) {
	t.Parallel()
	start := time.Now()
	before := processTimes{at: start, each: []time.Duration{1e9, 2e9}, self: 3e9, machine: 10e9}
	after := processTimes{at: start.Add(4 * time.Second), each: []time.Duration{2e9, 4e9}, self: 6e9, machine: 20e9}
	f := fileFigures{Files: 4, Bytes: 500_000_000} // 2 GB
	f.charge(before, after)
	want := fileFigures{
		Files: 4, Bytes: 500_000_000, Seconds: 4, PerSecond: 500,
		ServerCPU: 0.5, S3CPU: 1, GeneratorCPU: 1.5, OtherCPU: 2, OtherCores: 1,
	}
	if f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	f := &fileBench{block: []byte("abcde"), contents: make(map[int64]*content)}
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
	s := &fileScene{
		cell: &fileCell{What: what, Place: diskPlace, System: groupSystem}, world: inventedWorld(),
		server: &server{addr: srv.Listener.Addr().String()},
	}
	c, err := newCourier(t.Context(), s, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	return c
}

func testContent(size int) *content {
	block := bytes.Repeat([]byte("content "), size/8+1)[:size]
	sum := sha256.Sum256(block)
	return &content{block: block, size: int64(size), sum: hex.EncodeToString(sum[:])}
}

// TestCourierSends makes sure that both kinds of upload are what any server
// understands.
func TestCourierSends(t *testing.T) {
	t.Parallel()
	what := testContent(3_000_000)
	for _, kind := range []string{uploadWhat, formWhat} {
		c := courierTo(t, kind, func(w http.ResponseWriter, r *http.Request) {
			body := io.Reader(r.Body)
			if kind == formWhat {
				f, header, err := r.FormFile("file")
				if err != nil || header.Filename != "scan.pdf" {
					t.Errorf("the form: %v, %+v", err, header)
					return
				}
				body = f
			} else if r.Header.Get("Content-Disposition") == "" || r.ContentLength != what.size {
				t.Errorf("got the header %v", r.Header)
			}
			hash := sha256.New()
			n, err := io.Copy(hash, body)
			if err != nil {
				t.Error(err)
			}
			sendJSON(w, http.StatusCreated, uploaded{UUID: "x", Size: n, SHA256: hex.EncodeToString(hash.Sum(nil))})
		})
		for range 2 { // over one connection
			if id, err := c.upload(t.Context(), what); err != nil || id != "x" {
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
		c := courierTo(t, uploadWhat, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, answer)
		})
		_, err := c.upload(t.Context(), what)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", answer, err, want)
		}
	}
	c := courierTo(t, uploadWhat, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	})
	if _, err := c.upload(t.Context(), what); err == nil || !strings.Contains(err.Error(), "answered 503, want 201: too busy") {
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
		c := courierTo(t, downloadWhat, func(w http.ResponseWriter, _ *http.Request) {
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
	cut := courierTo(t, downloadWhat, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(what.size))
		_, _ = w.Write(what.block[:what.size/2])
		panic(http.ErrAbortHandler)
	})
	if err := fetch(t.Context(), cut, "x", what); err == nil {
		t.Error("a download that was cut off is taken for whole")
	}
	gone := courierTo(t, downloadWhat, http.NotFound)
	if err := fetch(t.Context(), gone, "x", what); err == nil || !strings.Contains(err.Error(), "answered 404") {
		t.Errorf("a file that isn't there: %v", err)
	}
}

// TestCopier makes sure that the careful reference checks what it sends, and that
// the other one does not.
func TestCopier(t *testing.T) {
	t.Parallel()
	what := testContent(100_000)
	for _, careful := range []bool{false, true} {
		dir := t.TempDir()
		handler, closeDir, err := newCopier(dir, careful)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = closeDir() })
		c := courierTo(t, uploadWhat, handler.ServeHTTP)
		c.hashes = careful
		var id string
		for i := range 2 {
			var err error
			if id, err = c.upload(t.Context(), what); err != nil || id != fmt.Sprint(i) {
				t.Fatalf("upload %d: %q, %v", i, id, err)
			}
			if err := verify(t.Context(), c, id, what); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, id), make([]byte, what.size), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		w := httptest.NewRecorder()
		err = (&copier{dir: root, careful: careful, sums: []string{what.sum, what.sum}}).send(w, id)
		if (err != nil) != careful || w.Body.Len() != int(what.size) {
			t.Errorf("careful is %v: a damaged file gives %v", careful, err)
		}
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
	b := &bench{self: self, log: io.Discard, options: options{FileSize: 1000, dir: t.TempDir()}}
	f := &fileBench{bench: b, block: make([]byte, warmSize), contents: make(map[int64]*content)}
	s, err := f.newScene(ctx, &fileCell{What: uploadWhat, Place: diskPlace, System: groupSystem})
	defer func() { _ = s.close() }()
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

func TestS3Fails(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "versitygw")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho out of order\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := startS3(t.Context(), program, t.TempDir()); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("got %v", err)
	}
}

func TestSizeText(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		1 << 30: "1 GiB", 100_000_000: "100 MB", 2_000_000_000: "2 GB", 5 << 20: "5 MiB", 20_000: "20 kB", 14_001: "14001 bytes",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
