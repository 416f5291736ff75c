package formsvc

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"time"
)

// Sizes of the atomic writes of an erasure, small enough that no request waits for one.
const (
	eraseUnit  = 100     // responses, signatures or events in an atomic write
	eraseBytes = 4 << 20 // of the responses that are in memory at once
	erasePause = 20 * time.Millisecond
)

// eraser does the work of an erasure and writes its receipt.
type eraser struct {
	*core

	opts    ErasureOptions
	receipt Receipt
}

func (e Erasure) work(account ID, opts *ErasureOptions) *eraser {
	w := &eraser{core: e.s}
	if opts != nil {
		w.opts = *opts
	}
	now := w.now()
	w.receipt = Receipt{ID: w.newID(now), AccountID: account, DryRun: w.opts.DryRun, StartedAt: now}
	return w
}

// audited runs an erasure between two entries in the audit trail.
func (w *eraser) audited(
	ctx context.Context, begun, done AuditAction, target ID, details map[string]string, erase func() error,
) error {
	if !w.opts.DryRun {
		if err := w.note(ctx, begun, target, details); err != nil {
			return err
		}
	}
	if err := erase(); err != nil {
		return err
	}
	if !w.opts.DryRun {
		w.scrub(ctx)
		counts := w.receipt.counts()
		maps.Copy(counts, details)
		if err := w.note(ctx, done, target, counts); err != nil {
			return err
		}
	}
	w.receipt.FinishedAt = w.now()
	return nil
}

// note adds an entry to the audit trail.
func (w *eraser) note(ctx context.Context, action AuditAction, target ID, details map[string]string) error {
	return w.store.Note(ctx, Change{Audit: w.audit(w.receipt.AccountID, action, target, details)})
}

// counts returns the totals for an entry of the audit trail.
func (t *ErasedTotals) counts() map[string]string {
	counts := make(map[string]string)
	for name, n := range map[string]int{
		"responses": t.Responses, "files": t.Files, "comments": t.Comments, "signatures": t.Signatures, "events": t.Events,
		"deliveries": t.Deliveries, "attempts": t.Attempts, "notices": t.Notices, "answers": t.Answers,
	} {
		counts[name] = strconv.Itoa(n)
	}
	return counts
}

// found removes the responses of a campaign that match the filter, oldest first.
func (w *eraser) found(ctx context.Context, key CampaignKey, filter ResponseFilter) error {
	q := ResponseQuery{
		AccountID: key.AccountID, CampaignID: key.ID, Filter: filter, NoTotal: true,
		Page: PageQuery{Limit: eraseUnit, Ascending: true, MaxBytes: eraseBytes},
	}
	for {
		page, err := w.store.Responses(ctx, q)
		if err != nil {
			return err
		}
		var e Erasing
		for i := range page.Items {
			e.Responses = append(e.Responses, ResponseKey{AccountID: key.AccountID, CampaignID: key.ID, ID: page.Items[i].ID})
		}
		if err := w.unit(ctx, e); err != nil {
			return err
		}
		if !page.More || len(page.Items) == 0 {
			return nil
		}
		q.Page.After = page.Items[len(page.Items)-1].ID
	}
}

// unit removes what e says, or counts it in a dry run, and pauses.
func (w *eraser) unit(ctx context.Context, e Erasing) error {
	if len(e.Responses)+len(e.Signatures)+len(e.Events) == 0 && !e.Refusals {
		return ctx.Err()
	}
	e.AccountID, e.DryRun = w.receipt.AccountID, w.opts.DryRun
	out, err := w.store.Erase(ctx, e, Change{})
	if err != nil {
		return err
	}
	w.receipt.Add(&out.ErasedTotals)
	if !w.opts.DryRun {
		w.removeBlobs(ctx, out.FileIDs)
	}
	if w.opts.Progress != nil && out.ErasedTotals != (ErasedTotals{}) {
		w.opts.Progress(w.receipt.ErasedTotals)
	}
	if w.opts.DryRun || w.bound || pause(ctx, erasePause) {
		return nil
	}
	return ctx.Err()
}

// removeBlobs removes the blobs of deleted files, even after ctx has ended.
func (w *eraser) removeBlobs(ctx context.Context, files []ID) {
	if w.bound || w.blobs == nil { // the transaction may be rolled back
		w.receipt.BlobsLeft += len(files)
		return
	}
	ctx = context.WithoutCancel(ctx)
	for _, id := range files {
		if !w.removeBlob(ctx, id) {
			w.receipt.BlobsLeft++
		}
	}
}

// dropLeftovers removes the remains of deleted webhooks, which can't be found by an owner.
func (w *eraser) dropLeftovers(ctx context.Context) error {
	if w.opts.DryRun {
		return nil
	}
	_, err := inUnits(ctx, func() (int, error) { return w.store.Prune(ctx, PruneEvents, time.Time{}, pruneBatch) })
	return err
}

// scrub makes the store overwrite what was removed.
func (w *eraser) scrub(ctx context.Context) {
	if w.bound || w.receipt.IsZero() {
		return
	}
	if err := w.store.Scrub(ctx); err != nil {
		w.logger.LogAttrs(ctx, slog.LevelWarn, "what was erased is not overwritten in the log of the database yet",
			slog.Any("error", err))
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
