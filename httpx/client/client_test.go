package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/client"
	"github.com/formsvc/toolkit/webhook"
)

// A script is a service in place of a connection: each request gets the next step.
type script struct {
	steps []step
	sent  []*http.Request
	at    []time.Time
}

type step func(r *http.Request) (*http.Response, error)

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.sent, s.at = append(s.sent, r), append(s.at, time.Now())
	if len(s.sent) > len(s.steps) {
		return nil, fmt.Errorf("request %d wasn't expected", len(s.sent))
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return s.steps[len(s.sent)-1](r)
}

// says replies with a status, a body and headers.
func says(status int, body string, headers ...string) step {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: headerOf(headers), Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func headerOf(pairs []string) http.Header {
	h := http.Header{}
	for pair := range slices.Chunk(pairs, 2) {
		h.Set(pair[0], pair[1])
	}
	return h
}

// breaks replies with a body that is cut off after its text.
func breaks(status int, body string, headers ...string) step {
	return func(*http.Request) (*http.Response, error) {
		cut := io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF))
		return &http.Response{StatusCode: status, Header: headerOf(headers), Body: io.NopCloser(cut)}, nil
	}
}

func fails(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func problem(status int, code string, headers ...string) step {
	return says(status, fmt.Sprintf(`{"status":%d,"code":%q,"detail":"It is so.","requestId":"r1"}`, status, code),
		append(headers, "Content-Type", "application/problem+json")...)
}

// play runs do with a client of the script, in fake time.
func play(t *testing.T, opts client.Options, steps []step, do func(t *testing.T, ctx context.Context, c *client.Client, s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: steps}
		opts.HTTP = &http.Client{Transport: s}
		c, err := client.New("http://forms.example.com/api/", "k", &opts)
		if err != nil {
			t.Fatal(err)
		}
		do(t, t.Context(), c, s)
	})
}

const id = "01a1fd3a-135b-7000-8000-000000000007"

var errCut = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}

// A POST is repeated with one key and the same body until it succeeds.
func TestRepeat(t *testing.T) {
	steps := []step{
		fails(errCut), problem(503, "unavailable", "Retry-After", "7"), problem(409, "idempotency_in_flight"), says(502, "<h1>Bad gateway</h1>"),
		problem(408, "body_timeout"), problem(429, "quota_exceeded", "Retry-After", "30"), breaks(201, `{"uuid":"`), says(201, `{"uuid":"u1"}`, "Etag", `"1"`),
	}
	play(t, client.Options{}, steps, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		got, err := c.Responses.Create(ctx, id, client.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
		if err != nil || got.UUID != "u1" || got.ETag != `"1"` || len(s.sent) != len(steps) {
			t.Fatalf("%+v, %v after %d requests", got, err, len(s.sent))
		}
		for _, r := range s.sent {
			body, _ := io.ReadAll(r.Body)
			if key := r.Header.Get("Idempotency-Key"); len(key) < 20 || key != s.sent[0].Header.Get("Idempotency-Key") ||
				string(body) != `{"user":{"email":"a@example.com","firstName":"","lastName":""},"responses":{}}` ||
				r.URL.Path != "/api/v1/campaigns/"+id+"/responses" || r.Header.Get("Authorization") != "Bearer k" {
				t.Errorf("%s %v %s", r.URL, r.Header, body)
			}
		}
		for i, least := range map[int]time.Duration{1: 50 * time.Millisecond, 2: 7 * time.Second, 6: 30 * time.Second, 7: 1600 * time.Millisecond} {
			if wait := s.at[i].Sub(s.at[i-1]); wait < least || wait > least+7*time.Second {
				t.Errorf("request %d came after %v, want at least %v", i, wait, least)
			}
		}
	})
}

