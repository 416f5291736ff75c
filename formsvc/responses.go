package formsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// Responses creates, changes and lists responses. It is safe for concurrent use.
type Responses struct{ s *core }

// retries is how often a write is retried because the campaign changed meanwhile or the reference was taken.
const retries = 8

// Create adds a response with the status "pending" to an open campaign whose modules allow the answers, or with "spam" if
// it is to be held. The event "response.created" and its deliveries are in the same atomic write. Create fails with a
// *[ValidationError] or *[LimitError], with [ErrNotFound] for an unknown campaign, and with [ErrCampaignClosed].
// It fails with [ErrCampaignFull], [ErrChoiceFull] or [ErrAlreadyAnswered] if no place is left, which Check doesn't ask. If the
// reference is taken or the campaign has changed meanwhile, it retries a few times.
func (s Responses) Create(ctx context.Context, key CampaignKey, in ResponseInput) (_ Response, err error) {
	defer wrap(&err, "create response")
	return once(ctx, s.s, key.AccountID, func() (Response, error) { return s.create(ctx, key, in) })
}

func (s Responses) create(ctx context.Context, key CampaignKey, in ResponseInput) (Response, error) {
	v, answers := s.checkInput(&in)
	r := in.response(key, answers)
	limits, err := s.s.limits(ctx, key.AccountID)
	if err != nil {
		return Response{}, err
	}
	var elsewhere time.Duration
	var last error
	for range retries {
		now := s.s.now()
		r.ID, r.Reference, r.CreatedAt, r.UpdatedAt = s.s.NewID(now), s.s.newReference(now.Add(elsewhere)), now, now
		c, err := s.campaignFor(ctx, key, v, &in, &r)
		if err != nil {
			return Response{}, err
		}
		change := Change{Idempotency: record[Response](s.s, key.AccountID, r.ID, nil), Limit: limits.Responses, Places: c.takes(&r)}
		change.unlessHeld(&r, s.s.created(ctx, c, &r, now, in.FormToken != ""))
		last = s.s.store.CreateResponse(ctx, r, c.Version, change)
		switch {
		case last == nil:
			s.s.raised(key.AccountID)
			return r, nil
		case errors.Is(last, ErrStale):
			s.s.campaigns.drop(key)
		case errors.Is(last, ErrConflict): // try another reference
			elsewhere = rand.N(referenceCycle) //nolint:gosec // no secret; this moment's references may be used up
		default:
			return Response{}, limited(last, "responses", limits.Responses)
		}
	}
	return Response{}, fmt.Errorf("after %d attempts: %v: %w", retries, last, ErrUnavailable) //nolint:errorlint // it is no conflict of the caller's
}

// Check fails as Create would for this campaign, because of the input, of [Options.CheckResponse], or because the campaign is
// closed. It stores nothing.
func (s Responses) Check(ctx context.Context, c *Campaign, in ResponseInput) (err error) {
	defer wrap(&err, "check response")
	v, answers := s.checkInput(&in)
	r := in.response(c.Key(), answers)
	r.CreatedAt = s.s.now()
	r.UpdatedAt = r.CreatedAt
	return s.accepts(ctx, c, v, &in, &r)
}

// accepts adds the faults of the input that depend on the campaign to v, and fails if there are any, if it is closed, or
// if the host refuses r.
func (s Responses) accepts(ctx context.Context, c *Campaign, v ValidationError, in *ResponseInput, r *Response) error {
	if in.FormToken != "" && (!c.Form.Enabled || c.FormToken != in.FormToken) {
		return ErrNotFound
	}
	v.Fields = slices.Clip(v.Fields)
	v.requireUser(c, &in.User, true, true, true)
	answers := v.checkAnswers(&c.CampaignInput, in.Answers)
	if changed := len(answers) > 0 && &answers[0] != &in.Answers[0]; changed || in.changed { // encoding them costs as much as the rest
		r.Answers, in.changed = NewAnswers(answers...), changed
	}
	if in.FormToken != "" {
		v.checkDomains(in, c.Modules)
	}
	if !c.Accepts(s.s.now()) {
		return cmp.Or(v.err(), ErrCampaignClosed)
	}
	return s.s.allowed(ctx, c, nil, r, v)
}

// allowed returns v with the faults that the host finds in a response that is written, or its refusal if there are none.
func (c *core) allowed(ctx context.Context, campaign *Campaign, before, after *Response, v ValidationError) error {
	if c.CheckResponse == nil {
		return v.err()
	}
	written := *after // the host's to keep
	err := c.CheckResponse(ctx, campaign, before, &written)
	if faults, ok := errors.AsType[*ValidationError](err); ok {
		v.Fields = append(v.Fields, faults.Fields[:min(len(faults.Fields), maxFaults-len(v.Fields))]...)
		err = nil
	}
	return cmp.Or(v.err(), err)
}

