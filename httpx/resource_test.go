package httpx_test

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"maps"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

const fullCampaign = `{"title":"Survey","description":"All of it","status":"closed",` +
	`"opensAt":"2026-11-01T00:00:00.000Z","closesAt":"2026-12-01T00:00:00.000Z","requireEmail":false,` +
	`"modules":[{"name":"color","label":"Color?","help":"","placeholder":"","type":"choice","required":true,"options":["red","blue","green","yellow"],` +
	`"maxLength":0,"multiple":true,"showIf":null},{"name":"note","label":"","help":"Below","placeholder":"In it","type":"text","required":true,` +
	`"options":[],"maxLength":200,"multiple":false,"showIf":{"module":"color","equals":["green","yellow"]}}],"metadata":{"b":"2","a":"1"},` +
	`"form":{"enabled":true,"description":"About","successMessage":"Thanks","redirectUrl":"https://example.com/","allowedOrigins":["http://a:8080"],` +
	`"texts":{"button":"Go","thanksTitle":"Bye","closed":"Over","full":"Full"},"prefill":["note","email"]}}`

func TestNullMeansAbsentInCampaigns(t *testing.T) {
	const nulls = `{"title":"Survey","description":null,"status":null,"opensAt":null,"closesAt":null,"requireEmail":null,"metadata":null,` +
		`"modules":[{"name":"a","label":null,"help":null,"placeholder":null,"type":null,"required":null,"options":null,"maxLength":null,` +
		`"multiple":null,"showIf":null,"min":null,"max":null,"integer":null,"accept":null,"hidden":null}],"form":{"texts":{"button":null,"closed":null},"prefill":null,"language":null,"enabled":null,"description":null,"successMessage":null,"redirectUrl":null,"allowedOrigins":null}}`
	w := newWorld(t, nil)
	for _, a := range []*answer{
		w.do("POST", "/v1/campaigns", nulls).is(201, ""),
		w.do("PUT", w.campaign(fullCampaign), nulls).is(200, ""),
		w.do("PUT", w.campaign(fullCampaign), `{"title":"x","modules":[{"name":"a"}]}`).is(200, ""), // which replaces the whole campaign
	} {
		a.has(`""`, "description").has(`"open"`, "status").has(`null`, "opensAt").has(`null`, "closesAt").has(`{}`, "metadata").
			has(`true`, "requireEmail").has(`[{"name":"a","label":"","help":"","placeholder":"","type":"text","required":false,"options":[],`+
			`"maxLength":0,"multiple":false,"showIf":null}]`, "modules").
			has(`false`, "form", "enabled").has(`""`, "form", "successMessage").has(`[]`, "form", "allowedOrigins")
	}
	w.do("POST", "/v1/campaigns", `{"title":"x","modules":null}`).is(201, "").has(`[]`, "modules")
}

// A record can be changed and sent back as it was read.
func TestReadModifyWrite(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(strings.Replace(fullCampaign, "closed", "open", 1))
	body := `{"user":{"email":"ada@example.com"},"responses":{"color":{"value":["red"]}}}`
	response := campaign + "/responses/" + w.do("POST", campaign+"/responses", body).is(201, "").text("uuid")
	for path, method := range map[string]string{campaign: "PUT", response: "PATCH"} {
		read := w.do("GET", path, "").is(200, "")
		same := w.do(method, path, read.body, header("If-Match", read.header.Get("Etag"))).is(200, "")
		before, after := read.object(), same.object()
		delete(before, "updatedAt")
		delete(after, "updatedAt")
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s %s:\n%v\n%v", method, path, before, after)
		}
	}
	w.now = w.now.Add(time.Second)
	edited := strings.Replace(w.do("GET", campaign, "").body, "Survey", "Census", 1)
	modules, form, _ := strings.Cut(fullCampaign[strings.Index(fullCampaign, `"modules"`):len(fullCampaign)-2], `,"metadata":{"b":"2","a":"1"},`)
	if !strings.Contains(edited, modules) || !strings.Contains(edited, form) {
		t.Errorf("the campaign is %s, want %s and %s", edited, modules, form)
	}
	w.do("PUT", campaign, edited).is(200, "").has(`"Census"`, "title").has(`1`, "responseCount").
		has(`"2026-11-21T08:30:00.123Z"`, "createdAt").has(`"2026-11-21T08:30:01.123Z"`, "updatedAt")
}

