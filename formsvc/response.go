package formsvc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// A Response is what one person submitted to a campaign. It is never too old to be
// changed: its user and its status can be even when the campaign has been closed or
// has got other modules; its answers can be changed to what the modules allow by
// then.
type Response struct {
	ID          ID
	AccountID   ID
	CampaignID  ID
	Reference   string // human-readable, unique in the account
	Status      string // see [Workflow]
	User        User
	Answers     Answers
	Version     int64 // 1 for a new response, one more with every change
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time // when it entered a final status; zero while it is in none
}

// A User is the person who submitted a response.
type User struct {
	Email     string // required
	FirstName string // at most 200 characters
	LastName  string // at most 200 characters
}

// ResponseInput is what a new response needs.
type ResponseInput struct {
	User    User
	Answers []Answer
}

// A ResponsePatch says what to change in a response. What is nil stays.
type ResponsePatch struct {
	Status    *string
	Email     *string
	FirstName *string
	LastName  *string
	Answers   []AnswerPatch // in order, each module once; an answer not named stays
	IfVersion int64         // fail with ErrStale unless the response has this version; 0 means any
}

// An AnswerPatch sets the values of one module, or removes the answer.
type AnswerPatch struct {
	Answer
	Remove bool
}

// ResponseKey names one response of one campaign of one account.
type ResponseKey struct{ AccountID, CampaignID, ID ID }

// Key names the response.
func (r *Response) Key() ResponseKey {
	return ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
}

// ResponseFilter chooses responses of a campaign. What is zero does not count.
type ResponseFilter struct {
	Status        []string  // any of these
	Email         string    // exactly this address
	AnyCase       bool      // Email is compared as [SameEmail] does
	Reference     string    // exactly this reference
	CreatedAfter  time.Time // created later than this
	CreatedBefore time.Time // created earlier than this
	UpdatedAfter  time.Time // changed later than this
}

// IsZero reports whether the filter lets every response through.
func (f *ResponseFilter) IsZero() bool {
	return len(f.Status) == 0 && f.Email == "" && f.Reference == "" &&
		f.CreatedAfter.IsZero() && f.CreatedBefore.IsZero() && f.UpdatedAfter.IsZero()
}

// Match reports whether the filter lets the response through. Stores that
// filter by query must agree with it.
func (f *ResponseFilter) Match(r *Response) bool {
	status := len(f.Status) == 0
	for _, s := range f.Status {
		status = status || s == r.Status
	}
	return status &&
		(f.Email == "" || f.Email == r.User.Email || f.AnyCase && SameEmail(f.Email, r.User.Email)) &&
		(f.Reference == "" || f.Reference == r.Reference) &&
		(f.CreatedAfter.IsZero() || r.CreatedAt.After(f.CreatedAfter)) &&
		(f.CreatedBefore.IsZero() || r.CreatedAt.Before(f.CreatedBefore)) &&
		(f.UpdatedAfter.IsZero() || r.UpdatedAt.After(f.UpdatedAfter))
}

// ResponseQuery chooses responses of one campaign.
type ResponseQuery struct {
	AccountID  ID
	CampaignID ID
	Filter     ResponseFilter
	Page       PageQuery
	NoTotal    bool // don't count: Total is 0; for who reads page after page
	MaxBytes   int  // end the page with the response that brings the sum of [Response.Size] to this; 0 means no bound
}

// Size returns about how many bytes of memory the response takes.
func (r *Response) Size() int {
	const fixed = 320 // the struct, and identifiers
	return fixed + len(r.Reference) + len(r.Status) + len(r.User.Email) + len(r.User.FirstName) + len(r.User.LastName) +
		len(r.Answers.text)
}

// Responses takes, changes and lists responses. It is safe for concurrent use.
type Responses struct{ s *core }

// maxName bounds a first or last name, in characters.
const maxName = 200

// retries bounds how often a unit is decided anew because the campaign changed
// meanwhile or a reference was taken.
const retries = 8

