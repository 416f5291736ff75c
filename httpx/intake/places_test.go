package intake_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
)

// The form says when few places are left. A full one can't be chosen, and a visitor who is too late loses nothing.
func TestPlacesOnTheForm(t *testing.T) {
	size := formsvc.Module{
		Name: "size", Type: formsvc.ChoiceModule, Options: []string{"s", "m", "l"}, Labels: map[string]string{"s": "Small"}, Places: map[string]int{"s": 1, "m": 100},
	}
	w := newWorld(t, formsvc.CampaignInput{Form: formsvc.Form{MaxResponses: 2, OncePerEmail: true, Texts: formsvc.FormTexts{Full: "Ask Ada"}}, Modules: []formsvc.Module{size, {Name: "why"}}}, nil)
	a := w.get("").is(200).has("Places left: 2", `Small</span> <small>– Places left: 1`)
	if strings.Contains(a.body, "Places left: 100") || strings.Contains(a.body, " disabled") {
		t.Error("many places are said, or a free one can't be chosen")
	}
	w.post("email", "a@example.com", "size", "s").is(303)
	w.get("").is(200).has("Places left: 1", `Small</span> <small>– full`, `value="s" id="q4" disabled data-full>`)
	late := []string{"email", "b@example.com", "size", "s", "why", "I typed a lot"}
	w.post(late...).is(409).has("No place is left for this answer", `href="#q4"`, `value="s" id="q4" checked>`, "I typed a lot", "b@example.com", "– full")
	w.post("email", "nobody", "size", "s").is(422).has("– full", "Enter an email address")
	w.post("email", "A@Example.com", "why", "x").is(409).has("This address has already been used", `href="#q1"`, `value="x"`)
	reply := w.json(`{"user":{"email":"b@example.com"},"responses":{"size":{"value":["s"]}}}`).is(409)
	reply.has(`"code":"choice_full"`, `"pointer":"/responses/size/value/0"`)
	w.json(`{"user":{"email":"a@example.com"},"responses":{}}`).is(409).has(`"code":"already_answered"`, `"pointer":"/user/email"`)
	w.post("email", "b@example.com").is(303)
	w.get("").is(409).has("All places are taken", "Ask Ada")
	w.post("email", "c@example.com", "why", "I typed a lot").is(409).has("so your answers weren&#39;t saved", "Ask Ada", "I typed a lot", "c@example.com")
	w.post("email", "nobody", "why", "x").is(422).has("so your answers weren&#39;t saved", "Enter an email address")
	w.json(`{"user":{"email":"c@example.com"},"responses":{}}`).is(409).has(`"code":"campaign_full"`)
	w.must(w.svc.Responses.Delete(t.Context(), w.responses()[0].Key(), nil))
	w.get("").is(200).has("Places left: 1")
	equal(t, len(w.responses()), 1, "%d responses")
}

// A default that is full isn't chosen at first, and a select says what is full, too.
func TestFullDefault(t *testing.T) {
	var options []string
	for i := range 9 {
		options = append(options, fmt.Sprint("at ", i))
	}
	hour := formsvc.Module{Name: "hour", Type: formsvc.ChoiceModule, Options: options, Default: options[:1], Places: map[string]int{"at 0": 1}}
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{hour}}, nil)
	w.get("").is(200).has(`value="at 0" selected>at 0 – Places left: 1`)
	w.post("hour", "at 0").is(303)
	w.get("").is(200).has(`value="at 0" disabled>at 0 – full`)
}

// A form says when it opens in its owner's time zone.
func TestOpensInItsZone(t *testing.T) {
	for zone, want := range map[string]string{"": "1 July 2027 at 22:30 UTC", "Europe/Berlin": "2 July 2027 at 00:30 CEST", "Asia/Kathmandu": "at 04:15 UTC&#43;0545", "America/Sao_Paulo": "at 19:30 UTC-03"} {
		in := formsvc.CampaignInput{TimeZone: zone, OpensAt: time.Date(2027, 7, 1, 22, 30, 0, 0, time.UTC)}
		w := newWorld(t, in, &intake.Options{})
		w.do(http.MethodGet, w.url, "", nil, "Accept-Language", "en").is(409).has("It opens on", want)
	}
}
