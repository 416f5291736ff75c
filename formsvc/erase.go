package formsvc

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// An EraseQuery names the records that a store removes in one atomic write. Records that don't
// exist in the account are skipped.
type EraseQuery struct {
	AccountID ID
	// Responses are removed with their files, comments, signatures and events, and from their
	// campaigns' ResponseCount. Their references become free. Replies kept for idempotent retries
	// of calls about them lose their body, and get status 410.
	Responses []ResponseKey
	// Raise are events of the account that are written if their response was among those removed.
	Raise []Event
	// Signatures are removed; the events about them stay.
	Signatures []ID
	// Events are removed with their deliveries, attempts and notices. Attempts under way continue, and leave no record.
	Events []ID
	// Members are removed, and so is the name of Authors from the account's comments.
	Members []ID
	Authors []string
	// RepliesOf are responses that stay. The replies to calls about them lose their body.
	RepliesOf []ID
	// Refusals is whether the account's [IdempotencyRecord]s of refusals, which are about no
	// response, are removed. A retry is then refused again.
	Refusals bool
}

// Erased says what an atomic write removed.
type Erased struct {
	Responses  int
	Signatures int // of other responses
	Events     int
	FileIDs    []ID // of the responses' files, whose blobs the caller removes
	Account    bool // whether DeleteAccount removed the account itself
}

// A Receipt says what was removed or exported, and when. It contains no personal data.
type Receipt struct {
	ID         ID // also the target of the entries in the audit trail, or in their details
	AccountID  ID
	CampaignID ID        // of responses removed by age; "" for a person's data
	Before     time.Time // responses created earlier were removed; zero for a person's data
	Responses  int
	Files      int
	Signatures int // that were removed from other responses, or all that were exported
	Events     int
	// BlobsLeft counts files whose bytes could not be removed ([Files.Sweep] removes them) or exported.
	BlobsLeft  int
	StartedAt  time.Time
	FinishedAt time.Time // zero if it did not finish
}

// IsZero reports whether nothing was removed or exported.
func (r *Receipt) IsZero() bool { return r.Responses+r.Files+r.Signatures+r.Events == 0 }

// counts returns the totals for an entry of the audit trail.
func (r *Receipt) counts() map[string]string {
	return map[string]string{
		"responses": strconv.Itoa(r.Responses), "files": strconv.Itoa(r.Files),
		"signatures": strconv.Itoa(r.Signatures), "events": strconv.Itoa(r.Events),
	}
}

// ErasePerson removes an account's data about the person with that e-mail address ([FoldEmail]):
//   - the responses of that user, with their files, comments, signatures and events, and the
//     deliveries, attempts and notices of these events;
//   - the person's signatures of other responses;
//   - stored events that name the person as user or signer, although the response is another person's or was deleted;
//   - if the person was a member who was removed ([Members.Remove]): the record, what it did in stored events, and its name
//     at comments;
//   - the replies kept for idempotent retries of calls about all of these, and the account's refusals
//     kept so, which may name the person.
//
// Each response raises "response.deleted", with identifiers alone. What others wrote about the person in answers and comments of other responses stays, and so does what has left the
// service: requests to webhooks, and backups. Records submitted during the call may stay; run it again.
//
// ErasePerson removes in small atomic writes with pauses, so that no request waits for it. The audit
// trail gets an entry before and one after, without personal data. If it fails midway, it returns what
// it had removed by then; call it again for the rest. It fails with a *[ValidationError] for an
// invalid address, and with [ErrNotFound] for an unknown account.
func (a Accounts) ErasePerson(ctx context.Context, account ID, email string) (_ Receipt, err error) {
	defer wrap(&err, "erase")
	w, err := a.s.person(ctx, account, email)
	if err != nil {
		return Receipt{}, err
	}
	err = w.audited(ctx, AuditErasureBegun, AuditErasureDone, w.receipt.ID, nil, func() error {
		last, err := w.formerMembers(ctx)
		if err == nil {
			err = w.eraseResponses(ctx, w.responses(ctx))
		}
		if err == nil {
			err = eraseEach(ctx, w, w.signatures(ctx), func(q *EraseQuery, sig *Signature) {
				q.Signatures, q.RepliesOf = append(q.Signatures, sig.ID), append(q.RepliesOf, sig.ResponseID)
			})
		}
		if err == nil { // the events below are those that are left
			err = eraseEach(ctx, w, w.events(ctx), func(q *EraseQuery, event *Event) {
				q.Events, q.RepliesOf = append(q.Events, event.ID), append(q.RepliesOf, event.ResponseID)
			})
		}
		if err == nil { // a call after one that failed finds the members again
			err = w.erase(ctx, last)
		}
		return err
	})
	return w.receipt, err
}

