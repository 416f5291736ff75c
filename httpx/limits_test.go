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
