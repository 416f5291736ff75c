//go:build long

package main_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"

	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// monitoringDir has the example files for monitoring.
const monitoringDir = "../../examples/monitoring"

// queries returns the queries of the dashboard and of the alerts, by name.
func queries(t testing.TB) (panels, alerts map[string]string) {
	t.Helper()
	read := func(name string, v any, decode func([]byte, any) error) {
		text, err := os.ReadFile(filepath.Join(monitoringDir, name))
		if err == nil {
			err = decode(text, v)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	read("dashboard.json", &board, json.Unmarshal)
	panels = make(map[string]string)
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			panels["panel "+p.Title+" "+q.RefID] = q.Expr
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	read("alerts.yml", &rules, yaml.Unmarshal)
	alerts = make(map[string]string)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts["alert "+r.Alert] = r.Expr
		}
	}
	if len(panels) < 20 || len(alerts) < 10 {
		t.Fatalf("%d queries of panels and %d alerts: these are not the files", len(panels), len(alerts))
	}
	return panels, alerts
}

// watched starts a server with data for every panel: on Postgres, with TLS, with requests of every kind, and with
// deliveries that succeed and that fail.
func watched(t testing.TB) *secured {
	t.Helper()
	s := &secured{ca: newAuthority(t), cert: filepath.Join(t.TempDir(), "cert.pem"), key: filepath.Join(t.TempDir(), "key.pem")}
	s.ca.issue(t, s.cert, s.key, 1, s.ca.cert.NotAfter)
	dsn := clusterDSN(t)
	s.server = start(t, dsn, "--tls-cert", s.cert, "--tls-key", s.key, "--metrics-addr", "127.0.0.1:0", "--webhook-retries", "100ms")
	s.addr = strings.TrimPrefix(s.url, "http://")
	s.url = "https://" + s.addr
	good, bad := receiver(t), receiver(t)
	bad.AnswerAlways(webhooktest.Reply{Status: http.StatusInternalServerError})
	hook(t, dsn, good.URL(), "response.created")
	hook(t, dsn, bad.URL(), "response.created")
	return s
}

// load makes requests until ctx ends.
func (s *secured) load(ctx context.Context, t testing.TB) {
	c := s.client(t)
	campaign := c.campaign(t, "Watched")
	wrong := trusting(newClient(t, s.url, "wrong"), s.config())
	pause := time.NewTicker(50 * time.Millisecond) // several in every scrape interval
	defer pause.Stop()
	for ctx.Err() == nil {
		<-pause.C
		_, _ = c.do(ctx, http.MethodPost, responsesPath(campaign), submission("x"))
		_, _ = c.do(ctx, http.MethodGet, responsesPath(campaign), nil)
		_, _ = wrong.do(ctx, http.MethodGet, "/v1/me", nil)
	}
}

var (
	quoted     = regexp.MustCompile(`"[^"]*"`)
	metricName = regexp.MustCompile(`\b(?:formsvc|go|process)_[a-z0-9_]+`)
	routeIs    = regexp.MustCompile(`route(!?[=~]~?)"([^"]*)"`)
)

// The dashboard and the alerts use existing metrics and routes.
func TestMonitoringNamesMetrics(t *testing.T) {
	t.Parallel()
	s := watched(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go s.load(ctx, t)
	var families map[string]*dto.MetricFamily
	eventually(t, "all metrics are there", func() bool {
		families, _ = scrape(t, s.server)
		return value(families["formsvc_webhook_failures_total"]) > 0 && value(families["formsvc_http_requests_total"], "code=401") > 0
	})
	panels, alerts := queries(t)
	for _, list := range []map[string]string{panels, alerts} {
		for what, query := range list {
			checkQuery(t, families, what, query)
		}
	}
}

func checkQuery(t testing.TB, families map[string]*dto.MetricFamily, what, query string) {
	t.Helper()
	for _, m := range routeIs.FindAllStringSubmatch(query, -1) {
		pattern := regexp.QuoteMeta(m[2])
		if strings.Contains(m[1], "~") {
			pattern = m[2]
		}
		matches := regexp.MustCompile("^(?:" + pattern + ")$").MatchString
		if !slices.ContainsFunc(httpx.Routes(), func(r httpx.Route) bool { return matches(r.Pattern) }) {
			t.Errorf("%s: there is no route %s", what, m[2])
		}
	}
	names := metricName.FindAllString(quoted.ReplaceAllString(query, `""`), -1)
	for _, name := range names {
		known := families[name] != nil
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known = known || families[strings.TrimSuffix(name, suffix)] != nil
		}
		if !known {
			t.Errorf("%s: there is no metric %s", what, name)
		}
	}
	if len(names) == 0 && !strings.HasPrefix(query, "up") {
		t.Errorf("%s: no metric in %s", what, query)
	}
}

// The alerts pass alerts_test.yml in Prometheus's own tool.
func TestAlerts(t *testing.T) {
	t.Parallel()
	tool := lookFor(t, "promtool")
	_, alerts := queries(t)
	text, err := os.ReadFile(filepath.Join(monitoringDir, "alerts_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for what := range alerts {
		if name := strings.TrimPrefix(what, "alert "); !strings.Contains(string(text), "alertname: "+name+"\n") {
			t.Errorf("%s has no test", what)
		}
	}
	for _, args := range []string{"check config prometheus.yml", "test rules alerts_test.yml"} {
		cmd := exec.Command(tool, strings.Fields(args)...)
		cmd.Dir = monitoringDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args, err, out)
		}
	}
}