// What another attempt can't change is returned at once.
func TestNoRepeat(t *testing.T) {
	for name, row := range map[string]struct {
		step step
		is   error
	}{
		"404":         {problem(404, "not_found"), formsvc.ErrNotFound},
		"409":         {problem(409, "campaign_closed"), formsvc.ErrCampaignClosed},
		"412":         {problem(412, "precondition_failed"), formsvc.ErrStale},
		"422":         {problem(422, "validation_failed"), formsvc.ErrInvalid},
		"limit":       {problem(409, "campaign_limit"), formsvc.ErrLimit},
		"507":         {problem(507, "insufficient_storage"), formsvc.ErrNoSpace},
		"damaged":     {problem(502, "blob_corrupt"), formsvc.ErrCorrupt},
		"no host":     {fails(&net.DNSError{IsNotFound: true}), nil},
		"other reply": {says(201, `[1]`), nil},
	} {
		play(t, client.Options{}, []step{row.step}, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
			_, err := c.Campaigns.Create(ctx, client.CampaignInput{Title: "A"})
			if err == nil || row.is != nil && !errors.Is(err, row.is) || errors.Is(err, formsvc.ErrUnauthenticated) || len(s.sent) != 1 {
				t.Errorf("%s: %v after %d requests", name, err, len(s.sent))
			}
		})
	}
}

// A problem says all that the service said.
func TestProblem(t *testing.T) {
	body := `{"type":"about:blank","title":"Unprocessable Entity","status":422,"detail":"Rules.","code":"validation_failed","requestId":"r7",
		"errors":[{"pointer":"/title","code":"required","detail":"is required"},{"parameter":"limit","code":"invalid","detail":"is wrong"}]}`
	steps := []step{
		says(422, body, "Content-Type", "application/problem+json"), says(401, "<h1>Login</h1>", "X-Request-Id", "r8"),
		says(401, `{"status":200}`, "Content-Type", "application/json"),
	}
	play(t, client.Options{}, steps, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		_, err := c.Me(ctx)
		p, ok := errors.AsType[*client.Problem](err)
		if !ok || p.Code != "validation_failed" || p.RequestID != "r7" || len(p.Errors) != 2 || p.Errors[1].Parameter != "limit" ||
			err.Error() != "formsvc: 422 validation_failed: Rules.; /title: is required; limit: is wrong (request r7)" {
			t.Errorf("%v", err)
		}
		for range 2 {
			_, err = c.Me(ctx)
			if p, ok = errors.AsType[*client.Problem](err); !ok || p.Status != 401 || p.Code != "" || !strings.Contains(err.Error(), "isn't one of the service") {
				t.Errorf("%+v", err)
			}
		}
	})
}

// A call ends with its context, at once if no attempt fits before the deadline, or with its attempts.
func TestEnd(t *testing.T) {
	busy := problem(503, "unavailable", "Retry-After", "60")
	play(t, client.Options{}, []step{busy}, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := c.Me(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, formsvc.ErrUnavailable) || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
	play(t, client.Options{}, []step{busy}, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		if _, err := c.Me(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, formsvc.ErrUnavailable) {
			t.Error(err)
		}
	})
	play(t, client.Options{Attempts: 3}, []step{busy, fails(errCut), busy}, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		if _, err := c.Me(ctx); !errors.Is(err, formsvc.ErrUnavailable) || len(s.sent) != 3 {
			t.Errorf("%v after %d requests", err, len(s.sent))
		}
	})
	play(t, client.Options{}, []step{busy, problem(503, "outcome_unknown")}, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		for _, want := range []error{formsvc.ErrUnavailable, formsvc.ErrUnknownOutcome} {
			if _, err := c.Me(ctx, client.Attempts(1)); !errors.Is(err, want) {
				t.Error(err)
			}
		}
	})
}

