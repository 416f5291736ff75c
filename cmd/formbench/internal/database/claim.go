package database

import (
	"context"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// Claimed is how many deliveries a measured claim takes.
const Claimed = 64

// Claim finds what is due and claims deliveries of endpoints, in equal shares.
func Claim(ctx context.Context, q delivery.Queue, endpoints []string) ([]delivery.Claim, time.Duration, error) {
	now := time.Now()
	req := delivery.ClaimRequest{Now: now, Lease: time.Minute}
	for i, id := range endpoints {
		n := Claimed*(i+1)/len(endpoints) - Claimed*i/len(endpoints)
		req.Shares = append(req.Shares, delivery.Share{Endpoint: id, N: n})
	}
	ready, err := q.Ready(ctx, now)
	if err != nil {
		return nil, 0, err
	}
	claims, err := q.Claim(ctx, req)
	took := time.Since(now)
	if err == nil && (len(claims) != Claimed || len(ready) < len(endpoints)) {
		err = fmt.Errorf("%d of %d deliveries were claimed, %d endpoints were ready", len(claims), Claimed, len(ready))
	}
	return claims, took, err
}
