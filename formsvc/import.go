package formsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/formsvc/toolkit/webhook"
)

// An ImportRow is a response from another system. Its FormToken isn't used.
type ImportRow struct {
	ResponseInput

	ID          ID        // "": one that is derived from CreatedAt and Reference; otherwise its time is that of CreatedAt
	Reference   string    // required, at most 64 characters, unique in the account
	Status      string    // see [Workflow]; "": pending, or spam if Held says why
	CreatedAt   time.Time // required
	UpdatedAt   time.Time // zero: CreatedAt
	CompletedAt time.Time // only of a final status, and then zero: UpdatedAt
}

// ImportOptions are the optional settings of [Responses.Import].
type ImportOptions struct {
	// Events raises "response.created" for each new response. Defaults to no events.
	Events bool
	// DryRun checks the rows and writes nothing. Defaults to writing.
	DryRun bool
}

// An ImportReport says what became of the rows.
type ImportReport struct {
	Imported int // or valid, with DryRun
	Existing int // skipped, because the reference or the ID is taken
	Faults   []ImportFault
}

// An ImportFault says why a row was left out.
type ImportFault struct {
	Row int   // 1 is the first
	Err error // a *[ValidationError], or a *[Refusal]
}

// A NewResponse is a response to add with its events.
type NewResponse struct {
	Response Response
	Events   []Event
	Places   []Place // as in [Change]
}

// importBatch is how many responses share an atomic write.
const importBatch = 200

// Import adds responses of another system to a campaign, which may be closed. Rows must be valid as for [Responses.Create],
// and the others are in the report. Import writes in batches, and skips rows whose reference or ID is taken: if it fails
// midway, or an error of rows ends it, call it again. Rows take places even if none is left: they are of the past. An [ErrInvalid] of rows is the fault of one row. It fails
// with [ErrNotFound] for an unknown campaign, and with a *[LimitError] at the first batch that exceeds the account's limit.
func (s Responses) Import(
	ctx context.Context, key CampaignKey, rows iter.Seq2[ImportRow, error], opts *ImportOptions,
) (report ImportReport, err error) {
	defer wrap(&err, "import responses")
	c, err := s.s.store.Campaign(ctx, key)
	if err != nil {
		return report, err
	}
	opts = cmp.Or(opts, new(ImportOptions))
	var batch []NewResponse
	n := 0
	for row, err := range rows {
		n++
		var r Response
		if err == nil {
			r, err = s.imported(ctx, &c, &row)
		}
		if _, refused := errors.AsType[*Refusal](err); refused || errors.Is(err, ErrInvalid) {
			report.Faults = append(report.Faults, ImportFault{n, err})
			continue
		}
		if err != nil {
			return report, err
		}
		fresh := NewResponse{Response: r}
		if opts.Events && r.Held == NotHeld {
			fresh.Events = []Event{s.s.newEvent(ctx, webhook.ResponseCreated, &c, &r, s.s.now(), eventExtra{})}
		}
		if batch = append(batch, fresh); len(batch) == importBatch {
			if err := s.importBatch(ctx, &c, batch, opts, &report); err != nil {
				return report, err
			}
			batch = batch[:0]
		}
	}
	return report, s.importBatch(ctx, &c, batch, opts, &report)
}

// importBatch writes responses, and again if others have changed the campaign or taken a reference meanwhile.
func (s Responses) importBatch(ctx context.Context, c *Campaign, batch []NewResponse, opts *ImportOptions, report *ImportReport) error {
	if opts.DryRun || len(batch) == 0 {
		report.Imported += len(batch)
		return ctx.Err()
	}
	limits, last := s.s.limits(ctx, c.AccountID)
	if last != nil {
		return last
	}
	for range retries {
		for i := range batch {
			batch[i].Places = c.moves(&batch[i].Response, &batch[i].Response) // in any case
		}
		var added int
		if added, last = s.s.store.ImportResponses(ctx, c.Key(), c.Version, batch, limits.Responses); last == nil {
			report.Imported += added
			report.Existing += len(batch) - added
			if opts.Events {
				s.s.raised(c.AccountID)
			}
			return nil
		}
		if !errors.Is(last, ErrStale) && !errors.Is(last, ErrConflict) {
			return limited(last, "responses", limits.Responses)
		}
		now, err := s.s.store.Campaign(ctx, c.Key())
		if err != nil {
			return err
		}
		*c = now
	}
	return fmt.Errorf("after %d attempts: %v: %w", retries, last, ErrUnavailable) //nolint:errorlint // as in create
}

// imported returns the response of a row, or why it can't be added.
func (s Responses) imported(ctx context.Context, c *Campaign, row *ImportRow) (Response, error) {
	v, _ := s.checkInput(&row.ResponseInput)
	v.requireUser(c, &row.User, true, true, true)
	answers := NewAnswers(v.checkAnswers(&c.CampaignInput, row.Answers)...)
	v.checkTitle("/reference", row.Reference, 64)
	workflow := s.s.workflow(c)
	r := row.response(c.Key(), answers)
	r.ID, r.Reference, r.Status = row.ID, row.Reference, cmp.Or(row.Status, r.Status)
	r.CreatedAt, r.UpdatedAt, r.CompletedAt = milliseconds(row.CreatedAt), milliseconds(row.UpdatedAt), milliseconds(row.CompletedAt)
	if r.Status != StatusSpam {
		r.Held = NotHeld
	}
	if r.Held == NotHeld {
		v.checkStatus(workflow, r.Status)
	}
	if r.UpdatedAt.IsZero() {
		r.UpdatedAt = r.CreatedAt
	}
	final := workflow.final(r.Status)
	if final && r.CompletedAt.IsZero() {
		r.CompletedAt = r.UpdatedAt
	}
	now := s.s.now()
	switch {
	case r.CreatedAt.Before(time.UnixMilli(0)) || r.CreatedAt.After(now):
		v.add("/createdAt", "invalid_value", "must be between 1970 and now")
	case r.UpdatedAt.Before(r.CreatedAt) || r.UpdatedAt.After(now):
		v.add("/updatedAt", "invalid_value", "must be between createdAt and now")
	case !r.CompletedAt.IsZero() && (!final || r.CompletedAt.Before(r.CreatedAt) || r.CompletedAt.After(now)):
		v.add("/completedAt", "invalid_value", "must be between createdAt and now, and the status final")
	}
	first := FloorID(r.CreatedAt)
	if r.ID == "" {
		at, _ := uuid.Parse(string(first))
		r.ID = derivedID(at[:6], []byte(string(c.ID)+r.Reference))
	}
	if !r.ID.Valid() || r.ID[:13] != first[:13] {
		v.add("/id", "invalid_value", "must be a UUID of version 7 with the time of createdAt")
	}
	return r, s.s.allowed(ctx, c, nil, &r, v)
}
