package formsvc

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"
)

// An EraseQuery names the records that a store removes in one atomic write. Records that don't
// exist in the account are skipped.
type EraseQuery struct {
	AccountID ID
	// Responses are removed with their files, comments, signatures and events, and from their
	// campaigns' ResponseCount. Their references become free. Replies kept for idempotent retries
	// of calls about them lose their body, and get status 410.
	Responses []ResponseKey
	// Signatures are removed; the events about them stay.
	Signatures []ID
	// Events are removed with their deliveries, attempts and notices. Attempts under way continue,
	// and leave no record.
	Events []ID
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
}

// FoldEmail returns an address with ASCII letters in lower case. Two addresses belong to one person if
// they are the same then. Stores that filter by query must agree with it.
func FoldEmail(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// Erasure removes people's data and old responses, and exports people's data. It removes in small
// atomic writes with pauses, so that no request waits for it. It is safe for concurrent use. If it
// was interrupted, run it again: it continues with what is left.
//
// It can't remove what has already left the service: requests to webhooks, and backups.
type Erasure struct{ s *core }

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

// Person removes an account's data about the person with that e-mail address ([FoldEmail]):
//   - the responses of that user, with their files, comments, signatures and events, and the
//     deliveries, attempts and notices of these events;
//   - the person's signatures of other responses;
//   - stored events that name the person as user or signer, although the response is another
//     person's or was deleted;
//   - the replies kept for idempotent retries of calls about all of these, and the account's refusals
//     kept so, which may name the person.
//
// What others wrote about the person in answers and comments of other responses stays. Records
// submitted during the call may stay; run it again.
//
// The audit trail gets an entry before and one after, without personal data. If Person fails
// midway, it returns what it had removed by then. It fails with a *[ValidationError] for an invalid
// address, and with [ErrNotFound] for an unknown account.
func (e Erasure) Person(ctx context.Context, account ID, email string) (_ Receipt, err error) {
	defer wrap(&err, "erase")
	p, err := e.person(ctx, account, email)
	if err != nil {
		return Receipt{}, err
	}
	w := e.eraser(account)
	err = w.audited(ctx, AuditErasureBegun, AuditErasureDone, w.receipt.ID, nil, func() error {
		return w.person(ctx, p)
	})
	return w.receipt, err
}

// Older removes the responses of a campaign that were created longer than age ago, oldest first.
// With each it removes the files, comments, signatures and events, and the events' deliveries,
// attempts and notices. Those that are still waiting are no longer sent.
//
// The audit trail gets an entry before and one after. If Older fails midway, it returns what it had
// removed by then. It fails with a *[ValidationError] for an age that is not positive, and with
// [ErrNotFound] for an unknown campaign.
func (e Erasure) Older(ctx context.Context, key CampaignKey, age time.Duration) (_ Receipt, err error) {
	defer wrap(&err, "retention")
	if age <= 0 {
		return Receipt{}, invalid("/age", "invalid_value", "must be longer than 0")
	}
	if _, err := e.s.store.Campaign(ctx, key); err != nil {
		return Receipt{}, err
	}
	w := e.eraser(key.AccountID)
	w.receipt.CampaignID, w.receipt.Before = key.ID, w.receipt.StartedAt.Add(-age)
	details := map[string]string{"receipt": string(w.receipt.ID), "before": w.receipt.Before.Format(time.RFC3339)}
	err = w.audited(ctx, AuditRetentionBegun, AuditRetentionDone, key.ID, details, func() error {
		return w.responses(ctx, w.responsesOf(ctx, key, ResponseFilter{CreatedBefore: w.receipt.Before}))
	})
	return w.receipt, err
}

// Sizes of the atomic writes of an erasure, small enough that no request waits for one.
const (
	eraseUnit  = 100     // responses, signatures or events in an atomic write
	eraseBytes = 4 << 20 // of the responses that are in memory at once
	erasePause = 20 * time.Millisecond
)

// An eraser removes records in atomic writes of eraseUnit, and writes the receipt.
type eraser struct {
	*core

	receipt Receipt
	next    EraseQuery // what the next write removes
	n       int        // how many records it names
}

func (e Erasure) eraser(account ID) *eraser {
	now := e.s.now()
	return &eraser{core: e.s, receipt: Receipt{ID: e.s.NewID(now), AccountID: account, StartedAt: now}}
}

// audited runs an erasure between two entries in the audit trail.
func (w *eraser) audited(
	ctx context.Context, begun, done AuditAction, target ID, details map[string]string, erase func() error,
) error {
	err := w.note(ctx, begun, target, details)
	if err == nil { // the remains of deleted webhooks can't be found by their owner later
		_, err = w.prune(ctx, w.store.PruneEvents, time.Time{})
	}
	if err == nil {
		err = erase()
	}
	if err == nil {
		err = w.flush(ctx)
	}
	if err != nil {
		return err
	}
	w.scrub(ctx)
	counts := w.receipt.counts()
	maps.Copy(counts, details)
	if err := w.note(ctx, done, target, counts); err != nil {
		return err
	}
	w.receipt.FinishedAt = w.now()
	return nil
}

// note adds an entry to the audit trail.
func (w *eraser) note(ctx context.Context, action AuditAction, target ID, details map[string]string) error {
	return w.store.Commit(ctx, Change{Audit: w.audit(w.receipt.AccountID, action, target, details)})
}

// person removes the data of one person.
func (w *eraser) person(ctx context.Context, p *person) error {
	if err := w.responses(ctx, p.responses(ctx)); err != nil {
		return err
	}
	for sig, err := range p.signatures(ctx) {
		if err != nil {
			return err
		}
		w.next.Signatures, w.next.RepliesOf = append(w.next.Signatures, sig.ID), append(w.next.RepliesOf, sig.ResponseID)
		if err := w.added(ctx); err != nil {
			return err
		}
	}
	if err := w.flush(ctx); err != nil { // the events below are those that are left
		return err
	}
	for event, err := range p.events(ctx) {
		if err != nil {
			return err
		}
		if !p.named(event.Payload) {
			continue
		}
		w.next.Events, w.next.RepliesOf = append(w.next.Events, event.ID), append(w.next.RepliesOf, event.ResponseID)
		if err := w.added(ctx); err != nil {
			return err
		}
	}
	w.next.Refusals = true
	w.n++
	return nil
}

// responses removes responses.
func (w *eraser) responses(ctx context.Context, list iter.Seq2[*Response, error]) error {
	for r, err := range list {
		if err != nil {
			return err
		}
		w.next.Responses = append(w.next.Responses, r.Key())
		if err := w.added(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *eraser) added(ctx context.Context) error {
	if w.n++; w.n < eraseUnit {
		return nil
	}
	return w.flush(ctx)
}

// flush removes what was added, and pauses.
func (w *eraser) flush(ctx context.Context) error {
	if w.n == 0 {
		return ctx.Err()
	}
	w.next.AccountID = w.receipt.AccountID
	out, err := w.store.Erase(ctx, w.next)
	if err != nil {
		return err
	}
	w.next, w.n = EraseQuery{}, 0
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

// removeBlobs removes the blobs of deleted files, even after ctx has ended, and returns how many
// are left.
func (c *core) removeBlobs(ctx context.Context, files []ID) (left int) {
	if c.bound || c.Blobs == nil { // the transaction may be rolled back
		return len(files)
	}
	ctx = context.WithoutCancel(ctx)
	for _, id := range files {
		if !c.removeBlob(ctx, id) {
			left++
		}
	}
	return left
}

// scrub makes the store overwrite what was removed.
func (w *eraser) scrub(ctx context.Context) {
	if w.bound || w.receipt.IsZero() {
		return
	}
	if err := w.store.Scrub(ctx); err != nil {
		w.Logger.LogAttrs(ctx, slog.LevelWarn, "what was erased is not overwritten in the log of the database yet",
			slog.Any("error", err))
	}
}

// A person finds the data of a person.
type person struct {
	*core

	account ID
	email   string
	folded  string // the address as in a JSON string, without the quotes, in lower case
}

// person checks the input of an erasure or export.
func (e Erasure) person(ctx context.Context, account ID, email string) (*person, error) {
	if !validEmail(email) {
		return nil, invalid("/email", "invalid_email", "must be an e-mail address")
	}
	if _, err := e.s.store.Account(ctx, account); err != nil {
		return nil, err
	}
	text := appendString(nil, FoldEmail(email))
	return &person{core: e.s, account: account, email: email, folded: string(text[1 : len(text)-1])}, nil
}

// erasePages is the query for pages of records that are erased or exported.
func erasePages() PageQuery {
	return PageQuery{Limit: eraseUnit, Ascending: true, MaxBytes: eraseBytes}
}

// responses yields the person's responses, campaign by campaign. There is no index on addresses,
// since it would slow down every new response.
func (p *person) responses(ctx context.Context) iter.Seq2[*Response, error] {
	campaigns := records(erasePages(), func(page PageQuery) (Page[Campaign], error) {
		return p.store.Campaigns(ctx, CampaignQuery{AccountID: p.account, Page: page})
	})
	return func(yield func(*Response, error) bool) {
		for c, err := range campaigns {
			if err != nil {
				yield(nil, err)
				return
			}
			for r, err := range p.responsesOf(ctx, c.Key(), ResponseFilter{Email: p.email, AnyCase: true}) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// responsesOf yields the responses of a campaign that match the filter, oldest first.
func (c *core) responsesOf(ctx context.Context, key CampaignKey, filter ResponseFilter) iter.Seq2[*Response, error] {
	return records(erasePages(), func(page PageQuery) (Page[Response], error) {
		return c.store.Responses(ctx, ResponseQuery{AccountID: key.AccountID, CampaignID: key.ID, Filter: filter, NoTotal: true, Page: page})
	})
}

// signatures yields the person's signatures, of any response.
func (p *person) signatures(ctx context.Context) iter.Seq2[*Signature, error] {
	return records(erasePages(), func(page PageQuery) (Page[Signature], error) {
		return p.store.SignaturesBy(ctx, p.account, p.email, page)
	})
}

// events yields all events of the account.
func (p *person) events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		q := EventQuery{AccountID: p.account, Limit: MaxLimit, Early: true}.Clamped()
		for more := true; more; {
			page, err := p.store.Events(ctx, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			more, q.After = page.More, page.Next
		}
	}
}

// named reports whether a payload names the person as user or signer.
func (p *person) named(payload []byte) bool {
	if !strings.Contains(FoldEmail(string(payload)), p.folded) {
		return false // payloads all write an address with the same bytes
	}
	type user struct {
		User   struct{ Email string } `json:"user"`
		Signer struct{ Email string } `json:"signer"`
	}
	var v struct {
		Data struct {
			Response  user `json:"response"`
			Signature user `json:"signature"`
		} `json:"data"`
	}
	if err := json.Unmarshal(payload, &v); err != nil {
		return true // written by another program: its structure is unknown
	}
	email := FoldEmail(p.email)
	return FoldEmail(v.Data.Response.User.Email) == email || FoldEmail(v.Data.Signature.Signer.Email) == email
}
