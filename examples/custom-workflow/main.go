// Command custom-workflow gives grant applications statuses and references of their own:
// which status may follow which, which ones are final, and numbers with a check digit.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func main() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, "grants.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(apply(ctx, store), store.Close()); err != nil {
		log.Fatal(err)
	}
}

// newForms returns a service for grants.
func newForms(store formsvc.Store) (*formsvc.Service, error) {
	return formsvc.New(store, &formsvc.Options{
		Workflow: &formsvc.Workflow{
			Statuses: []string{"in_review", "granted", "refused"}, // beside pending, the status of new responses
			Transitions: map[string][]string{
				"pending":   {"in_review"},
				"in_review": {"granted", "refused"},
				"refused":   {"in_review"}, // an appeal
			},
			Final: []string{"granted", "refused"}, // raise response.completed
		},
		NewReference: newReference, // called again when a reference is taken
	})
}

// newReference returns eight random digits and a check digit, such as GR-1234567-84.
func newReference() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	sum, d := 0, fmt.Sprintf("%08d", binary.BigEndian.Uint32(random[:])%100_000_000)
	for i := range d {
		sum += int(d[i]-'0') * (i%2*2 + 1) // as in an EAN
	}
	return fmt.Sprintf("GR-%s-%s%d", d[:7], d[7:], (10-sum%10)%10)
}

// apply takes an application through the workflow.
func apply(ctx context.Context, store formsvc.Store) error {
	forms, err := newForms(store)
	if err != nil {
		return err
	}
	account, err := forms.Accounts.Ensure(ctx, "foundation")
	if err != nil {
		return err
	}
	c, err := forms.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "Summer grant"})
	if err != nil {
		return err
	}
	r, err := forms.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}})
	for _, status := range []string{"granted", "in_review", "granted"} { // the first is refused
		if err != nil && !errors.Is(err, formsvc.ErrTransition) {
			return err
		}
		key := formsvc.ResponseKey{AccountID: account, CampaignID: c.ID, ID: r.ID}
		_, err = forms.Responses.Update(ctx, key, formsvc.ResponsePatch{Status: &status})
		fmt.Println(r.Reference, status, err)
	}
	return err
}
