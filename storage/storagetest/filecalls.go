package storagetest

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// The calls about files, and the one that ends them.

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
	files, err := w.store.AllFiles(ctx, "", 10)
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
	files, err := w.store.DeleteResponse(ctx, at.responseKey())
	return len(files), err
}
