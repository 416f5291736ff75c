//go:build long

package main_test

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

var metricsAddrPattern = regexp.MustCompile(`"metricsAddr":"([^"]+)"`)

// scrape reads the metrics of a server like Prometheus.
func scrape(t testing.TB, s *server) (map[string]*dto.MetricFamily, []byte) {
	t.Helper()
	m := metricsAddrPattern.FindStringSubmatch(s.log.String())
	if m == nil {
		t.Fatalf("the log does not say where the metrics are:\n%s", s.log.String())
	}
	resp, err := http.Get("http://" + m[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %v", resp.Status, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return families, body
}

// value returns the sum of a family's series with these labels, as
// "name=value".
func value(f *dto.MetricFamily, labels ...string) (sum float64) {
	for _, m := range f.GetMetric() {
		var has []string
		for _, l := range m.GetLabel() {
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if slices.ContainsFunc(labels, func(want string) bool { return !slices.Contains(has, want) }) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

// The metrics have the right values, follow Prometheus's conventions, and have no secrets or client data in their labels.
func TestMetrics(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--metrics-addr", "127.0.0.1:0", "--webhook-retries", "100ms,1h")
		c := newClient(t, s.url, s.firstKey(t))
		good, bad := receiver(t), receiver(t)
		bad.AnswerAlways(webhooktest.Reply{Status: 500})
		hook(t, dsn, good.URL()+"/path-token", "response.created")
		hook(t, dsn, bad.URL(), "response.created")
		campaign := c.campaign(t, "Metrics")
		for range 3 {
			c.submit(t, campaign, "x")
		}
		c.want(t, http.StatusNotFound, http.MethodGet, "/v1/"+strings.Repeat("x", 20), nil, nil)
		arrivals(t, good, 3)
		arrivals(t, bad, 6)

		var families map[string]*dto.MetricFamily
		var body []byte
		eventually(t, "the metrics show six failed attempts and the backlog", func() bool {
			families, body = scrape(t, s)
			return value(families["formsvc_webhook_attempts_total"], "class=status") == 6 &&
				value(families["formsvc_webhook_attempt_seconds"]) == 9 && // counted after the attempt
				value(families["formsvc_webhook_in_flight"]) == 0 && value(families["formsvc_webhook_pending"]) == 3
		})
		for _, x := range []struct {
			name   string
			labels []string
			want   float64
		}{
			{"formsvc_webhook_attempts_total", []string{"class=delivered"}, 3},
			{"formsvc_webhook_attempt_seconds", []string{"class=delivered"}, 3},
			{"formsvc_webhook_attempt_seconds", nil, 9},
			{"formsvc_webhook_in_flight", []string{"lane=fast"}, 0},
			{"formsvc_webhook_blocked", nil, 0},
			{"formsvc_webhook_failures_total", nil, 0},
			{"formsvc_webhook_oldest_due_seconds", nil, 0},
			{"formsvc_webhook_stats_errors_total", nil, 0},
			{"formsvc_http_requests_total", []string{"route=/v1/campaigns/{uuid}/responses", "method=POST", "code=201"}, 3},
			{"formsvc_http_requests_total", []string{"route=other", "method=GET", "code=404"}, 1},
			{"formsvc_http_request_seconds", []string{"route=/v1/campaigns/{uuid}/responses"}, 3},
		} {
			if f := families[x.name]; f == nil || value(f, x.labels...) != x.want {
				t.Errorf("%s %v is %v, want %v", x.name, x.labels, value(f, x.labels...), x.want)
			}
		}
		for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
			if value(families[name]) == 0 {
				t.Errorf("%s is missing", name)
			}
		}
		checkScrape(t, body, c.key, secret, "path-token", "127.0.0.1", campaign, strings.Repeat("x", 20))
	})
}

// checkScrape checks that a scrape follows the conventions of Prometheus and contains none of the texts.
func checkScrape(t testing.TB, body []byte, texts ...string) {
	t.Helper()
	problems, err := promlint.New(bytes.NewReader(body)).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "formsvc_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, text := range texts {
		if strings.Contains(string(body), text) {
			t.Errorf("the metrics contain %q", text)
		}
	}
}

// Without --metrics-addr there are no metrics, not even at the API's address.
func TestMetricsAreOffByDefault(t *testing.T) {
	t.Parallel()
	s := start(t, databases()[0].dsn(t))
	c := newClient(t, s.url, s.firstKey(t))
	c.want(t, http.StatusNotFound, http.MethodGet, "/metrics", nil, nil)
	if metricsAddrPattern.MatchString(s.log.String()) {
		t.Error("metrics are served")
	}
}
