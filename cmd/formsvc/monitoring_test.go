//go:build long

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
	matchers   = regexp.MustCompile(`\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`by *\(([^)]*)\)`)
	routeIs    = regexp.MustCompile(`route(!?[=~]~?)"([^"]*)"`)
)

// The dashboard and the alerts use existing metrics, labels and routes.
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
	text := quoted.ReplaceAllString(query, `""`)
	known := []string{"instance", "job"}
	names := metricName.FindAllString(text, -1)
	for _, name := range names {
		f := families[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if f == nil {
				if f = families[strings.TrimSuffix(name, suffix)]; f != nil {
					known = append(known, "le")
				}
			}
		}
		if f == nil {
			t.Errorf("%s: there is no metric %s", what, name)
			continue
		}
		for _, l := range f.GetMetric()[0].GetLabel() {
			known = append(known, l.GetName())
		}
	}
	if len(names) == 0 && !strings.HasPrefix(text, "up") {
		t.Errorf("%s: no metric in %s", what, query)
	}
	var labels []string
	for _, m := range matchers.FindAllStringSubmatch(text, -1) {
		for _, l := range labelName.FindAllStringSubmatch(m[1], -1) {
			labels = append(labels, l[1])
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(text, -1) {
		labels = append(labels, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, l := range labels {
		if !slices.Contains(known, l) {
			t.Errorf("%s: the metrics have no label %q: %s", what, l, query)
		}
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

// A real Prometheus with the example's configuration returns data for every query of the dashboard, and evaluates every
// alert.
func TestDashboardQueriesReturnData(t *testing.T) {
	t.Parallel()
	program := lookFor(t, "prometheus")
	s := watched(t)
	dir, addr := t.TempDir(), freeAddrs(t, 1)[0]
	if err := os.CopyFS(dir, os.DirFS(monitoringDir)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	m := metricsAddrPattern.FindStringSubmatch(s.log.String())
	config := strings.NewReplacer("127.0.0.1:9100", m[1], "15s", "1s").Replace(string(text))
	if config == string(text) {
		t.Fatal("prometheus.yml has neither the address nor the interval that this test replaces")
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said output
	cmd := exec.Command(program, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", addr)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus said:\n%s", tail(said.String(), 20))
		}
	})
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go s.load(ctx, t)

	panels, alerts := queries(t)
	p := newClient(t, "http://"+addr, "")
	variables := strings.NewReplacer("$__rate_interval", "5s", "$job", "formsvc", "$instance", ".*")
	for what, query := range panels {
		eventually(t, what+" shows something", func() bool {
			a, err := p.do(t.Context(), http.MethodGet, "/api/v1/query?query="+url.QueryEscape(variables.Replace(query)), nil)
			var v struct {
				Status, Error string
				Data          struct{ Result []struct{ Value [2]any } }
			}
			if err != nil || json.Unmarshal(a.body, &v) != nil {
				return false // it is starting
			}
			if v.Status != "success" {
				t.Fatalf("%s: %s\n%s", what, v.Error, query)
			}
			return slices.ContainsFunc(v.Data.Result, func(r struct{ Value [2]any }) bool { return fmt.Sprint(r.Value[1]) != "NaN" })
		})
	}
	eventually(t, "the alerts are evaluated", func() bool {
		a, err := p.do(t.Context(), http.MethodGet, "/api/v1/rules", nil)
		return err == nil && strings.Count(string(a.body), `"health":"ok"`) == len(alerts)
	})
}
