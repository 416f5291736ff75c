//go:build long

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
)

// While the S3 server is down or hangs, file requests fail with 503 within a time limit, and all others work. When it is
// back, files work again.
func TestFilesWithoutS3(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		label      string
		stop, back func(t testing.TB, p *place)
	}{
		{
			"down", func(_ testing.TB, p *place) { p.server.Stop() },
			func(_ testing.TB, p *place) { p.server.Restart() },
		},
		{
			"hanging", func(_ testing.TB, p *place) { p.server.Suspend() },
			func(_ testing.TB, p *place) { p.server.Resume() },
		},
	} {
		t.Run(x.label, func(t *testing.T) {
			onEachDatabase(t, func(t *testing.T, dsn string) { withoutS3(t, dsn, x.stop, x.back) })
		})
	}
}

// withoutS3 stops the S3 server and restarts it.
func withoutS3(t *testing.T, dsn string, stop, back func(testing.TB, *place)) {
	w := &filing{dsn: dsn, place: places()["s3"](t)}
	w.serve(t)
	content := bytesOf(1, 6_000_000)
	before := w.upload(t, "before", content)
	stop(t, w.place)
	a, err := w.send(t.Context(), "during", bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, "upload", a)
	a, err = w.download(t, before.UUID)
	if err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, "download", a)
	readiness := func(want string) func() bool {
		return func() bool {
			a, err := w.do(t.Context(), http.MethodGet, "/readyz", nil)
			if err != nil || a.status != http.StatusOK {
				t.Fatalf("readyz: status %d, %v", a.status, err)
			}
			return string(a.body) == want
		}
	}
	eventually(t, "the server says that files fail", readiness(`{"status":"degraded","components":["files"]}`))
	w.want(t, http.StatusOK, http.MethodGet, w.response, nil, nil)
	w.submit(t, w.campaign(t, "meanwhile"), "meanwhile")
	if list := w.listed(t); len(list) != 1 {
		t.Errorf("files %+v", list)
	}
	back(t, w.place)
	eventually(t, "the server is ready again", readiness(`{"status":"ready"}`))
	w.has(t, before.UUID, content)
	w.has(t, w.upload(t, "after", content).UUID, content)
}

func wantUnavailable(t *testing.T, what string, a answer) {
	t.Helper()
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("%s: status %d, Retry-After %q\n%s", what, a.status, a.header.Get("Retry-After"), a.body)
	}
}

const (
	// flatEnv names the variable with the size of the file in megabytes for
	// TestFilesUseLittleMemory.
	flatEnv = "FORMSVC_TEST_FILE_MB"
	// flatByDefault is much more than the server's memory may grow.
	flatByDefault = 256
)

// A file of any size adds less than 32 MB of memory on a disk and 64 MB with S3, and 50 uploads at once stay within a
// limit.
func TestFilesUseLittleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("SKIPPED: the race detector needs memory of its own")
	}
	megabytes := flatByDefault
	if n, err := strconv.Atoi(os.Getenv(flatEnv)); err == nil {
		megabytes = n
	}
	for name, limit := range map[string]int64{"disk": 32, "s3": 64} {
		t.Run(name, func(t *testing.T) {
			w := &filing{dsn: databases()[0].dsn(t), place: places()[name](t)}
			w.serve(t, "--max-upload", "4GiB")
			w.upload(t, "warm", bytesOf(1, 1_000_000))
			idle := w.peak(t)
			size := int64(megabytes) << 20
			a, err := w.send(t.Context(), "large", &noise{left: size}, size)
			if err != nil || a.status != http.StatusCreated {
				t.Fatalf("status %d, %v\n%s", a.status, err, a.body)
			}
			up := w.peak(t)
			if n := w.drain(t, w.listed(t)[0].UUID); n != size {
				t.Errorf("%d bytes came back, want %d", n, size)
			}
			down := w.peak(t)
			t.Logf("%d MiB: %d MB idle, %d MB after the upload, %d MB after the download", megabytes, idle>>20, up>>20, down>>20)
			if grown := (down - idle) >> 20; grown >= limit {
				t.Errorf("the server grew by %d MB, the limit is %d", grown, limit)
			}
			w.crowd(t, 50, 10<<20)
			crowded := w.peak(t)
			t.Logf("50 uploads of 10 MiB at once: %d MB", crowded>>20)
			if grown := (crowded - idle) >> 20; grown >= 200 {
				t.Errorf("50 uploads made the server grow by %d MB", grown)
			}
		})
	}
}

// crowd makes n uploads at once.
func (w *filing) crowd(t *testing.T, n int, size int64) {
	t.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			a, err := w.send(t.Context(), fmt.Sprint("crowd ", i), &noise{left: size}, size)
			if err != nil || a.status != http.StatusCreated {
				t.Errorf("one of %d: status %d, %v\n%s", n, a.status, err, a.body)
			}
		})
	}
	group.Wait()
}

// drain downloads a file and returns its length.
func (w *filing) drain(t testing.TB, uuid string) int64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.client.url+"/v1/files/"+uuid, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	resp, err := w.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var peakPattern = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the peak memory of the server, in bytes.
func (w *filing) peak(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	if err != nil {
		missing(t, fmt.Sprintf("needs /proc: %v", err))
	}
	m := peakPattern.FindSubmatch(b)
	if m == nil {
		missing(t, "the kernel does not tell the peak of a process")
	}
	kilobytes, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// noise yields incompressible, unique bytes.
type noise struct {
	left, at int64
}

func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.left)]
	x := uint64(n.at)*0x9e3779b97f4a7c15 + 1
	for i := range p {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x)
	}
	n.at += int64(len(p))
	n.left -= int64(len(p))
	return len(p), nil
}