// A connection without a byte for the timeout is given up, while replying and while sending.
func TestStall(t *testing.T) {
	hangs := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	stops := func(r *http.Request) (*http.Response, error) {
		body, w := io.Pipe()
		context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: 200, Body: body}, nil
	}
	play(t, client.Options{Timeout: 10 * time.Second}, []step{hangs, stops, says(200, `{}`)}, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		if _, err := c.Me(ctx); err != nil || len(s.sent) != 3 || s.at[2].Sub(s.at[0]) < 20*time.Second {
			t.Errorf("%v after %d requests at %v", err, len(s.sent), s.at)
		}
	})
	drips := func(r *http.Request) (*http.Response, error) {
		body, w := io.Pipe()
		context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
		go func() {
			for _, c := range `{"account":{"name":"slow"}}` {
				time.Sleep(8 * time.Second)
				_, _ = io.WriteString(w, string(c))
			}
			_ = w.Close()
		}()
		return &http.Response{StatusCode: 200, Body: body}, nil
	}
	play(t, client.Options{Timeout: 10 * time.Second, Attempts: 1}, []step{drips}, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		if me, err := c.Me(ctx); err != nil || me.Account.Name != "slow" {
			t.Errorf("%+v, %v", me, err)
		}
	})
	play(t, client.Options{Attempts: 1}, []step{hangs}, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		begin := time.Now()
		if _, err := c.Me(ctx); err == nil || !strings.Contains(err.Error(), "stalled") || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// After a lost reply, a record that is gone was deleted by the earlier attempt.
func TestDeleteTwice(t *testing.T) {
	gone := problem(404, "not_found")
	for name, row := range map[string]struct {
		steps []step
		ok    bool
	}{"lost": {[]step{fails(errCut), gone}, true}, "refused": {[]step{problem(429, "rate_limited"), gone}, false}, "unknown": {[]step{problem(503, "timeout"), gone}, true}} {
		play(t, client.Options{}, row.steps, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
			if err := c.Responses.Delete(ctx, id, id); (err == nil) != row.ok {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Values that no header or URL can have are refused before a request.
func TestRefusedInput(t *testing.T) {
	for _, address := range []string{"", "example.com", "ftp://example.com", "http://", "http://example.com/?a=b", "http://a b"} {
		if _, err := client.New(address, "k", nil); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
	if _, err := client.New("http://example.com", "a\nb", nil); err == nil || strings.Contains(err.Error(), "a\n") {
		t.Error(err)
	}
	play(t, client.Options{}, nil, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		_, err := c.Comments.Create(ctx, id, id, "a", client.IdempotencyKey("a\r\nb"))
		if err == nil || len(s.sent) > 0 {
			t.Error(err)
		}
	})
	play(t, client.Options{}, []step{problem(404, "not_found")}, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		if _, err := c.Responses.Get(ctx, "../a", "b/c?d"); !errors.Is(err, formsvc.ErrNotFound) || s.sent[0].URL.EscapedPath() != "/api/v1/campaigns/..%2Fa/responses/b%2Fc%3Fd" {
			t.Errorf("%v %s", err, s.sent[0].URL)
		}
	})
}

// All reads page after page, and ends with an error.
func TestAll(t *testing.T) {
	steps := []step{
		says(200, `{"items":[{"uuid":"a"},{"uuid":"b"}],"nextCursor":"n1"}`), says(200, `{"items":[],"nextCursor":"n2"}`),
		says(200, `{"items":[{"uuid":"c"}],"nextCursor":null}`), says(200, `{"items":[{"uuid":"a"}],"nextCursor":"n1"}`), problem(403, "permission_denied"),
	}
	play(t, client.Options{}, steps, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		read := func(list iter.Seq2[client.Response, error]) (text string) {
			for r, err := range list {
				if text += r.UUID; err != nil {
					text += " error"
				}
			}
			return text
		}
		q := &client.ResponseQuery{PageQuery: client.PageQuery{Offset: 5}, ResponseFilter: client.ResponseFilter{Status: []string{"a", "b"}}}
		if got := read(c.Responses.All(ctx, id, q)); got != "abc" {
			t.Error(got)
		}
		if first, last := s.sent[0].URL.RawQuery, s.sent[2].URL.RawQuery; first != "limit=200&offset=5&status=a&status=b" || last != "cursor=n2&limit=200&status=a&status=b" {
			t.Errorf("%s, %s", first, last)
		}
		if got := read(c.Responses.All(ctx, id, nil)); got != "a error" {
			t.Error(got)
		}
	})
}

// A file that can be read again is sent again, from where it was.
func TestUpload(t *testing.T) {
	sum := sha256.Sum256([]byte("content"))
	stored := says(201, fmt.Sprintf(`{"uuid":"f","sha256":%q}`, hex.EncodeToString(sum[:])))
	play(t, client.Options{}, []step{fails(errCut), problem(503, "unavailable"), stored}, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		content := strings.NewReader("the content")
		_, _ = content.Seek(4, io.SeekStart)
		f, err := c.Files.Upload(ctx, id, id, client.Upload{Name: "ä \"b\".txt", Module: "plan", Content: content})
		if err != nil || f.UUID != "f" || len(s.sent) != 3 {
			t.Fatalf("%v after %d requests", err, len(s.sent))
		}
		for _, r := range s.sent {
			body, _ := io.ReadAll(r.Body)
			if string(body) != "content" || r.ContentLength != 7 || r.URL.RawQuery != "module=plan" || r.Header.Get("Content-Type") != "application/octet-stream" ||
				r.Header.Get("Content-Disposition") != "attachment; filename*=utf-8''%C3%A4%20%22b%22.txt" {
				t.Errorf("%s %d %v %s", r.URL, r.ContentLength, r.Header, body)
			}
		}
	})
	for name, row := range map[string]struct {
		content io.Reader
		steps   []step
		want    string
	}{
		"once":        {io.MultiReader(strings.NewReader("content")), []step{stored}, ""},
		"only once":   {io.MultiReader(strings.NewReader("content")), []step{fails(errCut)}, "io.Seeker"},
		"other bytes": {strings.NewReader("c0ntent"), []step{stored}, "hash"},
		"unreadable":  {iotest.ErrReader(errors.New("bad disk")), []step{stored}, "bad disk"},
		"empty":       {strings.NewReader(""), []step{says(201, `{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`)}, ""},
	} {
		play(t, client.Options{}, row.steps, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
			_, err := c.Files.Upload(ctx, id, id, client.Upload{Name: "a", Content: row.content})
			if (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) || len(s.sent) != 1 {
				t.Errorf("%s: %v after %d requests", name, err, len(s.sent))
			}
		})
	}
}

// A download continues where its connection broke, and ends only with the bytes of its hash.
func TestDownload(t *testing.T) {
	sum := sha256.Sum256([]byte("the content"))
	headers := []string{"Etag", `"` + hex.EncodeToString(sum[:]) + `"`, "Content-Length", "11", "Content-Disposition", "attachment; filename*=UTF-8''%C3%A4.txt"}
	for name, row := range map[string]struct {
		steps []step
		is    error
	}{
		"whole":    {[]step{says(200, "the content", headers...)}, nil},
		"broken":   {[]step{breaks(200, "the ", headers...), fails(errCut), breaks(206, "", headers...), breaks(206, "con", headers...), says(206, "tent", headers...)}, nil},
		"often":    {[]step{breaks(200, "t", headers...), breaks(206, "h", headers...), breaks(206, "e", headers...), breaks(206, " con", headers...), says(206, "tent", headers...)}, nil},
		"given up": {[]step{breaks(200, "the", headers...), breaks(206, "", headers...), breaks(206, "", headers...)}, io.ErrUnexpectedEOF},
		"short":    {[]step{says(200, "the ", headers...), says(206, "content", headers...)}, nil},
		"ignored":  {[]step{breaks(200, "the ", headers...), says(200, "the content", headers...)}, nil},
		"damaged":  {[]step{breaks(200, "the ", headers...), problem(502, "blob_corrupt")}, formsvc.ErrCorrupt},
		"other":    {[]step{says(200, "the c0ntent", headers...)}, formsvc.ErrCorrupt},
		"changed":  {[]step{breaks(200, "the ", headers...), problem(412, "precondition_failed")}, formsvc.ErrStale},
	} {
		play(t, client.Options{Attempts: 3}, row.steps, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
			d, err := c.Files.Download(ctx, id)
			if err != nil || d.Name != "ä.txt" || d.Size != 11 {
				t.Fatalf("%s: %+v %v", name, d, err)
			}
			defer d.Close()
			text, err := io.ReadAll(d)
			if !errors.Is(err, row.is) || err == nil && string(text) != "the content" || len(s.sent) != len(row.steps) {
				t.Errorf("%s: %q, %v after %d requests", name, text, err, len(s.sent))
			}
			if last := s.sent[len(s.sent)-1]; len(s.sent) > 1 && (last.Header.Get("If-Match") != headers[1] || last.Header.Get("Range") == "") {
				t.Errorf("%s: %v", name, last.Header)
			}
		})
	}
}

