package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
)

// monitoringDir has the example files for monitoring.
const monitoringDir = "../../examples/monitoring"

// queries returns the queries of the dashboard and of the alerts, by name.
func queries(t testing.TB) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	for name, read := range map[string]func([]byte) error{
		"dashboard.json": func(text []byte) error { return json.Unmarshal(text, &board) },
		"alerts.yml":     func(text []byte) error { return yaml.Unmarshal(text, &rules) },
	} {
		text, err := os.ReadFile(filepath.Join(monitoringDir, name))
		if err == nil {
			err = read(text)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	list := make(map[string]string)
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			list["panel "+p.Title+" "+q.RefID] = q.Expr
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			list["alert "+r.Alert] = r.Expr
		}
	}
	if len(list) < 30 {
		t.Fatalf("%d queries: these are not the files", len(list))
	}
	return list
}

// The dashboard and the alerts use existing metrics, labels and routes.
func TestMonitoringNamesMetrics(t *testing.T) {
	t.Parallel()
	svc := must(formsvc.New(memory.New(), nil))
	m := newMetrics(svc, new(pool), struct{ certs.Source }{})
	described := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(described)
	close(described)
	known := []string{"le", "job", "instance"}
	for desc := range described {
		named := regexp.MustCompile(`help: "[^"]*"`).ReplaceAllString(desc.String(), "")
		known = append(known, regexp.MustCompile(`\w+`).FindAllString(named, -1)...)
	}
	label, name, route := regexp.MustCompile(`(\w+)!?[=~]~?"`), regexp.MustCompile(`\b(?:formsvc|go|process)_[a-z0-9_]+`), regexp.MustCompile(`route(!?[=~]~?)"([^"]*)"`)
	for what, query := range queries(t) {
		for _, r := range route.FindAllStringSubmatch(query, -1) {
			pattern := regexp.QuoteMeta(r[2])
			if strings.Contains(r[1], "~") {
				pattern = r[2]
			}
			matches := regexp.MustCompile("^(?:" + pattern + ")$").MatchString
			if !slices.ContainsFunc(httpx.Routes(), func(r httpx.Route) bool { return matches(r.Pattern) }) {
				t.Errorf("%s: there is no route %s", what, r[2])
			}
		}
		names := name.FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(query, `""`), -1)
		if len(names) == 0 && !strings.HasPrefix(query, "up") {
			t.Errorf("%s: no metric in %s", what, query)
		}
		for _, l := range label.FindAllStringSubmatch(query, -1) {
			names = append(names, l[1])
		}
		for _, n := range names {
			if !slices.ContainsFunc([]string{"", "_bucket", "_sum", "_count"}, func(end string) bool { return slices.Contains(known, strings.TrimSuffix(n, end)) }) {
				t.Errorf("%s: there is no metric or label %s", what, n)
			}
		}
	}
}

// A pool has statistics.
type pool struct{}

func (*pool) PoolStats() (s sql.DBStats) { return s }
