package httpx_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// A status is free text: the list, the filter and the exports have it as it was sent.
func TestStatusesRoundTrip(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	statuses := []string{"In review", "À vérifier / 待处理", "=1+1", "a,b", "in review", `"x"`, strings.Repeat("待", 64)}
	for _, status := range statuses {
		body, _ := json.Marshal(map[string]string{"status": status})
		changed := w.do("PATCH", w.response(campaign), string(body)).is(200, "")
		if got := changed.text("status"); got != status {
			t.Errorf("%q became %q", status, got)
		}
	}
	for _, status := range statuses {
		a := w.do("GET", campaign+"/responses?status="+url.QueryEscape(status), "").is(200, "").has("1", "total")
		if text, _ := json.Marshal(status); !strings.Contains(a.body, `"status":`+string(text)) {
			a.errorf("%q finds %s", status, a.body)
		}
	}
	w.do("GET", campaign+"/responses?status=In+review&status=a%2Cb", "").is(200, "").has("2", "total")
	table := w.do("GET", campaign+"/responses.csv?status=In%20review&status=%3D1%2B1&status=a%2Cb", "").is(200, "").body
	if strings.Count(table, "\r\n") != 4 || !strings.Contains(table, ",In review,") || !strings.Contains(table, `,'=1+1,`) || !strings.Contains(table, `,"a,b",`) {
		t.Errorf("as a table: %s", table)
	}
}
