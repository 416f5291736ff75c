package storagetest

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// The calls of erasures and of the audit trail.

func (w *world) callErase(ctx context.Context, at *target) (int, error) {
	e := formsvc.Erasing{AccountID: at[accountPart], Events: []formsvc.ID{at[eventPart]}}
	out, err := w.store.Erase(ctx, e, formsvc.Change{})
	return out.Events + out.Deliveries, err
}

func (w *world) callCountErasure(ctx context.Context, at *target) (int, error) {
	out, err := w.store.CountErasure(ctx, formsvc.Erasing{
		AccountID: at[accountPart], Responses: []formsvc.ResponseKey{at.responseKey()},
	})
	return out.Responses + out.Files, err
}

func (w *world) callAppendAudit(ctx context.Context, at *target) (int, error) {
	return 0, w.store.AppendAudit(ctx, w.newAudit(at[accountPart]))
}

func (w *world) callAudit(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Audit(ctx, formsvc.AuditQuery{AccountID: at[accountPart]})
	return len(page.Items) + int(page.Total), err
}
