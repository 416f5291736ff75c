package httpx_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// The standard library parses every accepted form too, and finds the same file. Any other input gets a problem document
// and leaves nothing behind.
func FuzzFormBody(f *testing.F) {
	good := formOf(part("module", "cv"), filePart("content", "Content-Type: text/plain", "Content-Digest: "+sha256Digest("content")))
	for _, body := range []string{
		good, "preamble\r\n" + good + "epilogue", good[:len(good)-4], good[:60], formOf(), "", "--", strings.ReplaceAll(good, "\r\n", "\n"),
		formOf(filePart("")), formOf(part("file", "\r\n--"+boundary[:5])), formOf(filePart("x", "Content-Transfer-Encoding: base64")),
		formOf(filePart("x"), filePart("y")), formOf(filePart("x", "X: "+strings.Repeat("y", 20_000))), "--" + boundary + "--", "--" + boundary,
		strings.Replace(good, "a.txt", `..\%22\"a`, 1), strings.Replace(good, `filename="a.txt"`, "filename*=UTF-8''%e2%82%ac", 1),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := newWorld(t, nil)
		list := w.uploads()
		a := w.do("POST", list, "", asForm, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}) // do checks the reply
		if a.status != 201 {
			if a.status != 400 && a.status != 413 && a.status != 422 {
				t.Fatalf("%d: %s", a.status, a.body)
			}
			w.isEmpty(list)
			return
		}
		parts := multipart.NewReader(bytes.NewReader(body), boundary)
		for {
			p, err := parts.NextRawPart()
			if err != nil {
				t.Fatalf("%q was taken: %v", body, err)
			}
			if p.FormName() != "file" {
				continue
			}
			content, err := io.ReadAll(p)
			if got := w.do("GET", a.header.Get("Location"), ""); err != nil || got.status != 200 || got.body != string(content) {
				t.Fatalf("%q was taken as %q: %v", body, got.body, err)
			}
			return
		}
	})
}

// For any ranges, the body is what the headers say.
func FuzzRange(f *testing.F) {
	for _, row := range [][2]string{
		{"bytes=0-0", ""}, {"bytes=-5", `"x"`}, {"bytes=5-", ""}, {"bytes=0-0,5-9,-1", ""}, {"bytes=-0", ""}, {"bytes=9-0", ""}, {"bytes=", ""},
		{"bytes=99999999999999999999-", ""}, {"items=0-1", ""}, {"bytes=0-0, 0-0 ,", ""}, {"bytes=--1", ""}, {"bytes=0-0,-00", "Sat, 21 Nov 2026 08:30:00 GMT"},
	} {
		f.Add(row[0], row[1])
	}
	w := newWorld(f, nil)
	content := noise(300_000)
	path := w.upload(content)
	f.Fuzz(func(t *testing.T, ranges, condition string) {
		w.tb = t
		edits := []func(*http.Request){header("Range", ranges)}
		if condition != "" {
			edits = append(edits, header("If-Range", condition))
		}
		a := w.do("GET", path, "", edits...)
		switch a.status {
		case 200:
			if a.body != content {
				t.Fatalf("%q: %d bytes", ranges, len(a.body))
			}
		case 206:
			checkRanges(t, a, content)
		case 416:
		default:
			t.Fatalf("%q: %d %s", ranges, a.status, a.body)
		}
		w.asked()
	})
}

func checkRanges(t *testing.T, a *answer, content string) {
	t.Helper()
	check := func(value, body string) {
		t.Helper()
		var from, to, size int
		if _, err := fmt.Sscanf(value, "bytes %d-%d/%d", &from, &to, &size); err != nil || size != len(content) || from > to ||
			content[from:to+1] != body {
			t.Fatalf("%s with %d bytes: %v", value, len(body), err)
		}
	}
	_, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		check(a.header.Get("Content-Range"), a.body)
		return
	}
	parts := multipart.NewReader(strings.NewReader(a.body), params["boundary"])
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return
		}
		noError(t, err)
		body := must(io.ReadAll(p))
		check(p.Header.Get("Content-Range"), string(body))
	}
}