// campaignFor returns the campaign if it accepts the input now. It checks the cached campaign first. If that accepts,
// the version check of the write confirms it; if not, and the stored campaign is another, that is checked.
func (s Responses) campaignFor(ctx context.Context, key CampaignKey, v ValidationError, in *ResponseInput, r *Response) (*Campaign, error) {
	cached, known := s.s.campaigns.get(key)
	var refused error
	if known {
		if refused = s.accepts(ctx, cached, v, in, r); refused == nil {
			return cached, nil
		}
	}
	c, err := s.s.store.Campaign(ctx, key)
	if err != nil {
		return nil, err
	}
	if known && c.Version == cached.Version {
		return nil, refused
	}
	s.s.campaigns.drop(key) // it may have another size now
	if size := c.Size(); size <= largestRemembered {
		s.s.campaigns.put(key, &c, size)
	}
	return &c, s.accepts(ctx, &c, v, in, r)
}

// Statuses returns the statuses that may follow from in a campaign, sorted. others is true if any other status
// may follow, too, as without statuses in the [Workflow].
func (s Responses) Statuses(c *Campaign, from string) (statuses []string, others bool) {
	return s.s.workflow(c).next(from)
}

// Update changes a response and raises the events of the change in one atomic write: "response.updated" for content,
// "response.status_changed" for the status, and "response.completed" if that status is final. A patch without effect
// raises no event. Entering a final status sets CompletedAt; changing to one that isn't final clears it. If the campaign
// changes meanwhile, it retries a few times. It fails with [ErrNotFound], [ErrStale], *[ValidationError]
// and *[TransitionError], and as Create does if the change needs a place and none is left.
func (s Responses) Update(ctx context.Context, key ResponseKey, patch ResponsePatch) (_ Response, err error) {
	defer wrap(&err, "update response")
	v := s.s.faults()
	if len(patch.Answers) > maxAnswers {
		v.add("/responses", "too_many", "must have at most %d members", maxAnswers)
		return Response{}, v.err()
	}
	c, err := s.s.store.Campaign(ctx, CampaignKey{AccountID: key.AccountID, ID: key.CampaignID})
	if err != nil {
		return Response{}, err
	}
	for range retries {
		var seen int64
		if seen, err = s.checkUpdate(ctx, &c, key, &patch, v); err != nil {
			return Response{}, err
		}
		var r Response
		r, err = s.s.store.UpdateResponse(ctx, key, func(r *Response) (Change, error) {
			if seen != 0 && seen != r.Version {
				return Change{}, errChanging
			}
			return s.s.applyPatch(ctx, &c, r, &patch, v)
		})
		if err == nil {
			s.s.raised(key.AccountID)
			return r, nil
		}
		if errors.Is(err, ErrStale) {
			now, failed := s.s.store.Campaign(ctx, c.Key())
			if failed != nil || now.Version == c.Version {
				return Response{}, cmp.Or(failed, err)
			}
			c, err = now, errChanging
		}
		if !errors.Is(err, errChanging) {
			return Response{}, err
		}
	}
	return Response{}, err
}

// errChanging means that a response or its campaign changed while another version of it was checked.
var errChanging = fmt.Errorf("the response or its campaign keeps changing: %w", ErrUnavailable)

// checkUpdate asks the host whether a response may change so, and returns the version that it saw: 0 for any. The host's code
// doesn't run in the store's transaction.
func (s Responses) checkUpdate(ctx context.Context, c *Campaign, key ResponseKey, patch *ResponsePatch, v ValidationError) (int64, error) {
	if s.s.CheckResponse == nil {
		return 0, nil
	}
	before, err := s.s.store.Response(ctx, key)
	if err != nil {
		return 0, err
	}
	after := before
	_, err = s.s.applyPatch(ctx, c, &after, patch, v)
	faults, invalid := errors.AsType[*ValidationError](err)
	switch {
	case invalid:
		return 0, s.s.allowed(ctx, c, &before, &after, *faults)
	case err != nil, after.Version == before.Version:
		return 0, err
	}
	return before.Version, s.s.allowed(ctx, c, &before, &after, ValidationError{})
}