func TestResponsesFollowTheModules(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(strings.Replace(fullCampaign, "closed", "open", 1)) + "/responses"
	w.do("POST", list, `{"user":{"email":"x"},"responses":{"color":{"value":["green","teal"]},"note":{"value":["a","b"]},"more/~":{"value":[]}}}`).
		is(422, "validation_failed").faults("/user/email invalid_email", "/responses/color/value/1 unknown_option",
		"/responses/note/value too_many", "/responses/more~1~0 unknown_module")
	w.do("POST", list, answers(`{}`)).is(422, "validation_failed").faults("/responses/color required")
	w.do("POST", list, answers(`{"color":{"value":["red","blue"]}}`)).is(201, "")
}

// A19: absent, null and empty in a merge patch.
func TestMergePatch(t *testing.T) {
	const start = `{"user":{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"},` +
		`"responses":{"a":{"value":["1"]},"b":{"value":["2"]}}}`
	rows := []struct{ name, patch, user, responses, status string }{
		{"nothing", `{}`, "", "", ""},
		{"read-only members", `{"uuid":"x","reference":1,"createdAt":null,"updatedAt":[],"campaignUuid":{},"completedAt":"x"}`, "", "", ""},
		{"null names", `{"user":{"firstName":null,"lastName":null}}`, `{"email":"ada@example.com","firstName":"","lastName":""}`, "", ""},
		{"remove what isn't there", `{"responses":{"c":null}}`, "", "", ""},
		{"all", `{"status":"completed","user":{"email":"c@example.com"},"responses":{"a":null,"b":{"value":["x"]}}}`,
			`{"email":"c@example.com","firstName":"Ada","lastName":"Lovelace"}`, `{"b":{"value":["x"]}}`, `"completed"`},
	}
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	for _, row := range rows {
		before := w.do("POST", list, start).is(201, "")
		path := list + "/" + before.text("uuid")
		a := w.do("PATCH", path, row.patch)
		a.what = row.name
		a.is(200, "")
		user, _ := json.Marshal(before.at("user"))
		responses, _ := json.Marshal(before.at("responses"))
		a.has(cmp.Or(row.user, string(user)), "user").has(cmp.Or(row.responses, string(responses)), "responses").
			has(cmp.Or(row.status, `"pending"`), "status")
		changed := row.user+row.responses+row.status != ""
		if same := a.header.Get("Etag") == before.header.Get("Etag"); same == changed {
			a.errorf("ETag from %s to %s", before.header.Get("Etag"), a.header.Get("Etag"))
		}
		if got := w.do("GET", path, "").is(200, ""); got.body != a.body {
			a.errorf("answered\n%s\nstored\n%s", a.body, got.body)
		}
	}
}

func TestBadPatches(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	w.refuses(t, "PATCH", w.response(campaign), campaign+"/responses", []bad{
		{"null address", `{"user":{"email":null}}`, 422, "validation_failed", f("/user/email required")},
		{"null user and responses", `{"user":null,"responses":null}`, 422, "validation_failed", f("/user required", "/responses required")},
		{"not a status", `{"status":"Not One "}`, 422, "validation_failed", f("/status invalid_value")},
		{"null status", `{"status":null}`, 400, "invalid_body", f("/status invalid_type")},
		{"NUL", `{"user":{"email":"\u0000"}}`, 400, "invalid_body", f("/user/email nul_not_allowed")},
		{"NUL in a name", `{"responses":{"a\u0000":null}}`, 400, "invalid_body", f("/responses nul_not_allowed")},
		{"many answers", `{"responses":` + manyAnswers(3_000) + `}`, 422, "validation_failed", f("/responses too_many")},
	})
}

func TestWorkflow(t *testing.T) {
	w := newWorld(t, nil)
	w.use(w.store, nil, func(o *formsvc.Options) {
		o.Workflow = &formsvc.Workflow{Statuses: []string{"validated", "refused"}, Transitions: map[string][]string{"pending": {"validated", "refused"}}}
	})
	path := w.response(w.campaign(plainCampaign))
	w.do("PATCH", path, `{"status":"shipped"}`).is(422, "validation_failed").faults("/status unknown_status")
	w.do("PATCH", path, `{"status":"refused"}`).is(200, "")
	w.do("PATCH", path, `{"status":"pending"}`).is(409, "transition_not_allowed").has(`[]`, "allowed")
	w.do("PATCH", w.response(w.campaign(plainCampaign)), `{"status":"pending"}`).is(200, "")
}