// Create takes a new response while its campaign is open, if the campaign's modules
// allow the answers: it is pending, and "response.created" is on its way to every
// webhook that listens, all in one unit. It fails with a *[ValidationError], with
// [ErrNotFound] for an unknown campaign and with [ErrCampaignClosed]. One that finds
// its reference taken or its campaign changed is decided anew by itself, a few times.
func (s Responses) Create(ctx context.Context, key CampaignKey, in ResponseInput) (_ Response, err error) {
	defer s.s.span(&ctx, "Responses.Create").end(&err)
	v := s.s.faults()
	v.checkUser("/user", &in.User)
	v.checkNames(in.Answers)
	answers := NewAnswers(in.Answers...)
	reason, trace := "", s.s.traceParent(ctx)
	var elsewhere time.Duration
	for range retries {
		c, err := s.campaignFor(ctx, key, v, in.Answers)
		if err != nil {
			return Response{}, fmt.Errorf("formsvc: create response: %w", err)
		}
		now := s.s.now()
		r := Response{
			ID: s.s.newID(now), AccountID: key.AccountID, CampaignID: key.ID, Reference: s.s.newReference(now.Add(elsewhere)),
			Status: StatusPending, User: in.User, Answers: answers, Version: 1, CreatedAt: now, UpdatedAt: now,
		}
		change := Change{
			Events:      []Event{s.s.newEvent(webhook.ResponseCreated, c, &r, now, eventExtra{trace: trace})},
			Idempotency: s.s.record(&r),
		}
		err = s.s.store.CreateResponse(ctx, r, c.Version, change)
		switch {
		case err == nil:
			s.s.raised(key.AccountID)
			return r, nil
		case errors.Is(err, ErrStale):
			s.s.campaigns.drop(key)
			reason = "the campaign keeps changing"
		case errors.Is(err, ErrConflict): // draw another reference
			reason = "every reference that is drawn is taken"
			elsewhere = rand.N(referenceCycle) //nolint:gosec // no secret; this moment's references may be used up
		default:
			return Response{}, fmt.Errorf("formsvc: create response: %w", err)
		}
	}
	return Response{}, fmt.Errorf("formsvc: create response: %s: %w", reason, ErrUnavailable)
}

