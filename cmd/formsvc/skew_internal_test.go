//go:build long

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// nextProgram builds the program as a later release would be, whose schema has one additive step more.
func nextProgram(t *testing.T) string {
	t.Helper()
	step := filepath.Join(t.TempDir(), "step.sql")
	const text = "-- Oldest version: 3\n" +
		"ALTER TABLE formsvc_responses ADD COLUMN next TEXT NOT NULL DEFAULT '';\n" +
		"ALTER TABLE formsvc_campaigns ADD COLUMN next TEXT NOT NULL DEFAULT '';\n" +
		"ALTER TABLE formsvc_webhooks ADD COLUMN next TEXT NOT NULL DEFAULT '';\n" +
		"ALTER TABLE formsvc_events ADD COLUMN next BIGINT NOT NULL DEFAULT 0;\n"
	noError(t, os.WriteFile(step, []byte(text), 0o600))
	path := must(filepath.Abs("../../storage/internal/bunstore/migrations/0009_next.sql"))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: step}})
	if err == nil {
		err = os.WriteFile(filepath.Join(buildDir, "overlay.json"), overlay, 0o600)
	}
	noError(t, err)
	return "-overlay=" + filepath.Join(buildDir, "overlay.json")
}

// Nodes of this release and of the next one share a database, also after a node of this one is started again.
func TestNextReleaseBeside(t *testing.T) {
	for name, s := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		t.Run(name, func(t *testing.T) {
			old := s.spawn(t)
			campaign, key := old.campaign(t), old.key
			use := func(n *service, ready string) {
				t.Helper()
				n.key = key
				one := responses(campaign) + "/" + n.submit(t, campaign)
				n.call(t, 200, "PATCH", one, map[string]string{"status": "done"})
				n.call(t, 200, "PUT", "/v1/campaigns/"+campaign, map[string]string{"title": "Changed"})
				n.made(t, "/v1/webhooks", map[string]any{"url": "http://127.0.0.1:1/" + one[len(one)-12:], "events": []string{"response.created"}})
				for _, path := range []string{one, responses(campaign), "/v1/campaigns", "/v1/webhooks", "/v1/events"} {
					n.call(t, 200, "GET", path, nil)
				}
				until(t, "readyz says "+ready, func() bool { // a check counts for a second
					got := n.get(t, "/readyz")
					return got.status == 200 && got.body == ready
				})
			}
			const ready, newer = `{"status":"ready"}`, `{"status":"degraded","components":["schema"]}`
			use(old, ready)
			if name == "sqlite" {
				old.stop() // one process at a time
			}
			next := s.spawnAs(t, nextProgram(t))
			use(next, ready)
			if name == "postgres" {
				use(old, newer)
				old.stop()
			} else {
				next.stop()
			}
			use(s.spawn(t), newer)
		})
	}
}
