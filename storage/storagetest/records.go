package storagetest

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A maker builds valid records, in the order of their IDs. next returns the ID and the time of a new one.
type maker struct {
	next func() (formsvc.ID, time.Time)
}

// start returns the time of a world's first record; everything is due a day later.
func start() time.Time   { return time.Date(2026, 2, 3, 4, 5, 6, 789_000, time.UTC) }
func nextDay() time.Time { return start().Add(24 * time.Hour) }

func idAt(t time.Time, n int64) formsvc.ID {
	const node = len("00000000-0000-7000-8000-")
	return formsvc.FloorID(t)[:node] + formsvc.ID(fmt.Sprintf("%012x", n))
}

func keyHash(id formsvc.ID) [sha256.Size]byte { return sha256.Sum256([]byte(id)) }

func (m *maker) nextID() formsvc.ID {
	id, _ := m.next()
	return id
}

func (m *maker) newAccount() formsvc.Account {
	id, at := m.next()
	return formsvc.Account{ID: id, Name: "account " + string(id), CreatedAt: at}
}

func (m *maker) newKey(account formsvc.ID) formsvc.Key {
	id, at := m.next()
	return formsvc.Key{
		ID: id, AccountID: account, Name: "key", Prefix: "formsvc_abc123", Hash: keyHash(id),
		Permissions: []formsvc.Permission{formsvc.CampaignsRead, formsvc.ResponsesWrite}, CreatedAt: at,
	}
}

// newCampaign returns a campaign with all fields set.
func (m *maker) newCampaign(account formsvc.ID) formsvc.Campaign {
	id, at := m.next()
	return formsvc.Campaign{
		ID: id, AccountID: account, Version: 1, CreatedAt: at, UpdatedAt: at, CampaignInput: formsvc.CampaignInput{
			Title: "All members", Description: "first line\nsecond line", Status: formsvc.CampaignOpen, EmailOptional: true,
			OpensAt: time.Unix(0, 1000), ClosesAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
			Modules: []formsvc.Module{
				{Name: "zeta", Label: "Zeta?", Type: formsvc.TextModule, Required: true, MaxLength: 1_000_000},
				{Name: "alpha", Type: formsvc.ChoiceModule, Options: []string{"b", "a", ""}, Multiple: true},
			},
			Metadata: map[string]string{"b": "1", "a": "", "B": "2"},
		},
	}
}

func (m *maker) newResponse(c *formsvc.Campaign) formsvc.Response {
	id, at := m.next()
	return formsvc.Response{
		ID: id, AccountID: c.AccountID, CampaignID: c.ID, Reference: "R-" + string(id[24:]), Status: formsvc.StatusPending,
		User:    formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"},
		Answers: formsvc.NewAnswers(formsvc.Answer{Name: "q", Value: []string{"yes"}}), Version: 1, CreatedAt: at, UpdatedAt: at,
	}
}

func (m *maker) newFile(r *formsvc.Response) formsvc.File {
	id, at := m.next()
	return formsvc.File{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Name: "scan.pdf", ContentType: "application/pdf",
		Module: "q", Size: 5, SHA256: keyHash(id), Blocks: []byte{0, 1, 0xfe, 0xff}, CreatedAt: at,
	}
}

func (m *maker) newComment(r *formsvc.Response) formsvc.Comment {
	id, at := m.next()
	return formsvc.Comment{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Body: "comment", Author: "Grace", CreatedAt: at,
	}
}

func (m *maker) newSignature(r *formsvc.Response) formsvc.Signature {
	id, at := m.next()
	return formsvc.Signature{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Provider: "pen", DocumentSHA256: keyHash(id),
		Signer: formsvc.User{Email: "grace@example.com", FirstName: "Grace", LastName: "Hopper"}, SignedAt: at.Add(-time.Hour), CreatedAt: at,
	}
}

// newWebhook returns a webhook with all fields set, which subscribes to everything.
func (m *maker) newWebhook(account formsvc.ID) formsvc.Webhook {
	id, at := m.next()
	return formsvc.Webhook{
		ID: id, AccountID: account, URL: "https://example.com/" + string(id), Events: webhook.EventTypes(),
		Secret: "secret of " + string(id), Previous: "the secret before", PreviousUntil: nextDay(), Version: 1, CreatedAt: at, UpdatedAt: at,
		Headers: []formsvc.Header{{Name: "X-B", Value: "2"}, {Name: "X-A", Value: "1"}, {Name: "Authorization", Value: "Bearer t"}},
	}
}

// newEvent returns an event; every other one has a trace.
func (m *maker) newEvent(r *formsvc.Response) formsvc.Event {
	id, at := m.next()
	e := formsvc.Event{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Type: webhook.ResponseCreated,
		Payload: []byte(`{"id":"` + string(id) + `"}`), CreatedAt: at,
	}
	if id[len(id)-1]%2 != 0 {
		e.TraceParent = "00-" + strings.ReplaceAll(string(id), "-", "") + "-0000" + string(id[24:]) + "-01"
	}
	return e
}

// newTestEvent returns a test event about a campaign and a response that don't exist.
func (m *maker) newTestEvent(account formsvc.ID) formsvc.Event {
	e := m.newEvent(&formsvc.Response{ID: m.nextID(), AccountID: account, CampaignID: m.nextID()})
	e.Test = true
	return e
}

func (m *maker) newAudit(account formsvc.ID) formsvc.AuditEntry {
	id, at := m.next()
	return formsvc.AuditEntry{
		ID: id, AccountID: account, Actor: "key " + string(id), Action: formsvc.AuditKeyCreated, Target: id,
		Details: map[string]string{"name": "é", "": "empty"}, CreatedAt: at,
	}
}

func (m *maker) newRecord(account formsvc.ID, key string) formsvc.IdempotencyRecord {
	id, at := m.next()
	return formsvc.IdempotencyRecord{
		AccountID: account, Key: key, CreatedAt: at,
		Request: keyHash(id), Result: []byte("{\"of\":\"\x00\xff" + string(id) + "\"}"), ResponseID: id,
	}
}

func (m *maker) newLink(account formsvc.ID) formsvc.Link {
	id, at := m.next()
	return formsvc.Link{ID: id, AccountID: account, Hash: keyHash(id), CreatedAt: at, ExpiresAt: at.Add(time.Minute)}
}

func (m *maker) newSession(account formsvc.ID) formsvc.Session {
	id, at := m.next()
	return formsvc.Session{ID: id, AccountID: account, Hash: keyHash(id), CreatedAt: at, ExpiresAt: at.Add(time.Minute)}
}

// recordOf returns a response of which only the key is known.
func recordOf(k formsvc.ResponseKey) *formsvc.Response {
	return &formsvc.Response{ID: k.ID, AccountID: k.AccountID, CampaignID: k.CampaignID}
}

func webhookKey(h *formsvc.Webhook) formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: h.AccountID, ID: h.ID}
}
