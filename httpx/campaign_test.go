package httpx_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// What a host defines has its members in the API, and comes back as it was sent.
func TestHostDefines(t *testing.T) {
	w := newWorld(t, nil)
	w.use(w.store, nil, func(o *formsvc.Options) {
		o.Formats = map[string]formsvc.Format{"iban": {}}
		o.Workflows = map[string]*formsvc.Workflow{"grants": {Statuses: []string{"granted"}}}
	})
	c := w.campaign(`{"title":"t","workflow":"grants","modules":[{"name":"a","format":"iban","default":["DE1"]}]}`)
	a := w.do("GET", c, "").has(`"grants"`, "workflow")
	if !strings.Contains(a.body, `"format":"iban","default":["DE1"]`) {
		t.Error(a.body)
	}
	if again := w.do("PUT", c, a.body).is(200, "").has(`"grants"`, "workflow"); !reflect.DeepEqual(again.at("modules"), a.at("modules")) {
		t.Error(again.body)
	}
	path := c + "/responses"
	one := path + "/" + w.do("POST", path, `{"user":{"email":"ada@example.com"},"responses":{}}`).is(201, "").text("uuid")
	w.do("PATCH", one, `{"status":"validated"}`).is(422, "validation_failed").faults("/status unknown_status")
	w.do("PATCH", one, `{"status":"granted"}`).is(200, "")
	w.do("PUT", c, `{"title":"t","workflow":"loans","modules":[{"name":"a","format":"bic"}]}`).is(422, "validation_failed").
		faults("/modules/0/format unknown_value", "/workflow unknown_value")
}
