package main

import (
	"database/sql"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

func TestOrderAndResponseCommitTogether(t *testing.T) {
	db, err := sql.Open("pgx", postgrestest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ctx := t.Context()
	forms, campaign, err := setUp(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := order(ctx, db, forms, campaign, "a bicycle"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "ALTER TABLE orders ADD CHECK (what <> 'nonsense')"); err != nil {
		t.Fatal(err)
	}
	if _, err := order(ctx, db, forms, campaign, "nonsense"); err == nil {
		t.Error("the host's constraint did not hold")
	}
	page, err := forms.Responses.List(ctx, formsvc.ResponseQuery{AccountID: campaign.AccountID, CampaignID: campaign.ID})
	if err != nil {
		t.Fatal(err)
	}
	var orders int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&orders); err != nil {
		t.Fatal(err)
	}
	if page.Total != 1 || orders != 1 {
		t.Errorf("%d responses and %d orders, want 1 of each", page.Total, orders)
	}
}
