package httpx_test

import "testing"

// Limits are stored and returned as they were sent, and a response that finds no place can be sent again with its key.
func TestLimits(t *testing.T) {
	w := newWorld(t, nil)
	body := `{"title":"Party","timeZone":"Europe/Berlin","form":{"maxResponses":1,"oncePerEmail":true},"modules":[` +
		`{"name":"size","type":"choice","options":["s","m"],"places":{"s":1,"m":2}}]}`
	created := w.do("POST", "/v1/campaigns", body).is(201, "")
	campaign := "/v1/campaigns/" + created.text("uuid")
	for _, a := range []*answer{created, w.do("PUT", campaign, body).is(200, "")} {
		a.has(`"Europe/Berlin"`, "timeZone").has(`1`, "form", "maxResponses").has(`true`, "form", "oncePerEmail")
	}
	list := campaign + "/responses"
	first := w.do("POST", list, `{"user":{"email":"a@example.com"},"responses":{"size":{"value":["s"]}}}`).is(201, "").text("uuid")
	w.do("POST", list, `{"user":{"email":"nobody"},"responses":{}}`, once("k")).is(422, "validation_failed")
	second := `{"user":{"email":"b@example.com"},"responses":{"size":{"value":["m"]}}}`
	w.do("POST", list, second, once("full")).is(409, "campaign_full")
	w.do("DELETE", list+"/"+first, "").is(204, "")
	w.do("POST", list, second, once("full")).is(201, "")
	w.do("POST", list, second, once("full")).is(201, "")
	w.do("PUT", campaign, `{"title":"x","modules":[{"name":"size","type":"choice","options":["s"],"places":{"s":null}}]}`).is(422, "validation_failed").faults("/modules/0/places/s out_of_range")
	w.do("PUT", campaign, `{"title":"x","timeZone":"Nowhere"}`).is(422, "validation_failed").faults("/timeZone unknown_time_zone")
}

// The looks of a form are stored and returned, with a logo in base64.
func TestFormTheme(t *testing.T) {
	w := newWorld(t, nil)
	const logo = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
	theme := `{"accent":"#1557A8","scheme":"dark","width":"wide","logo":"` + logo + `","logoAlt":"Rose","cover":"` + logo + `"}`
	created := w.do("POST", "/v1/campaigns", `{"title":"x","form":{"theme":`+theme+`}}`).is(201, "")
	again := w.do("PUT", "/v1/campaigns/"+created.text("uuid"), created.body).is(200, "")
	for _, a := range []*answer{created, again} {
		a.has(`"#1557a8"`, "form", "theme", "accent").has(`"dark"`, "form", "theme", "scheme").has(`"wide"`, "form", "theme", "width").has(`"Rose"`, "form", "theme", "logoAlt")
	}
	equal(t, again.text("form", "theme", "logo"), created.text("form", "theme", "logo"), "the logo becomes %q, was %q")
	equal(t, again.text("form", "theme", "cover"), created.text("form", "theme", "cover"), "the cover becomes %q, was %q")
	w.do("POST", "/v1/campaigns", `{"title":"x","form":{"theme":{"accent":"red","scheme":"x","width":"x","logo":"?","cover":"?"}}}`).is(422, "validation_failed").faults(
		"/form/theme/accent invalid_value", "/form/theme/scheme invalid_value", "/form/theme/width invalid_value", "/form/theme/logo invalid_image", "/form/theme/cover invalid_image")
	w.do("POST", "/v1/campaigns", `{"title":"x","form":{"theme":{"coverAlt":"x"}}}`).is(400, "invalid_body")
}
