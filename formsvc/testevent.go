package formsvc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/webhook"
)

// testEvent returns a test event for a webhook: of the first type that it listens to, about a
// response that doesn't exist. Its campaign is the webhook's, if it has one.
func (c *core) testEvent(ctx context.Context, hook *Webhook) (Event, error) {
	now := c.now()
	campaign := Campaign{ID: c.NewID(now), CampaignInput: CampaignInput{Title: "Test campaign"}}
	if hook.CampaignID != "" {
		known, err := c.store.Campaign(ctx, CampaignKey{AccountID: hook.AccountID, ID: hook.CampaignID})
		switch {
		case err == nil:
			campaign = known
		case !errors.Is(err, ErrNotFound):
			return Event{}, fmt.Errorf("campaign: %w", err)
		}
	}
	r := Response{
		ID: c.NewID(now), AccountID: hook.AccountID, CampaignID: campaign.ID, Reference: c.newReference(now),
		Status: StatusPending, User: User{Email: "test@example.com", FirstName: "Test", LastName: "Person"},
		Answers: NewAnswers(Answer{Name: "message", Value: []string{"This is a test."}}), Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	extra := eventExtra{test: true, trace: c.traceParent(ctx)}
	t := hook.Events[0]
	switch t {
	case webhook.ResponseUpdated:
		extra.changes = []string{"/responses/message"}
	case webhook.ResponseStatusChanged:
		extra.previousStatus, r.Status = r.Status, "validated"
	case webhook.ResponseCompleted:
		extra.previousStatus, r.Status, r.CompletedAt = r.Status, "completed", now
	case webhook.FileUploaded:
		extra.member, extra.json = "file", testFile(c.NewID(now), &r)
	case webhook.SignatureCompleted:
		extra.member, extra.json = "signature", testSignature(c.NewID(now), &r)
	case webhook.ResponseCreated, webhook.ResponseDeleted:
	}
	return c.newEvent(t, &campaign, &r, now, extra), nil
}

// testDocument is the content of the sample file.
const testDocument = "This is a test.\n"

func testFile(id ID, r *Response) []byte {
	return (&File{
		ID: id, CampaignID: r.CampaignID, ResponseID: r.ID, Name: "test.txt", ContentType: "text/plain", Module: "message",
		Size: int64(len(testDocument)), SHA256: sha256.Sum256([]byte(testDocument)), CreatedAt: r.CreatedAt,
	}).AppendJSON(nil)
}

func testSignature(id ID, r *Response) []byte {
	return (&Signature{
		ID: id, Signer: r.User, Provider: "test", DocumentSHA256: sha256.Sum256([]byte(testDocument)),
		SignedAt: r.CreatedAt, CreatedAt: r.CreatedAt,
	}).AppendJSON(nil)
}
