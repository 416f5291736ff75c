//go:build long

package main_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The list of keys shows the last use that a server has written, at the latest when it stops.
func TestLastUseIsListed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		used := s.firstKey(t)
		manage(t, dsn, "keys", "create", "--name", "idle", "--permissions", "all")
		before := time.Now().Add(-time.Second)
		newClient(t, s.url, used).want(t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
		s.terminate(t)
		s.stopped(t)

		list := map[string]*time.Time{}
		for line := range strings.Lines(manage(t, dsn, "keys", "list", "--json")) {
			var key struct {
				Name       string
				LastUsedAt *time.Time
			}
			if err := json.Unmarshal([]byte(line), &key); err != nil || !strings.Contains(line, `"lastUsedAt":`) {
				t.Fatalf("keys list --json: %v\n%s", err, line)
			}
			list[key.Name] = key.LastUsedAt
		}
		if at := list["first key"]; len(list) != 2 || list["idle"] != nil || at == nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("last used: %v", list)
		}
		table := manage(t, dsn, "keys", "list")
		at := "nothing"
		if list["first key"] != nil {
			at = list["first key"].UTC().Format(time.RFC3339)
		}
		for _, row := range []string{`CREATED +LAST USED +EXPIRES +REVOKED`, `first key .* ` + regexp.QuoteMeta(at) + ` +- +-`, `idle .*Z +- +- +-`} {
			if !regexp.MustCompile(row).MatchString(table) {
				t.Errorf("keys list has no row like %s:\n%s", row, table)
			}
		}
	})
}