// applyPatch applies the patch to r and returns its events. A store may call it again with the
// current response. v has the faults found so far.
func (c *core) applyPatch(
	ctx context.Context, campaign *Campaign, r *Response, patch *ResponsePatch, v ValidationError,
) (Change, error) {
	if patch.IfVersion != 0 && patch.IfVersion != r.Version {
		return Change{}, ErrStale
	}
	v.Fields = slices.Clip(v.Fields)
	before := *r
	previous, workflow := r.Status, c.workflow(campaign)
	if patch.Status != nil {
		v.checkStatus(workflow, *patch.Status)
		r.Status = *patch.Status
	}
	changes, err := mergeContent(&v, campaign, r, patch)
	if err != nil {
		return Change{}, err
	}
	if err := v.err(); err != nil {
		return Change{}, err
	}
	if err := workflow.allow(previous, r.Status); err != nil {
		return Change{}, err
	}
	moved := r.Status != previous
	if len(changes) == 0 && !moved {
		return Change{}, nil
	}
	now := c.now()
	if now.Before(r.UpdatedAt) { // set by another machine's clock
		now = r.UpdatedAt
	}
	r.Version++
	r.UpdatedAt = now
	finished := moved && workflow.final(r.Status)
	if moved {
		r.CompletedAt = time.Time{}
	}
	if finished {
		r.CompletedAt = now
	}
	change := Change{Places: campaign.moves(&before, r), CampaignVersion: campaign.Version}
	raise := func(t EventType, extra eventExtra) { change.add(c.newEvent(ctx, t, campaign, r, now, extra)) }
	switch {
	case r.Held == NotHeld:
		if len(changes) > 0 {
			raise(webhook.ResponseUpdated, eventExtra{changes: changes})
		}
		if moved {
			raise(webhook.ResponseStatusChanged, eventExtra{previousStatus: previous})
		}
	case moved:
		r.Held = NotHeld
		change.add(c.created(ctx, campaign, r, now, true))
		change.PerFile = c.uploads(ctx, campaign, *r, now)
	}
	if finished {
		raise(webhook.ResponseCompleted, eventExtra{previousStatus: previous})
	}
	return change, nil
}

// uploads returns the function that makes the event of a file that was uploaded while its response was held.
func (c *core) uploads(ctx context.Context, campaign *Campaign, r Response, now time.Time) func(*File) Event {
	return func(f *File) Event {
		return c.newEvent(ctx, webhook.FileUploaded, campaign, &r, now, eventExtra{member: "file", json: f.AppendJSON(nil)})
	}
}

// Get returns a response, or [ErrNotFound].
func (s Responses) Get(ctx context.Context, key ResponseKey) (_ Response, err error) {
	defer wrap(&err, "response")
	return s.s.store.Response(ctx, key)
}

// DeleteOptions are the optional settings of [Responses.Delete] and [Campaigns.Delete].
type DeleteOptions struct {
	IfVersion int64 // fail with ErrStale unless the record has this version. Defaults to any version
}

// Delete removes a response with its files, comments and signatures. It can't be undone. It raises
// "response.deleted", which only webhooks that name it get, unless the response is held, and adds an entry to the audit trail.
// Earlier events about the response stay, and those that are waiting are still delivered;
// [Accounts.ErasePerson] removes them too. It fails with [ErrNotFound] and [ErrStale].
//
// The blobs of the files are removed after the rows. [Files.Sweep] removes blobs that can't be
// removed then, and all of them if the Service is bound to a transaction ([Service.With]).
func (s Responses) Delete(ctx context.Context, key ResponseKey, opts *DeleteOptions) (err error) {
	defer wrap(&err, "delete response")
	files, err := s.s.store.DeleteResponse(ctx, key, func(r *Response) (Change, error) {
		if opts != nil && opts.IfVersion != 0 && opts.IfVersion != r.Version {
			return Change{}, ErrStale
		}
		var change Change
		change.unlessHeld(r, s.s.newEvent(ctx, webhook.ResponseDeleted, &Campaign{ID: r.CampaignID}, r, s.s.now(), eventExtra{}))
		change.Audit = s.s.audit(r.AccountID, AuditResponseDeleted, r.ID, map[string]string{"campaign": string(r.CampaignID)})
		return change, nil
	})
	if err != nil {
		return err
	}
	s.s.raised(key.AccountID)
	s.s.removeBlobs(ctx, files)
	return nil
}

// Counts returns how many responses of a campaign have each status, or [ErrNotFound]. Its cost doesn't depend on their number.
func (s Responses) Counts(ctx context.Context, key CampaignKey) (_ map[string]int64, err error) {
	defer wrap(&err, "count responses")
	return s.s.store.ResponseCounts(ctx, key)
}

// List returns a page of a campaign's responses, or [ErrNotFound].
func (s Responses) List(ctx context.Context, q ResponseQuery) (Page[Response], error) {
	return listed("responses", &q.Page, func() (Page[Response], error) { return s.s.store.Responses(ctx, q) })
}
