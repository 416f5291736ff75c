package intake_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/storage/memory"
)

// A slowWriter waits before it takes a reply, and notes the deadlines that it gets.
type slowWriter struct {
	*httptest.ResponseRecorder

	wait        chan struct{}
	read, write time.Time
	ended       bool // whether there is no deadline for reading
}

func (w *slowWriter) Write(p []byte) (int, error) {
	<-w.wait
	return w.ResponseRecorder.Write(p)
}

func (w *slowWriter) SetWriteDeadline(t time.Time) error { w.write = t; return nil }

func (w *slowWriter) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		w.read = t
	}
	w.ended = t.IsZero()
	return nil
}

// serving returns a handler of a campaign whose store takes its time, and a function that sends a form.
func serving(t *testing.T, slow time.Duration, opts *intake.Options, modules ...formsvc.Module) (h *intake.Handler, post func(w http.ResponseWriter, body io.Reader)) {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { _ = store.Close() })
	svc, err := formsvc.New(store, &formsvc.Options{TraceParent: func(context.Context) string { time.Sleep(slow); return "" }})
	if err != nil {
		t.Fatal(err)
	}
	account, _ := svc.Accounts.Ensure(t.Context(), "owner")
	c, _ := svc.Campaigns.Create(t.Context(), account, formsvc.CampaignInput{Title: "Survey", EmailOptional: true, Modules: modules, Form: formsvc.Form{Enabled: true}})
	if h, err = intake.New(svc, opts); err != nil {
		t.Fatal(err)
	}
	return h, func(w http.ResponseWriter, body io.Reader) {
		r := httptest.NewRequest(http.MethodPost, "/"+c.FormToken, body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if len(modules) > 0 && modules[0].Type == formsvc.FileModule {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		}
		h.ServeHTTP(w, r)
	}
}

// Unfinished files of many addresses take no places from others: they have slots of their own, and are cut after some seconds.
func TestUnfinishedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var address atomic.Value
		_, post := serving(t, 0, &intake.Options{LargeBodies: 2, PerVisitor: -1, ClientAddress: func(*http.Request) string { return address.Load().(string) }},
			formsvc.Module{Name: "f", Type: formsvc.FileModule}, formsvc.Module{Name: "a"})
		part := "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + strings.Repeat("x", 40<<10)
		rest, send := io.Pipe()
		var all sync.WaitGroup
		for i := range 20 {
			address.Store(fmt.Sprint("192.0.2.", i))
			all.Go(func() { post(httptest.NewRecorder(), io.MultiReader(strings.NewReader(part), rest)) })
			synctest.Wait()
		}
		address.Store("198.51.100.1")
		w := httptest.NewRecorder()
		post(w, strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"+strings.Repeat("x", 40<<10)+"\r\n--x--\r\n"))
		equal(t, w.Code, 303, "status %d")
		_ = send.Close()
		all.Wait()
	})
}

// A text is read up to its limit.
func TestTextIsReadToItsLimit(t *testing.T) {
	_, post := serving(t, 0, nil)
	w, body := httptest.NewRecorder(), strings.NewReader(strings.Repeat("x", 2*formsvc.MaxAnswersSize))
	post(w, body)
	equal(t, 2*formsvc.MaxAnswersSize-body.Len(), formsvc.MaxAnswersSize+1, "%d bytes were read")
}

// A large body has its place until its reply is written, and both end in time.
func TestPlacesAreHeldForTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, post := serving(t, 0, &intake.Options{LargeBodies: 2, PerVisitor: -1}, formsvc.Module{Name: "n", Type: formsvc.NumberModule})
		large := "n=" + strings.Repeat("x", 100_000)
		slow := &slowWriter{ResponseRecorder: httptest.NewRecorder(), wait: make(chan struct{})}
		began, done := time.Now(), make(chan struct{})
		go func() { post(slow, strings.NewReader(large)); close(done) }()
		synctest.Wait()
		for status, body := range map[int]string{503: large, 422: "n=x"} {
			w := httptest.NewRecorder()
			if post(w, strings.NewReader(body)); w.Code != status {
				t.Errorf("status %d, want %d", w.Code, status)
			}
		}
		close(slow.wait)
		<-done
		w := httptest.NewRecorder()
		if post(w, strings.NewReader(large)); w.Code != 422 || slow.Code != 422 {
			t.Errorf("status %d and %d", w.Code, slow.Code)
		}
		if read, write := slow.read.Sub(began), slow.write.Sub(began); read <= 0 || read > 30*time.Second || write < 30*time.Second || write > time.Minute || !slow.ended {
			t.Errorf("deadlines after %v and %v", read, write)
		}
	})
}

