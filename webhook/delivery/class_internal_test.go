package delivery

import (
	"testing"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

func TestResultsOfClasses(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]schedule.Result{
		"": schedule.Success, ClassStatus: schedule.Rejection, ClassRedirect: schedule.Rejection, ClassTimeout: schedule.Timeout,
		ClassDNS: schedule.Failure, ClassConnect: schedule.Failure, ClassTLS: schedule.Failure, ClassRefused: schedule.Failure,
		ClassReset: schedule.Failure, ClassTransport: schedule.Failure, ClassCanceled: schedule.Unsent,
		ClassURL: schedule.Unsent, ClassSecret: schedule.Unsent, ClassPayload: schedule.Unsent,
	} {
		if got := resultOf(class); got != want {
			t.Errorf("%q: %v, want %v", class, got, want)
		}
	}
}