// campaignFor returns the campaign if it takes the answers now. It decides on
// a remembered campaign first; a yes is confirmed by the version check when the
// response is written, a no is decided again on a fresh one.
func (s Responses) campaignFor(
	ctx context.Context, key CampaignKey, v ValidationError, answers []Answer,
) (*Campaign, error) {
	decide := func(c *Campaign) error {
		v := ValidationError{Fields: v.Fields[:len(v.Fields):len(v.Fields)], given: v.given}
		v.checkAnswers(c.Modules, answers)
		if err := v.err(); err != nil {
			return err
		}
		if !c.accepts(s.s.now()) {
			return ErrCampaignClosed
		}
		return nil
	}
	if c, ok := s.s.campaigns.get(key); ok && decide(c) == nil {
		return c, nil
	}
	c, err := s.s.store.Campaign(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(c.Modules) > modulesRemembered {
		s.s.campaigns.drop(key)
	} else {
		s.s.campaigns.put(key, &c)
	}
	return &c, decide(&c)
}

// checkUser notes what is wrong with a person; pointer is where he is.
func (e *ValidationError) checkUser(pointer string, u *User) {
	switch {
	case u.Email == "":
		e.add(pointer+"/email", "required", "is required")
	case !validEmail(u.Email) || CheckText(u.Email) != nil:
		e.add(pointer+"/email", "invalid_email", "must be an e-mail address")
	}
	e.checkLine(pointer+"/firstName", u.FirstName, maxName)
	e.checkLine(pointer+"/lastName", u.LastName, maxName)
}

// Statuses returns the statuses that may follow one, sorted, and whether any other
// may follow, too, as where the [Workflow] names none.
func (s Responses) Statuses(from string) (statuses []string, others bool) {
	return s.s.workflow.next(from)
}

// Update changes a response in one unit, with the events of what changed:
// "response.updated" for content, "response.status_changed" for the status and
// "response.completed" when that status is final. A patch that changes nothing
// raises nothing. Entering a final status sets CompletedAt, leaving it for one that
// isn't final clears it. It fails with [ErrNotFound], *[ValidationError] and
// *[TransitionError].
//
// The patch is applied to the response as it is by then, or refused with [ErrStale]
// when IfVersion says which version the caller has seen and that is another. Answers
// are judged by the campaign as it was when the call began.
func (s Responses) Update(ctx context.Context, key ResponseKey, patch ResponsePatch) (_ Response, err error) {
	defer s.s.span(&ctx, "Responses.Update").end(&err)
	v := s.s.faults()
	if len(patch.Answers) > maxAnswers {
		v.add("/responses", "too_many", "must have at most %d members", maxAnswers)
		return Response{}, v.err()
	}
	c, err := s.s.store.Campaign(ctx, CampaignKey{AccountID: key.AccountID, ID: key.CampaignID})
	if err != nil {
		return Response{}, fmt.Errorf("formsvc: update response: %w", err)
	}
	trace := s.s.traceParent(ctx)
	r, err := s.s.store.UpdateResponse(ctx, key, func(r *Response) (Change, error) {
		return s.s.applyPatch(&c, r, &patch, v, trace)
	})
	if err != nil {
		return Response{}, fmt.Errorf("formsvc: update response: %w", err)
	}
	s.s.raised(key.AccountID)
	return r, nil
}

// applyPatch changes r as the patch says and returns the events of it. A store
// may call it again with the response as it is by then. v is what is wrong with the
// patch already.
func (c *core) applyPatch(
	campaign *Campaign, r *Response, patch *ResponsePatch, v ValidationError, trace string,
) (Change, error) {
	if patch.IfVersion != 0 && patch.IfVersion != r.Version {
		return Change{}, ErrStale
	}
	v.Fields = slices.Clip(v.Fields)
	previous := r.Status
	if patch.Status != nil {
		v.checkStatus(c.workflow, *patch.Status)
		r.Status = *patch.Status
	}
	changes, err := mergeContent(&v, campaign, r, patch)
	if err != nil {
		return Change{}, err
	}
	if err := v.err(); err != nil {
		return Change{}, err
	}
	if err := c.workflow.allow(previous, r.Status); err != nil {
		return Change{}, err
	}
	moved := r.Status != previous
	if len(changes) == 0 && !moved {
		return Change{}, nil
	}
	now := c.now()
	if now.Before(r.UpdatedAt) { // of another machine's clock
		now = r.UpdatedAt
	}
	r.Version++
	r.UpdatedAt = now
	finished := moved && c.workflow.final(r.Status)
	switch {
	case finished:
		r.CompletedAt = now
	case moved:
		r.CompletedAt = time.Time{}
	}
	var change Change
	if len(changes) > 0 {
		change.add(c.newEvent(webhook.ResponseUpdated, campaign, r, now, eventExtra{changes: changes, trace: trace}))
	}
	if moved {
		extra := eventExtra{previousStatus: previous, trace: trace}
		change.add(c.newEvent(webhook.ResponseStatusChanged, campaign, r, now, extra))
		if finished {
			change.add(c.newEvent(webhook.ResponseCompleted, campaign, r, now, extra))
		}
	}
	return change, nil
}

func (e *ValidationError) checkStatus(w *Workflow, status string) {
	if !isStatus(status) {
		e.add("/status", "invalid_value", "%s", statusRule)
	} else if !w.knows(status) {
		e.add("/status", "unknown_status", "is not a status of this service")
	}
}

// Get returns a response, or [ErrNotFound].
func (s Responses) Get(ctx context.Context, key ResponseKey) (_ Response, err error) {
	defer s.s.span(&ctx, "Responses.Get").end(&err)
	r, err := s.s.store.Response(ctx, key)
	if err != nil {
		return Response{}, fmt.Errorf("formsvc: response: %w", err)
	}
	return r, nil
}

// Delete removes a response with its files, comments and signatures, or fails with
// [ErrNotFound]. Events that are under way are still delivered. It raises none, and no endpoint calls
// it: it is for programs that decide what is kept.
//
// The blobs of the files go after the rows; those that can't be removed are left
// to [Files.Sweep]. So are all of them when the Service is [Service.With] a store
// in a transaction of the caller, which may be rolled back.
func (s Responses) Delete(ctx context.Context, key ResponseKey) (err error) {
	defer s.s.span(&ctx, "Responses.Delete").end(&err)
	files, err := s.s.store.DeleteResponse(ctx, key)
	if err != nil {
		return fmt.Errorf("formsvc: delete response: %w", err)
	}
	if s.s.bound || s.s.blobs == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	for _, id := range files {
		s.s.removeBlob(ctx, id)
	}
	return nil
}

// List returns a page of a campaign's responses, or [ErrNotFound].
func (s Responses) List(ctx context.Context, q ResponseQuery) (_ Page[Response], err error) {
	defer s.s.span(&ctx, "Responses.List").end(&err)
	q.Page = q.Page.Clamped()
	page, err := s.s.store.Responses(ctx, q)
	if err != nil {
		return Page[Response]{}, fmt.Errorf("formsvc: responses: %w", err)
	}
	return page, nil
}