// Long bodies take turns, so that short ones don't wait for their writes.
func TestLongBodiesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, post := serving(t, 100*time.Millisecond, &intake.Options{PerVisitor: -1})
		began := time.Now()
		took := make(chan time.Duration, 8)
		for range cap(took) {
			go func() {
				w := httptest.NewRecorder()
				post(w, strings.NewReader("n="+strings.Repeat("x", 300_000)))
				took <- time.Since(began)
			}()
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		if post(w, strings.NewReader("n=1")); w.Code != 303 || time.Since(began) != 100*time.Millisecond {
			t.Errorf("status %d after %v", w.Code, time.Since(began))
		}
		var first int
		for range cap(took) {
			if <-took == 100*time.Millisecond {
				first++
			}
		}
		if first > max(2, runtime.GOMAXPROCS(0)) {
			t.Errorf("%d long bodies are written at once", first)
		}
	})
}

// A body that comes too slowly, or not at all, is no success to a browser or a script.
func TestSlowBodies(t *testing.T) {
	_, post := serving(t, 0, nil)
	for _, sent := range []string{"", "a=1", "a=1&b="} {
		w := httptest.NewRecorder()
		post(w, io.MultiReader(strings.NewReader(sent), iotest.ErrReader(os.ErrDeadlineExceeded)))
		(&answer{t, w.Code, w.Header(), w.Body.String()}).is(408).has("weren&#39;t saved")
	}
}

// A fullStore takes no more responses.
type fullStore struct {
	*memory.Store

	err error
}

func (s fullStore) CreateResponse(context.Context, formsvc.Response, int64, formsvc.Change) error {
	return s.err
}

// A store's own limit is told as such, with everything typed.
func TestFullStore(t *testing.T) {
	in := formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{{Name: "a"}}}
	in.Form.Texts.Full = "No seats <left>"
	w := newWorld(t, in, nil)
	for _, x := range []struct {
		err          error
		status       int
		accept, says string
	}{
		{&formsvc.LimitError{Kind: "responses", Limit: 3}, 409, "text/html", "No seats &lt;left&gt;"},
		{&formsvc.LimitError{Kind: "responses", Limit: 3}, 409, "application/json", `"code":"response_limit"`},
		{formsvc.ErrQuota, 429, "text/html", "couldn&#39;t be saved"}, {formsvc.ErrQuota, 429, "application/json", `"code":"quota_exceeded"`},
	} {
		svc, err := formsvc.New(fullStore{w.store, x.err}, nil)
		w.must(err)
		h, err := intake.New(svc, nil)
		w.must(err)
		r := httptest.NewRequest(http.MethodPost, "/"+w.campaign.FormToken, strings.NewReader("a=kept"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", x.accept)
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		a := (&answer{t, recorder.Code, recorder.Header(), recorder.Body.String()}).is(x.status).has(x.says)
		if got := a.header.Get("Retry-After"); (got != "") != (x.status == 429) {
			t.Errorf("Retry-After: %q", got)
		}
		if x.accept == "text/html" {
			a.has(`value="kept"`)
		}
		if x.status == 409 && x.accept == "text/html" {
			a.has("Your answers weren&#39;t saved")
		}
	}
}

// A large page is made once in each language, in a slot that other lists and pages share, and each visitor gets a token of their own.
func TestLargePages(t *testing.T) {
	shared := gate.NewShared(gate.Bounds{Requests: 1, Waiting: 1, Wait: time.Millisecond})
	var in formsvc.CampaignInput
	for i := range 200 {
		in.Modules = append(in.Modules, formsvc.Module{Name: fmt.Sprint("a", i), Label: strings.Repeat("x", 500)})
	}
	w := newWorld(t, in, &intake.Options{Limits: shared})
	first := w.get("", "Accept-Language", "en").is(200).token()
	slot, err := shared.Lists.Acquire(t.Context(), "another account")
	w.must(err)
	if again := w.get("", "Accept-Language", "en").is(200).token(); again == first {
		t.Errorf("two visitors got the token %s", again)
	}
	w.get("", "Accept-Language", "de").is(503)
	slot.Release()
	w.get("", "Accept-Language", "de").is(200).has(`lang="de"`)
}
