//go:build long

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	_ "modernc.org/sqlite" // registers the driver "sqlite" with database/sql
)

// once sends a POST with an Idempotency-Key.
func (c *client) once(ctx context.Context, path, key string, body []byte, edit func(*http.Request)) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	if edit != nil {
		edit(req)
	}
	return c.answered(req)
}

// delivery is a delivery in the output of "webhooks deliveries --json".
type delivery struct {
	UUID, WebhookUUID, EventUUID, Event, State string
	Test                                       bool
	AttemptCount                               int
	SendingSince, NextAttemptAt                string // empty while they are null
	Attempts                                   []struct {
		Number     int
		StartedAt  time.Time
		DurationMs float64
		Status     int // 0 while it is null
		Error      string
		Answer     string
	}
}

// decoded parses records that were printed as JSON.
func decoded[T any](t testing.TB, out string) (list []T) {
	t.Helper()
	for line := range strings.Lines(out) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		list = append(list, v)
	}
	return list
}

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

// A visitor is a browser without scripts.
type visitor struct {
	t      testing.TB
	client *http.Client
	site   string
	body   string
}

func newVisitor(t testing.TB, site string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, client: &http.Client{Jar: jar}, site: site}
}

// get opens a page, follows redirects and returns the status.
func (v *visitor) get(path string) int {
	v.t.Helper()
	return v.answered(v.client.Get(v.site + "/settings" + path))
}

// post sends a form with the token of the last page.
func (v *visitor) post(path string, form url.Values) int {
	v.t.Helper()
	if m := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(v.body); m != nil {
		form.Set("token", m[1])
	}
	return v.answered(v.client.PostForm(v.site+"/settings"+path, form))
}

func (v *visitor) answered(a *http.Response, err error) int {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.body = string(b)
	return a.StatusCode
}

// signIn redeems a link.
func (v *visitor) signIn(link string) int {
	v.t.Helper()
	_, token, ok := strings.Cut(strings.TrimSpace(link), "/settings/sign-in/")
	if !ok {
		v.t.Fatalf("no link: %s", link)
	}
	if status := v.get("/sign-in/" + token); status != 200 {
		return status
	}
	return v.post("/sign-in", url.Values{"link": {token}})
}
