//go:build long

package main

import (
	"net/http"
	"strconv"
	"testing"
)

// Two servers on one Postgres share a key's quota: each sees the other's use within about a second.
func TestServersShareQuota(t *testing.T) {
	t.Parallel()
	sh, flags := onPostgres(t), []string{"--quota", "1000", "--quota-window", "438000h"}
	one := sh.serve(t, flags...)
	two := sh.serve(t, flags...)
	used := 0
	left := func(s *service) int {
		used++
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+one.key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		n, err := strconv.Atoi(resp.Header.Get("X-RateLimit-Remaining"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 10 {
		left(one)
	}
	for _, s := range []*service{two, one} {
		until(t, "the use of the other server is counted", func() bool { return left(s) == 1000-used || used > 900 })
		if used > 900 {
			t.Fatal("the servers count by themselves")
		}
	}
}
