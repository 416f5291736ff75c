package formsvc

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// An AuditEntry says who did what, and when. It never changes and stays as long as its
// account, so it contains no personal data and no secrets.
type AuditEntry struct {
	ID        ID
	AccountID ID
	Actor     string // see [Service.As]: "key " or "person " and an identifier, or the name; "" if unknown
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
	AuditMemberInvited      AuditAction = "member.invited"
	AuditMemberUpdated      AuditAction = "member.updated"
	AuditMemberRemoved      AuditAction = "member.removed"
	AuditPasswordSet        AuditAction = "member.password_set"
)

// AuditQuery chooses entries of one account.
type AuditQuery struct {
	AccountID ID
	Action    AuditAction // "" means every action
	Target    ID          // "" means every target
	Since     time.Time   // created then or later; zero means from the beginning
	Page      PageQuery
}

// auditActor returns the actor as audit entries have it.
func (c *core) auditActor() string {
	if c.actor.Type == webhook.ActorKey || c.byMember {
		return string(c.actor.Type) + " " + c.actor.ID
	}
	return c.actor.Name
}

// audit returns an entry that commits with a change.
func (c *core) audit(account ID, action AuditAction, target ID, details map[string]string) *AuditEntry {
	now := c.now()
	return &AuditEntry{
		ID: c.NewID(now), AccountID: account, Actor: c.auditActor(), Action: action, Target: target, Details: details, CreatedAt: now,
	}
}

// Audits shows the audit trail. It is safe for concurrent use.
type Audits struct{ s *core }

// List returns a page of an account's audit trail.
func (a Audits) List(ctx context.Context, q AuditQuery) (Page[AuditEntry], error) {
	return listed("audit", &q.Page, func() (Page[AuditEntry], error) { return a.s.store.Audit(ctx, q) })
}
