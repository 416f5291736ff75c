package bunstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type campaignRow struct {
	bun.BaseModel `bun:"table:formsvc_campaigns,alias:c"`

	ID          ID `bun:",pk"`
	AccountID   ID
	Title       string
	Description string
	Status      string
	OpensAt     int64
	ClosesAt    int64
	Modules     string // JSON, encoded here: bun's own encoder rewrites some strings
	Metadata    string // JSON

	EmailOptional bool
	RequireName   bool
	Form          string // JSON
	Views         string // JSON
	Workflow      string
	TimeZone      string
	FormToken     string `bun:",nullzero"`

	Version   int64
	CreatedAt int64
	UpdatedAt int64
	Responses int64 `bun:",scanonly"`
}

// A storedModule is a module without its methods, so that its choices are stored apart from their labels: as releases without labels read them.
type storedModule formsvc.Module

func newCampaignRow(c *formsvc.Campaign) (*campaignRow, error) {
	list := make([]storedModule, len(c.Modules))
	for i := range list {
		list[i] = storedModule(c.Modules[i])
	}
	modules, err1 := json.Marshal(list, json.OmitZeroStructFields(true))
	form, err2 := json.Marshal(c.Form, json.OmitZeroStructFields(true))
	metadata, err3 := json.Marshal(c.Metadata)
	views, err4 := json.Marshal(c.Views)
	if err := errors.Join(checkIDs(c.ID), formsvc.CheckText(c.FormToken), formsvc.CheckText(c.Texts()...), err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return &campaignRow{
		Form: string(form), Views: string(views), RequireName: c.RequireName, Workflow: c.Workflow, TimeZone: c.TimeZone, FormToken: c.FormToken,
		ID: ID(c.ID), AccountID: ID(c.AccountID), Title: c.Title, Description: c.Description,
		Status: string(c.Status), OpensAt: micros(c.OpensAt), ClosesAt: micros(c.ClosesAt),
		Modules: string(modules), Metadata: string(metadata), EmailOptional: c.EmailOptional, Version: c.Version,
		CreatedAt: micros(c.CreatedAt), UpdatedAt: micros(c.UpdatedAt),
	}, nil
}

func (r *campaignRow) campaign() (formsvc.Campaign, error) {
	c := formsvc.Campaign{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), FormToken: r.FormToken, ResponseCount: r.Responses, Version: r.Version,
		CreatedAt: fromMicros(r.CreatedAt), UpdatedAt: fromMicros(r.UpdatedAt),
		CampaignInput: formsvc.CampaignInput{
			Title: r.Title, Description: r.Description, Status: formsvc.CampaignStatus(r.Status),
			OpensAt: fromMicros(r.OpensAt), ClosesAt: fromMicros(r.ClosesAt), EmailOptional: r.EmailOptional, RequireName: r.RequireName, Workflow: r.Workflow, TimeZone: r.TimeZone,
		},
	}
	read := func(text string, v any) error {
		if text == "[]" || text == "{}" { // what was nil stays nil
			return nil
		}
		return json.Unmarshal([]byte(text), v)
	}
	var modules []storedModule
	if err := errors.Join(read(r.Modules, &modules), read(r.Form, &c.Form), read(r.Metadata, &c.Metadata), read(r.Views, &c.Views)); err != nil {
		return formsvc.Campaign{}, fmt.Errorf("bunstore: campaign %s: %w", r.ID, err)
	}
	for i := range modules {
		c.Modules = append(c.Modules, formsvc.Module(modules[i]))
	}
	return c, nil
}

// countResponses adds up a campaign's counter rows.
const countResponses = "(SELECT coalesce(sum(n.responses), 0) FROM formsvc_counters AS n WHERE n.campaign_id = c.id)"

func (s *Store) selectCampaigns(c bun.IConn, model any) *bun.SelectQuery {
	return s.build.NewSelect().Conn(c).Model(model).ColumnExpr("?TableColumns").
		ColumnExpr("CAST(" + countResponses + " AS BIGINT) AS responses")
}

// CreateCampaign implements formsvc.CampaignStore.
func (s *Store) CreateCampaign(ctx context.Context, campaign formsvc.Campaign, change formsvc.Change) error {
	row, err := newCampaignRow(&campaign)
	if err != nil {
		return err
	}
	return s.write(ctx, ids(campaign.AccountID), &change, func(ctx context.Context, c *Tx) error {
		// The count is also the check that the account exists.
		var n int
		err := s.build.NewUpdate().Conn(c).Table("formsvc_accounts").Set("campaigns = campaigns + 1").
			Where("id = ?", row.AccountID).Returning("campaigns").Scan(ctx, &n)
		if err != nil {
			return s.notFound(err)
		}
		if change.Limit > 0 && n > change.Limit {
			return formsvc.ErrLimit
		}
		_, err = s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
		return err
	})
}