func TestIfNoneMatch(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	for path, tag := range map[string]string{w.response(campaign): "1", campaign: "1-1"} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, same := range []string{
				`"` + tag + `"`, `W/"` + tag + `"`, `"x", "` + tag + `"`, `"x",W/"` + tag + `"`, ` , "` + tag + `" ,`, "*", " * ", `"", "` + tag + `"`,
			} {
				w.do(method, path, "", header("If-None-Match", same)).is(304, "")
			}
			w.do(method, path, "", header("If-None-Match", `"x"`, `"`+tag+`"`)).is(304, "")
			for _, other := range []string{`"0"`, `"11"`, tag, `"` + tag, "", `w/"` + tag + `"`, `"x" "` + tag + `"`, `"1-0"`} {
				w.do(method, path, "", header("If-None-Match", other)).is(200, "")
			}
		}
	}
	w.do("GET", "/v1/campaigns", "", header("If-None-Match", "*")).is(200, "")
	w.do("POST", campaign+"/responses", plainResponse, header("If-None-Match", "*")).is(201, "")
}

func TestIfMatch(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	response := w.response(campaign)
	put := func(match ...string) *answer {
		return w.do("PUT", campaign, plainCampaign, header("If-Match", match...))
	}
	patch := func(body string, match ...string) *answer {
		return w.do("PATCH", response, body, header("If-Match", match...))
	}
	put(`"1-1"`).is(200, "")
	put(`"1-1"`).is(412, "precondition_failed")
	put(`"2-0"`).is(200, "") // a new response isn't a change by the owner
	put(`"7-1", "3-1"`).is(200, "")
	put(`"7-1"`, `"4-1"`).is(200, "")
	put(`"7-1", "8-1"`).is(412, "precondition_failed")
	put(`*`).is(200, "")
	for _, none := range []string{`W/"6-1"`, `"6"`, `"06-1"`, `"6-"`, `"6-01"`, `"0-1"`, `"6-x"`, `"x"`, `""`, `"99999999999999999999-1"`, `"-6-1"`} {
		put(none).is(412, "precondition_failed")
	}
	for _, bad := range []string{``, ` , `, `6-1`, `"6-1`, `"6-1" "7-1"`, `"a b"`, `*, "6-1"`, `w/"6-1"`} {
		put(bad).is(400, "invalid_header")
	}
	put(`*`, `"6-1"`).is(400, "invalid_header")
	put(`"6-1"`).is(200, "")

	patch(`{"status":"validated"}`, `"1"`).is(200, "")
	patch(`{"status":"pending"}`, `"1"`).is(412, "precondition_failed")
	patch(`{"status":"pending"}`, `"1", "2"`).is(200, "")
	patch(`{"status":"validated"}`, `"3-1"`).is(412, "precondition_failed")
	patch(`{}`, `"1"`).is(412, "precondition_failed")
	patch(`{"status":"validated"}`, `*`).is(200, "").has(`"validated"`, "status")

	for _, match := range []string{`*`, `"1"`, `"1", "2"`} {
		w.do("PATCH", campaign+"/responses/"+nobody, `{}`, header("If-Match", match)).is(404, "not_found")
		w.do("PUT", "/v1/campaigns/"+nobody, plainCampaign, header("If-Match", match)).is(404, "not_found")
	}
	w.do("PATCH", response, `{}`, header("If-None-Match", `"1"`)).is(400, "invalid_header")
	w.do("PUT", campaign, `{}`, header("If-Match", `"1-1"`)).is(422, "validation_failed")
}

// Responses to a campaign with "requireEmail": false may have no user. Their address is empty wherever it appears.
func TestCampaignWithoutEmail(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(`{"title":"Letter box","requireEmail":false}`)
	list := campaign + "/responses"
	const anonymous = `{"email":"","firstName":"","lastName":""}`
	for _, body := range []string{`{"responses":{}}`, `{"user":{},"responses":{}}`, `{"user":{"email":""},"responses":{}}`} {
		w.do("POST", list, body).is(201, "").has(anonymous, "user")
	}
	w.do("POST", list, `{"user":null,"responses":{}}`).is(400, "invalid_body").faults("/user invalid_type")
	named := list + "/" + w.do("POST", list, plainResponse).is(201, "").text("uuid")
	w.do("PATCH", named, `{"user":{"email":null}}`).is(200, "").has(`""`, "user", "email")
	if csv := w.do("GET", list+".csv", "").is(200, "").body; strings.Contains(csv, "@") || strings.Count(csv, "\n") != 5 {
		t.Errorf("the export is %s", csv)
	}
	if items, _ := w.follow("limit=10", ""); !strings.Contains(items[0], `"user":`+anonymous) {
		t.Errorf("an event of an anonymous response has %s", items[0])
	}
	w.do("PUT", campaign, `{"title":"x","requireEmail":false,"requireName":true}`).is(200, "").has(`true`, "requireName")
	w.do("POST", list, `{"responses":{}}`).is(422, "validation_failed").faults("/user/firstName required", "/user/lastName required")
	w.do("PUT", campaign, `{"title":"x","requireName":true,"form":{"hideName":true}}`).is(422, "validation_failed").faults("/form/hideName invalid_value")
	w.do("PUT", campaign, `{"title":"x","form":{"hideName":true}}`).is(200, "").has(`false`, "requireName").has(`true`, "form", "hideName")
	w.do("PUT", campaign, plainCampaign).is(200, "").has(`true`, "requireEmail")
	w.do("POST", list, `{"responses":{}}`).is(422, "validation_failed").faults("/user required")
	w.do("PATCH", named, `{"user":{"email":null}}`).is(422, "validation_failed").faults("/user/email required")
	w.do("PATCH", named, `{"status":"validated"}`).is(200, "").has(`""`, "user", "email")
}

