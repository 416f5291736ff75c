package storagetest

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// quotaCalls are all calls of a QuotaStore.
func quotaCalls() []call {
	return []call{
		{name: "TakeQuota", do: (*world).callTakeQuota},
		{name: "ReturnQuota", do: (*world).callReturnQuota},
		{name: "QuotaUse", do: (*world).callQuotaUse},
		{name: "PruneQuota", do: (*world).callPruneQuota},
	}
}

func (w *world) callTakeQuota(ctx context.Context, at *target) (int, error) {
	_, err := w.store.TakeQuota(ctx, take(at[keyPart], 1000, 1, 0))
	return 0, err
}

func (w *world) callReturnQuota(ctx context.Context, at *target) (int, error) {
	return 0, w.store.ReturnQuota(ctx, []formsvc.QuotaReturn{{Subject: at[keyPart], Start: start(), N: 1}})
}

func (w *world) callQuotaUse(ctx context.Context, at *target) (int, error) {
	list, err := w.store.QuotaUse(ctx, at[keyPart], time.Time{})
	return len(list), err
}

func (w *world) callPruneQuota(ctx context.Context, _ *target) (int, error) {
	return w.store.PruneQuota(ctx, time.Unix(0, 0), 10)
}
