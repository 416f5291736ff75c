package client_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/client"
)

// What a call costs over net/http alone, with the same JSON, against a server that does nothing.
func BenchmarkCreate(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"uuid":"01a1fd3a-2eb3-7000-8000-00000000000a","reference":"7XK4-MQ2PWD","status":"pending","user":{"email":"a@example.com",`+
			`"firstName":"Ada","lastName":"Lovelace"},"responses":{"amount":{"value":["100"]}},"createdAt":"2026-11-21T08:30:11.123Z","metadata":{}}`)
	}))
	defer server.Close()
	in := client.ResponseInput{
		User: formsvc.User{Email: "a@example.com"}, Answers: formsvc.NewAnswers(formsvc.Answer{Name: "amount", Value: []string{"100"}}),
	}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			body, _ := json.Marshal(in)
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/v1/campaigns/"+id+"/responses", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer k")
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			var out client.Response
			err = json.NewDecoder(resp.Body).Decode(&out)
			_ = resp.Body.Close()
			if err != nil || out.UUID == "" {
				b.Fatal(err)
			}
		}
	})
	b.Run("client", func(b *testing.B) {
		c, err := client.New(server.URL, "k", nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if out, err := c.Responses.Create(b.Context(), id, in); err != nil || out.UUID == "" {
				b.Fatal(err)
			}
		}
	})
}
