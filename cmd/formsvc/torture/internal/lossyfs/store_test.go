//go:build linux

package lossyfs_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/lossyfs"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// storeRounds is the number of power losses.
const storeRounds = 20

// openResponses opens a store with one campaign and very frequent checkpoints of its log.
func openResponses(ctx context.Context, dir string) (*sqlite.Store, *formsvc.Service, formsvc.Campaign, error) {
	var campaign formsvc.Campaign
	store, err := sqlite.Open(ctx, filepath.Join(dir, "forms.db"), &sqlite.Options{LogSize: 200 << 10})
	if err != nil {
		return nil, nil, campaign, err
	}
	svc, err := formsvc.New(store, nil)
	if err != nil {
		return nil, nil, campaign, err
	}
	account, err := svc.Accounts.ByName(ctx, "a")
	if errors.Is(err, formsvc.ErrNotFound) {
		account, err = svc.Accounts.Create(ctx, "a")
	}
	if err != nil {
		return nil, nil, campaign, err
	}
	list, err := svc.Campaigns.List(ctx, formsvc.CampaignQuery{AccountID: account.ID})
	switch {
	case err != nil:
	case len(list.Items) > 0:
		campaign = list.Items[0]
	default:
		campaign, err = svc.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "c"})
	}
	return store, svc, campaign, err
}

func numbered(n int) formsvc.ResponseInput {
	return formsvc.ResponseInput{
		User:    formsvc.User{Email: "p" + strconv.Itoa(n) + "@example.com"},
		Answers: []formsvc.Answer{{Name: "q", Value: []string{strings.Repeat(strconv.Itoa(n)+" ", 300)}}},
	}
}

// writeResponses creates responses until it is killed, and prints the number of each when it is stored.
func writeResponses(dir string) error {
	ctx := context.Background()
	_, svc, campaign, err := openResponses(ctx, dir)
	if err != nil {
		return err
	}
	for n := int(campaign.ResponseCount) + 1; ; n++ {
		if _, err := svc.Responses.Create(ctx, campaign.Key(), numbered(n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// checkResponses fails unless the responses up to a number exist unchanged, and at most one more.
func checkResponses(dir, acknowledged string) error {
	want, err := strconv.Atoi(acknowledged)
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, svc, campaign, err := openResponses(ctx, dir)
	if err != nil {
		return err
	}
	n := 0
	for page := (formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true}); ; {
		list, err := svc.Responses.List(ctx, formsvc.ResponseQuery{AccountID: campaign.AccountID, CampaignID: campaign.ID, Page: page})
		if err != nil {
			return err
		}
		for i := range list.Items {
			n++
			in := numbered(n)
			if r := &list.Items[i]; r.User != in.User || r.Answers.JSON() != formsvc.NewAnswers(in.Answers...).JSON() {
				return fmt.Errorf("response %d is that of %s", n, r.User.Email)
			}
			page.After = list.Items[i].ID
		}
		if !list.More {
			break
		}
	}
	if n < want || n > want+1 || int64(n) != campaign.ResponseCount {
		return fmt.Errorf("%d responses, counted %d, and %d acknowledged", n, campaign.ResponseCount, want)
	}
	fmt.Println(n)
	return store.Close()
}

// TestStoreDuringCheckpoints loses power while the log of a store is checkpointed during writes.
func TestStoreDuringCheckpoints(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 13)
	dir := ""
	for round := range storeRounds {
		if round%roundsEach == 0 {
			dir = durableDir(t, f.Dir, fmt.Sprint(round))
		}
		said := killAfter(t, 100+round%roundsEach*60, 60*time.Millisecond, "responses", dir)
		f.PowerLoss(t)
		out, err := run(t, "check-responses", dir, said[len(said)-1])
		if err != nil {
			t.Errorf("round %d: %s", round, out)
			dir = durableDir(t, f.Dir, fmt.Sprintf("%d-again", round))
		}
	}
	if lost := f.Dropped(); lost.Pages < storeRounds/4 {
		t.Fatalf("INVALID: only %+v was lost, which proves nothing", lost)
	}
}