// EraseOlder removes the responses of a campaign that were created longer than age ago, oldest first.
// With each it removes the files, comments, signatures and events, and the events' deliveries,
// attempts and notices. Those that are still waiting are no longer sent. Each response raises "response.deleted".
//
// It proceeds as [Accounts.ErasePerson] does. It fails with a *[ValidationError] for an age that is
// not positive, and with [ErrNotFound] for an unknown campaign.
func (c Campaigns) EraseOlder(ctx context.Context, key CampaignKey, age time.Duration) (_ Receipt, err error) {
	defer wrap(&err, "retention")
	if age <= 0 {
		return Receipt{}, invalid("/age", "invalid_value", "must be longer than 0")
	}
	if _, err := c.s.store.Campaign(ctx, key); err != nil {
		return Receipt{}, err
	}
	w := c.s.erasure(key.AccountID)
	w.receipt.CampaignID, w.receipt.Before = key.ID, w.receipt.StartedAt.Add(-age)
	details := map[string]string{"receipt": string(w.receipt.ID), "before": w.receipt.Before.Format(time.RFC3339)}
	err = w.audited(ctx, AuditRetentionBegun, AuditRetentionDone, key.ID, details, func() error {
		return w.eraseResponses(ctx, w.responsesOf(ctx, key, ResponseFilter{CreatedBefore: w.receipt.Before}))
	})
	return w.receipt, err
}

// Sizes of the atomic writes of an erasure, small enough that no request waits for one.
const (
	eraseUnit  = 100     // responses, signatures or events in an atomic write
	eraseBytes = 4 << 20 // of the responses that are in memory at once
	erasePause = 20 * time.Millisecond
)

// An erasure finds records of an account, removes them, and writes the receipt.
type erasure struct {
	*core

	receipt Receipt
	email   string      // of the person
	folded  string      // the address up to its domain as in a JSON string, without the quotes, see fold
	members []ID        // the person as a former member
	own     map[ID]bool // responses whose events are the person's although they name nobody
}

func (c *core) erasure(account ID) *erasure {
	now := c.now()
	return &erasure{core: c, receipt: Receipt{ID: c.NewID(now), AccountID: account, StartedAt: now}, own: make(map[ID]bool)}
}

// person returns the erasure or export of a person's data.
func (c *core) person(ctx context.Context, account ID, email string) (*erasure, error) {
	if !bareEmail(email) { // also one that was stored before a rule became stricter
		return nil, invalid("/email", "invalid_email", "must be an e-mail address")
	}
	if _, err := c.store.Account(ctx, account); err != nil {
		return nil, err
	}
	w, text := c.erasure(account), appendString(nil, fold(email[:strings.LastIndexByte(email, '@')+1]))
	w.email, w.folded = email, string(text[1:len(text)-1])
	return w, nil
}

// audited runs an erasure between two entries in the audit trail, which are left out if they have no action.
func (w *erasure) audited(
	ctx context.Context, begun, done AuditAction, target ID, details map[string]string, erase func() error,
) error {
	err := w.note(ctx, begun, target, details)
	if err == nil { // the remains of deleted webhooks can't be found by their owner later
		_, err = w.prune(ctx, w.store.PruneEvents, time.Time{})
	}
	if err == nil {
		err = erase()
	}
	if err != nil {
		return err
	}
	if !w.bound && (!w.receipt.IsZero() || len(w.members) > 0) {
		if err := w.store.Scrub(ctx); err != nil {
			w.Logger.LogAttrs(ctx, slog.LevelWarn, "what was erased is not overwritten in the log of the database yet",
				slog.Any("error", err))
		}
	}
	counts := w.receipt.counts()
	maps.Copy(counts, details)
	if err := w.note(ctx, done, target, counts); err != nil {
		return err
	}
	w.receipt.FinishedAt = w.now()
	return nil
}

// note adds an entry to the audit trail.
func (w *erasure) note(ctx context.Context, action AuditAction, target ID, details map[string]string) error {
	if action == "" {
		return nil
	}
	return w.store.Commit(ctx, Change{Audit: w.audit(w.receipt.AccountID, action, target, details)})
}

func (w *erasure) eraseResponses(ctx context.Context, list iter.Seq2[*Response, error]) error {
	return eraseEach(ctx, w, list, func(q *EraseQuery, r *Response) {
		q.Responses = append(q.Responses, r.Key())
		if r.Held == NotHeld {
			q.Raise = append(q.Raise, w.newEvent(ctx, webhook.ResponseDeleted, &Campaign{ID: r.CampaignID}, r, w.now(), eventExtra{}))
		}
	})
}

// formerMembers returns the query that removes the person as a former member, and refusals.
func (w *erasure) formerMembers(ctx context.Context) (EraseQuery, error) {
	q := EraseQuery{Refusals: true}
	list, err := w.store.Members(ctx, MemberQuery{AccountID: w.receipt.AccountID, Email: w.email, Removed: true})
	for _, m := range list {
		q.Members, q.Authors = append(q.Members, m.ID), append(q.Authors, m.Name)
	}
	w.members = q.Members
	return q, err
}

