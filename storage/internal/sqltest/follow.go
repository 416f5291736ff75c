package sqltest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A pair is two nodes on one database, with a campaign in each of two accounts.
type pair struct {
	Database
	nodes     []*formsvc.Service
	campaigns []formsvc.Campaign
}

func newPair(t *testing.T, d Database) *pair {
	t.Helper()
	p := &pair{Database: d}
	for i := range 2 {
		store := d.Open(t)
		if i == 0 {
			must(t, store.Migrate(t.Context()))
		}
		node, err := formsvc.New(store, nil)
		must(t, err)
		p.nodes = append(p.nodes, node)
	}
	for _, name := range []string{"a", "b"} {
		id, err := p.nodes[0].Accounts.Ensure(t.Context(), name)
		must(t, err)
		campaign, err := p.nodes[0].Campaigns.Create(t.Context(), id, formsvc.CampaignInput{Title: name})
		must(t, err)
		p.campaigns = append(p.campaigns, campaign)
	}
	return p
}

func submit(ctx context.Context, svc *formsvc.Service, c *formsvc.Campaign) (formsvc.Response, error) {
	return svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
}

// host submits a response in a transaction of the host, which stays open for a moment,
// and notifies the node; or it rolls back.
func (p *pair) host(ctx context.Context, node *formsvc.Service, c *formsvc.Campaign, keep bool) error {
	stop := errors.New("the host changed its mind")
	err := p.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := p.Bind(tx, nil)
		if err != nil {
			return err
		}
		if _, err := submit(ctx, node.With(bound), c); err != nil || keep {
			time.Sleep(time.Millisecond) // others commit meanwhile
			return err
		}
		return stop
	})
	node.Notify()
	if errors.Is(err, stop) {
		return nil
	}
	return err
}

// Why a follower starts again.
var (
	errMoved = errors.New("another node has handled these")
	errDied  = errors.New("the process died before its commit")
)

// followOnce has two nodes act on all events, in transactions that also store the
// position. Some of these fail. In the end each event has had its effect once.
func followOnce(t *testing.T, d Database) {
	p := newPair(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := d.DB.ExecContext(ctx, "CREATE TABLE effects (event TEXT)")
	must(t, err)
	_, err = d.DB.ExecContext(ctx, "CREATE TABLE followed (position TEXT)")
	must(t, err)
	_, err = d.DB.ExecContext(ctx, "INSERT INTO followed VALUES ('')")
	must(t, err)
	var followers, writers sync.WaitGroup
	for i, node := range p.nodes {
		random := rand.New(rand.NewPCG(60, uint64(i))) //nolint:gosec // the same in every run
		followers.Go(func() {
			for {
				if err := p.act(ctx, node, random); err == nil || ctx.Err() != nil {
					return
				} else if !errors.Is(err, errMoved) && !errors.Is(err, errDied) && !errors.Is(err, formsvc.ErrUnavailable) {
					t.Errorf("follow: %v", err)
					return
				}
			}
		})
	}
	const each = 12
	for i, node := range p.nodes {
		for _, c := range p.campaigns {
			writers.Go(func() {
				for n := range each {
					_, err := submit(ctx, node, &c)
					if err != nil {
						t.Errorf("submit: %v", err)
					}
					if err := p.host(ctx, node, &c, (n+i)%3 > 0); err != nil {
						t.Errorf("submit in the host's transaction: %v", err)
					}
				}
			})
		}
	}
	writers.Wait()
	for guard := time.Now().Add(2 * time.Minute); p.count(t, "DISTINCT event", "effects") <
		p.count(t, "*", "formsvc_events") && time.Now().Before(guard) && !t.Failed(); {
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	followers.Wait()
	events, effects := p.count(t, "*", "formsvc_events"), p.count(t, "*", "effects")
	if want := 2 * 2 * (each + each*2/3); events != want || effects != want {
		t.Errorf("%d events and %d effects, want %d of each", events, effects, want)
	}
}

func (p *pair) count(t *testing.T, what, table string) (n int) {
	t.Helper()
	must(t, p.DB.NewSelect().TableExpr(table).ColumnExpr("count("+what+")").Scan(t.Context(), &n))
	return n
}

// act follows from the position in the host's table until something fails.
func (p *pair) act(ctx context.Context, node *formsvc.Service, random *rand.Rand) error {
	var at string
	if err := p.DB.NewSelect().Table("followed").Column("position").Scan(ctx, &at); err != nil {
		return err
	}
	after, err := formsvc.ParseEventPosition(at)
	if err != nil {
		return err
	}
	q := formsvc.FollowQuery{AllAccounts: true, After: after, Limit: 3, Poll: 10 * time.Millisecond}
	return node.Events.Follow(ctx, q, func(ctx context.Context, events []formsvc.Event, next formsvc.EventPosition) error {
		err := p.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			moved, err := tx.ExecContext(ctx, "UPDATE followed SET position = ? WHERE position = ?", next.String(), at)
			if err != nil {
				return err
			}
			if n, err := moved.RowsAffected(); err != nil || n == 0 {
				return errors.Join(err, errMoved)
			}
			for i := range events {
				if _, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", string(events[i].ID)); err != nil {
					return err
				}
			}
			if random.IntN(4) == 0 {
				return errDied
			}
			return nil
		})
		if err == nil {
			at = next.String()
		}
		return err
	})
}

// followAtOnce notifies a follower that doesn't poll of a commit of the host.
func followAtOnce(t *testing.T, d Database) {
	p := newPair(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan formsvc.ID, 10)
	done := make(chan error, 1)
	go func() {
		q := formsvc.FollowQuery{AccountID: p.campaigns[0].AccountID, Poll: time.Hour}
		done <- p.nodes[0].Events.Follow(ctx, q, func(_ context.Context, events []formsvc.Event, _ formsvc.EventPosition) error {
			for i := range events {
				seen <- events[i].ResponseID
			}
			return nil
		})
	}()
	r, err := submit(ctx, p.nodes[0], &p.campaigns[0])
	must(t, err)
	if id := <-seen; id != r.ID {
		t.Errorf("an event about %s, want %s", id, r.ID)
	}
	must(t, p.host(ctx, p.nodes[0], &p.campaigns[0], true))
	<-seen // polling would take an hour
	cancel()
	must(t, <-done)
}
