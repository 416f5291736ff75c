package formsvc

import (
	"context"
	"strings"
	"time"
)

// An AuditEntry says who did what, and when. It never changes and stays as long as its
// account, so it contains no personal data and no secrets.
type AuditEntry struct {
	ID        ID
	AccountID ID
	Actor     string // who: see [Service.As]; "" if unknown
	Action    AuditAction
	Target    ID                // the key, webhook, campaign …; "" for none
	Details   map[string]string // such as a key's name
	CreatedAt time.Time
}

// AuditAction says what was done.
type AuditAction string

// The audited actions.
const (
	AuditAccountCreated     AuditAction = "account.created"
	AuditKeyCreated         AuditAction = "key.created"
	AuditKeyRevoked         AuditAction = "key.revoked"
	AuditWebhookCreated     AuditAction = "webhook.created"
	AuditWebhookUpdated     AuditAction = "webhook.updated"
	AuditWebhookRotated     AuditAction = "webhook.secret_rotated"
	AuditWebhookDeleted     AuditAction = "webhook.deleted"
	AuditWebhookTested      AuditAction = "webhook.tested"
	AuditWebhookRedelivered AuditAction = "webhook.redelivered"
	AuditCampaignDeleted    AuditAction = "campaign.deleted"
	AuditResponseDeleted    AuditAction = "response.deleted"
	AuditErasureBegun       AuditAction = "erasure.begun"
	AuditErasureDone        AuditAction = "erasure.done"
	AuditExportBegun        AuditAction = "export.begun"
	AuditExportDone         AuditAction = "export.done"
	AuditRetentionBegun     AuditAction = "retention.begun"
	AuditRetentionDone      AuditAction = "retention.done"
	AuditLinkCreated        AuditAction = "link.created"
	AuditSignedIn           AuditAction = "session.created"
	AuditSignedOut          AuditAction = "session.ended"
)

// AuditQuery chooses entries of one account.
type AuditQuery struct {
	AccountID ID
	Action    AuditAction // "" means every action
	Target    ID          // "" means every target
	Since     time.Time   // created then or later; zero means from the beginning
	Page      PageQuery
}

// As returns the same Service with actor as the name in its audit entries. For requests that is
// "key " and the identifier of the API key; a host application may use any name of the signed-in
// user. Invalid text and what exceeds 200 bytes is left out.
func (s *Service) As(actor string) *Service {
	actor = strings.ToValidUTF8(strings.ReplaceAll(actor[:min(len(actor), maxActor)], "\x00", ""), "")
	return s.view(func(c *core) { c.actor = actor })
}

// maxActor is the largest length of an actor in bytes.
const maxActor = 200

// audit returns an entry that commits with a change.
func (c *core) audit(account ID, action AuditAction, target ID, details map[string]string) *AuditEntry {
	now := c.now()
	return &AuditEntry{
		ID: c.NewID(now), AccountID: account, Actor: c.actor, Action: action, Target: target, Details: details, CreatedAt: now,
	}
}

// Audits shows the audit trail. It is safe for concurrent use.
type Audits struct{ s *core }

// List returns a page of an account's audit trail.
func (a Audits) List(ctx context.Context, q AuditQuery) (page Page[AuditEntry], err error) {
	defer wrap(&err, "audit")
	if q.Page, err = q.Page.checked(); err != nil {
		return page, err
	}
	return a.s.store.Audit(ctx, q)
}
