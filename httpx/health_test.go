package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

func TestHealth(t *testing.T) {
	w := newWorld(t, nil)
	noKey := func(r *http.Request) { r.Header.Del("Authorization") }
	w.do("GET", "/healthz", "", noKey).is(200, "").has(`"ok"`, "status")
	w.do("GET", "/readyz", "", noKey).is(200, "").has(`"ready"`, "status")
	w.store.err = formsvc.ErrUnavailable
	w.serve(nil) // without the result of the last check
	w.do("GET", "/healthz", "", noKey).is(200, "")
	w.do("GET", "/readyz", "", noKey).is(503, "not_ready").wantHeader("Retry-After", "1")
	w.serve(&httpx.Options{Ready: func(context.Context) error { return errors.New("secret cause") }})
	if a := w.do("GET", "/readyz", "", noKey).is(503, "not_ready"); strings.Contains(a.body, "secret") {
		t.Errorf("tells the cause: %s", a.body)
	}
}

// Without the blob store, only the content of files is missing.
func TestReadinessWithoutBlobs(t *testing.T) {
	w := newWorld(t, nil)
	w.blobs.statErr = blobstore.ErrUnavailable
	w.do("GET", "/readyz", "").is(200, "").has(`"degraded"`, "status").has(`["files"]`, "components")
	w.serve(&httpx.Options{Ready: func(context.Context) error {
		return fmt.Errorf("wrapped: %w", &formsvc.DegradedError{Components: []string{"files", "disk"}, Err: errors.New("secret cause")})
	}})
	if a := w.do("GET", "/readyz", "").is(200, "").has(`["files","disk"]`, "components"); strings.Contains(a.body, "secret") {
		t.Errorf("tells the cause: %s", a.body)
	}
}

// However many clients ask, the store is asked once a second, and the log says once what changed.
func TestReadinessIsCheckedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks, result := 0, error(nil)
		w := newWorld(t, &httpx.Options{Ready: func(context.Context) error {
			checks++ // one at a time
			time.Sleep(100 * time.Millisecond)
			return result
		}})
		ask := func(want int) {
			t.Helper()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if a := w.do("GET", "/readyz", ""); a.status != want {
						t.Errorf("status %d, want %d: %s", a.status, want, a.body)
					}
				})
			}
			all.Wait()
		}
		second := func(err error) {
			result = err
			time.Sleep(time.Second)
		}
		ask(http.StatusOK)
		result = errors.New("the disk is gone")
		ask(http.StatusOK)
		equal(t, checks, 1, "%d checks in a second")
		for range 3 {
			second(result)
			ask(http.StatusServiceUnavailable)
		}
		second(&formsvc.DegradedError{Components: []string{"files"}, Err: errors.New("no bucket")})
		ask(http.StatusOK)
		second(nil)
		ask(http.StatusOK)
		second(http.ErrServerClosed)
		ask(http.StatusServiceUnavailable)
		equal(t, checks, 7, "%d checks in 7 seconds")
		got := regexp.MustCompile(`time=\S+ `).ReplaceAllString(w.log.String(), "")
		if want := `level=ERROR msg="not ready" error="the disk is gone"
level=WARN msg=degraded error="files: no bucket"
level=INFO msg="ready again"
`; got != want {
			t.Errorf("the log has\n%s\nwant\n%s", got, want)
		}
	})
}

// A check that hangs ends, and a client that leaves doesn't end the check for the others.
func TestReadinessCheckHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &httpx.Options{Ready: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }})
		start := time.Now()
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i*10)*time.Second)
				defer cancel()
				equal(t, w.send(w.request("GET", "/readyz", "").WithContext(ctx)).status, 503, "status %d")
			})
		}
		all.Wait()
		if took := time.Since(start); took > 15*time.Second { // on the test's clock
			t.Errorf("the replies took %v", took)
		}
	})
}
