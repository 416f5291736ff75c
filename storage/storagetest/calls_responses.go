package storagetest

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// Calls about a response: its files, comments, signatures and erasure, and the audit trail.

func (w *world) callCreateFile(ctx context.Context, at *target) (int, error) {
	r := formsvc.Response{AccountID: at[accountPart], CampaignID: at[campaignPart], ID: at[responsePart]}
	return 0, w.store.CreateFile(ctx, w.newFile(&r), func(r *formsvc.Response) (formsvc.Change, error) {
		return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
	})
}

func (w *world) callFile(ctx context.Context, at *target) (int, error) {
	_, err := w.store.File(ctx, at.fileKey())
	return 0, err
}

func (w *world) callFiles(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Files(ctx, formsvc.FileQuery{
		AccountID: at[accountPart], CampaignID: at[campaignPart], ResponseID: at[responsePart],
	})
	return len(page.Items) + int(page.Total), err
}

func (w *world) callAllFiles(ctx context.Context, _ *target) (int, error) {
	files, err := allFiles(ctx, w.store, "", 10)
	return len(files), err
}

func (w *world) callUnknownFiles(ctx context.Context, at *target) (int, error) {
	unknown, err := w.store.UnknownFiles(ctx, []formsvc.ID{at[filePart], w.nextID()})
	return len(unknown), err
}

func (w *world) callBarFiles(ctx context.Context, at *target) (int, error) {
	barred, err := w.store.BarFiles(ctx, []formsvc.ID{at[filePart], w.nextID()})
	return len(barred), err
}

func (w *world) callDeleteResponse(ctx context.Context, at *target) (int, error) {
	files, err := w.store.DeleteResponse(ctx, at.responseKey(), nil)
	return len(files), err
}

func (w *world) callCreateComment(ctx context.Context, at *target) (int, error) {
	r := formsvc.Response{AccountID: at[accountPart], CampaignID: at[campaignPart], ID: at[responsePart]}
	return 0, w.store.CreateComment(ctx, w.newComment(&r), formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}})
}

func (w *world) callComments(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Comments(ctx, formsvc.CommentQuery{
		AccountID: at[accountPart], CampaignID: at[campaignPart], ResponseID: at[responsePart],
	})
	return len(page.Items) + int(page.Total), err
}

func (w *world) callCreateSignature(ctx context.Context, at *target) (int, error) {
	r := formsvc.Response{AccountID: at[accountPart], CampaignID: at[campaignPart], ID: at[responsePart]}
	_, err := w.store.CreateSignature(ctx, w.newSignature(&r),
		func(r *formsvc.Response, _ *formsvc.Signature) (formsvc.Change, error) {
			return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
		})
	return 0, err
}

func (w *world) callSignatures(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Signatures(ctx, formsvc.SignatureQuery{
		AccountID: at[accountPart], CampaignID: at[campaignPart], ResponseID: at[responsePart],
	})
	return len(page.Items) + int(page.Total), err
}

func (w *world) callSignaturesBy(ctx context.Context, at *target) (int, error) {
	list, err := signaturesBy(ctx, w.store, at[accountPart], "grace@example.com", "", 10)
	return len(list), err
}

func (w *world) callErase(ctx context.Context, at *target) (int, error) {
	e := formsvc.Erasing{AccountID: at[accountPart], Events: []formsvc.ID{at[eventPart]}}
	out, err := w.store.Erase(ctx, e, formsvc.Change{})
	return out.Events + out.Deliveries, err
}

func (w *world) callCountErasure(ctx context.Context, at *target) (int, error) {
	out, err := countErasure(ctx, w.store, formsvc.Erasing{
		AccountID: at[accountPart], Responses: []formsvc.ResponseKey{at.responseKey()},
	})
	return out.Responses + out.Files, err
}

func (w *world) callAppendAudit(ctx context.Context, at *target) (int, error) {
	return 0, audit(ctx, w.store, w.newAudit(at[accountPart]))
}

func (w *world) callAudit(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Audit(ctx, formsvc.AuditQuery{AccountID: at[accountPart]})
	return len(page.Items) + int(page.Total), err
}
