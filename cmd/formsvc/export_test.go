//go:build long

package main_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The server exports all responses of a campaign in both formats, and continues after a client's last response.
func TestExports(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "exported")
		var want []string
		for range 30 {
			want = append(want, c.submit(t, campaign, "marker").UUID)
		}
		export := func(kind string) string {
			return string(c.want(t, http.StatusOK, http.MethodGet, responsesPath(campaign)+kind, nil, nil).body)
		}
		whole := export(".ndjson?order=asc")
		var got []string
		for line := range strings.Lines(whole) {
			var r response
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			got = append(got, r.UUID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d responses in NDJSON, want %d", len(got), len(want))
		}
		rest := export(".ndjson?order=asc&cursor=" + want[9])
		if !strings.HasSuffix(whole, rest) || strings.Count(rest, "\n") != 20 {
			t.Errorf("%d responses after the tenth", strings.Count(rest, "\n"))
		}
		records, err := csv.NewReader(strings.NewReader(export(".csv?order=asc"))).ReadAll()
		if err != nil || len(records) != 31 || records[0][0] != "uuid" {
			t.Fatalf("%d records, %v", len(records), err)
		}
		for i, id := range want {
			if records[i+1][0] != id {
				t.Errorf("record %d is of %s, want %s", i+1, records[i+1][0], id)
			}
		}
	})
}