// UpdateCampaign implements formsvc.CampaignStore.
func (s *Store) UpdateCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) (formsvc.Change, error),
) (formsvc.Campaign, error) {
	var campaign formsvc.Campaign
	err := s.write(ctx, ids(key.AccountID, key.ID), nil, func(ctx context.Context, c *Tx) (err error) {
		var row campaignRow
		q := s.selectCampaigns(c, &row).Where("c.account_id = ? AND c.id = ?", ID(key.AccountID), ID(key.ID))
		if err := s.notFound(s.locked(q, "").Scan(ctx)); err != nil {
			return err
		}
		if campaign, err = row.campaign(); err != nil {
			return err
		}
		if err = decided(ctx, s, c, &campaign, decide); err != nil {
			return err
		}
		if views := campaign.Views; campaign.Version == row.Version {
			if campaign, err = row.campaign(); err != nil {
				return err
			}
			campaign.Views = views
		}
		changed, err := newCampaignRow(&campaign)
		if err != nil {
			return err
		}
		if _, err = s.build.NewUpdate().Conn(c).Model(changed).ExcludeColumn("id", "account_id", "created_at").WherePK().Exec(ctx); err != nil {
			return err
		}
		changed.Responses = row.Responses
		campaign, err = changed.campaign()
		return err
	})
	if err != nil {
		return formsvc.Campaign{}, err
	}
	return campaign, nil
}

// DeleteCampaign implements formsvc.CampaignStore.
func (s *Store) DeleteCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) (formsvc.Change, error),
) error {
	return s.write(ctx, ids(key.AccountID, key.ID), nil, func(ctx context.Context, c *Tx) error {
		row, err := lockRow[campaignRow](ctx, s, c, "c.account_id = ? AND c.id = ?", ID(key.AccountID), ID(key.ID))
		if err != nil {
			return err
		}
		// A response that is being created holds a row, or fails by the foreign key of a new one.
		var counts []int64
		err = s.build.NewDelete().Conn(c).Table("formsvc_counters").Where("campaign_id = ?", ID(key.ID)).
			Returning("responses").Scan(ctx, &counts)
		if err != nil {
			return err
		}
		for _, n := range counts {
			row.Responses += n
		}
		if row.Responses > 0 {
			return formsvc.ErrCampaignNotEmpty
		}
		if _, err := s.build.NewDelete().Conn(c).Table("formsvc_statuses").Where("campaign_id = ?", ID(key.ID)).Exec(ctx); err != nil {
			return err
		}
		campaign, err := row.campaign()
		if err != nil {
			return err
		}
		if _, err := s.build.NewDelete().Conn(c).Model(&row).WherePK().Exec(ctx); err != nil {
			return err
		}
		if _, err := s.build.NewUpdate().Conn(c).Table("formsvc_accounts").
			Set("campaigns = campaigns - 1").Where("id = ?", ID(key.AccountID)).Exec(ctx); err != nil {
			return err
		}
		return decided(ctx, s, c, &campaign, decide)
	})
}

// Campaign implements formsvc.CampaignStore.
func (s *Store) Campaign(ctx context.Context, key formsvc.CampaignKey) (formsvc.Campaign, error) {
	if err := s.ready(ctx, key.AccountID, key.ID); err != nil {
		return formsvc.Campaign{}, err
	}
	return s.oneCampaign(ctx, "c.account_id = ? AND c.id = ?", ID(key.AccountID), ID(key.ID))
}

// CampaignByForm implements formsvc.CampaignStore.
func (s *Store) CampaignByForm(ctx context.Context, token string) (formsvc.Campaign, error) {
	if err := cmp.Or(s.ready(ctx), formsvc.CheckText(token)); err != nil {
		return formsvc.Campaign{}, err
	}
	return s.oneCampaign(ctx, "c.form_token = ?", token)
}

func (s *Store) oneCampaign(ctx context.Context, where string, args ...any) (formsvc.Campaign, error) {
	var row campaignRow
	if err := s.selectCampaigns(s.read, &row).Where(where, args...).Scan(ctx); err != nil {
		return formsvc.Campaign{}, s.notFound(err)
	}
	return row.campaign()
}