// A deleted response is gone with its files, once, and only in the version that the client has seen. Then its campaign can go.
func TestDeleteResponse(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	path := w.response(campaign)
	file := "/v1/files/" + w.do("POST", path+"/files", "{}").is(201, "").text("uuid")
	seen := w.do("GET", path, "").header.Get("Etag")
	w.do("PATCH", path, `{"status":"validated"}`).is(200, "")
	w.do("DELETE", path, "", header("If-Match", seen)).is(412, "precondition_failed")
	w.do("DELETE", campaign, "").is(409, "campaign_not_empty")
	w.do("GET", campaign, "").is(200, "").has(`1`, "responseCount")
	latest := w.do("GET", path, "").is(200, "").header.Get("Etag")
	w.do("DELETE", path, "", header("If-Match", latest)).is(204, "")
	w.do("DELETE", path, "", header("If-Match", latest)).is(404, "not_found")
	w.do("GET", path, "").is(404, "not_found")
	w.do("GET", file, "").is(404, "not_found")
	seen = w.do("GET", campaign, "").is(200, "").has(`0`, "responseCount").header.Get("Etag")
	w.do("PUT", campaign, plainCampaign).is(200, "")
	w.do("DELETE", campaign, "", header("If-Match", seen)).is(412, "precondition_failed")
	w.do("DELETE", campaign, "").is(204, "")
	w.do("DELETE", campaign, "").is(404, "not_found")
	w.do("POST", campaign+"/responses", plainResponse).is(404, "not_found")
}

// A key that may change responses but not read them gets back what tells the response apart, its version, and what the
// key sent. Neither a reply nor an error names what is stored.
func TestPatchWithoutReadShowsOnlyWhatWasSent(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(`{"title":"x"}`)
	created := w.do("POST", campaign+"/responses", `{"user":{"email":"ada@example.com","firstName":"Ada"},`+
		`"responses":{"secret":{"value":["stored"]},"other":{"value":["stored"]}}}`).is(201, "")
	response := campaign + "/responses/" + created.text("uuid")
	writer := as(w.key(w.mine, formsvc.ResponsesWrite))
	fields := func(a *answer, want ...string) {
		t.Helper()
		got := slices.Sorted(maps.Keys(a.object()))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			a.errorf("the reply has %v, want %v", got, want)
		}
	}
	always := []string{"uuid", "reference", "status", "updatedAt"}

	a := w.do("PATCH", response, `{"status":"validated"}`, writer).is(200, "")
	fields(a, always...)
	if a.text("status") != "validated" || a.text("reference") != created.text("reference") || a.text("uuid") != created.text("uuid") {
		a.errorf("another response than %s", created.body)
	}
	a = w.do("PATCH", response, `{"user":{"lastName":"King","firstName":null},"responses":{"a/b":{"value":["new"]},"other":null}}`, writer).is(200, "")
	fields(a, append(always, "user", "responses")...)
	a.has(`{"firstName":"","lastName":"King"}`, "user").has(`{"a/b":{"value":["new"]}}`, "responses")

	// The campaign's modules change: the stored answer breaks the rules, and no error names it.
	w.do("PUT", campaign, `{"title":"x","modules":[{"name":"a/b"},{"name":"needed","required":true}]}`).is(200, "")
	a = w.do("PATCH", response, `{"responses":{"a/b":{"value":["x","y"]}}}`, writer).is(422, "validation_failed")
	if strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), "needed") {
		a.errorf("the error names what is stored: %s", a.body)
	}
	if !strings.Contains(string(a.body), `"/responses/a~1b`) || !strings.Contains(string(a.body), `"stored_answers"`) {
		a.errorf("the error doesn't name what was sent, or hides that more is wrong: %s", a.body)
	}
	a = w.do("PATCH", response, `{"responses":{"a/b":{"value":["x","y"]}}}`).is(422, "validation_failed")
	if !strings.Contains(string(a.body), "/responses/secret") {
		a.errorf("a key that reads doesn't learn what is wrong: %s", a.body)
	}
}
