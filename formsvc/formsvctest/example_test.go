package formsvctest_test

import (
	"flag"
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
	fmt.Println(pass(TestOrders))
	// Output: true
}

// pass runs a test, and prints nothing of it, also with -v.
func pass(test func(*testing.T)) bool {
	verbose := flag.Lookup("test.v").Value.String()
	defer func() { _ = flag.Set("test.v", verbose) }()
	_ = flag.Set("test.v", "false")
	return testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "Test", F: test}})
}