// An export continues after its last whole record, and never hands out a part of one.
func TestExport(t *testing.T) {
	line := func(id string) string { return `{"uuid":"` + id + `","responses":{}}` + "\n" }
	const head, a, b = "uuid,note\r\n", "a,\"1\n\"\"2\"\"\"\r\n", "b,3\r\n"
	for name, row := range map[string]struct {
		format client.ExportFormat
		steps  []step
		want   string
		query  string // of the last request
		err    string
	}{
		"lines":           {client.NDJSON, []step{breaks(200, line("a")+`{"uuid":"b`), breaks(200, ""), says(200, line("b")+line("c"))}, line("a") + line("b") + line("c"), "cursor=a", ""},
		"unfinished":      {client.NDJSON, []step{says(200, line("a")+`{"uuid":"b`), says(200, line("b"))}, line("a") + line("b"), "cursor=a", ""},
		"from the start":  {client.NDJSON, []step{breaks(200, `{"uu`), says(200, line("b"))}, line("b"), "", ""},
		"table":           {client.CSV, []step{breaks(200, head+a+"b,\"3\r\n"), says(200, head+b)}, head + a + b, "column=uuid&column=note&cursor=a", ""},
		"only the header": {client.CSV, []step{breaks(200, head+"a,\"1\n"), breaks(200, "uuid"), says(200, head+a+b)}, head + a + b, "column=uuid&column=note", ""},
		"other columns":   {client.CSV, []step{breaks(200, head+b), says(200, "uuid,other\r\n")}, head + b, "column=uuid&column=note&cursor=b", "columns changed"},
		"no uuid":         {client.CSV, []step{breaks(200, "note\r\n1\r\n")}, "note\r\n1\r\n", "", "uuid first"},
		"refused":         {client.CSV, []step{breaks(200, head+a), problem(404, "not_found")}, head + a, "column=uuid&column=note&cursor=a", "not_found"},
	} {
		play(t, client.Options{Attempts: 3}, row.steps, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
			e, err := c.Responses.Export(ctx, id, row.format, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer e.Close()
			text, err := io.ReadAll(iotest.OneByteReader(e))
			if string(text) != row.want || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) ||
				len(s.sent) != len(row.steps) || s.sent[len(s.sent)-1].URL.RawQuery != row.query {
				t.Errorf("%s: %q, %v; %d requests, the last for %s", name, text, err, len(s.sent), s.sent[len(s.sent)-1].URL)
			}
		})
	}
}

