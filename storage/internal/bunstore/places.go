package bunstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A taken has how many places of campaigns are taken, by their key.
type taken map[formsvc.ID]map[string]int64

// full returns why a response can't have its places, or nil.
func (t taken) full(n *Creation) error {
	for _, p := range n.Change.Places {
		if p.Max >= 0 && t[n.Response.CampaignID][p.Key] >= int64(p.Max) {
			return p.Full
		}
	}
	return nil
}

const (
	// touchCampaign writes the row as it is, for the reason of touchAccount.
	touchCampaign = "UPDATE formsvc_campaigns SET version = version WHERE id = $1"
	selectTaken   = "SELECT '', CAST(coalesce(sum(n.responses), 0) AS BIGINT) FROM " + statusCounts + " WHERE n.status <> 'spam'" +
		" UNION ALL SELECT p.place, count(*) FROM formsvc_places AS p WHERE p.campaign_id = $1 AND p.place IN "
	insertPlaces = "INSERT INTO formsvc_places (campaign_id, place, response_id) "
	dropPlaces   = "DELETE FROM formsvc_places WHERE campaign_id = $1"
)

// placeSQL returns the statements that read and write many places, which get them as JSON.
func (d *Dialect) placeSQL() (taken, insert string) {
	if d.BinaryIDs {
		return selectTaken + "(SELECT value FROM json_each($2)) GROUP BY p.place", insertPlaces +
			"SELECT unhex(j.value ->> 0, '-'), j.value ->> 1, unhex(j.value ->> 2, '-') FROM json_each($1) AS j"
	}
	return selectTaken + "(SELECT json_array_elements_text($2::json)) GROUP BY p.place", insertPlaces +
		"SELECT (j.value ->> 0)::uuid, j.value ->> 1, (j.value ->> 2)::uuid FROM json_array_elements($1::json) AS j"
}

// count returns how many places of a campaign are taken.
func (k *Config) count(ctx context.Context, c bun.IConn, campaign formsvc.ID, keys []string) (map[string]int64, error) {
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int64)
	query, _ := k.Dialect.placeSQL()
	_, err = List(ctx, c, func(rows *sql.Rows, key *string) error {
		var n int64
		err := rows.Scan(key, &n)
		counts[*key] = n
		return err
	}, query, k.Dialect.arg(campaign), string(list))
	return counts, err
}

// asked returns how many of the places that responses ask for are taken, and keeps other calls from taking some of these campaigns
// until the transaction of c ends.
func (k *Config) asked(ctx context.Context, c bun.IConn, group []*Creation) (taken, error) {
	keys := make(map[formsvc.ID][]string)
	for _, n := range group {
		for _, p := range n.Change.Places {
			if p.Max >= 0 {
				keys[n.Response.CampaignID] = append(keys[n.Response.CampaignID], p.Key)
			}
		}
	}
	t := make(taken)
	for _, campaign := range slices.Sorted(maps.Keys(keys)) { // in one order, so that groups don't deadlock
		if k.Dialect.ManyWriters {
			if _, err := c.ExecContext(ctx, touchCampaign, k.Dialect.arg(campaign)); err != nil {
				return nil, err
			}
		}
		var err error
		if t[campaign], err = k.count(ctx, c, campaign, keys[campaign]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// take stores the places of responses that are written.
func (k *Config) take(ctx context.Context, c bun.IConn, list []*Creation) error {
	var rows [][3]string
	for _, n := range list {
		for _, p := range n.Change.Places {
			if p.Key != "" {
				rows = append(rows, [3]string{string(n.Response.CampaignID), p.Key, string(n.Response.ID)})
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	_, insert := k.Dialect.placeSQL()
	_, err = c.ExecContext(ctx, insert, string(text))
	return err
}

// heldVersion returns the version of a campaign, which a change of it waits to replace until the transaction of c ends. It comes
// before the lock of a response, as in recount.
func (s *Store) heldVersion(ctx context.Context, c bun.IConn, campaign formsvc.ID) (version int64, err error) {
	query := "SELECT version FROM formsvc_campaigns WHERE id = $1"
	if s.dialect.ManyWriters {
		query += " FOR KEY SHARE"
	}
	return version, s.notFound(c.QueryRowContext(ctx, query, s.dialect.arg(campaign)).Scan(&version))
}

// movePlaces gives a response that is about to be changed the places of its change.
func (s *Store) movePlaces(ctx context.Context, c bun.IConn, n *Creation) error {
	if n.Change.Places == nil {
		return nil
	}
	campaign, list := s.dialect.arg(n.Response.CampaignID), []*Creation{n}
	if _, err := c.ExecContext(ctx, dropPlaces+" AND response_id = $2", campaign, s.dialect.arg(n.Response.ID)); err != nil {
		return err
	}
	t, err := s.config.asked(ctx, c, list)
	if err = cmp.Or(err, t.full(n)); err != nil {
		return err
	}
	return s.config.take(ctx, c, list)
}

// recountBatch is how many responses have their places counted at a time.
const recountBatch = 1000

// recount locks all responses of a campaign, so that none is removed meanwhile.
func (s *Store) recount(ctx context.Context, c bun.IConn, of *formsvc.Recount) error {
	campaign := s.dialect.arg(of.Campaign.ID)
	if _, err := c.ExecContext(ctx, dropPlaces, campaign); err != nil {
		return err
	}
	query := "SELECT " + s.responses.columns + " FROM formsvc_responses WHERE campaign_id = $1 AND id > $2 ORDER BY id LIMIT $3" + s.lock("")
	for after := formsvc.FloorID(fromMicros(0)); ; {
		list, err := List(ctx, c, func(rows *sql.Rows, n **Creation) error {
			r := formsvc.Response{AccountID: of.Campaign.AccountID, CampaignID: of.Campaign.ID}
			err := scanResponse(rows, &r)
			*n = &Creation{Change: formsvc.Change{Places: of.Places(&r)}}
			(*n).Response.CampaignID, (*n).Response.ID = r.CampaignID, r.ID // answers may be long
			return err
		}, query, campaign, s.dialect.arg(after), recountBatch)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := s.config.take(ctx, c, list); err != nil {
			return err
		}
		after = list[len(list)-1].Response.ID
	}
}

// Taken implements formsvc.ResponseStore.
func (s *Store) Taken(ctx context.Context, key formsvc.CampaignKey, keys []string) (map[string]int64, error) {
	if _, err := s.Campaign(ctx, key); err != nil {
		return nil, err
	}
	counts, err := s.config.count(ctx, s.read, key.ID, keys)
	return counts, s.backend.Classify(err)
}
