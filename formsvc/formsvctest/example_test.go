package formsvctest_test

import (
	"fmt"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
)

// Test what a host does with the events of its forms.
func Example() {
	TestOrders := func(t *testing.T) {
		svc := formsvctest.New(t, nil)
		campaign := svc.Campaign(formsvc.Module{Name: "seats", Type: formsvc.NumberModule})
		svc.Response(campaign, formsvc.Answer{Name: "seats", Value: []string{"2"}})
		for _, event := range svc.Events() {
			if got := event.Data.Response.Responses["seats"].Value; len(got) != 1 || got[0] != "2" {
				t.Errorf("ordered %v", got)
			}
		}
	}
	fmt.Println(testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "TestOrders", F: TestOrders}}))
	// Output: true
}
