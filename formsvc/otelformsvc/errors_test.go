package otelformsvc_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"go.opentelemetry.io/otel/codes"

	"github.com/formsvc/toolkit/formsvc"
)

// Expected errors have their own class; faults and unclassified errors set the status Error. No
// span has an error's text.
func TestClassesOfErrors(t *testing.T) {
	source, err := os.ReadFile("../errors.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := len(regexp.MustCompile(`(?m)^\tErr\w+ +(error )?= `).FindAll(source, -1))
	faults := map[error]bool{
		formsvc.ErrCorrupt: true, formsvc.ErrNoSpace: true, formsvc.ErrUnavailable: true, formsvc.ErrUnknownOutcome: true,
		formsvc.ErrStoreClosed: true, formsvc.ErrOtherBlobs: true, formsvc.ErrMoved: true, errors.New("canary"): true,
	}
	classes := make(map[string]bool)
	for _, err := range []error{
		formsvc.ErrNotFound, formsvc.ErrConflict, formsvc.ErrStale, formsvc.ErrInvalid, formsvc.ErrCampaignClosed,
		formsvc.ErrTransition, formsvc.ErrUnauthenticated, formsvc.ErrLimit, formsvc.ErrQuota, formsvc.ErrRepeated,
		formsvc.ErrInFlight, formsvc.ErrMismatch, formsvc.ErrTooLarge, formsvc.ErrDigest, formsvc.ErrManyOrphans,
	} {
		faults[err] = false
	}
	if len(faults) != kinds+1 {
		t.Fatalf("formsvc has %d kinds of errors, this test knows %d", kinds, len(faults)-1)
	}
	for err, fault := range faults {
		tracing, spans := record(t)
		_, end := tracing.Start(t.Context(), "operation")
		end(fmt.Errorf("canary: %w", err))
		s := named(t, spans.Ended(), "operation")
		class := attributes(s)["error.type"]
		if classes[class] || class == "" {
			t.Errorf("%v: error.type %q, which others have, too", err, class)
		}
		classes[class] = true
		if got := s.Status(); (got.Code == codes.Error) != fault || got.Description != "" || len(s.Events()) != 0 {
			t.Errorf("%v: status %+v and events %v", err, got, s.Events())
		}
	}
}
