package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type fileRow struct {
	bun.BaseModel `bun:"table:formsvc_files,alias:f"`

	ID          ID `bun:",pk"`
	AccountID   ID // NULL in a row that bars an identifier
	CampaignID  ID
	ResponseID  ID
	Name        string
	ContentType string
	Module      string
	Size        int64
	SHA256      []byte `bun:"sha256"`
	CreatedAt   int64
	Blocks      []byte
}

// newFileRow checks a file and returns its row.
func newFileRow(f *formsvc.File) (*fileRow, error) {
	if err := errors.Join(checkIDs(f.ID), formsvc.CheckText(f.Name, f.ContentType, f.Module)); err != nil {
		return nil, err
	}
	return &fileRow{
		ID: ID(f.ID), AccountID: ID(f.AccountID), CampaignID: ID(f.CampaignID), ResponseID: ID(f.ResponseID),
		Name: f.Name, ContentType: f.ContentType, Module: f.Module, Size: f.Size, SHA256: f.SHA256[:],
		CreatedAt: micros(f.CreatedAt), Blocks: f.Blocks,
	}, nil
}

func (r *fileRow) file() formsvc.File {
	f := formsvc.File{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), CampaignID: formsvc.ID(r.CampaignID),
		ResponseID: formsvc.ID(r.ResponseID), Name: r.Name, ContentType: r.ContentType, Module: r.Module, Size: r.Size,
		CreatedAt: fromMicros(r.CreatedAt),
	}
	copy(f.SHA256[:], r.SHA256)
	if len(r.Blocks) > 0 {
		f.Blocks = r.Blocks
	}
	return f
}

// CreateFile implements formsvc.FileStore.
func (s *Store) CreateFile(
	ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error),
) error {
	row, err := newFileRow(&f)
	if err != nil {
		return err
	}
	key := formsvc.ResponseKey{AccountID: f.AccountID, CampaignID: f.CampaignID, ID: f.ResponseID}
	return s.write(ctx, ids(f.AccountID, f.CampaignID, f.ResponseID), nil, func(ctx context.Context, c *Tx) (err error) {
		// The lock also keeps the response from being deleted before this commits.
		r, err := s.touchedResponse(ctx, c, key)
		limit := 0
		if err == nil {
			err = decided(ctx, s, c, &r, func(r *formsvc.Response) (formsvc.Change, error) {
				change, err := decide(r)
				limit = change.Limit
				return change, err
			})
		}
		if err == nil {
			err = s.addFileBytes(ctx, c, row.AccountID, f.Size, limit)
		}
		if err == nil {
			_, err = s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
		}
		return err
	})
}

// addFileBytes counts the bytes of files that were added or removed. It fails if the account then has more than limit,
// unless that is 0.
func (s *Store) addFileBytes(ctx context.Context, c bun.IConn, account ID, n int64, limit int) error {
	q := s.build.NewUpdate().Conn(c).Table("formsvc_accounts").Set("file_bytes = file_bytes + ?", n).Where("id = ?", account)
	if limit > 0 {
		q.Where("file_bytes + ? <= ?", n, limit)
	}
	result, err := q.Exec(ctx)
	if err = changedOne(result, err); errors.Is(err, formsvc.ErrNotFound) && limit > 0 {
		return formsvc.ErrLimit
	}
	return err
}

// File implements formsvc.FileStore.
func (s *Store) File(ctx context.Context, key formsvc.FileKey) (formsvc.File, error) {
	return one(ctx, s, (*fileRow).file, "f.account_id = ? AND f.id = ?", ID(key.AccountID), ID(key.ID))
}

// Files implements formsvc.FileStore.
func (s *Store) Files(
	ctx context.Context, key formsvc.ResponseKey, page formsvc.PageQuery,
) (formsvc.Page[formsvc.File], error) {
	return pageOfResponse(ctx, s, "f", key, page, (*fileRow).file, sizeless, "blocks")
}

// filesOf returns the files of a response, without Blocks, in the transaction of c.
func (s *Store) filesOf(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) ([]formsvc.File, error) {
	q := formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true}
	sel := ofResponse(s.build.NewSelect().Conn(c).Model((*fileRow)(nil)), "f", key).ExcludeColumn("blocks")
	list, _, err := scanPage(ctx, paged(sel, "f.id", q), q, sure((*fileRow).file), sizeless)
	return list, err
}

// AllFiles implements formsvc.FileStore.
func (s *Store) AllFiles(ctx context.Context, q formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
	return pageOf(ctx, s, "f.id", q, true, func(sel *bun.SelectQuery) *bun.SelectQuery {
		return sel.Where("f.account_id IS NOT NULL")
	}, sure((*fileRow).file), sizeless)
}

// fileBatch is up to how many identifiers of files one statement names: enough to share
// the cost of a call, and few enough to keep the statement's text short.
const fileBatch = 500

// UnknownFiles implements formsvc.FileStore.
func (s *Store) UnknownFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	known := make(map[formsvc.ID]bool)
	for some := range slices.Chunk(sortedIDs(ids), fileBatch) {
		if err := s.findFiles(ctx, s.read, some, "f.account_id IS NOT NULL", known); err != nil {
			return nil, s.backend.Classify(err)
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id formsvc.ID) bool { return known[id] }), nil
}

// BarFiles implements formsvc.FileStore. Text that isn't a canonical ID needs no row to
// be barred: no file can have it.
//
// A file and a bar are rows of one table, and its unique index admits only the first of
// them. The insert of the bars waits for a CreateFile that has inserted its file and not
// yet committed. The statement after it sees the outcome.
func (s *Store) BarFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	all := sortedIDs(ids)
	barred := make(map[formsvc.ID]bool, len(all))
	err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		clear(barred)
		for some := range slices.Chunk(all, fileBatch) {
			rows := make([]fileRow, len(some))
			for i, id := range some {
				rows[i].ID = id
			}
			if _, err := s.build.NewInsert().Conn(c).Model(&rows).Column("id").On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
				return err
			}
			if err := s.findFiles(ctx, c, some, "f.account_id IS NULL", barred); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id formsvc.ID) bool {
		return id.Valid() && !barred[id]
	}), nil
}

// sortedIDs returns the canonical identifiers, each once and in order, so that two calls
// that bar the same ones don't deadlock.
func sortedIDs[T ~string](ids []T) []ID {
	list := make([]ID, 0, len(ids))
	for _, id := range ids {
		if formsvc.ID(id).Valid() {
			list = append(list, ID(id))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// findFiles adds to found the identifiers that have a row of that kind.
func (s *Store) findFiles(
	ctx context.Context, c bun.IConn, ids []ID, kind string, found map[formsvc.ID]bool,
) error {
	var rows []ID
	err := s.build.NewSelect().Conn(c).TableExpr("formsvc_files AS f").Column("f.id").
		Where("f.id IN (?)", bun.List(ids)).Where(kind).Scan(ctx, &rows)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	for _, id := range rows {
		found[formsvc.ID(id)] = true
	}
	return nil
}