// eraseEach removes what add names for each record, in atomic writes of eraseUnit records.
func eraseEach[T any](ctx context.Context, w *erasure, list iter.Seq2[*T, error], add func(*EraseQuery, *T)) error {
	var q EraseQuery
	n := 0
	for record, err := range list {
		if err != nil {
			return err
		}
		add(&q, record)
		if n++; n == eraseUnit {
			if err := w.erase(ctx, q); err != nil {
				return err
			}
			q, n = EraseQuery{}, 0
		}
	}
	if n == 0 {
		return ctx.Err()
	}
	return w.erase(ctx, q)
}

// erase makes one atomic write, and pauses.
func (w *erasure) erase(ctx context.Context, q EraseQuery) error {
	q.AccountID = w.receipt.AccountID
	out, err := w.store.Erase(ctx, q)
	if err != nil {
		return err
	}
	if len(q.Raise) > 0 {
		w.raised(q.AccountID)
	}
	w.receipt.Responses += out.Responses
	w.receipt.Files += len(out.FileIDs)
	w.receipt.Signatures += out.Signatures
	w.receipt.Events += out.Events
	w.receipt.BlobsLeft += w.removeBlobs(ctx, out.FileIDs)
	if w.bound || pause(ctx, erasePause) {
		return nil
	}
	return ctx.Err()
}

// removeBlobs removes the blobs of deleted files, even after ctx has ended, within [discardTimeout]. It returns how many are left.
func (c *core) removeBlobs(ctx context.Context, files []ID) (left int) {
	if c.bound || c.Blobs == nil { // the transaction may be rolled back
		return len(files)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	for i, id := range files {
		if ctx.Err() != nil {
			return left + len(files) - i
		}
		if !c.removeBlob(ctx, id) {
			left++
		}
	}
	return left
}

// erasePages is the query for pages of records that are erased or exported.
func erasePages() PageQuery {
	return PageQuery{Limit: eraseUnit, Ascending: true, MaxBytes: eraseBytes}
}

// responses yields the person's responses, campaign by campaign. There is no index on addresses,
// since it would slow down every new response.
func (w *erasure) responses(ctx context.Context) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		for c, err := range w.campaignsOf(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			for r, err := range w.responsesOf(ctx, c.Key(), ResponseFilter{Email: w.email, AnyCase: true}) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// campaignsOf yields the account's campaigns.
func (w *erasure) campaignsOf(ctx context.Context) iter.Seq2[*Campaign, error] {
	return All(erasePages(), func(page PageQuery) (Page[Campaign], error) {
		return w.store.Campaigns(ctx, CampaignQuery{AccountID: w.receipt.AccountID, Page: page})
	})
}

// responsesOf yields the responses of a campaign that match the filter, oldest first.
func (w *erasure) responsesOf(ctx context.Context, key CampaignKey, filter ResponseFilter) iter.Seq2[*Response, error] {
	return All(erasePages(), func(page PageQuery) (Page[Response], error) {
		return w.store.Responses(ctx, ResponseQuery{AccountID: key.AccountID, CampaignID: key.ID, Filter: filter, NoTotal: true, Page: page})
	})
}

// signatures yields the person's signatures, of any response.
func (w *erasure) signatures(ctx context.Context) iter.Seq2[*Signature, error] {
	return All(erasePages(), func(page PageQuery) (Page[Signature], error) {
		return w.store.SignaturesBy(ctx, w.receipt.AccountID, w.email, page)
	})
}

// events yields the events about the person's own responses, and those that name the person.
func (w *erasure) events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		q := EventQuery{AccountID: w.receipt.AccountID, Limit: MaxLimit, Early: true}.Clamped()
		for more := true; more; {
			page, err := w.store.Events(ctx, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				event := &page.Items[i]
				if (w.own[event.ResponseID] || w.named(event.Payload)) && !yield(event, nil) {
					return
				}
			}
			more, q.After = page.More, page.Next
		}
	}
}

// named reports whether a payload names the person as user, signer or actor.
func (w *erasure) named(payload []byte) bool {
	acted := func(id ID) bool { return strings.Contains(string(payload), string(id)) }
	if !strings.Contains(fold(string(payload)), w.folded) && !slices.ContainsFunc(w.members, acted) {
		return false // payloads all write the part before the domain with the same bytes
	}
	type user struct {
		User   struct{ Email string } `json:"user"`
		Signer struct{ Email string } `json:"signer"`
	}
	var v struct {
		Data struct {
			Response  user            `json:"response"`
			Signature user            `json:"signature"`
			Actor     struct{ ID ID } `json:"actor"`
		} `json:"data"`
	}
	if err := json.Unmarshal(payload, &v); err != nil {
		return true // written by another program: its structure is unknown
	}
	email := FoldEmail(w.email)
	return slices.Contains(w.members, v.Data.Actor.ID) || FoldEmail(v.Data.Response.User.Email) == email || FoldEmail(v.Data.Signature.Signer.Email) == email
}
