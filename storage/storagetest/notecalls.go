package storagetest

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// The calls about comments and signatures.

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
	list, err := w.store.SignaturesBy(ctx, at[accountPart], "grace@example.com", "", 10)
	return len(list), err
}