// Campaigns implements formsvc.CampaignStore.
func (s *Store) Campaigns(ctx context.Context, q formsvc.CampaignQuery) (formsvc.Page[formsvc.Campaign], error) {
	var page formsvc.Page[formsvc.Campaign]
	if err := s.ready(ctx, q.AccountID); err != nil {
		return page, noneWhenNotFound(err)
	}
	q.Page = q.Page.Clamped()
	if finds := q.Finds(); finds != nil {
		return s.searchCampaigns(ctx, q, finds)
	}
	err := s.build.NewSelect().Conn(s.read).Table("formsvc_accounts").Column("campaigns").
		Where("id = ?", ID(q.AccountID)).Scan(ctx, &page.Total)
	if err != nil {
		return page, noneWhenNotFound(s.notFound(err))
	}
	sel := s.selectCampaigns(s.read, (*campaignRow)(nil)).Where("c.account_id = ?", ID(q.AccountID))
	page.Items, page.More, err = scanPage(ctx, paged(sel, "c.id", q.Page), q.Page, (*campaignRow).campaign, (*formsvc.Campaign).Size)
	return page, s.backend.Classify(err)
}

// searchCampaigns reads all titles and matches them in Go: databases fold case differently,
// and some fold only ASCII.
func (s *Store) searchCampaigns(
	ctx context.Context, q formsvc.CampaignQuery, finds func(title string) bool,
) (page formsvc.Page[formsvc.Campaign], err error) {
	var all []struct {
		ID    ID
		Title string
	}
	sel := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_campaigns AS c").Column("c.id", "c.title").Where("c.account_id = ?", ID(q.AccountID))
	if err := ordered(sel, "c.id", q.Page).Scan(ctx, &all); err != nil {
		return page, s.backend.Classify(err)
	}
	var ids []ID
	after, skip := ID(q.Page.After), q.Page.Offset
	for _, c := range all {
		if !finds(c.Title) {
			continue
		}
		page.Total++
		switch {
		case after != "" && (c.ID == after || c.ID > after != q.Page.Ascending):
		case skip > 0:
			skip--
		case len(ids) <= q.Page.Limit: // one more, as in paged
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return page, nil
	}
	found := s.selectCampaigns(s.read, (*campaignRow)(nil)).Where("c.id IN (?)", bun.List(ids))
	page.Items, page.More, err = scanPage(ctx, ordered(found, "c.id", q.Page), q.Page, (*campaignRow).campaign, (*formsvc.Campaign).Size)
	return page, s.backend.Classify(err)
}

// paged orders and limits a query. It asks for one row more than the page holds, to learn
// whether another page follows.
func paged(q *bun.SelectQuery, id string, p formsvc.PageQuery) *bun.SelectQuery {
	compare := " < ?"
	if p.Ascending {
		compare = " > ?"
	}
	if p.After != "" {
		q = q.Where(id+compare, ID(p.After))
	}
	return ordered(q, id, p).Limit(int64(p.Limit) + 1).Offset(int64(p.Offset))
}

func ordered(q *bun.SelectQuery, id string, p formsvc.PageQuery) *bun.SelectQuery {
	if p.Ascending {
		return q.OrderExpr(id + " ASC")
	}
	return q.OrderExpr(id + " DESC")
}

// scanPage reads the rows of a query of [paged] as far as the limit and q.MaxBytes go. more
// says that rows follow.
func scanPage[R, T any](
	ctx context.Context, sel *bun.SelectQuery, q formsvc.PageQuery, out func(*R) (T, error), size func(*T) int,
) (items []T, more bool, err error) {
	rows, err := sel.Rows(ctx)
	if err != nil {
		return nil, false, err
	}
	return pageOfRows(rows, q, func(item *T) (err error) {
		var row R
		if err = sel.DB().ScanRow(ctx, rows, &row); err == nil {
			*item, err = out(&row)
		}
		return err
	}, size)
}

// pageOfRows is scanPage for rows that scan reads. It closes them.
func pageOfRows[T any](
	rows *sql.Rows, q formsvc.PageQuery, scan func(*T) error, size func(*T) int,
) (items []T, more bool, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	items = make([]T, 0, min(q.Limit, 64))
	sum := 0
	for rows.Next() {
		if len(items) == q.Limit || q.MaxBytes > 0 && sum >= q.MaxBytes {
			return items, true, nil
		}
		items = append(items, *new(T))
		last := &items[len(items)-1]
		if err := scan(last); err != nil {
			return nil, false, err
		}
		sum += size(last)
	}
	return items, false, rows.Err()
}
