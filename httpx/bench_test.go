package httpx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// The benchmarks compare the handler over a store in memory with "plain": a simple net/http handler that only decodes
// and encodes with encoding/json. "over TCP" adds a server and a client to both.

// benchBody returns a response with ten answers.
func benchBody() string {
	var b strings.Builder
	b.WriteString(`{"user":{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"},"responses":{`)
	for i := range 10 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"question_%d":{"value":["an answer of usual length %d"]}`, i, i)
	}
	b.WriteString(`}}`)
	return b.String()
}

type plainUser struct {
	Email     string `json:"email"`
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
}

type plainValue struct {
	Value []string `json:"value"`
}

type plainRecord struct {
	UUID      string                `json:"uuid"`
	Reference string                `json:"reference"`
	Status    string                `json:"status"`
	User      plainUser             `json:"user"`
	Responses map[string]plainValue `json:"responses"`
	CreatedAt time.Time             `json:"createdAt"`
}

type plainList struct {
	Items []plainRecord `json:"items"`
	Total int           `json:"total"`
}

// plainHandler decodes and encodes, and stores nothing.
func plainHandler(tb testing.TB) http.Handler {
	record := plainRecord{UUID: "018f0000-0000-7000-8000-000000000000", Reference: "2346-7FHKL", Status: "pending"}
	if err := json.Unmarshal([]byte(benchBody()), &record); err != nil {
		tb.Fatal(err)
	}
	record.CreatedAt = time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
	list := plainList{Total: 50}
	for range 50 {
		list.Items = append(list.Items, record)
	}
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			tb.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, r *http.Request) {
		in := plainRecord{UUID: record.UUID, Reference: record.Reference, Status: "pending", CreatedAt: record.CreatedAt}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, http.StatusCreated, &in)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses/{response_uuid}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, &record)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, &list)
	})
	return mux
}

// discard is a ResponseWriter that costs almost nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

type reread struct{ bytes.Reader }

func (*reread) Close() error { return nil }

// benchWorld returns a world with a campaign of 50 responses.
func benchWorld(b *testing.B) (w *world, list, one string) {
	w = newWorld(b, openMemory(b), &httpx.Options{})
	w.clock = time.Now // references are generated each millisecond
	list = w.campaign(plainCampaign) + "/responses"
	for range 50 {
		one = list + "/" + w.do("POST", list, benchBody()).is(201, "").text("uuid")
	}
	return w, list, one
}

func BenchmarkCreate(b *testing.B) {
	w, list, _ := benchWorld(b)
	b.Run("httpx", func(b *testing.B) { handlerBench(b, w.api, w.request("POST", list, benchBody()), 201) })
	b.Run("plain", func(b *testing.B) { handlerBench(b, plainHandler(b), w.request("POST", list, benchBody()), 201) })
}

func BenchmarkGet(b *testing.B) {
	w, _, one := benchWorld(b)
	b.Run("httpx", func(b *testing.B) { handlerBench(b, w.api, w.request("GET", one, ""), 200) })
	b.Run("plain", func(b *testing.B) { handlerBench(b, plainHandler(b), w.request("GET", one, ""), 200) })
}

func BenchmarkList(b *testing.B) {
	w, list, _ := benchWorld(b)
	b.Run("httpx", func(b *testing.B) { handlerBench(b, w.api, w.request("GET", list, ""), 200) })
	b.Run("plain", func(b *testing.B) { handlerBench(b, plainHandler(b), w.request("GET", list, ""), 200) })
}

// BenchmarkService measures the part of a create outside httpx.
func BenchmarkService(b *testing.B) {
	w, list, one := benchWorld(b)
	id, _ := formsvc.ParseID(strings.TrimSuffix(strings.TrimPrefix(list, "/v1/campaigns/"), "/responses"))
	response, _ := formsvc.ParseID(one[strings.LastIndexByte(one, '/')+1:])
	in := formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"}}
	for i := range 10 {
		in.Answers = append(in.Answers, formsvc.Answer{
			Name: fmt.Sprint("question_", i), Value: []string{fmt.Sprint("an answer of usual length ", i)},
		})
	}
	b.Run("create", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.svc.Responses.Create(b.Context(), formsvc.CampaignKey{AccountID: w.mine.account.ID, ID: id}, in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		key := formsvc.ResponseKey{AccountID: w.mine.account.ID, CampaignID: id, ID: response}
		for b.Loop() {
			if _, err := w.svc.Responses.Get(b.Context(), key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("authenticate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.svc.Keys.Authenticate(b.Context(), w.mine.key); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func handlerBench(b *testing.B, h http.Handler, r *http.Request, status int) {
	var text []byte
	if r.Body != nil {
		text, _ = io.ReadAll(r.Body)
	}
	body := new(reread)
	w := &discard{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(text)
		r.Body = body
		clear(w.header)
		h.ServeHTTP(w, r)
		if w.status != status {
			b.Fatal(w.status)
		}
	}
}

func BenchmarkCreateOverTCP(b *testing.B) {
	w, list, _ := benchWorld(b)
	b.Run("httpx", func(b *testing.B) { tcpBench(b, w, w.api, "POST", list, benchBody(), 201) })
	b.Run("plain", func(b *testing.B) { tcpBench(b, w, plainHandler(b), "POST", list, benchBody(), 201) })
}

func BenchmarkGetOverTCP(b *testing.B) {
	w, _, one := benchWorld(b)
	b.Run("httpx", func(b *testing.B) { tcpBench(b, w, w.api, "GET", one, "", 200) })
	b.Run("plain", func(b *testing.B) { tcpBench(b, w, plainHandler(b), "GET", one, "", 200) })
}

func BenchmarkListOverTCP(b *testing.B) {
	w, list, _ := benchWorld(b)
	b.Run("httpx", func(b *testing.B) { tcpBench(b, w, w.api, "GET", list, "", 200) })
	b.Run("plain", func(b *testing.B) { tcpBench(b, w, plainHandler(b), "GET", list, "", 200) })
}

func tcpBench(b *testing.B, w *world, h http.Handler, method, path, body string, status int) {
	server := httptest.NewServer(h)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var failed atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequestWithContext(b.Context(), method, server.URL+path, strings.NewReader(body))
			if err != nil {
				panic(err)
			}
			r.Header.Set("Authorization", "Bearer "+w.mine.key)
			r.Header.Set("Content-Type", "application/json")
			answer, err := client.Do(r)
			if err != nil {
				failed.Add(1)
				continue
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode != status {
				failed.Add(1)
			}
		}
	})
	if n := failed.Load(); n > 0 {
		b.Errorf("%d requests failed", n)
	}
}