// A refused export or download is nothing that could be read.
func TestRefusedStream(t *testing.T) {
	play(t, client.Options{}, []step{problem(404, "not_found"), problem(404, "not_found")}, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		e, err := c.Responses.Export(ctx, id, client.CSV, nil)
		d, failed := c.Files.Download(ctx, id)
		if e != nil || d != nil || !errors.Is(err, formsvc.ErrNotFound) || !errors.Is(failed, formsvc.ErrNotFound) {
			t.Errorf("%v, %v; %v, %v", e, err, d, failed)
		}
	})
}

// Follow hands out every page with the cursor after it, waits where nothing follows, and ends with its context or an error.
func TestFollow(t *testing.T) {
	page := func(next string, more bool, ids ...string) step {
		var items []string
		for _, id := range ids {
			items = append(items, fmt.Sprintf(`{"id":%q,"event":"response.created","data":{"response":{"uuid":"r"}}}`, id))
		}
		return says(200, fmt.Sprintf(`{"items":[%s],"nextCursor":%q,"more":%t}`, strings.Join(items, ","), next, more))
	}
	steps := []step{page("c1", true, "e1", "e2"), page("c2", false), page("c3", false, "e3"), page("c4", true, "e4")}
	play(t, client.Options{}, steps, func(t *testing.T, ctx context.Context, c *client.Client, s *script) {
		var seen string
		failed := errors.New("enough")
		err := c.Events.Follow(ctx, "c0", func(_ context.Context, events []webhook.Event, next string) error {
			for _, e := range events {
				seen += e.ID + " "
			}
			seen += next + "; "
			if next == "c4" {
				return failed
			}
			return nil
		}, &client.EventQuery{CampaignUUID: id, Newest: true})
		if seen != "e1 e2 c1; e3 c3; e4 c4; " || !errors.Is(err, failed) || s.sent[3].URL.RawQuery != "campaignUuid="+id+"&cursor=c3" {
			t.Errorf("%s %v %s", seen, err, s.sent[3].URL)
		}
		if wait := s.at[3].Sub(s.at[0]); wait != 10*time.Second {
			t.Errorf("waited %v", wait)
		}
	})
	play(t, client.Options{}, []step{page("c1", false)}, func(t *testing.T, ctx context.Context, c *client.Client, _ *script) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := c.Events.Follow(ctx, "", nil, nil); err != nil {
			t.Error(err)
		}
	})
}
