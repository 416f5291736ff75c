package main

import (
	"database/sql"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

func TestOrderAndResponseCommitTogether(t *testing.T) {
	db := must(sql.Open("pgx", postgrestest.DSN(t)))
	t.Cleanup(func() { _ = db.Close() })
	ctx := t.Context()
	forms, campaign, err := setUp(ctx, db)
	noError(t, err)
	must(order(ctx, db, forms, campaign, "a bicycle"))
	must(db.ExecContext(ctx, "ALTER TABLE orders ADD CHECK (what <> 'nonsense')"))
	if _, err := order(ctx, db, forms, campaign, "nonsense"); err == nil {
		t.Error("the host's constraint did not hold")
	}
	page := must(forms.Responses.List(ctx, formsvc.ResponseQuery{AccountID: campaign.AccountID, CampaignID: campaign.ID}))
	var orders int
	noError(t, db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&orders))
	if page.Total != 1 || orders != 1 {
		t.Errorf("%d responses and %d orders, want 1 of each", page.Total, orders)
	}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
