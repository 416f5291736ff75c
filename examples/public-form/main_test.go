package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc/formsvctest"
)

func TestPagesPostToTheForm(t *testing.T) {
	svc := formsvctest.New(t, nil).Service
	form := must(publish(t.Context(), svc))
	if again := must(publish(t.Context(), svc)); again.ID != form.ID {
		t.Error("the second start creates a second campaign")
	}
	server := httptest.NewServer(must(handler(svc, form)))
	defer server.Close()
	for page, want := range map[string]string{"/form.html": `action="/f/` + form.FormToken + `"`, "/fetch.html": `fetch("/f/` + form.FormToken + `"`} {
		if body := read(t, must(http.Get(server.URL+page))); !strings.Contains(body, want) {
			t.Errorf("%s has no %s:\n%s", page, want, body)
		}
	}
	body := read(t, must(http.PostForm(server.URL+"/f/"+form.FormToken, url.Values{"email": {"ada@example.com"}, "message": {"Hello"}})))
	if !strings.Contains(body, "We will write to you soon.") {
		t.Error(body)
	}
	if c := must(svc.Campaigns.Get(t.Context(), form.Key())); c.ResponseCount != 1 {
		t.Errorf("%d responses", c.ResponseCount)
	}
}

func read(t *testing.T, reply *http.Response) string {
	t.Helper()
	defer func() { _ = reply.Body.Close() }()
	b, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatal(reply.Status, err)
	}
	return string(b)
}
