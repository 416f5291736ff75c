package scale

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/formsvc"
)

const (
	anyTargets   = 4096 // responses that are read in turn
	emailTargets = 64   // addresses that are searched for in turn
	latelyCount  = 20   // responses since the time of updatedWhat
	createTo     = 1    // the campaign that gets new responses; its account has one webhook
)

// world returns the identifiers that requests to a campaign need.
func (s *history) world(campaign int) *database.World {
	return &database.World{Key: s.accounts[campaign%accountCount].key, Campaign: s.campaigns[campaign]}
}

// requests returns the requests that a measurement sends.
func (in *installation) requests(ctx context.Context, what, addr string) (loadgen.Workload, error) {
	big := in.world(0)
	load := loadgen.Workload{Status: 200}
	switch what {
	case bench.CreateWhat:
		return in.world(createTo).Creates()
	case randomWhat:
		return in.anyOf(), nil
	case scaleFirstWhat:
		return big.List(), nil
	case scaleFarWhat:
		return big.Deep(ctx, addr, in.n/bigShare)
	case feedStartWhat:
		load.Requests = [][]byte{big.Request("GET", eventsPath, nil)}
	case feedEndWhat:
		return in.feedEnd(ctx, big, addr)
	case newestWhat:
		load.Requests = [][]byte{big.Request("GET", eventsPath+"&order=desc", nil)}
	case logWhat:
		load.Requests = [][]byte{big.Request("GET", in.deliveriesPath(), nil)}
	case deliveredWhat:
		load.Requests = [][]byte{big.Request("GET", in.deliveriesPath()+"&state=delivered", nil)}
	default:
		for _, f := range in.filters(what) {
			load.Requests = append(load.Requests, big.Request("GET", big.ListPath()+"?limit="+strconv.Itoa(bench.PageSize)+"&"+queryOf(&f), nil))
		}
	}
	return load, nil
}

const eventsPath = "/v1/events?limit=20" // bench.PageSize

func (in *installation) deliveriesPath() string {
	return "/v1/webhooks/" + string(in.accounts[0].hook) + "/deliveries?limit=" + strconv.Itoa(bench.PageSize)
}

// anyOf reads responses of every campaign.
func (in *installation) anyOf() loadgen.Workload {
	load := loadgen.Workload{Status: 200}
	for k := range min(anyTargets, in.n) {
		i := int(mixed(k) >> 8 % uint64(in.n)) //nolint:gosec // below n
		w := in.world(campaignOf(i))
		load.Requests = append(load.Requests, w.Request("GET", w.ListPath()+"/"+string(in.id(i, false)), nil))
	}
	return load
}

// filters returns the filters of the big campaign's list for a measurement.
func (in *installation) filters(what string) []formsvc.ResponseFilter {
	status := func(s string) []formsvc.ResponseFilter { return []formsvc.ResponseFilter{{Status: []string{s}}} }
	switch what {
	case commonWhat:
		return status(formsvc.StatusCompleted)
	case pendingWhat:
		return status(formsvc.StatusPending)
	case RareWhat:
		return status(rareStatus)
	case unknownWhat:
		return status("withdrawn")
	case strangerWhat:
		return []formsvc.ResponseFilter{{Email: "nobody@example.com"}}
	case updatedWhat:
		return []formsvc.ResponseFilter{{UpdatedAfter: in.at(max(0, in.n-latelyCount*bigShare))}}
	case emailWhat:
		size := in.n / bigShare
		list := make([]formsvc.ResponseFilter, min(emailTargets, size))
		for i := range list {
			list[i].Email = in.person(i * size / len(list) * bigShare).Email
		}
		return list
	}
	return nil
}

func queryOf(f *formsvc.ResponseFilter) string {
	q := url.Values{}
	for _, s := range f.Status {
		q.Add("status", s)
	}
	if f.Email != "" {
		q.Set("email", f.Email)
	}
	if !f.UpdatedAfter.IsZero() {
		q.Set("updatedAfter", f.UpdatedAfter.Format(time.RFC3339Nano))
	}
	return q.Encode()
}

// feedEnd reads the last page of the feed. Paging there takes long, so the position comes from the database and is put
// into a cursor of the server.
func (in *installation) feedEnd(ctx context.Context, w *database.World, addr string) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: 200}
	body, err := loadgen.Ask(ctx, addr, w.Request("GET", eventsPath, nil), load.Status)
	if err != nil {
		return load, fmt.Errorf("find a cursor: %w", err)
	}
	var page struct {
		NextCursor string `json:"nextCursor"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return load, fmt.Errorf("find a cursor: %w", err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(page.NextCursor)
	if err == nil && len(raw) < 17 {
		err = errors.New("it is too short")
	}
	if err != nil {
		return load, fmt.Errorf("find a cursor: %w", err)
	}
	commit, row, err := in.beforeLast(ctx)
	if err != nil {
		return load, fmt.Errorf("find a cursor: %w", err)
	}
	binary.BigEndian.PutUint64(raw[1:], commit)
	binary.BigEndian.PutUint64(raw[9:], row)
	load.Requests = [][]byte{w.Request("GET", eventsPath+"&cursor="+base64.RawURLEncoding.EncodeToString(raw), nil)}
	return load, nil
}

// beforeLast returns the position of the event before the last page of account 0.
func (in *installation) beforeLast(ctx context.Context) (commit, row uint64, err error) {
	columns, order := "xact, seq", "xact DESC, seq DESC"
	if in.store == bench.SQLiteStore {
		columns, order = "seq, 0", "seq DESC"
	}
	err = in.Use(func(db *sql.DB) error {
		query := fmt.Sprintf("SELECT %s FROM formsvc_events WHERE account_id = '%s' ORDER BY %s LIMIT 1 OFFSET %d",
			columns, in.accounts[0].id, order, bench.PageSize)
		return db.QueryRowContext(ctx, query).Scan(&commit, &row)
	})
	return commit, row, err
}
